"""Scaling of a trial: what its policy saw, and the sizes that it desired. Sealed in the trial's record."""

from __future__ import annotations

from typing import Final, NamedTuple

from steelyard.model.plausible import Moment
from steelyard.model.value import Value, later

LATEST_S: Final = 3.0
"""A policy that is asked this long after its time is late: readings take a second, and two are waited for them."""


class Point(NamedTuple):
    """One period of the metric that a policy follows."""

    t_s: float
    """End of the period, seconds of the measured phase."""
    value: float | None
    """Mean over the nodes that served all of the period and had a reading at its end; None without any."""
    readings: int
    """Number of those nodes; load nodes, of responses that they measure."""


class Supply(NamedTuple):
    """Nodes that a policy can count on, from a time on."""

    t_s: float
    """Seconds of the measured phase at which the laboratory knew."""
    in_service: int
    """Nodes in service that stay."""
    pending: int = 0
    """Nodes that are joining, or about to."""
    prepared: int = 0
    """Nodes that were prepared to join and wait."""
    ended_s: float | None = None
    """When the last change of size ended, completed or not, in seconds of the measured phase; None before the first,
    while one is in progress, and where this was not recorded."""


class Desired(NamedTuple):
    """A desired size (AWS: desired capacity; Kubernetes: desiredReplicas)."""

    t_s: float
    """Seconds of the measured phase at which it was stated."""
    nodes: int
    reason: str
    prepared: int = 0
    """Nodes to prepare so that they can join sooner."""


class Scaling(Value):
    """All that a policy saw and said in one trial: from these points its answers can be computed again."""

    begun_s: Moment
    """Beginning of the measured phase by its first interval, seconds since the epoch: all other times count from it."""
    copies: int = 1
    """Copies of each row: no smaller size is asked for."""
    points: tuple[Point, ...] = ()
    supply: tuple[Supply, ...] = ()
    desired: tuple[Desired, ...] = ()
    """Sizes that differ from the one before, within the bounds; the first is that of the beginning."""
    asked: int = 0
    """How often it was asked."""
    late: int = 0
    """How often it was asked late, or before every node had said something of the last period."""
    lacking: str = later("")
    """A desired size for which too few nodes had been lent; empty if there was none."""
