"""The seam `site`: lends nodes under a lease with an end.

A plug-in module defines `Settings` (a pydantic model), and `create(settings, state_folder) -> Site`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol, runtime_checkable

from steelyard.model.value import Value
from steelyard.node.base import Node


@dataclass(frozen=True)
class Request:
    """Nodes and limits that a start requests from a site."""

    study: str
    database_nodes: int
    load_nodes: int = 1


@dataclass(frozen=True)
class Lease:
    """Lent nodes. `id` marks everything that was created for it; `record` is the file that says so."""

    id: str
    site: str
    nodes: tuple[Node, ...]
    until: datetime
    record: Path

    @property
    def databases(self) -> tuple[Node, ...]:
        """Nodes of the system under test, in order."""
        return tuple(node for node in self.nodes if node.role == "database")

    @property
    def loaders(self) -> tuple[Node, ...]:
        """Nodes that drive load."""
        return tuple(node for node in self.nodes if node.role == "load")


class Site(Protocol):
    """Lends nodes and takes them back."""

    name: str
    shares: frozenset[str]
    """Resources that the nodes share: cpu, memory, disk, clock, network, kernel."""

    async def lease(self, request: Request, until: datetime) -> Lease:
        """Lend nodes. The lease is recorded before anything is created. Raises SiteError."""
        ...

    async def release(self, lease: Lease) -> None:
        """Take back everything of the lease: processes, networks, limits, folders. Idempotent."""
        ...

    async def leftovers(self) -> Sequence[Lease]:
        """Leases whose owner is dead or whose end has passed."""
        ...

    async def facts(self, node: Node) -> dict[str, str]:
        """Facts about a node's hardware and limits: cpu model, cores, memory, kernel, limits in force."""
        ...

    def refuse(self, request: Request, memory_mb_per_node: int | None) -> str | None:
        """Why this site cannot fulfil the request (memory, addresses, privileges), or None. Read-only."""
        ...


class LeaseTimes(Value):
    """Expected seconds of lending and releasing, before anything was measured."""

    lease_s: float
    release_s: float


@runtime_checkable
class Timed(Protocol):
    """Ability: estimates how long lending takes. Without it a plan assumes a time, and says so."""

    def times(self, request: Request) -> LeaseTimes:
        """Expected seconds for a request. Pure."""
        ...
