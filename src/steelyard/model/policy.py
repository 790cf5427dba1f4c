"""Scaling policy of a trial: which size the cluster is to have, and when. Section `policy` of a study."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Literal, NamedTuple

from pydantic import Field, model_validator

from steelyard.model.value import Value, later

MOST_STEPS = 200
"""Largest number of changes of size in one trial: each is an activity in the trial's record."""


class Desired(NamedTuple):
    """A desired size (AWS: desired capacity)."""

    at_s: float
    """Seconds of the measured phase."""
    nodes: int
    reason: str


Step = tuple[Annotated[float, Field(ge=0, le=1e6)], Annotated[int, Field(ge=1, le=1000)]]


class PolicyChoice(Value):
    """Scaling policy. Without a name the cluster keeps its size."""

    name: Literal["none", "scheduled"] = later("none")
    """none: the cluster keeps its size; scheduled: it is given the sizes of `times` while it serves."""
    times: tuple[Step, ...] = later((), max_length=MOST_STEPS)
    """Policy scheduled: pairs of seconds since the beginning of the measured phase and number of database nodes, in
    order of time: [[40, 4], [120, 3]]. Used by treatments whose policy is `scheduled`, so that a factor `policy.name`
    compares them with a control that keeps its size."""

    @model_validator(mode="after")
    def _in_order(self) -> PolicyChoice:
        if self.name == "scheduled" and not self.times:
            raise ValueError("scheduled needs times, such as [[40, 4]]: 4 nodes from 40 s on")
        moments = [at_s for at_s, _ in self.times]
        if any(later_s <= before_s for before_s, later_s in pairwise(moments)):
            raise ValueError(f"times {moments} are not in order: each must be later than the one before")
        return self

    @property
    def changes(self) -> bool:
        """Whether a cluster under this policy may change its size."""
        return self.name != "none"

    def desired(self) -> tuple[Desired, ...]:
        """The desired sizes of the policy, in order of time."""
        if not self.changes:
            return ()
        return tuple(Desired(at_s, nodes, f"scheduled: {nodes} nodes at {at_s:g} s") for at_s, nodes in self.times)

    def least(self, nodes: int) -> int:
        """The smallest size of a cluster that begins with this number of nodes."""
        return min((nodes, *(desired.nodes for desired in self.desired())))

    def lent(self, nodes: int) -> int:
        """Number of nodes that are lent to a cluster that begins with this number: the first, and one for each join.
        A node that has left does not join again."""
        sizes = (nodes, *(desired.nodes for desired in self.desired()))
        return nodes + sum(max(0, after - before) for before, after in pairwise(sizes))
