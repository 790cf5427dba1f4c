"""The contract of nodes that join and leave over real Cassandra; and what only Cassandra promises of them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import pytest

from steelyard.model.activity import LENT, OF_JOIN, OF_LEAVE, STARTED, STREAMING
from steelyard.model.errors import SystemFault
from steelyard.node.base import Node
from steelyard.node.folders import cache_folder
from steelyard.system.cassandra import Settings, create
from steelyard.system.cassandra._elastic import ElasticCassandra
from steelyard.testing.elastic import ElasticContract, ElasticSystem, Interruption
from tests.contract.system.test_cassandra import nodes_of, own_cache

pytestmark = [pytest.mark.cassandra, pytest.mark.agent, pytest.mark.usefixtures("brief_java")]


@pytest.fixture(scope="module", autouse=True)
def fetched() -> None:
    """Jars and archives, in the cache that everybody shares; slow only the first time."""
    asyncio.run(create(Settings(), cache_folder()).prepare())


class TestGrowth(ElasticContract):
    module = "cassandra"
    network = "127.92.6"
    write_consistency = "ALL"
    interrupted_at = (("killed", STREAMING),)
    settings: ClassVar = {
        "join_timeout_s": 300,
        "heap_mb": 160,
        "replication_factor": 2,
        "ring_delay_ms": 4000,
        "cleanup": "after-joins",
        # Ten seconds instead of a minute until an address is taken again; no pause of 8 s before a joiner listens.
        "jvm_options": (
            "-Dcassandra.gossip_quarantine_delay_ms=10000",
            "-Dcassandra.skip_wait_for_gossip_to_settle=0",
        ),
        "compression": "none",
        "yaml": {
            # A leaver first waits for twice this time.
            "write_request_timeout": "3000ms",
            # A join takes seconds to stream, so that one that is killed meanwhile never comes to its end.
            "stream_throughput_outbound": "1KiB/s",
            "stream_entire_sstables": False,
        },
    }

    def cache_folder(self, tmp_path: Path) -> Path:
        return own_cache(tmp_path)

    def nodes(self, tmp_path: Path) -> tuple[Node, ...]:
        return nodes_of(tmp_path, self.network, self.database_nodes)

    async def joins(
        self, system: ElasticSystem, joiner: Node, members: Sequence[Node]
    ) -> tuple[Mapping[str, float], int | None]:
        """It has every mark, received its part, and is no seed."""
        marks, received = await super().joins(system, joiner, members)
        assert list(marks) == [name for name in OF_JOIN if name != LENT]
        assert received is not None
        assert received > 0
        facts = await system.facts(joiner)
        assert facts["departs: start properties"] == "ring delay 4000 ms"
        assert "departs: all nodes are seeds" not in facts
        return marks, received

    async def leaves(
        self, system: ElasticSystem, leaver: Node, members: Sequence[Node]
    ) -> tuple[Mapping[str, float], int | None]:
        """It has every mark, and sent its part."""
        marks, sent = await super().leaves(system, leaver, members)
        assert list(marks) == list(OF_LEAVE)
        assert sent is not None
        assert sent > 0
        return marks, sent

    async def is_interrupted(
        self, system: ElasticSystem, joiner: Node, members: Sequence[Node], how: Interruption, mark: str
    ) -> SystemFault | None:
        """The fault quotes the log."""
        fault = await super().is_interrupted(system, joiner, members, how, mark)
        if fault is not None:
            assert "SIGKILL" in fault.message
            assert "last lines: INFO" in fault.message
        return fault


@pytest.mark.by_hand
class TestCancelledGrowth(TestGrowth):
    """A join that is cancelled, which other systems show, too."""

    network = "127.92.8"
    interrupted_at = (("cancelled", STARTED),)


class Smallest(TestGrowth):
    """Not collected: a node joins another, leaves, and joins again, on nodes that a site lends."""

    database_nodes = 2
    at_first = 1
    interrupted_at = ()
    # No join is killed, so none needs seconds to stream.
    settings: ClassVar = {
        **TestGrowth.settings, "replication_factor": 1, "yaml": {"write_request_timeout": "3000ms"},
    }  # fmt: skip


def test_too_few_would_remain(tmp_path: Path) -> None:
    """A node whose copies would have no place is told so before anything is asked of it."""
    nodes = nodes_of(tmp_path, "127.92.7", 2)
    system = create(Settings(replication_factor=2), own_cache(tmp_path))
    assert isinstance(system, ElasticCassandra)
    with pytest.raises(SystemFault, match="2 copies of each row need 2 nodes"):
        asyncio.run(system.leave(nodes[0], nodes, lambda name, t_s: None))
