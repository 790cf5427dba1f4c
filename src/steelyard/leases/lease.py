"""Lease: nodes that a site lends until a given time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from steelyard.node.base import Node


@dataclass(frozen=True)
class Lease:
    """Leased nodes. `id` marks everything that was created for the lease; `record` is the file that records it."""

    id: str
    site: str
    nodes: tuple[Node, ...]
    until: datetime
    record: Path
    parts: tuple[Lease, ...] = ()
    """The leases that this one combines, where two sites lend the nodes of a start; `id` and `record` are then those
    of the databases."""

    @property
    def databases(self) -> tuple[Node, ...]:
        """Nodes of the system under test, in order."""
        return tuple(node for node in self.nodes if node.role == "database")

    @property
    def loaders(self) -> tuple[Node, ...]:
        """Nodes that drive load."""
        return tuple(node for node in self.nodes if node.role == "load")


def united(leases: Sequence[Lease]) -> Lease:
    """Several leases as one: the nodes of all, until the first of them ends. Of one lease, itself. Pure."""
    first = leases[0]
    if len(leases) == 1:
        return first
    nodes = tuple(node for lease in leases for node in lease.nodes)
    until = min(lease.until for lease in leases)
    return Lease(first.id, first.site, nodes, until, first.record, tuple(leases))
