"""A site that lends nothing: settings and refusals only."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import Field

from steelyard.leases.lease import Lease
from steelyard.model.value import Value
from steelyard.site.base import LeaseTimes, Request
from steelyard.site.kernel import memory


class Settings(Value):
    memory_mb: int | None = Field(default=None, ge=16)
    most_nodes: int = 9


class Site:
    name = "paper"
    shares = frozenset({"cpu", "memory", "kernel"})
    limits = frozenset({"memory_mb"})

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def refuse(self, request: Request, memory_mb_per_node: int | None) -> str | None:
        most = self.settings.most_nodes
        if request.database_nodes > most:
            return f"only {most} addresses"
        limit_mb = request.limits.memory_mb
        return None if limit_mb is None else memory.refusal(request, limit_mb, memory_mb_per_node)

    async def leftovers(self) -> Sequence[Lease]:
        return ()

    def times(self, request: Request) -> LeaseTimes:
        return LeaseTimes(lease_s=0.1, release_s=0.2)


def create(settings: Any, state_folder: Path) -> Site:
    return Site(settings)
