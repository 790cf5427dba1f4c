"""Searches for the highest rate that meets a limit: one row per trial, with the interval within it."""

from __future__ import annotations

from typing import Annotated

from steelyard.analysis.row import Column, TreatmentRow
from steelyard.analysis.statistic import Context, Section, Statistic
from steelyard.model.trial import TrialRecord


class SearchRow(TreatmentRow):
    """Outcome of the search of one trial."""

    trial_id: Annotated[str, Column(head="trial")]
    """Identity of the trial."""
    attempt: int
    """Which attempt of the trial, from 1."""
    start: str
    """Start that the trial was made on: a comparison rests on starts, not on the interval within a trial."""
    objective: str
    """Limits that a rate has to meet together."""
    outcome: str
    """found; at least: the search ended before a limit was missed, the rate is a lower bound and averaged with nothing;
    not found: it ran out of windows before a rate met the limits; no rate: the lowest rate allowed misses a limit;
    interrupted. The column `reason` says why."""
    rate_per_s: Annotated[float | None, Column(unit="operations/s", head="rate")]
    """Highest rate that meets the limits, or a lower bound of it (see `outcome`); for saturation the highest
    throughput."""
    low_per_s: Annotated[float | None, Column(unit="operations/s", head="low")]
    """Lower end of the interval within the trial: how well its windows fix the rate."""
    high_per_s: Annotated[float | None, Column(unit="operations/s", head="high")]
    """Upper end of that interval."""
    knee_per_s: Annotated[float | None, Column(unit="operations/s", head="knee")]
    """Of the rates tried, the one with the largest rate over mean response time; none if it is the first or last."""
    windows: int
    """Number of windows measured."""
    reason: str
    """Why the search ended."""


OUTCOMES = {"found": "found", "at-least": "at least", "not-found": "not found", "no-rate": "no rate"}


def searches(context: Context) -> tuple[SearchRow, ...]:
    """Every trial that searched, in order of time."""
    return tuple(_row(record) for record in context.records if record.search is not None)


def _row(record: TrialRecord) -> SearchRow:
    search = record.search
    assert search is not None
    result = search.result
    return SearchRow(
        treatment=record.treatment,
        trial_id=record.id,
        attempt=record.attempt,
        start=record.start,
        objective="saturation" if search.rules.saturation else ", ".join(limit.text for limit in search.rules.limits),
        outcome="interrupted" if result is None else OUTCOMES[result.outcome],
        rate_per_s=None if result is None else result.rate_per_s,
        low_per_s=None if result is None else result.low_per_s,
        high_per_s=None if result is None else result.high_per_s,
        knee_per_s=None if result is None else result.knee_per_s,
        windows=len(search.windows),
        reason="" if result is None else result.reason,
    )


STATISTIC = Statistic(
    name="search",
    row=SearchRow,
    title="Searches for the highest rate",
    section=Section.RESPONSE_TIME,
    compute=searches,
    order=3,
    of_records=True,
)
