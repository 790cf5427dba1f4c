"""The contract of a system over real Redis Cluster, of masters and with replicas; and what only Redis promises."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import pytest

from steelyard.model.activity import GOSSIPING, IN_SERVICE, LEAVING, LEFT, STARTED, STREAMED, STREAMING
from steelyard.model.data_model import Schema
from steelyard.model.errors import SystemFault
from steelyard.node.base import Node
from steelyard.node.command import run
from steelyard.system.base import Endpoint
from steelyard.system.redis import Settings, _layout, create
from steelyard.testing.elastic import ElasticContract, ElasticSystem
from steelyard.testing.system import COMMAND_TIMEOUT_S, OnNodes, SystemContract
from tests.contract.system.taken_address import start_where_it_is_taken

pytestmark = [pytest.mark.redis, pytest.mark.agent]


class InKeys(OnNodes):
    """Not collected: a row is a key, written where its slot is; those of all masters are counted."""

    async def _ask(self, contact: str, *words: str, lines: Sequence[str] = ()) -> list[str]:
        host, _, port = contact.rpartition(":")
        argv = ["redis-cli", "-e", "-c", "-h", host.strip("[]"), "-p", port, *words]
        text = "".join(f"{line}\n" for line in lines).encode()
        return (await run(self.client(), argv, timeout_s=COMMAND_TIMEOUT_S, stdin=text)).stdout.decode().splitlines()

    async def write(self, endpoint: Endpoint, schema: Schema, keys: Sequence[str]) -> None:
        answers = await self._ask(endpoint.contacts[0], lines=[f"SET {schema.table}:{key} x" for key in keys])
        assert answers.count("OK") == len(keys), answers

    async def count(self, endpoint: Endpoint, schema: Schema) -> int:
        contact = endpoint.contacts[0]
        members = _layout.seen("\n".join(await self._ask(contact, "CLUSTER", "NODES")))
        port = contact.rpartition(":")[2]
        masters = [f"{member.address}:{port}" for member in members if member.is_master]
        return sum([int((await self._ask(master, "DBSIZE"))[0]) for master in masters])


class TestOneNode(InKeys, SystemContract):
    module = "redis"
    network = "127.96.1"
    settings: ClassVar = {"maxmemory_mb": 64, "io_threads": 2, "config": {"maxmemory-policy": "allkeys-lru"}}


class TestThreeMasters(TestOneNode):
    network = "127.96.2"
    database_nodes = 3
    settings: ClassVar = {"appendonly": True, "appendfsync": "always"}


class TestReplicas(TestOneNode):
    network = "127.96.3"
    database_nodes = 6
    settings: ClassVar = {"replicas": 1}


class TestGrowth(InKeys, ElasticContract):
    module = "redis"
    network = "127.96.4"
    # A member that was met and is gone is forgotten after it.
    settings: ClassVar = {"cluster_node_timeout_ms": 2000}
    interrupted_at = (("killed", GOSSIPING), ("cancelled", GOSSIPING))

    async def joins(
        self, system: ElasticSystem, joiner: Node, members: Sequence[Node]
    ) -> tuple[Mapping[str, float], int | None]:
        """It has every mark, and its share of the slots."""
        marks, received = await super().joins(system, joiner, members)
        assert list(marks) == [STARTED, GOSSIPING, STREAMING, STREAMED, IN_SERVICE]
        shares = [_slots(await system.facts(node)) for node in (*members, joiner)]
        assert sum(shares) == _layout.SLOTS
        assert max(shares) - min(shares) <= len(shares)
        return marks, received

    async def leaves(
        self, system: ElasticSystem, leaver: Node, members: Sequence[Node]
    ) -> tuple[Mapping[str, float], int | None]:
        marks, sent = await super().leaves(system, leaver, members)
        assert list(marks) == [LEAVING, STREAMING, STREAMED, LEFT]
        return marks, sent


class Smallest(TestGrowth):
    """Not collected: a node joins another, leaves, and joins again, on nodes that a site lends."""

    database_nodes = 2
    at_first = 1
    interrupted_at = ()


def _slots(facts: Mapping[str, str]) -> int:
    ends = [text.split("-") for text in facts["slots"].split()]
    return sum(int(each[-1]) - int(each[0]) + 1 for each in ends)


def _node(tmp_path: Path) -> Node:
    return Node("n1", "database", "127.96.5.1", (), tmp_path)


def test_an_address_that_is_taken_is_a_fault_with_its_reason(tmp_path: Path) -> None:
    system, node = create(Settings(), tmp_path), _node(tmp_path)
    with pytest.raises(SystemFault, match=r"n1: Redis is not running: exited with code 1; .*Address already in use"):
        start_where_it_is_taken(system, node, 6379)


def test_the_last_node_cannot_leave_nor_one_with_replicas(tmp_path: Path) -> None:
    node = _node(tmp_path)
    for replicas, why in ((0, "it has all slots"), (1, r"with system\.replicas a node that joins would be")):
        with pytest.raises(SystemFault, match=f"n1 can neither join nor leave: {why}"):
            asyncio.run(create(Settings(replicas=replicas), tmp_path).leave(node, (node,), lambda name, t_s: None))


def test_findings_name_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    (finding,) = asyncio.run(create(Settings(), tmp_path).findings())
    assert finding.hint.endswith("apt-get install redis-server redis-tools")
    (note,) = create(Settings(), tmp_path).notes()
    assert note.endswith(finding.hint)
    with pytest.raises(SystemFault, match="redis-server and redis-cli not found"):
        asyncio.run(create(Settings(), tmp_path).prepare())
