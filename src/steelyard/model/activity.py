"""Activities: what the laboratory does to a running cluster during a trial, with time-stamped marks.

The word is that of AWS Auto Scaling (*scaling activity*). Everything else about a cluster that changes is derived from
the sealed activities by pure functions (`steelyard.judging.membership`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from pydantic import Field

from steelyard.model.plausible import Moment
from steelyard.model.value import Value

LAUNCHED = "launched"
RUNNING = "running"
REACHED = "reached"
LENT = "lent"
STARTED = "started"
GOSSIPING = "gossiping"
RING_DELAY = "ring-delay"
STREAMING = "streaming"
STREAMED = "streamed"
LISTENING = "listening"
IN_SERVICE = "in-service"
ROUTED = "routed"
LEAVING = "leaving"
LEFT = "left"
CLEANED = "cleaned"
BEGAN = "began"
SEEN_DOWN = "seen-down"
HEALED = "healed"
RECOVERED = "recovered"
OF_JOIN: Final[Mapping[str, str]] = {
    LENT: "provisioning",
    STARTED: "preparing",
    GOSSIPING: "starting",
    RING_DELAY: "schema",
    STREAMING: "ring delay",
    STREAMED: "streaming",
    LISTENING: "opening",
    IN_SERVICE: "joining",
}
"""Marks of a node that joins, in order, each with the phase that it ends: `streamed` ends the streaming."""
OF_LEAVE: Final[Mapping[str, str]] = {
    LEAVING: "preparing",
    STREAMING: "ring delay",
    STREAMED: "streaming",
    LEFT: "leaving",
}
"""Marks of a node that leaves, in order, each with the phase that it ends."""
AFTER: Final[Mapping[str, str]] = {ROUTED: "discovery", CLEANED: "cleanup"}
"""Marks after the arrival, each with the phase that it ends; no part of the whole."""
OF_DISRUPTION: Final = (BEGAN, HEALED, RECOVERED)
"""Marks of a node that is disrupted, in order: it is, it is no more, it answers and sees all members again. Where
members note it, `seen-down` is when the last of the others took it for dead."""


class Mark(Value):
    """One time-stamped step of an activity."""

    name: str
    t_s: Moment
    """Seconds since the epoch, on the conductor's clock."""
    node: str = ""
    """The node that it is of; empty for the cluster as a whole."""
    by: Literal["log", "seen", "load"] = "seen"
    """Source, which determines the resolution: a line of the node's log or of the agent there (a millisecond of its
    clock), the conductor, the load client."""


class Activity(Value):
    """One scale-out or scale-in of a running cluster."""

    kind: Literal["scale-out", "scale-in"]
    nodes: tuple[str, ...]
    """The nodes that join or leave, in order: one after the other; the targets of a disruption."""
    cause: str
    """Reason of the desired size, as the policy says it; what a disruption is."""
    begun_s: Moment
    """When it began, seconds since the epoch: when its size was desired, or once the activity before had ended."""
    ended_s: Moment | None = None
    outcome: Literal["done", "failed", "unfinished"] = "unfinished"
    """unfinished: the load ended first, which is no error."""
    error: str = ""
    """Reason of a failure, with the last lines of the node's log."""
    streamed_bytes: dict[str, int] = Field(default_factory=dict)
    """Bytes that each node received when it joined, or sent when it left, by node; without those unknown."""
    marks: tuple[Mark, ...] = ()
    """In order of time."""


class Disrupted(Activity):
    """One disruption of nodes of a running cluster: an activity that changes no size."""

    kind: Literal["disruption"] = "disruption"  # type: ignore[assignment]  # no change of size is expected to be one
