"""Members of a cluster over time, derived from the activities of a trial. Pure: the laboratory judges with these
functions, and verification calls them again."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from steelyard.model.activity import IN_SERVICE, LEAVING, LEFT, STARTED, Activity
from steelyard.model.trial import TrialRecord


class Span(NamedTuple):
    """A time, seconds since the epoch; infinite where it began before, or ended after, everything that is known."""

    begun_s: float = -math.inf
    ended_s: float = math.inf

    def within(self, other: Span) -> Span:
        """The part of it that lies within another; of no length if there is none."""
        begun_s = min(max(self.begun_s, other.begun_s), other.ended_s)
        return Span(begun_s, max(begun_s, min(self.ended_s, other.ended_s)))

    @property
    def seconds(self) -> float:
        """Its length."""
        return self.ended_s - self.begun_s


ALWAYS = Span()


def spans(activities: Sequence[Activity], from_mark: str = STARTED, to_mark: str = LEFT) -> dict[str, Span]:
    """From one mark to another, for each node that joined or left; all others were there all the time. By default the
    time in which a node's server ran: a server that never came into service ended with its activity."""
    by_node: dict[str, Span] = {}
    for activity in activities:
        marks = {(mark.node, mark.name): mark.t_s for mark in activity.marks}
        for node in activity.nodes:
            begun_s, ended_s = by_node.get(node, ALWAYS)
            if activity.kind == "scale-in":
                ended_s = marks.get((node, to_mark), ended_s)
            else:
                begun_s = marks.get((node, from_mark), math.inf)
                if (node, IN_SERVICE) not in marks:
                    ended_s = max(begun_s, activity.ended_s if activity.ended_s is not None else math.inf)
            by_node[node] = Span(begun_s, ended_s)
    return by_node


def in_service(activities: Sequence[Activity]) -> dict[str, Span]:
    """The time in which each node that joined or left served and was to stay, from the mark `in-service` to
    `leaving`."""
    return spans(activities, IN_SERVICE, LEAVING)


def serving(nodes: Iterable[str], activities: Sequence[Activity], t_s: float) -> list[str]:
    """Those of the nodes that serve at a time, and are to stay."""
    served = in_service(activities)
    return [node for node in nodes if served.get(node, ALWAYS).begun_s <= t_s < served.get(node, ALWAYS).ended_s]


def sizes(nodes: int, activities: Sequence[Activity]) -> list[tuple[float, int]]:
    """Nodes in service over time, of a cluster that began with `nodes`: times of change, and the number from then
    on."""
    changes = [
        (mark.t_s, 1 if mark.name == IN_SERVICE else -1)
        for activity in activities
        for mark in activity.marks
        if mark.name in (IN_SERVICE, LEFT)
    ]
    steps = []
    for t_s, change in sorted(changes):
        nodes += change
        steps.append((t_s, nodes))
    return steps


def mean_nodes(record: TrialRecord, length_s: float = math.inf) -> float:
    """Mean number of database nodes whose server ran during the measured phase, or its first `length_s`: node-seconds
    over seconds. The size itself where it did not change."""
    nodes, span = record.settings.site.nodes, record.measured_span
    if not record.activities or span is None or span[1] <= span[0]:
        return nodes
    measured, there = Span(span[0], min(span[1], span[0] + length_s)), spans(record.activities).values()
    fixed = nodes - sum(node.begun_s == -math.inf for node in there)
    return fixed + sum(node.within(measured).seconds for node in there) / measured.seconds
