"""Phases of an activity: what a node did from one of its marks to the next. Pure.

A mark ends a phase, which is named for what happens in it. A phase whose mark is missing is absent, and the next takes
its time, so that the phases of a node always sum to the time from the beginning of the activity to its arrival.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from steelyard.model.activity import AFTER, CLEANED, IN_SERVICE, LEFT, OF_JOIN, OF_LEAVE, ROUTED, Activity, Mark

WAITING: Final = "waiting"
"""Phase of a node that waits until the nodes of its activity that come before it have arrived."""
UNFINISHED: Final = "unfinished"
"""Phase from the last mark of a node that did not arrive to the end of its activity."""


class NodePhase(NamedTuple):
    """A phase of one node; times are seconds since the epoch."""

    name: str
    node: str
    from_s: float
    to_s: float

    @property
    def seconds(self) -> float:
        """Its length. Below 0 only for a discovery, if the load client knew of the node before the last member did."""
        return self.to_s - self.from_s


def arrival(activity: Activity, node: str) -> Mark | None:
    """The mark with which a node came into service, or left; None if it did neither."""
    name = LEFT if activity.kind == "scale-in" else IN_SERVICE
    return next((mark for mark in activity.marks if mark.node == node and mark.name == name), None)


def arrived_s(activity: Activity) -> float | None:
    """When the last node of an activity came into service, or left; None if one did not."""
    marks = [arrival(activity, node) for node in activity.nodes]
    times_s = [mark.t_s for mark in marks if mark is not None]
    return max(times_s, default=activity.begun_s) if len(times_s) == len(marks) else None


def phases(activity: Activity, node: str) -> tuple[NodePhase, ...]:
    """The phases of a node in order of time, from the beginning of its activity to its arrival, or to its end."""
    names = OF_LEAVE if activity.kind == "scale-in" else OF_JOIN
    order, arrived = list(names), arrival(activity, node)
    own = [mark for mark in activity.marks if mark.node == node and mark.name in names]
    if arrived is not None:
        own = [mark for mark in own if mark is arrived or (mark.name != arrived.name and mark.t_s <= arrived.t_s)]
    own.sort(key=lambda mark: (mark.t_s, order.index(mark.name)))
    before = [arrival(activity, other) for other in activity.nodes[: activity.nodes.index(node)]]
    free_s = max((mark.t_s for mark in before if mark is not None), default=activity.begun_s)
    ends = [(mark.t_s, names[mark.name]) for mark in own]
    if free_s > activity.begun_s:
        ends.insert(0, (min([free_s, *(t_s for t_s, _ in ends[:1])]), WAITING))
    if arrived is None and activity.ended_s is not None:
        ends.append((activity.ended_s, UNFINISHED))
    in_order: list[NodePhase] = []
    last_s = activity.begun_s
    for t_s, name in ends:
        # A mark of the node's own clock may be before the beginning by the error of that clock.
        in_order.append(NodePhase(name, node, last_s, max(last_s, t_s)))
        last_s = in_order[-1].to_s
    return tuple(in_order)


def phase_in_progress(activity: Activity, node: str) -> str:
    """The phase of a node that has not arrived: that which its next mark ends."""
    names = OF_LEAVE if activity.kind == "scale-in" else OF_JOIN
    reached = {mark.name for mark in activity.marks if mark.node == node}
    ahead = [phase for place, phase in enumerate(names.values()) if reached.isdisjoint(list(names)[place:])]
    return ahead[0] if ahead else list(names.values())[-1]


def phases_after(activity: Activity, node: str) -> tuple[NodePhase, ...]:
    """What followed the arrival of a node: its discovery by the load client and, of the last node of its activity, what
    the other members did once all had arrived."""
    arrived = arrival(activity, node)
    if arrived is None:
        return ()
    after = [
        NodePhase(AFTER[ROUTED], node, arrived.t_s, mark.t_s)
        for mark in activity.marks
        if mark.name == ROUTED and mark.node == node
    ][:1]
    after += [
        NodePhase(AFTER[CLEANED], node, arrived.t_s, mark.t_s)
        for mark in activity.marks
        if mark.name == CLEANED and mark.node == node
    ]
    return tuple(after)
