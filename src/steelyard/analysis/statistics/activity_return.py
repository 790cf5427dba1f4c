"""Return: for how long a change of size kept response times out of the range that they had before, over trials."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator
from typing import Annotated, Literal

from steelyard.analysis.inference import estimates
from steelyard.analysis.row import Column, TreatmentRow
from steelyard.analysis.statistic import Context, Section, Statistic
from steelyard.model.estimate import Estimate


class ReturnTime(TreatmentRow):
    """When the mean response time was back in the range of before, of one activity of the trials of a treatment."""

    activity: int
    """Which activity of its trial, from 1."""
    kind: Literal["scale-out", "scale-in"]
    """scale-out: nodes join; scale-in: nodes leave."""
    during: Annotated[Estimate, Column(unit="s")]
    """From the desired size to the arrival of the last node, or the end of the activity; mean over trials."""
    median_s: Annotated[float | None, Column(unit="s", head="back after")] = None
    """Median over trials of the seconds from the desired size until the mean response time per second had been back in
    the range of before (up to its mean + 3 standard deviations over seconds) for 10 s on end, counted to the beginning
    of these 10 s and after the last second out of it while the activity lasted; 0 of a trial that never left the range.
    None if it is beyond the end of the trials."""
    shortest_s: Annotated[float | None, Column(unit="s", head="shortest")] = None
    """Of the trials."""
    longest_s: Annotated[float | None, Column(unit="s", head="longest")] = None
    """Of the trials that were back."""
    n: int
    """Used trials with a range: at least 10 s before the activity."""
    not_within: Annotated[int, Column(head="not within the trial")]
    """Trials that were not back before the next activity, or the end of the measurement. They count as longer than all
    others, so they are in the median."""
    never_left: int
    """Trials that never left the range while the activity lasted."""


def return_times(context: Context) -> Iterator[ReturnTime]:
    """Every treatment and activity, in the order of the levels and of time."""
    returns = context.within.returns
    for treatment in context.frame.treatments() if returns else ():
        trials = context.frame.where(treatment).select("trial_id", "attempt", "start").rows()
        starts = {(trial, attempt): start for trial, attempt, start in trials}
        own = [one for one in returns if one.trial in starts]
        for activity, kind in sorted({(one.during.activity, one.during.kind) for one in own}):
            of_activity = [one for one in own if (one.during.activity, one.during.kind) == (activity, kind)]
            known = [one.returned.seconds for one in of_activity if one.returned.seconds is not None]
            lacking = len(of_activity) - len(known)
            median = statistics.median([*known, *[math.inf] * lacking])
            lengths = [(starts[one.trial], one.during.seconds) for one in of_activity]
            yield ReturnTime(
                treatment=treatment, activity=activity, kind=kind,
                during=estimates.by_start(lengths, "s", context.confidence),
                median_s=median if math.isfinite(median) else None, shortest_s=min(known, default=None),
                longest_s=max(known, default=None), n=len(of_activity), not_within=lacking,
                never_left=sum(one.returned.seconds == 0 for one in of_activity),
            )  # fmt: skip


STATISTIC = Statistic(
    name="activity_return",
    row=ReturnTime,
    title="Seconds until the mean response time was back in the range that it had before nodes joined or left",
    section=Section.ACTIVITIES,
    compute=return_times,
    order=4,
    of_records=True,
)
