"""The contract of a system on nodes of site `ssh`: another file system, other process ids, a clock that is wrong."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import ClassVar

import pytest

from steelyard.leases import records as lease_records
from steelyard.leases.lease import Lease
from steelyard.node.base import Node
from steelyard.site.base import Request
from steelyard.testing.site import make_site
from steelyard.testing.system import OnNodes
from tests.contract import shelf as shelves
from tests.contract.shelf import Shelf
from tests.contract.system import test_cassandra, test_cassandra_grows, test_simulated

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

    @pytest.fixture(autouse=True)
    def lent(self, shelf: Shelf, tmp_path: Path) -> Iterator[None]:
        inventory = shelf.inventory(self.roles, name=f"{type(self).__name__}.toml", ipv6=self.ipv6)
        site = make_site("ssh", {"inventory": str(inventory)}, tmp_path / "state")
        until = lease_records.utc_now() + timedelta(hours=1)
        type(self).shelf = shelf
        type(self).lease = asyncio.run(site.lease(Request("contract", self.database_nodes, 1), until))
        try:
            yield
        finally:
            asyncio.run(site.release(self.lease))

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

    database_nodes = 3
    at_first = 1


class TestSimulatedByIpv6(TestSimulated):
    ipv6 = True


@pytest.mark.cassandra
class TestCassandra(OnTheShelf, test_cassandra.TestOneNode):
    """Java is found on the node, jars are brought, snapshots stay there; addresses are of version 6."""

    ipv6 = True


@pytest.mark.cassandra
class TestCassandraGrowth(OnTheShelf, test_cassandra_grows.Smallest):
    """By addresses of version 6. Java has the right clock on every machine, so the node that joins is one that is said
    to have it."""

    ipv6 = True
    roles = ("database", "load", "load", "database")
