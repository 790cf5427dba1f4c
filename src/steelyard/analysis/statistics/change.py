"""Change points of the main response: over the study, and within starts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated

from steelyard.analysis.row import Column, P, PercentOrNone, TreatmentRow
from steelyard.analysis.statistic import Section, Statistic
from steelyard.analysis.statistics.course import Course
from steelyard.analysis.statistics.warm_up import WarmUp

OVER_THE_STUDY = "study"


class Change(TreatmentRow):
    """One change point and its series."""

    series: str
    """Study (as in table course), or the start whose trials they are."""
    together: bool
    """All treatments at once, each less its own mean."""
    after: int
    """Values before the change."""
    at_h: Annotated[float | None, Column(unit="hours since the first trial")] = None
    """When the first value after the change was measured."""
    change_percent: PercentOrNone = None
    """Level after the change less level before it, of the latter."""
    p: P
    """How rare so great a difference is in a series without a change."""


def changes(courses: Sequence[Course], warm_ups: Sequence[WarmUp]) -> Iterator[Change]:
    """Change points over the study, then within starts."""
    over = [(one.treatment, OVER_THE_STUDY, one.together, one.changes) for one in courses]
    within = [(one.treatment, one.start, False, one.changes) for one in warm_ups]
    for treatment, series, together, points in (*over, *within):
        for change in points:
            yield Change(
                treatment=treatment, series=series, together=together, after=change.after, at_h=change.at_h,
                change_percent=change.change_percent, p=change.p,
            )  # fmt: skip


STATISTIC = Statistic(
    name="change",
    row=Change,
    title="Changes of the level of {response}",
    section=Section.VALIDITY,
    compute=lambda context: changes(context.of(Course), context.of(WarmUp)),
    order=60,
)
