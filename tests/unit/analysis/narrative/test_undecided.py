"""Undecided rows in words: bounds by the ends of their intervals, and what would decide."""

from __future__ import annotations

import pytest

from steelyard.analysis.narrative.answer_table import AnswerRow, AnswerTable
from steelyard.analysis.narrative.undecided import explanation, in_words
from steelyard.model.estimate import Estimate


def row(line: str, low: float, high: float, to_decide: str = "+246 blocks, 9.7 h", cheaper: str = "") -> AnswerRow:
    ratio = Estimate(value=(low * high) ** 0.5, low=low, high=high, n=3, unit="", method="")
    return AnswerRow(
        line=line, factor="system.compression", level="lz4", level_text="compression lz4", baseline="none",
        baseline_text="compression none", ratio=ratio, verdict="undecided", verdict_text="undecided",
        to_decide=to_decide, cheaper=cheaper,
    )  # fmt: skip


def table(*rows: AnswerRow, response: str = "execution_time_ms") -> AnswerTable:
    return AnswerTable(
        response=response, response_label="", unit="ms", factor="system.compression", confidence=0.95, caption="",
        rows=rows,
    )  # fmt: skip


def test_one_row_has_both_bounds_and_the_cheaper_question() -> None:
    assert in_words(table(row("", 0.73, 1.44, cheaper="+24 blocks, 57 min"))) == (
        "If slower, by less than 44%; if faster, by less than 27%. To show the change as measured: 246 more blocks, "
        "9.7 h; to show that it changes less than 10%: 24 more blocks, 57 min, each with a chance of 80%."
    )


@pytest.mark.parametrize(
    ("response", "low", "high", "bounds"),
    [
        (
            "execution_time_ms",
            0.4,
            2.4,
            "If slower, less than 2.4 times as long; if faster, by less than 60%.",
        ),
        ("throughput_per_s", 0.73, 1.44, "If faster, by less than 44%; if slower, by less than 27%."),
        ("response_ms_p99", 0.73, 1.44, "If higher, by less than 44%; if lower, by less than 27%."),
        ("execution_time_ms", 0.5, 11.0, "If faster, by less than 50%."),
        ("execution_time_ms", 0.01, 11.0, "The interval bounds it neither way within tenfold."),
    ],
)
def test_bounds_are_worded_for_the_response(response: str, low: float, high: float, bounds: str) -> None:
    assert in_words(table(row("", low, high), response=response)).startswith(f"{bounds} To show")


def test_several_rows_are_one_sentence_of_bounds() -> None:
    rows = (row("64 threads", 0.86, 1.1), row("128 threads", 0.73, 1.67), row("256 threads", 0.7, 12))
    assert in_words(table(*rows)) == (
        "Undecided in 3 rows: if slower, by less than 10% (64 threads) to less than 67% (128 threads), without a "
        "bound in 1; if faster, by less than 14% (64 threads) to less than 30% (256 threads)."
    )
    assert in_words(table()) == ""
    assert in_words(None) == ""


def test_the_columns_are_explained_once() -> None:
    one = row("", 0.7, 1.2, "24 blocks, 5 h")
    assert explanation([one]) == (
        "To decide: blocks of a new study that would show the change as measured with a chance of 80%."
    )
    mixed = [one, row("", 0.7, 1.2, "+12 blocks, 2 h", "+3 blocks, 30 min")]
    assert explanation(mixed) == (
        "To decide: further blocks (+) or blocks of a new study that would show the change as measured with a chance "
        "of 80%, uncorrected; within ±10%: to show that it is smaller."
    )
    within = [row("", 0.7, 1.2, "±5%: +12 blocks, 2 h")]
    assert "(with ±: that it lies within)" in explanation(within)
    assert explanation([one.model_copy(update={"to_decide": ""})]) == ""
