"""Nodes of real Cassandra join and leave while the cluster runs: one cluster for all of it, as starts are slow."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from steelyard.model import activity
from steelyard.model.errors import SystemFault
from steelyard.node.base import Node
from steelyard.node.command import run
from steelyard.node.folders import cache_folder
from steelyard.system.base import Elastic
from steelyard.system.cassandra import Settings, create
from steelyard.system.cassandra._elastic import ElasticCassandra
from steelyard.testing.system import SCHEMA
from tests.contract.system.test_cassandra import KEYS, _ThreeCopies, nodes_of, own_cache, started

pytestmark = [pytest.mark.cassandra, pytest.mark.agent, pytest.mark.usefixtures("brief_java")]

SETTINGS = Settings(
    join_timeout_s=300,
    heap_mb=160,
    replication_factor=2,
    ring_delay_ms=4000,
    cleanup="after-joins",
    # Ten seconds instead of a minute until an address is taken again; no pause of 8 s before a joiner listens.
    jvm_options=("-Dcassandra.gossip_quarantine_delay_ms=10000", "-Dcassandra.skip_wait_for_gossip_to_settle=0"),
    # A leaver first waits for twice this time.
    yaml={"write_request_timeout": "3000ms"},
)


@pytest.fixture(scope="module", autouse=True)
def fetched() -> None:
    """Jars and archives, in the cache that everybody shares; slow only the first time."""
    asyncio.run(create(Settings(), cache_folder()).prepare())


class Marks:
    """What a join or a leave reports, in order."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.times: list[float] = []
        self.reached: dict[str, asyncio.Event] = {name: asyncio.Event() for name in activity.OF_JOIN}

    def __call__(self, name: str, t_s: float | None) -> None:
        self.names.append(name)
        self.times += [] if t_s is None else [t_s]
        if name in self.reached:
            self.reached[name].set()


async def rows_through(system: ElasticCassandra, node: Node) -> int:
    """Rows that a scan at consistency ONE finds, with this node as its coordinator."""
    return await _ThreeCopies().count(system.endpoint([node], SCHEMA), SCHEMA)


async def in_service(system: ElasticCassandra, nodes: tuple[Node, ...]) -> None:
    """Every node is ready, as its settings ask, and finds every row."""
    for node in nodes:
        assert await system.ready(node, len(nodes))
        assert await system.differing(node) == {}
        assert await system.death(node) is None
        assert await rows_through(system, node) == len(KEYS)


def test_nodes_join_and_leave(tmp_path: Path) -> None:
    """A joiner that is killed leaves the cluster as it was; another joins, answers, leaves, and joins again."""
    *first, killed, other = nodes_of(tmp_path, "127.92.6", 4)
    members = tuple(first)

    async def body() -> None:
        system = create(SETTINGS, own_cache(tmp_path))
        assert isinstance(system, ElasticCassandra)
        assert isinstance(system, Elastic)
        try:
            await started(system, members)
            await system.create_schema(members, SCHEMA)
            await _ThreeCopies().write(system.endpoint(members, SCHEMA), SCHEMA, KEYS)
            await dies(system)
            await joins(system)
            await leaves(system)
            await joins(system)
            await system.clean_up([*members, other])
            await in_service(system, (*members, other))
        finally:
            for node in (*members, killed, other):
                await system.wipe(node)

    async def dies(system: ElasticCassandra) -> None:
        marks = Marks()
        joining = asyncio.create_task(system.join(killed, members, marks))
        await marks.reached[activity.RING_DELAY].wait()
        assert await system.waiting_for(killed) in ("ring delay", "streaming")
        with pytest.raises(SystemFault, match=rf"{other.name} joins while {killed.name} joins"):
            await system.join(other, members, Marks())
        (pid,) = await system.process_ids(killed)
        await run(killed, ["sh", "-c", 'kill -9 "$1"', "sh", str(pid)], timeout_s=10)
        with pytest.raises(SystemFault, match=r"SIGKILL.*JOINING") as caught:
            await joining
        assert caught.value.node == killed.name
        await system.wipe(killed)
        await in_service(system, members)

    async def joins(system: ElasticCassandra) -> None:
        marks = Marks()
        received = await system.join(other, members, marks)
        assert marks.names == [name for name in activity.OF_JOIN if name != activity.LENT]
        assert marks.times == sorted(marks.times)
        assert received is not None
        assert received > 0
        facts = await system.facts(other)
        assert facts["departs: start properties"] == "ring delay 4000 ms"
        assert "departs: all nodes are seeds" not in facts
        await in_service(system, (*members, other))

    async def leaves(system: ElasticCassandra) -> None:
        marks = Marks()
        sent = await system.leave(other, (*members, other), marks)
        assert marks.names == list(activity.OF_LEAVE)
        assert marks.times == sorted(marks.times)
        assert sent is not None
        assert sent > 0
        assert await system.process_ids(other) == ()
        await in_service(system, members)

    asyncio.run(body())


def test_too_few_would_remain(tmp_path: Path) -> None:
    """A node whose copies would have no place is told so before anything is asked of it."""
    nodes = nodes_of(tmp_path, "127.92.7", 2)
    system = create(Settings(replication_factor=2), own_cache(tmp_path))
    assert isinstance(system, ElasticCassandra)
    with pytest.raises(SystemFault, match="2 copies of each row need 2 nodes"):
        asyncio.run(system.leave(nodes[0], nodes, Marks()))
