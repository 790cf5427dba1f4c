"""What a notebook shows of a store: answer, limits, figures, comparisons; and nothing of a store as markup."""

from __future__ import annotations

import html
from dataclasses import replace
from pathlib import Path

import pytest

import steelyard
from steelyard.analysis.narrative.answer_parts import parts_of
from steelyard.report.notebook import read
from tests.unit.report import synthetic


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return synthetic.stored(tmp_path)


def test_a_reading_in_a_cell_shows_answer_and_limits_and_no_markup_of_the_store(store: Path) -> None:
    reading = read(store)
    shown = reading._repr_html_()
    caveats = reading.results.caveats
    parts = parts_of(reading.results)
    answer = (*parts.lead, *parts.beside)
    assert answer or parts.in_words
    assert all(shown.count(html.escape(text)) == 1 for text in (*answer, *caveats))
    hostile = reading.study.study.model_copy(update={"title": "<script>"})
    changed = replace(reading, study=reading.study.model_copy(update={"study": hostile}))
    assert "<script>" not in changed._repr_html_()
    assert "&lt;script&gt;" in changed._repr_html_()


def test_a_reading_in_a_cell_has_the_first_table_and_the_main_figure(store: Path) -> None:
    reading = steelyard.read(store)
    shown = reading._repr_html_()
    table = reading.results.answer_table
    assert table is not None
    assert all(f"<td>{html.escape(row.value_text)}</td>" in shown for row in table.rows if row.value_text)
    assert reading.figure("main")._repr_html_() in shown
    assert shown.count("<svg") == len(reading.figures["main"].panels)
    with pytest.raises(KeyError, match="no figure 'forrest': did you mean forest"):
        reading.figure("forrest")


def test_a_comparison_in_a_cell_is_a_table_with_its_limits(store: Path) -> None:
    reading = read(store)
    comparison = reading.compare(a={"nodes": 1}, b={"nodes": 3})
    shown = comparison._repr_html_()
    assert all(html.escape(text) in shown for text in comparison.limits)
    assert comparison.table["verdict"].to_list() == [one.verdict for one in comparison.contrasts]
    assert comparison.table["change_percent"].to_list() == [one.change_percent.value for one in comparison.contrasts]
    assert len(repr(comparison)) < 120


def test_the_value_that_the_page_quotes_is_in_the_frame(store: Path) -> None:
    reading = read(store)
    table = reading.results.answer_table
    assert table is not None
    values = reading.estimates.filter(response=table.response)["geometric_mean"].to_list()
    assert {row.value for row in table.rows} <= set(values)
