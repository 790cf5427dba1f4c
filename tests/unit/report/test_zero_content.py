"""The page has nothing that says nothing: no empty column, no key or caption of marks that are not drawn."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from html import unescape

import polars as pl
import pytest

from steelyard.analysis.analyse import analyse
from steelyard.format import NONE
from steelyard.reading.report_input import ReportInput
from steelyard.report.page import build
from tests.unit.report import synthetic
from tests.unit.report.test_page import page_input

PLAIN = {"workloads": ("A",), "warm_up_trials": 0}


def short(made: ReportInput) -> ReportInput:
    """Trials of one second: one reading of each node, no time course."""
    traces = []
    for trace in made.traces:
        record = trace.record
        span = record.measured_span
        assert span is not None
        one = trace.samples.filter(pl.col("t_s").is_between(span[0], span[0] + 1.5))
        traces.append(replace(trace, samples=one))
    lost = [record.key for record in made.records]
    return replace(made, traces=traces, timelines=[], curves=[], too_short=lost)


def idle(made: ReportInput) -> ReportInput:
    """Nodes whose disks nothing reads or writes."""
    disk = pl.col("metric").str.contains("disk")
    value = pl.when(disk).then(0.0).otherwise(pl.col("value"))
    traces = [replace(one, samples=one.samples.with_columns(value.alias("value"))) for one in made.traces]
    return replace(made, traces=traces)


def unprobed(made: ReportInput) -> ReportInput:
    """No probe."""
    return replace(made, traces=[])


SHAPES: dict[str, Callable[[], ReportInput]] = {
    "one factor, two levels": lambda: page_input(synthetic.study(**PLAIN, starts=3), faults=False),
    "short trials": lambda: short(page_input(synthetic.study(**PLAIN, starts=3), faults=False)),
    "idle disks": lambda: idle(page_input(synthetic.study(**PLAIN), faults=False)),
    "no probes": lambda: unprobed(page_input(synthetic.study(**PLAIN), faults=False)),
    "one block": lambda: page_input(synthetic.study(**PLAIN, starts=1), faults=False),
    "one treatment": lambda: page_input(synthetic.study(**PLAIN, nodes=(1,)), faults=False),
    "two factors": lambda: page_input(synthetic.study()),
    "six sizes": lambda: page_input(synthetic.study(nodes=(1, 2, 3, 4, 6, 8), workloads=("A", "E"), starts=3)),
}
EMPTY = ("", NONE)


@cache
def built(shape: str) -> str:
    """The page of one of the shapes."""
    return build(SHAPES[shape]())


@pytest.fixture(scope="module", params=SHAPES)
def shape(request: pytest.FixtureRequest) -> tuple[str, str]:
    return request.param, built(request.param)


def _text(html: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", html)).split())


def test_no_sentence_says_that_there_is_nothing(shape: tuple[str, str]) -> None:
    text = _text(shape[1].partition("<main>")[2].partition('<script type="application/json"')[0])
    for words in ("Nothing was left out", "first 0 ", "and so on", "The same with Holm", "0 or 1 trials"):
        assert words not in text


def test_no_column_is_empty(shape: tuple[str, str]) -> None:
    for name, table in re.findall(r'<table id="([^"]*)"(.*?)</table>', shape[1], re.DOTALL):
        rows = re.findall(r"<tr>(.*?)(?=<tr>|</tbody>)", table.partition("<tbody>")[2], re.DOTALL)
        cells = [[_text(cell) for cell in re.findall(r"<td[^>]*>(.*?)</td>", row, re.DOTALL)] for row in rows]
        for place, column in enumerate(zip(*cells, strict=True)):
            assert any(cell not in EMPTY for cell in column), (name, place)


def test_keys_and_captions_name_marks_that_are_drawn(shape: tuple[str, str]) -> None:
    for figure in re.findall(r"<figure.*?</figure>", shape[1], re.DOTALL):
        drawing = "".join(re.findall(r'<svg class="chart".*?</svg>', figure, re.DOTALL))
        caption = _text(figure.partition("<figcaption>")[2])
        for colour in re.findall(r'data-colour="([^"]*)"', figure):
            assert f'"{colour}"' in drawing, caption
        if re.search("dashed|dotted", caption, re.IGNORECASE):
            assert "stroke-dasharray" in drawing, caption
        if re.search("hollow", caption, re.IGNORECASE):
            assert 'fill="var(--paper)"' in drawing, caption


def test_each_definition_stands_once(shape: tuple[str, str]) -> None:
    for terms in re.findall(r'<dl class="terms">(.*?)</dl>', shape[1], re.DOTALL):
        texts = re.findall(r"<dd>(.*?)</dd>", terms, re.DOTALL)
        assert len(set(texts)) == len(texts)


def test_a_table_that_is_cut_says_so(shape: tuple[str, str]) -> None:
    for name, block in re.findall(r'<table id="table-([^"]*)"(.*?)</table>', shape[1], re.DOTALL):
        if len(re.findall("<tr>", block)) - 1 == 60:
            assert re.search(
                rf"The first 60 of [\d,]+ rows.{{0,300}}<table id=\"table-{name}\"", _before(shape[1], name)
            )


def _before(page: str, name: str) -> str:
    at = page.index(f'<table id="table-{name}"')
    return page[max(0, at - 600) : at + 40 + len(name)].replace("\n", " ")


def test_interactions_need_two_factors(shape: tuple[str, str]) -> None:
    name, page = shape
    assert ('<section id="interactions"' in page) == (name in ("two factors", "six sizes"))


def test_nodes_are_drawn_only_where_they_have_a_course() -> None:
    page = built("short trials")
    inside = page.partition('<section id="nodes"')[2].partition("</section>")[0]
    assert "<figure" not in inside
    assert "2 of these 2 trials have fewer than 3 readings of a node, too few to draw; the table has" in _text(inside)
    assert 'id="node-table"' in inside
    assert '<section id="nodes"' not in built("no probes")
    drawn = built("idle disks").partition('<section id="nodes"')[2].partition("</section>")[0]
    assert "Without disk: every reading is 0." in drawn
    assert "disk, MB/s" not in drawn


def test_the_row_of_the_table_is_not_said_again_below_it() -> None:
    page = built("one factor, two levels")
    answer = page.partition('<section id="answer"')[2].partition("</section>")[0]
    shown = re.sub(r"<details.*?</details>", "", answer, flags=re.DOTALL)
    assert "geometric means of 9 trials from 3 starts each" not in _text(shown)
    assert "The same in words" in answer


def test_one_node_is_not_all_nodes() -> None:
    study = synthetic.study(**PLAIN, nodes=(1,))
    records = synthetic.records(study, faults=False)
    page = build(ReportInput(study=study, results=analyse(records, study, seed=1), records=records))
    assert "all nodes on one machine" not in page
    assert "node and load on one machine" in page
