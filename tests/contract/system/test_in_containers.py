"""Shipped systems keep their contract on nodes that site `docker` lends."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar

import pytest

from steelyard.events.base import Silent
from steelyard.lab.probe_processes import watched_nodes, watching
from steelyard.leases import records as lease_records
from steelyard.leases.lease import Lease
from steelyard.node.base import Node
from steelyard.plugins.find import Plugins
from steelyard.plugins.parts import Parts
from steelyard.site import docker
from steelyard.site.base import Request
from steelyard.testing.system import OnNodes, SystemContract
from tests.contract.system import test_cassandra, test_cassandra_grows, test_simulated
from tests.docker_daemon import running_daemon

pytestmark = [pytest.mark.docker, pytest.mark.agent, pytest.mark.usefixtures("daemon")]


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with running_daemon(tmp_path_factory.mktemp("docker")):
        yield


class InContainers(OnNodes):
    """Not collected: nodes are lent when a test first asks for them, and taken back after it."""

    site: ClassVar[dict[str, Any]] = {}
    lease: Lease | None = None

    @pytest.fixture(autouse=True)
    def _taken_back(self, tmp_path: Path) -> Iterator[None]:
        yield
        if self.lease is not None:
            asyncio.run(self._site(tmp_path).release(self.lease))

    def _site(self, tmp_path: Path) -> docker.DockerSite:
        cache = self.cache_folder(tmp_path)
        cache.mkdir(exist_ok=True)
        # Addresses that the tests of the site do not have, which may run at the same time.
        settings = docker.Settings(**self.site, mounts=(str(cache),), subnet="10.115")
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


class TestSimulatedOnTheMachinesNetwork(InContainers, test_simulated.TestOneNode):
    module = "simulated"
    site: ClassVar = {"network": "host", "storage": "volume"}


class TestSimulatedOnABridge(InContainers, test_simulated.TestOneNode):
    module = "simulated"
    site: ClassVar = {"network": "bridge", "storage": "overlay"}


class TestSimulatedGrowth(InContainers, test_simulated.TestGrowth):
    """Logs are in layers, which only commands read."""

    site: ClassVar = {"network": "bridge", "storage": "overlay"}


@pytest.mark.cassandra
@pytest.mark.usefixtures("brief_java")
class TestCassandra(InContainers, SystemContract):
    module = "cassandra"
    settings: ClassVar = test_cassandra.TestOneNode.settings
    site: ClassVar = {"network": "bridge", "storage": "volume"}

    def cache_folder(self, tmp_path: Path) -> Path:
        return test_cassandra.own_cache(tmp_path)

    def test_beans_are_read_within_the_wait_of_every_site(self, tmp_path: Path) -> None:
        """No name server answers on this network, and none is needed."""

        async def body() -> None:
            async with self._running(tmp_path) as (system, nodes):
                watched = await watched_nodes(system, nodes)
                async with watching([Parts(Plugins()).probe("jmx")], watched, Silent()) as readings:
                    assert readings.failure is None

        asyncio.run(body())


@pytest.mark.cassandra
@pytest.mark.usefixtures("brief_java")
class TestCassandraGrowth(InContainers, test_cassandra_grows.Smallest):
    site: ClassVar = {"network": "bridge", "storage": "volume"}
