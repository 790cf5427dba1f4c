"""Nodes of site `docker` for the contract of a system."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar

import pytest

from steelyard.leases import records as lease_records
from steelyard.leases.lease import Lease
from steelyard.node.base import Node
from steelyard.site import docker
from steelyard.site.base import Request
from steelyard.testing.system import OnNodes


class InContainers(OnNodes):
    """Not collected: nodes are lent when a test first asks for them, and taken back after it."""

    site: ClassVar[dict[str, Any]] = {}
    subnet: ClassVar[str] = "10.115"
    """Addresses that no other file's tests have, which may run at the same time."""
    lease: Lease | None = None

    @pytest.fixture(autouse=True)
    def _taken_back(self, tmp_path: Path) -> Iterator[None]:
        yield
        if self.lease is not None:
            asyncio.run(self._site(tmp_path).release(self.lease))

    def _site(self, tmp_path: Path) -> docker.DockerSite:
        cache = self.cache_folder(tmp_path)
        cache.mkdir(exist_ok=True)
        settings = docker.Settings(**self.site, mounts=(str(cache),), subnet=self.subnet)
        return docker.create(settings, tmp_path / "state")

    def nodes(self, tmp_path: Path) -> tuple[Node, ...]:
        if self.lease is None:
            request = Request("contract", self.database_nodes, 1)
            until = lease_records.utc_now() + timedelta(hours=1)
            # A loop of its own: whoever asks may be in one.
            self.lease = _apart(self._site(tmp_path), request, until)
        return self.lease.databases


def _apart(site: docker.DockerSite, request: Request, until: Any) -> Lease:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(lambda: asyncio.run(site.lease(request, until))).result()
