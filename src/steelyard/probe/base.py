"""Plug-in interface `probe`: measuring instruments of nodes and their processes.

A plug-in module defines `create() -> Probe`; one with settings defines `Settings` (a pydantic model) and
`create(settings) -> Probe`. A probe says where its commands run in one of two ways: `OnEveryNode`, one command for each
node, or `Placed`, which chooses.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from steelyard.model.errors import ProbeError
from steelyard.model.sample import Metric, Sample
from steelyard.node.base import Node

READ_EVERY_S = 1.0
"""Default seconds between two readings of a probe."""


@dataclass(frozen=True)
class Watched:
    """A leased node as probes find it: with its server's processes and the ways into that server."""

    node: Node
    process_ids: tuple[int, ...] = ()
    """Processes of the node's server; empty on a load node."""
    ways: Mapping[str, str] = field(default_factory=dict)
    """Ways to observe the system: name of a way to an address, a path or a class path, as the node sees
    them. Names in use: `docs/howto/add-a-probe.md`. Empty on a load node."""


@dataclass(frozen=True)
class Placement:
    """One command of a probe: where it runs, and the nodes that its readings are of."""

    on: Node | None
    """Node that runs the command, outside its limits; None: the conductor's machine, or `on_named`."""
    argv: tuple[str, ...]
    speaks_of: tuple[str, ...]
    """Names of the nodes that its samples are filed under. Where there are several, each line begins with the name of
    the node that it is of, and a space, which `parse` does not get."""
    on_named: str = ""
    """Name of the node that runs it, if that need not be one of those that are watched: of a cluster that may change
    its size, each node is watched apart."""
    asks_cluster: bool = False
    """Whether it connects to the cluster over CQL and receives its user and password."""


class Probe(Protocol):
    """Commands that print readings, and a pure parser for their lines. It is `OnEveryNode` or `Placed`, too."""

    name: str
    metrics: tuple[Metric, ...]

    def parse(self, node: str, line: bytes) -> Iterable[Sample]:
        """Samples on one line, of the named node. Pure. Raises ProbeError on a line that is not its own."""
        ...


@runtime_checkable
class OnEveryNode(Protocol):
    """Ability: the same command on each node that takes commands, load nodes included."""

    def command(self, node: Node, interval_s: float, process_ids: Sequence[int]) -> Sequence[str]:
        """argv to run on the node (under `watch_prefix`) while samples are needed."""
        ...


@runtime_checkable
class Placed(Protocol):
    """Ability: commands where the probe wants them: on some nodes, on one for several, on the conductor's machine."""

    def placements(self, watched: Sequence[Watched], interval_s: float) -> Sequence[Placement]:
        """The commands to run while samples are needed. Pure. Raises ProbeError if there is nothing that it could
        read."""
        ...


@runtime_checkable
class ReadsWay(Protocol):
    """Ability: reads systems that offer a certain way in, and no others."""

    way: str
    """The key of `System.ways`."""


@runtime_checkable
class TakesTurns(Protocol):
    """Ability: does not read all of its metrics at once, but some after the other."""

    def turn_s(self, interval_s: float) -> float:
        """Seconds after which each metric was read once. Pure."""
        ...

    def faster(self, interval_s: float) -> str:
        """The setting that shortens it, with the new value, in words; empty if there is none. Pure."""
        ...


def placements_of(probe: Probe, watched: Sequence[Watched], interval_s: float) -> tuple[Placement, ...]:
    """The commands of a probe. Raises ProbeError if it has none."""
    if isinstance(probe, Placed):
        placements = tuple(probe.placements(watched, interval_s))
    elif isinstance(probe, OnEveryNode):
        placements = tuple(
            Placement(each.node, tuple(probe.command(each.node, interval_s, each.process_ids)), (each.node.name,))
            for each in watched
            if each.node.commands
        )
    else:
        raise ProbeError(f"the probe {probe.name} has neither `command` nor `placements`", "docs/howto/add-a-probe.md")
    if not placements:
        raise ProbeError(f"the probe {probe.name} finds nothing to read", "remove it from `probes`")
    return placements


def client_of(each: Watched, watched: Sequence[Watched]) -> Node:
    """Node on which a client of a node's server runs: on the node, or, if that takes no commands, on the first node
    that does. Raises ProbeError if none does."""
    reachable = [other.node for other in (each, *watched) if other.node.commands]
    if not reachable:
        raise ProbeError(f"no node accepts commands, so nothing can read {each.node.name}")
    return reachable[0]


def with_way(watched: Sequence[Watched], way: str, probe: str) -> tuple[Watched, ...]:
    """The nodes whose system offers a way in. Raises ProbeError that lists the available ways, if none does."""
    offering = tuple(each for each in watched if each.ways.get(way))
    if not offering:
        what = no_way(probe, way, {name for each in watched for name in each.ways})
        raise ProbeError(what, f"leave {probe!r} out of `probes`")
    return offering


def no_way(probe: str, way: str, offered: Iterable[str]) -> str:
    """Error for a probe whose way in a system does not offer. Pure."""
    names = sorted(offered)
    has = f"only {', '.join(names)}" if names else "no way in at all"
    return f"the probe {probe} reads systems that offer the way {way!r}; this system offers {has}"
