"""Loopback cluster for tests and benchmarks that need a server, not a study."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from steelyard.node.base import Node
from steelyard.node.folders import cache_folder
from steelyard.node.tasks import to_the_end, together
from steelyard.plugins import find
from steelyard.site.base import Request
from steelyard.system.base import System

LEASE_S = 3600.0
READY_TIMEOUT_S = 180.0
POLL_S = 0.2
NATIVE_PORT = 9042


@dataclass(frozen=True)
class RunningCluster:
    """Running nodes and their system."""

    system: System
    nodes: tuple[Node, ...]
    port: int = NATIVE_PORT

    @property
    def contacts(self) -> tuple[str, ...]:
        """`address:port` of every node."""
        return tuple(f"{node.address}:{self.port}" for node in self.nodes)

    async def until_ready(self) -> None:
        """Wait until every node answers and sees all others. Raises TimeoutError after READY_TIMEOUT_S."""
        async with asyncio.timeout(READY_TIMEOUT_S):
            for node in self.nodes:
                while not await self.system.ready(node, len(self.nodes)):  # noqa: ASYNC110 - a server has no event
                    await asyncio.sleep(POLL_S)


@asynccontextmanager
async def running(
    state: Path,
    *,
    cache: Path | None = None,
    nodes: int = 1,
    system: str = "cassandra",
    system_settings: Mapping[str, Any] | None = None,
    site_settings: Mapping[str, Any] | None = None,
) -> AsyncIterator[RunningCluster]:
    """Start `nodes` nodes of a system on this machine's loopback addresses; everything is undone at the end."""
    site_module = find.find("site", "local")
    site = site_module.create(site_module.Settings.model_validate({"mode": "loopback", **(site_settings or {})}), state)
    module = find.find("system", system)
    recipe: System = module.create(module.Settings.model_validate(dict(system_settings or {})), cache or cache_folder())
    await recipe.prepare()
    lease = await site.lease(Request("testing", nodes), datetime.now(UTC) + timedelta(seconds=LEASE_S))
    try:
        await together(recipe.install(node, lease.databases) for node in lease.databases)
        await together(recipe.start(node, lease.databases) for node in lease.databases)
        cluster = RunningCluster(recipe, lease.databases, (system_settings or {}).get("native_port", NATIVE_PORT))
        await cluster.until_ready()
        yield cluster
    finally:
        await to_the_end(_undo(site, recipe, lease))


async def _undo(site: Any, recipe: System, lease: Any) -> None:
    await together(recipe.kill(node) for node in lease.databases)
    await site.release(lease)
