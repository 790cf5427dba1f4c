"""Windows of a trial around its activities: before, during and after each, and the streaming in it. Pure.

Times are seconds of the trial: since its measurement began. So the windows of one trial can be laid over another.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

from steelyard.judging.activity_phases import arrived_s
from steelyard.judging.membership import Span
from steelyard.model.activity import STREAMED, STREAMING, Activity
from steelyard.model.trial import TrialRecord

WindowName = Literal["before", "during", "streaming", "after", "from decision"]
CALM_S: Final = 10
"""Seconds on end within the range of before after which a response time is back, and fewest seconds of a before."""
DEVIATIONS: Final = 3.0
"""Standard deviations over the seconds of before that its range ends above its mean."""

EDGE: Final = 0.01
"""Share of an interval by which it may reach over the edge of a window: clocks are compared to some milliseconds."""


class ActivityWindow(NamedTuple):
    """A window around one activity of a trial."""

    activity: int
    """Which activity of the trial, from 1."""
    kind: Literal["scale-out", "scale-in"]
    nodes: int
    """Nodes that join or leave in the activity."""
    name: WindowName
    spans: tuple[Span, ...]
    """One span; of streaming one for each node that streamed."""

    @property
    def seconds(self) -> float:
        """Its length."""
        return math.fsum(span.seconds for span in self.spans)


def delayed(window: ActivityWindow, delay_s: float, length_s: float) -> tuple[Span, ...]:
    """The spans that a window around the first activity would have had if that had begun later by a delay, as far as
    they lie within the length of a trial."""
    first_s = 0.0 if window.name == "before" else delay_s
    moved = (Span(span.begun_s + first_s, span.ended_s + delay_s) for span in window.spans)
    return tuple(part for span in moved if (part := span.within(Span(0.0, length_s))).seconds > 0)


class Return(NamedTuple):
    """When the response time of a trial was back in the range of before."""

    seconds: float | None
    """Since the beginning of the activity; 0 if it never left the range; None if it was not back before the next
    activity or the end of the trial."""
    watched_s: float
    """Until when it could have been back, since the beginning of the activity."""


def windows(record: TrialRecord) -> tuple[ActivityWindow, ...]:
    """The windows around each activity of a trial, in order of time. Each ends where the next begins; before the first
    lies the beginning of the measurement, after the last its end."""
    if record.measured_span is None:
        return ()
    zero_s, ended_s = record.measured_span
    measured = Span(0.0, ended_s - zero_s)
    begins = [activity.begun_s - zero_s for activity in record.activities]
    ends = [_done_s(activity, ended_s) - zero_s for activity in record.activities]
    windows = []
    for place, activity in enumerate(record.activities):
        streamed = [Span(from_s - zero_s, to_s - zero_s) for from_s, to_s in _streaming(activity)]
        until_s = begins[place + 1] if place + 1 < len(begins) else measured.ended_s
        named: dict[WindowName, list[Span]] = {
            "before": [Span(ends[place - 1] if place else 0.0, begins[place])],
            "during": [Span(begins[place], ends[place])],
            "streaming": streamed,
            "after": [Span(ends[place], until_s)],
            "from decision": [Span(begins[place], until_s)],
        }
        for name, spans in named.items():
            inside = tuple(part for span in spans if (part := span.within(measured)).seconds > 0)
            if inside:
                windows.append(ActivityWindow(place + 1, activity.kind, len(activity.nodes), name, inside))
    return tuple(windows)


def _done_s(activity: Activity, ended_s: float) -> float:
    """When the last node of an activity arrived; if one did not, when the activity ended, or the measurement."""
    return next(t_s for t_s in (arrived_s(activity), activity.ended_s, ended_s) if t_s is not None)


def _streaming(activity: Activity) -> list[tuple[float, float]]:
    """From mark `streaming` to `streamed` of each node that joined and has both."""
    if activity.kind == "scale-in":
        return []
    marks = {(mark.node, mark.name): mark.t_s for mark in activity.marks}
    both = [(marks.get((node, STREAMING)), marks.get((node, STREAMED))) for node in activity.nodes]
    return [(from_s, to_s) for from_s, to_s in both if from_s is not None and to_s is not None]


def returned(
    means: Sequence[tuple[float, float]], step_s: float, *, before: Span, during: Span, after: Span
) -> Return | None:
    """When the mean response time per second was back in the range of before: the first CALM_S on end in it after the
    last second that was out of it while the activity lasted, counted from the beginning of the activity to theirs.

    The range ends at mean + DEVIATIONS standard deviations over the seconds of before. `means`: when each second of the
    trial began and its mean; infinite for one without an answered operation, which is out of every range. None if
    before has fewer than CALM_S: it has no range then.
    """
    calm = round(CALM_S / step_s)
    known = [mean for t_s, mean in means if _lies(t_s, step_s, before) and math.isfinite(mean)]
    if len(known) < max(2, calm):
        return None
    limit = statistics.fmean(known) + DEVIATIONS * statistics.stdev(known)
    rest = [(t_s, mean) for t_s, mean in means if _lies(t_s, step_s, Span(during.begun_s, after.ended_s))]
    out = [place for place, (t_s, mean) in enumerate(rest) if mean > limit and t_s < during.ended_s]
    watched_s = max(0.0, after.ended_s - during.begun_s - CALM_S)
    if not out:
        return Return(0.0, watched_s)
    back = out[-1] + 1
    for place in range(back, len(rest)):
        if rest[place][1] > limit:
            back = place + 1
        elif place + 1 - back >= calm:
            return Return(rest[back][0] - during.begun_s, watched_s)
    return Return(None, watched_s)


def _lies(t_s: float, step_s: float, span: Span) -> bool:
    return within(Span(t_s, t_s + step_s), step_s, [span])


def within(interval: Span, step_s: float, spans: Sequence[Span]) -> bool:
    """Whether an interval of operations lies within one of the spans of a window; `step_s`: length of a whole one."""
    edge_s = EDGE * step_s
    return any(
        span.begun_s - edge_s <= interval.begun_s and interval.ended_s <= span.ended_s + edge_s for span in spans
    )
