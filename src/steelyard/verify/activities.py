"""Recomputation of how a cluster followed its policy: the supply that the policy was shown follows from the activities,
and the activities from the desired sizes.

The laboratory learns of a change at its mark or later: it may read the line of a log, or notice that a node serves,
after the time of the mark. So a supply is compared with each state that the laboratory can have known when it asked.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from steelyard.judging.activity_phases import arrival
from steelyard.model.activity import CLEANED, LEAVING, LENT, Activity
from steelyard.model.scaling import LATEST_S, Desired, Scaling, Supply
from steelyard.model.trial import TrialRecord
from steelyard.verify.checklist import Book

EARLIEST_S: Final = -0.5
"""A question may be this early by the clock: it is waited for without it, and the clock may be slowed meanwhile."""
LATE: Final = "nodes that a policy was shown when it was asked late"


class _Known(NamedTuple):
    """Nodes that the laboratory knew of, seconds since the epoch."""

    earliest_s: float
    """From when on, at the earliest."""
    latest_s: float
    """And at the latest."""
    in_service: int | None
    """Those that stay; None if the activities do not say."""
    pending: int
    ended_s: float | None = None
    """When the last change of size ended."""

    def is_shown(self, supply: Supply, begun_s: float, *, with_ends: bool) -> bool:
        """Whether a policy was shown this. `with_ends`: whether it was shown when changes ended."""
        ended_s = self.ended_s - begun_s if self.ended_s is not None and with_ends else None
        return self.in_service is None or supply == Supply(supply.t_s, self.in_service, self.pending, ended_s=ended_s)


def supply(record: TrialRecord, stored: Scaling, times: Sequence[float], where: str, book: Book) -> None:
    """Check the nodes that a policy was shown at each of the times at which it was asked."""
    known = _known(record.settings.site.nodes, record.activities)
    ends_s = [*(after.latest_s for after in known[1:]), math.inf]
    with_ends = any(entry.ended_s is not None for entry in stored.supply)
    late = 0

    def is_shown(states: Sequence[_Known], shown: Sequence[Supply]) -> bool:
        return any(state.is_shown(entry, stored.begun_s, with_ends=with_ends) for state in states for entry in shown)

    for entry in stored.supply:
        book.check("policy", entry.t_s in times, where, "time of a supply", entry.t_s, "a time at which it was asked")
    for t_s in times:
        shown = stored.supply[: bisect_right(stored.supply, t_s, key=lambda entry: entry.t_s)][-1:]
        at_s = stored.begun_s + t_s
        later = [state for state, end_s in zip(known, ends_s, strict=True) if end_s >= at_s + EARLIEST_S]
        then = [state for state in later if state.earliest_s <= at_s + LATEST_S]
        holds = is_shown(then, shown)
        if not holds and late < stored.late and is_shown(later, shown):
            late += 1
            book.skip(LATE)
        else:
            again = [(state.in_service, state.pending, state.ended_s) for state in then]
            book.check("policy", holds, where, f"nodes in service and joining at {t_s:g} s", [*shown], again)


def followed(record: TrialRecord, stored: Scaling, where: str, book: Book) -> None:
    """Check that each desired size led to an activity of that size and direction, or to none for a reason that the
    record has, and that each activity has a desired size."""
    nodes, activities, span = record.settings.site.nodes, record.activities, record.measured_span
    sizes = [after for before, after in pairwise(stored.desired) if after.nodes != before.nodes]
    done = 0
    for desired, later in zip(sizes, [*sizes[1:], None], strict=False):
        before, at_s = activities[:done], stored.begun_s + desired.t_s
        staying = _known(nodes, before)[-1].in_service
        change = 0 if staying is None else desired.nodes - staying
        if stored.lacking or any(activity.outcome == "failed" for activity in before):
            lent = [mark for activity in before for mark in activity.marks if mark.name == LENT]
            change = min(change, record.settings.most_nodes - nodes - len(lent))
        after = activities[done] if done < len(activities) else None
        if after is not None and _answers(after, desired, at_s, None if staying is None else change):
            book.made["policy"] += 1
            done += 1
            continue
        there = not change
        ended = span is None or span[1] <= at_s + LATEST_S or bool(before and before[-1].outcome == "unfinished")
        replaced = later is not None and bool(before) and _ended_s(before[-1]) >= stored.begun_s + later.t_s
        what = f"activity after {desired.nodes} nodes were desired at {desired.t_s:g} s"
        read = "none" if after is None else f"{after.kind} of {len(after.nodes)}: {after.cause}"
        book.check("policy", there or ended or replaced, where, what, read, f"{change:+d}: {desired.reason}")
    for activity in activities[done:]:
        book.check("policy", False, where, "desired size of an activity", "none", activity.cause)


def _answers(activity: Activity, desired: Desired, at_s: float, change: int | None) -> bool:
    """Whether an activity is the one that a desired size led to: not before it, for its reason, by its size."""
    by = len(activity.nodes) if activity.kind == "scale-out" else -len(activity.nodes)
    return activity.begun_s >= at_s + EARLIEST_S and activity.cause == desired.reason and change in (None, by)


def _known(nodes: int, activities: Sequence[Activity]) -> list[_Known]:
    """All that the laboratory knew, one after the other, of a cluster that began with this number of nodes."""
    known = [_Known(-math.inf, -math.inf, nodes, 0)]
    for activity in activities:
        if (last := known[-1].in_service) is not None:
            known += _leaves(last, activity) if activity.kind == "scale-in" else _joins(last, activity)
            if activity.ended_s is not None:
                known.append(_Known(activity.ended_s, activity.ended_s, known[-1].in_service, 0, activity.ended_s))
    return known


def _joins(nodes: int, activity: Activity) -> Iterator[_Known]:
    pending, ended_s = len(activity.nodes), _ended_s(activity)
    yield _Known(activity.begun_s, activity.begun_s, nodes, pending)
    for node, after in pairwise((*activity.nodes, "")):
        arrived = arrival(activity, node)
        if arrived is None:
            break
        next_s = _mark_s(activity, LENT, after) if after else _mark_s(activity, CLEANED, node)
        if activity.outcome == "failed" and next_s == math.inf:
            # It arrived and failed, or what was next did: in service or not.
            yield _Known(arrived.t_s, ended_s, None, 0)
            return
        pending -= 1
        # It has its mark, and then it counts.
        yield _Known(arrived.t_s, min(next_s, ended_s), nodes, pending)
        nodes += 1
        yield _Known(arrived.t_s, min(next_s, ended_s), nodes, pending)


def _leaves(nodes: int, activity: Activity) -> Iterator[_Known]:
    """A node that begins to leave does not stay: the first at once, each other once the one before it has left."""
    from_s = to_s = activity.begun_s
    for place, node in enumerate(activity.nodes, start=1):
        yield _Known(from_s, to_s, nodes - place, 0)
        left, after = arrival(activity, node), activity.nodes[place : place + 1]
        if left is None or not after:
            return
        from_s, to_s = left.t_s, min(_mark_s(activity, LEAVING, after[0]), _ended_s(activity))


def _ended_s(activity: Activity) -> float:
    return math.inf if activity.ended_s is None else activity.ended_s


def _mark_s(activity: Activity, name: str, node: str) -> float:
    return next((mark.t_s for mark in activity.marks if (mark.name, mark.node) == (name, node)), math.inf)
