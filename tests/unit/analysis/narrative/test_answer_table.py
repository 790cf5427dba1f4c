"""Tests of the answer's table: every level against the baseline, one estimator, both sides named."""

from __future__ import annotations

import pytest

from steelyard.analysis.analyse import analyse
from steelyard.analysis.narrative.answer_table import AnswerRow, AnswerTable
from steelyard.analysis.results import Results
from steelyard.analysis.wording import capital
from steelyard.model.trial import TrialRecord
from tests.unit.analysis.made import cell, record, study

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


LISTED = [{"nodes": 1, "workload": "A"}, {"nodes": 3, "workload": "A"}, {"nodes": 6, "workload": "A"},
          {"nodes": 1, "workload": "C"}, {"nodes": 3, "workload": "E"}, {"nodes": 6, "workload": "E"}]  # fmt: skip


def test_that_levels_outside_the_design_are_not_missing() -> None:
    """Of workload C one size is planned, of E no baseline, of A all; nothing was measured of A on 6 nodes."""
    records = [
        *cell(ONE, nodes=1), *cell(THREE, nodes=3), *cell(ONE, nodes=1, workload="C"),
        *cell(TWO, nodes=3, workload="E"), *cell(THREE, nodes=6, workload="E"),
    ]  # fmt: skip
    factors = {"nodes": (1, 3, 6), "workload": ("A", "C", "E")}
    results = _results(records, design={"kind": "listed", "treatments": LISTED}, factors=factors)
    assert results.answer_table is not None
    assert [(row.line, row.level, row.verdict) for row in results.answer_table.rows] == [
        ("workload A", 1, "baseline"), ("workload A", 3, "slower"), ("workload A", 6, "no valid trial"),
        ("workload C", 1, "baseline"), ("workload E", 3, "no verdict"), ("workload E", 6, "no verdict"),
    ]  # fmt: skip
    assert {row.why for row in results.answer_table.rows[4:]} == {"1 node is not part of the design here"}
    assert any(one.endswith("no verdict, because 1 node is not part of the design here.") for one in results.answer)
    assert results.answer_pairs is not None
    assert [(row.line, row.baseline, row.level) for row in results.answer_pairs.rows] == [
        ("workload A", 1, 3), ("workload A", 1, 6), ("workload A", 3, 6), ("workload E", 3, 6),
    ]  # fmt: skip


def test_that_a_line_without_a_baseline_is_compared_by_another_factor() -> None:
    """On one node there is no replica that could confirm."""
    listed = [{"nodes": 1, "workload": "A", "confirmed": "none"}]
    listed += [{"nodes": 3, "workload": "A", "confirmed": by} for by in ("none", "one", "both")]
    records = [
        *cell(ONE, nodes=1, extra={"confirmed": "none"}), *cell(TWO, nodes=3, extra={"confirmed": "none"}),
        *cell(THREE, nodes=3, extra={"confirmed": "one"}), *cell(THREE, nodes=3, extra={"confirmed": "both"}),
    ]  # fmt: skip
    factors = {"nodes": (1, 3), "workload": ("A",), "confirmed": ("none", "one", "both")}
    results = _results(records, design={"kind": "listed", "treatments": listed}, factors=factors)
    assert results.answer_table is not None
    assert [(row.level_text, row.baseline_text, row.verdict) for row in results.answer_table.rows] == [
        ("1 node", "1 node", "baseline"), ("3 nodes", "1 node", "undecided"),
        ("confirmed none", "confirmed none", "baseline"), ("confirmed one", "confirmed none", "slower"),
        ("confirmed both", "confirmed none", "slower"),
    ]  # fmt: skip
    assert results.answer_table.rows[-1].line == "workload A, 3 nodes"
    assert any("with confirmed none; against that" in sentence for sentence in results.answer)


def test_that_a_one_at_a_time_design_lacks_no_combination() -> None:
    records = [*cell(ONE, nodes=1), *cell(THREE, nodes=3), *cell(TWO, nodes=1, workload="C")]
    results = _results(records, design={"kind": "one-at-a-time"})
    assert results.answer_table is not None
    assert [(row.line, row.level) for row in results.answer_table.rows] == [
        ("workload A", 1), ("workload A", 3), ("workload C", 1)]  # fmt: skip
    assert not any("has no valid trial" in one for one in (*results.answer, *results.caveats))


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


def test_that_no_level_vanishes_where_the_baseline_has_no_value() -> None:
    """Valid trials without a value: of too few operations for the percentile that is asked for."""
    rates = {100: None, 400: 15.0, 600: 5.0}
    records = [
        record(value, replicate=place, order=place, extra={"load.rate_per_s": rate})
        for place, (rate, value) in enumerate(rates.items(), start=1)
    ]
    results = _results(records, factors={"load.rate_per_s": tuple(rates)})
    assert results.answer_table is not None
    assert [(row.level, row.verdict) for row in results.answer_table.rows] == [
        (100, "no value"), (400, "no verdict"), (600, "no verdict")]  # fmt: skip
    assert results.of(AnswerRow) == results.answer_table.rows
    assert results.answer[0] == (
        "Workload A, 1 node took 15.0 ms with rate_per_s 400 and 5.00 ms with rate_per_s 600 (geometric "
        "means of 1 trial from 1 start each): no verdict, because rate_per_s 100 has too few operations per trial "
        "for this percentile, so there is no baseline."
    )


def test_that_the_name_of_a_setting_keeps_its_small_letter() -> None:
    assert capital("load.rate_per_s 100 has no valid trial") == "load.rate_per_s 100 has no valid trial"
    assert capital("workload A took 3 ms.") == "Workload A took 3 ms."
