"""What a study that was ended by its intervals says of itself: the table of how narrow they are, and what to mind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from steelyard.analysis.columns import Column
from steelyard.analysis.results import LABELS, label
from steelyard.format import count
from steelyard.judging.stopping_rule import SIMULATED_CONFIDENCE, Decision, Narrowing, coverage_percent, plus_minus

TITLE = "How narrow the intervals were when the stopping rule was asked last"
MOST_NAMED = 4
COLUMNS = (
    Column("response", "response whose intervals were judged", pl.String, lambda one: one[0].rule.response),
    Column("starts", "start means that the interval rests on", pl.Int64, lambda one: one[1].n),
    Column(
        "half_width_percent",
        "half of the t interval over start means, per cent of their mean",
        pl.Float64,
        lambda one: one[1].half_width_percent,
    ),
    Column(
        "width_percent", "narrow enough: at most this half width, per cent", pl.Float64,
        lambda one: one[0].rule.width_percent,
    ),
    Column("state", "too few starts, narrowing, too wide, narrow enough, not waited for", pl.String,
           lambda one: one[1].state),
    Column(
        "system_faults", "trials in which the system under test failed", pl.Int64, lambda one: one[1].faults
    ),
)  # fmt: skip


def rows(decision: Decision | None) -> list[tuple[Mapping[str, Any], Any]]:
    """One a treatment; none without a stopping rule."""
    return [] if decision is None else [(cell.treatment, (decision, cell)) for cell in decision.cells]


def caveats(decision: Decision | None) -> Iterator[str]:
    """What a reader should mind: where and why the study ended, what is still too wide, what the intervals cover."""
    if decision is None:
        return
    response = LABELS[decision.rule.response]
    if decision.go_on:
        yield f"The study is not at its end: it {decision.sentence} (intervals of the mean {response})."
        return
    yield f"By its stopping rule (intervals of the mean {response}) the study {decision.sentence}."
    wide = decision.wide
    if wide:
        named = [_told(cell) for cell in wide[:MOST_NAMED]]
        more = f"; and {len(wide) - MOST_NAMED} more" if len(wide) > MOST_NAMED else ""
        asked = f"±{decision.rule.width_percent:g}%, from {decision.rule.least_starts} starts"
        yield f"Not as was asked ({asked}): {'; '.join(named)}{more}."
    given_up = [label(cell.treatment) for cell in decision.cells if cell.state == "not waited for"]
    if given_up:
        yield f"Not waited for, because most of their starts gave no value: {'; '.join(given_up)}."
    if decision.rule.confidence == SIMULATED_CONFIDENCE:
        least = decision.rule.least_starts
        yield (
            "A study that stops when its intervals look narrow prefers samples with a small spread: in simulated "
            f"studies of one treatment with at least {least} starts {int(coverage_percent(least))}% or more of the "
            "95% intervals held the truth."
        )


def _told(cell: Narrowing) -> str:
    percent = cell.half_width_percent
    width = "no interval" if percent is None else plus_minus(percent)
    return f"{label(cell.treatment)} {width} of {count(cell.n, 'start')}"
