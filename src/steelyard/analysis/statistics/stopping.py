"""Interval widths at the last decision of the stopping rule, and caveats of a study that it ended."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from steelyard.analysis.row import Column, TreatmentRow
from steelyard.analysis.statistic import Section, Statistic
from steelyard.analysis.treatments import label
from steelyard.judging.stopping import (
    SIMULATED_CONFIDENCE,
    Decision,
    Narrowing,
    State,
    coverage_percent,
    plus_minus,
)
from steelyard.model.responses import label_of

MOST_NAMED = 4


class Width(TreatmentRow):
    """Interval width of one treatment at the last decision of the rule."""

    response: str
    """Response whose intervals were judged."""
    starts: int
    """Start means that the interval rests on."""
    half_width_percent: Annotated[float | None, Column(unit="percent of their mean")] = None
    """Half of the t interval over start means; none below three starts."""
    width_percent: Annotated[float, Column(unit="percent")]
    """Narrow enough: at most this half width."""
    state: State
    """Too few starts, narrowing, too wide, narrow enough, not waited for."""
    system_faults: int
    """Trials in which the system under test failed."""


def widths(decision: Decision | None) -> tuple[Width, ...]:
    """One row per treatment; empty without a stopping rule."""
    return () if decision is None else tuple(
        Width(
            treatment=cell.treatment, response=decision.rule.response, starts=cell.n,
            half_width_percent=cell.half_width_percent, width_percent=decision.rule.width_percent, state=cell.state,
            system_faults=cell.faults,
        )
        for cell in decision.cells
    )  # fmt: skip


def caveats(decision: Decision | None) -> Iterator[str]:
    """Caveats: where and why the study ended, which intervals are still too wide, their coverage."""
    if decision is None or decision.go_on:
        return
    response = label_of(decision.rule.response)
    yield f"By its stopping rule (intervals of the mean {response}) the study {decision.sentence}."
    wide = decision.wide
    if wide:
        named = [_cell_text(cell) for cell in wide[:MOST_NAMED]]
        more = f"; and {len(wide) - MOST_NAMED} more" if len(wide) > MOST_NAMED else ""
        asked = f"±{decision.rule.width_percent:g}%, from {decision.rule.least_starts} starts"
        yield f"Not as was asked ({asked}): {'; '.join(named)}{more}."
    given_up = [label(cell.treatment) for cell in decision.cells if cell.state == "not waited for"]
    if given_up:
        yield f"Not waited for, because most of their starts gave no value: {'; '.join(given_up)}."
    if decision.rule.confidence == SIMULATED_CONFIDENCE:
        floor = decision.rule.least_starts
        yield (
            "A study that stops when its intervals look narrow prefers samples with a small spread: in simulated "
            f"studies of one treatment with a floor of {floor} starts {int(coverage_percent(floor))}% or more of the "
            "95% intervals held the truth."
        )


def _cell_text(cell: Narrowing) -> str:
    percent = cell.half_width_percent
    width = "no interval" if percent is None else plus_minus(percent)
    return f"{label(cell.treatment)} {width} of {cell.n} start{'' if cell.n == 1 else 's'}"


STATISTIC = Statistic(
    name="stopping",
    row=Width,
    title="How narrow the intervals were when the stopping rule was asked last",
    section=Section.VALIDITY,
    compute=lambda context: widths(context.decision),
    order=70,
)
