"""Plug-in interface `site`: lends nodes under a lease with an end.

A plug-in module defines `Settings` (a pydantic model), and `create(settings, state_folder) -> Site`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, runtime_checkable

from steelyard.leases.lease import Lease
from steelyard.model.value import Value
from steelyard.node.base import Node


@dataclass(frozen=True)
class Request:
    """Nodes and limits that a start requests from a site."""

    study: str
    database_nodes: int
    load_nodes: int = 1


class Site(Protocol):
    """Lends nodes and takes them back."""

    name: str
    shares: frozenset[str]
    """Resources that the nodes share: cpu, memory, disk, clock, network, kernel."""

    async def lease(self, request: Request, until: datetime) -> Lease:
        """Lend nodes. The lease is recorded before anything is created. Raises SiteError."""
        ...

    async def release(self, lease: Lease) -> None:
        """Take back everything belonging to the lease: processes, networks, limits, folders. Idempotent."""
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


def on_this_machine(site: Site) -> bool:
    """Whether all nodes of a site run on the conductor's machine, so that its readings of the processor are theirs."""
    return "cpu" in site.shares


class LeaseTimes(Value):
    """Expected seconds of lending and releasing, before anything has been measured."""

    lease_s: float
    release_s: float


@runtime_checkable
class Timed(Protocol):
    """Ability: estimates how long lending takes. Without it, a plan assumes a time and reports the assumption."""

    def times(self, request: Request) -> LeaseTimes:
        """Expected seconds for a request. Pure."""
        ...
