"""Site `fake`: folders and plain processes only, to test everything that uses nodes.

It fulfils the whole contract of a site (record first, release by mark, leftovers) and can be set to fail, so that a
study file can test the laboratory's handling of a failing site.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from steelyard.leases import processes as lease_processes
from steelyard.leases import records as lease_records
from steelyard.leases import register as lease_register
from steelyard.leases.lease import Lease
from steelyard.model.errors import LastingSiteError, SiteError
from steelyard.model.facts import Role
from steelyard.model.value import Value
from steelyard.node.base import Node
from steelyard.site.base import LeaseTimes, Request, node_name, unenforced


class Settings(Value):
    """Failure to simulate, if any."""

    fail: Literal["", "lease", "release"] = ""
    """The step that raises SiteError every time."""
    address: str = "127.0.0"
    """First three octets of the nodes' addresses; loopback by default."""
    most_nodes: int = Field(default=100, ge=1, le=250)
    """Requests for more are refused."""


def create(settings: Any, state_folder: Path) -> FakeSite:
    """Make the site; no side effects. `settings` is a `Settings`."""
    return FakeSite(Settings.model_validate(settings), state_folder)


class FakeSite:
    """Lends folders."""

    name = "fake"
    shares = frozenset({"cpu", "memory", "disk", "clock", "kernel", "network"})

    def __init__(self, settings: Settings, state_folder: Path) -> None:
        self._settings = settings
        self._state = state_folder.absolute()

    async def lease(self, request: Request, until: datetime) -> Lease:
        """Lend folders. Raises SiteError if set to fail."""
        if reason := self.refuse(request, None):
            raise LastingSiteError(f"site fake cannot lend to {request.study}: {reason}")
        identity = lease_register.new_id(self._state)
        nodes = tuple(
            self._node(identity, role, node_name(role, number), 100 * (role == "load") + number)
            for role, number in request.places
        )
        record = lease_records.Record(
            id=identity,
            site=self.name,
            study=request.study,
            owner=lease_records.owner(),
            created=lease_records.utc_now(),
            until=lease_records.aware(until),
            nodes=nodes,
            folders=(lease_records.nodes_folder(self._state, identity),),
        )
        path = lease_records.record_path(self._state, identity)
        with lease_records.locked(self._state):
            lease_records.write(path, record)
        if self._settings.fail == "lease":
            path.unlink()
            raise SiteError("site fake is set to fail when lending")
        lease_records.make_nodes_folder(self._state, identity)
        for node in nodes:
            node.folder.mkdir()
        return record.lease(path)

    async def release(self, lease: Lease) -> None:
        """Kill the lease's processes, remove its folders and its record. Idempotent. Raises SiteError if set to
        fail."""
        if self._settings.fail == "release":
            raise SiteError(f"site fake is set to fail when taking back {lease.id}")
        await lease_processes.kill(lease.id)
        folder = lease_records.nodes_folder(lease.record.parent.parent, lease.id)
        if folder.exists():
            await asyncio.to_thread(shutil.rmtree, folder)
        lease.record.unlink(missing_ok=True)

    async def leftovers(self) -> Sequence[Lease]:
        """Leases that have expired or whose owner is dead, and processes of a released lease."""
        known = lease_records.left_over(self._state, self.name, lease_records.utc_now())
        return [*known, *lease_processes.strays(self.name, self._state)]

    async def facts(self, node: Node) -> dict[str, str]:
        """The node's address and folder."""
        return {"site": self.name, "address": node.address}

    def refuse(self, request: Request, memory_mb_per_node: int | None) -> str | None:
        """Refuses more nodes than `most_nodes`, and limits of nodes."""
        wanted = request.database_nodes + request.load_nodes
        if wanted > self._settings.most_nodes:
            return f"{wanted} nodes; there are {self._settings.most_nodes}"
        return unenforced(self, request)

    def times(self, request: Request) -> LeaseTimes:
        """Almost 0: it only creates folders."""
        return LeaseTimes(lease_s=0.0, release_s=0.0)

    def _node(self, identity: str, role: Role, name: str, last_octet: int) -> Node:
        return Node(
            name=name,
            role=role,
            address=f"{self._settings.address}.{last_octet}",
            prefix=(),
            folder=lease_records.nodes_folder(self._state, identity) / name,
            environment=lease_records.environment(self._state, identity),
        )
