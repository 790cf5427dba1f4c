"""Percentiles of response time within each trial, with the interval that its operations support."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from steelyard.analysis.inference.percentile_intervals import FEWEST_PARTS
from steelyard.analysis.row import Column, MeasuredTreatment
from steelyard.analysis.statistic import Section, Statistic
from steelyard.format import confidence_text, number
from steelyard.model.estimate import Estimate


class TrialPercentile(MeasuredTreatment):
    """A percentile of response time within one trial, over its operations; no number of other tables rests on its
    interval, because trials are what is counted."""

    trial_id: Annotated[str, Column(head="trial")]
    """Trial."""
    attempt: int
    """Attempt of the trial, from 1."""
    operations: int
    """Operations answered."""
    needed: int
    """Operations that the percentile needs to be given."""
    percentile: Annotated[Estimate | None, Column(unit="ms")] = None
    """The percentile over the trial's operations; none if they are too few."""
    note: str = ""
    """Why there is none, or no end of its interval."""


TOO_SHORT = "cannot say how alike operations are that follow each other"
SHOWN = ("response_ms_p50", "response_ms_p95", "response_ms_p99")
"""The percentiles that the table has for every trial."""


def sentences(rows: Sequence[TrialPercentile], response: str) -> tuple[str, ...]:
    """Caveats from the percentiles of single trials: of the main response, otherwise of the p99."""
    name = response if response in SHOWN else SHOWN[-1]
    mine = [one for one in rows if one.response == name]
    lines = []
    lacking = [one for one in mine if one.percentile is None]
    which = name.rpartition("_")[2]
    if lacking:
        most = max(one.operations for one in lacking)
        lines.append(
            f"{'No trial has' if len(lacking) == len(mine) else f'{len(lacking)} of {len(mine)} trials do not have'} "
            f"a {which} of its own: it needs {lacking[0].needed:,} operations, and they have at most {most:,}."
        )
    widths = sorted(
        (one.percentile.high - one.percentile.low) / 2 / one.percentile.value
        for one in mine
        if one.percentile and one.percentile.low is not None and one.percentile.high is not None
        and one.percentile.value > 0
    )  # fmt: skip
    bare = [one for one in mine if one.percentile and one.percentile.low is None and one.percentile.high is None]
    if bare:
        where = "a trial" if len(bare) == len(mine) else f"{len(bare)} of {len(mine)} trials"
        lines.append(f"The {which} within {where} has no interval: fewer than {FEWEST_PARTS} s {TOO_SHORT}.")
    if widths:
        operations = sorted(one.operations for one in mine if one.percentile)
        confidence = next(one.percentile.confidence for one in mine if one.percentile)
        lines.append(
            f"Within a trial the {which} rests on about {operations[len(operations) // 2]:,} operations and is "
            f"{_known_to(widths[len(widths) // 2])} ({confidence_text(confidence)} interval of the median trial; "
            "operations that follow each other are alike, so it is at least so wide)."
        )
    return tuple(lines)


def _known_to(half_width: float) -> str:
    """How well a value is known whose interval has this half-width, as a fraction of the value."""
    if half_width >= 1:
        return "hardly known: its interval is more than twice as wide as its value"
    return f"known to ±{number(100 * half_width, digits=2)}%"


STATISTIC = Statistic(
    name="percentile",
    row=TrialPercentile,
    title="Percentiles of response time within each trial",
    section=Section.RESPONSE_TIME,
    compute=lambda context: (row for row in context.within.percentiles if isinstance(row, TrialPercentile)),
    sentences=sentences,
    order=10,
    sentence_order=90,
)
