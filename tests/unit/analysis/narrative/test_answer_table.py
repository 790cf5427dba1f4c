"""Tests of the answer's table: every level against the baseline, one estimator, both sides named."""

from __future__ import annotations

import pytest

from steelyard.analysis import analyse
from steelyard.analysis.narrative.answer_table import AnswerRow, AnswerTable
from steelyard.analysis.results import Results
from steelyard.model.trial import TrialRecord
from tests.unit.analysis.made import cell, study

ONE = [[300.0, 330.0], [310.0, 320.0], [290.0, 320.0]]
TWO = [[330.0, 390.0], [320.0, 360.0], [350.0, 370.0]]
THREE = [[900.0, 950.0], [800.0, 900.0], [1000.0, 990.0]]


def _rows(records: list[TrialRecord], **changes: dict[str, object]) -> dict[str, AnswerRow]:
    table = _results(records, **changes).answer_table
    assert table is not None
    return {row.level_text: row for row in table.rows if row.line == "workload A"}


def _results(records: list[TrialRecord], **changes: dict[str, object]) -> Results:
    return analyse(records, study(**changes), seed=1)


def _three_levels() -> list[TrialRecord]:
    return [*cell(ONE, nodes=1), *cell(TWO, nodes=2), *cell(THREE, nodes=3)]


def test_that_every_level_stands_against_the_baseline() -> None:
    rows = _rows(_three_levels())
    assert [row.verdict for row in rows.values()] == ["baseline", "slower", "slower"]
    assert {row.baseline_text for row in rows.values()} == {"1 node"}
    assert rows["2 nodes"].change_text.startswith("+")
    assert "times as long [" in rows["3 nodes"].change_text
    assert rows["3 nodes"].n_text == "6 trials from 3 starts"


def test_that_the_values_have_the_ratio_as_quotient() -> None:
    for row in _rows(_three_levels()).values():
        if row.ratio is not None and row.value is not None and row.baseline_value is not None:
            assert row.value / row.baseline_value == pytest.approx(row.ratio.value, rel=1e-12)


def test_that_every_pair_is_there_from_three_levels_on() -> None:
    pairs = _results(_three_levels()).answer_pairs
    assert isinstance(pairs, AnswerTable)
    assert [(row.baseline_text, row.level_text) for row in pairs.rows] == [
        ("1 node", "2 nodes"), ("1 node", "3 nodes"), ("2 nodes", "3 nodes")]  # fmt: skip
    assert _results([*cell(ONE, nodes=1), *cell(THREE, nodes=3)]).answer_pairs is None


def test_that_two_starts_give_neither_interval_nor_verdict_nor_advice() -> None:
    row = _rows([*cell(ONE[:2], nodes=1), *cell(THREE[:2], nodes=3)])["3 nodes"]
    assert row.ratio is not None
    assert row.ratio.low is None
    assert row.verdict == "no verdict"
    assert "fewer than three starts" in row.why
    assert "block" not in row.why
    assert "[" not in row.change_text


def test_that_a_level_without_trials_is_named() -> None:
    rows = _rows([*cell(ONE, nodes=1), *cell(TWO, nodes=3), *cell(ONE, nodes=2, workload="C")])
    assert rows["2 nodes"].verdict == "no valid trial"
    assert rows["2 nodes"].change_text == ""


def test_that_equivalence_is_a_verdict() -> None:
    close = [[301.0, 330.0], [309.0, 321.0], [290.5, 320.0]]
    rows = _rows(
        [*cell(ONE, nodes=1), *cell(close, nodes=3)], analysis={"equivalence_margin_percent": 30.0}
    )  # fmt: skip
    assert rows["3 nodes"].verdict == "equivalent"
    assert "margin of 30%" in rows["3 nodes"].why


def test_that_a_table_survives_json() -> None:
    results = _results(_three_levels())
    assert Results.model_validate_json(results.model_dump_json()).answer_table == results.answer_table
