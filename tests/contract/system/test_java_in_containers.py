"""Systems of Java keep their contract on nodes that site `docker` lends. A file of their own, as they take as long as
all others: another process runs those meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import pytest

from steelyard.events.base import Silent
from steelyard.lab.probe_processes import watched_nodes, watching
from steelyard.node.base import Node
from steelyard.plugins.find import Plugins
from steelyard.plugins.parts import Parts
from steelyard.system.base import System
from steelyard.testing.system import SystemContract
from tests.contract.system import test_cassandra, test_cassandra_grows, test_spark_hdfs
from tests.contract.system.in_containers import InContainers

pytestmark = [pytest.mark.docker, pytest.mark.agent, pytest.mark.usefixtures("daemon", "brief_java")]


class JavaInContainers(InContainers):
    subnet: ClassVar = "10.118"


@pytest.mark.spark
class TestSparkHdfs(JavaInContainers, test_spark_hdfs.Smallest):
    """The image has Java; the jars and curl are brought, also to the load node."""

    job = "terasort"
    site: ClassVar = {"network": "bridge", "storage": "volume"}

    def loader(self, tmp_path: Path) -> Node:
        self.nodes(tmp_path)
        assert self.lease is not None
        return self.lease.loaders[0]


@pytest.mark.spark
class TestSparkHdfsGrowth(JavaInContainers, test_spark_hdfs.SmallestGrowth):
    site: ClassVar = {"network": "bridge", "storage": "volume"}


@pytest.mark.cassandra
@pytest.mark.by_hand
class TestCassandraGrowth(JavaInContainers, test_cassandra_grows.Smallest):
    site: ClassVar = {"network": "bridge", "storage": "volume"}


@pytest.mark.cassandra
class TestCassandra(JavaInContainers, SystemContract):
    module = "cassandra"
    settings: ClassVar = test_cassandra.TestOneNode.settings
    site: ClassVar = {"network": "bridge", "storage": "volume"}

    def cache_folder(self, tmp_path: Path) -> Path:
        return test_cassandra.own_cache(tmp_path)

    test_a_dead_server_is_a_fault = None  # type: ignore[assignment]
    """Cassandra's is that of this machine; how a server's end is known in a container, the others in it show."""

    async def _serves(self, system: System, nodes: Sequence[Node]) -> None:
        """Its beans, too, are read within the wait of every site: no name server answers on this network, and none is
        needed."""
        await super()._serves(system, nodes)
        watched = await watched_nodes(system, nodes)
        async with watching([Parts(Plugins()).probe("jmx")], watched, Silent()) as readings:
            assert readings.failure is None
