"""The contract of a system on nodes of site `ssh`: another file system, other process ids, a clock that is wrong."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import ClassVar

import pytest

from steelyard.leases import records as lease_records
from steelyard.leases.lease import Lease
from steelyard.node.base import Node
from steelyard.site.base import Request, Reuses
from steelyard.testing.site import make_site
from steelyard.testing.system import OnNodes, SystemContract
from tests.contract import shelf as shelves
from tests.contract.shelf import Shelf
from tests.contract.system import (
    test_cassandra,
    test_cassandra_grows,
    test_document_servers,
    test_etcd,
    test_postgresql,
    test_redis,
    test_simulated,
    test_spark_hdfs,
)

pytestmark = [pytest.mark.root, pytest.mark.agent, pytest.mark.sshd]


@pytest.fixture(scope="module")
def shelf() -> Iterator[Shelf]:
    with shelves.running(4, clock_offsets_s=(0.0, 3.0, -2.0)) as running:
        yield running


class OnTheShelf(OnNodes):
    """Nodes are those of a lease of site `ssh`; rows are written and counted from its load node."""

    ipv6: ClassVar[bool] = False
    roles: ClassVar[Sequence[str]] = ()
    """Of the machines in order; default: the last one is the load node."""
    shelf: ClassVar[Shelf]
    lease: ClassVar[Lease]

    @pytest.fixture(scope="class", autouse=True)
    def lent(
        self, request: pytest.FixtureRequest, shelf: Shelf, tmp_path_factory: pytest.TempPathFactory
    ) -> Iterator[Callable[[], None]]:
        """Machines are lent once, and handed on from test to test."""
        suite = request.cls
        inventory = shelf.inventory(suite.roles, name=f"{suite.__name__}.toml", ipv6=suite.ipv6)
        site = make_site("ssh", {"inventory": str(inventory)}, tmp_path_factory.mktemp("state"))
        assert isinstance(site, Reuses)
        asked, until = Request("contract", suite.database_nodes, 1), lease_records.utc_now() + timedelta(hours=1)
        suite.shelf, suite.lease = shelf, asyncio.run(site.lease(asked, until))

        def hand_on() -> None:
            handed_on = asyncio.run(site.recycle(suite.lease, asked, until))
            assert handed_on is not None
            suite.lease = handed_on

        try:
            yield hand_on
        finally:
            asyncio.run(site.release(suite.lease))

    @pytest.fixture(autouse=True)
    def _handed_on(self, lent: Callable[[], None]) -> Iterator[None]:
        yield
        lent()

    def nodes(self, tmp_path: Path) -> tuple[Node, ...]:
        return self.lease.databases

    def snapshots(self, tmp_path: Path) -> Path:
        return self.shelf.machines[0].steelyard

    def client(self) -> Node | None:
        return self.lease.loaders[0]


class TestSimulated(OnTheShelf, test_simulated.TestThreeNodes):
    pass


class TestSimulatedGrowth(OnTheShelf, test_simulated.TestGrowth):
    """The clocks of both nodes that join are wrong."""

    # A join that is killed must not be at its end by then: marks are read, and nodes killed, by commands.
    settings: ClassVar = {**test_simulated.TestGrowth.settings, "data_mb": 90.0}
    database_nodes = 3
    at_first = 1


class TestSimulatedByIpv6(TestSimulated):
    ipv6 = True


@pytest.mark.cassandra
class TestCassandra(OnTheShelf, test_cassandra.TestOneNode):
    """Java is found on the node, jars are brought, snapshots stay there; addresses are of version 6."""

    ipv6 = True
    test_a_dead_server_is_a_fault = None  # type: ignore[assignment]
    """Cassandra's is that of this machine; how a server's end is known over ssh, the others show."""

    test_takes_a_snapshot_and_restores_it = SystemContract.test_takes_a_snapshot_and_restores_it

    @pytest.mark.by_hand
    def test_life(self, tmp_path: Path) -> None:
        """In part that of the snapshot, which starts servers twice."""
        super().test_life(tmp_path)


@pytest.mark.cassandra
@pytest.mark.by_hand
class TestCassandraGrowth(OnTheShelf, test_cassandra_grows.Smallest):
    """By addresses of version 6. Java has the right clock on every machine, so the node that joins is one that is said
    to have it."""

    ipv6 = True
    roles = ("database", "load", "load", "database")


@pytest.mark.web
class TestApache(OnTheShelf, test_document_servers.TestThreeOfApache):
    pass


@pytest.mark.web
class TestNginx(OnTheShelf, test_document_servers.TestThreeOfNginx):
    """By addresses of version 6."""

    ipv6 = True


@pytest.mark.redis
class TestRedis(OnTheShelf, test_redis.TestThreeMasters):
    pass


@pytest.mark.redis
@pytest.mark.by_hand
class TestRedisGrowth(OnTheShelf, test_redis.Smallest):
    """By addresses of version 6."""

    ipv6 = True


@pytest.mark.etcd
class TestEtcd(OnTheShelf, test_etcd.ThreeMembers):
    """By addresses of version 6."""

    ipv6 = True


@pytest.mark.postgresql
class TestPostgresql(OnTheShelf, test_postgresql.TestThreeNodes):
    pass


@pytest.mark.postgresql
class TestPostgresqlGrowth(OnTheShelf, test_postgresql.Smallest):
    """By addresses of version 6."""

    ipv6 = True


@pytest.mark.spark
@pytest.mark.by_hand
@pytest.mark.usefixtures("brief_java")
class TestSparkHdfs(OnTheShelf, test_spark_hdfs.Smallest):
    def loader(self, tmp_path: Path) -> Node:
        return self.lease.loaders[0]
