"""The contract of a system over real etcd, of one member and of several; and what only etcd promises."""

from __future__ import annotations

import asyncio
import base64
import json
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest

from steelyard.model.data_model import Schema
from steelyard.model.errors import CommandFailed, SystemFault
from steelyard.node.base import Node
from steelyard.node.command import run
from steelyard.system.base import Endpoint
from steelyard.system.etcd import Etcd, Settings, create
from steelyard.system.etcd._system import ALL
from steelyard.system.packaged import CURL
from steelyard.testing.system import COMMAND_TIMEOUT_S, ROWS, SCHEMA, OnNodes, SystemContract, keys, make_system, until

pytestmark = [pytest.mark.etcd, pytest.mark.agent]

VALUE_BYTES = 1000
MOST_WRITES = 50


class InFields(OnNodes):
    """Not collected: a row is a key, and all are written by one transaction."""

    async def _ask(self, contact: str, what: str, body: Mapping[str, Any]) -> Any:
        argv = ["curl", *CURL, "--data", json.dumps(body), f"http://{contact}/v3/kv/{what}"]
        return json.loads((await run(self.client(), argv, timeout_s=COMMAND_TIMEOUT_S)).stdout)

    async def write(self, endpoint: Endpoint, schema: Schema, keys: Sequence[str]) -> None:
        value = base64.b64encode(b"x" * VALUE_BYTES).decode()
        puts = [{"requestPut": {"key": base64.b64encode(key.encode()).decode(), "value": value}} for key in keys]
        answer = await self._ask(endpoint.contacts[-1], "txn", {"success": puts})
        assert answer["succeeded"], answer

    async def count(self, endpoint: Endpoint, schema: Schema) -> int:
        return int((await self._ask(endpoint.contacts[0], "range", {**ALL, "count_only": True})).get("count", 0))


class TestOneMember(InFields, SystemContract):
    module = "etcd"
    network = "127.98.1"
    settings: ClassVar = {"quota_backend_mb": 1, "auto_compaction_retention": "10m", "config": {"max-txn-ops": 200}}

    def test_all_versions_of_all_keys_go_and_a_full_database_takes_writes_again(self, tmp_path: Path) -> None:
        async def body() -> None:
            system = make_system("etcd", self.settings, tmp_path)
            assert isinstance(system, Etcd)
            async with self._running(tmp_path, system) as (_, nodes):
                endpoint = system.endpoint(nodes, SCHEMA)

                async def fill() -> None:
                    for _ in range(MOST_WRITES):
                        await self.write(endpoint, SCHEMA, keys("row"))

                with pytest.raises(CommandFailed, match="429"):
                    await fill()
                await system.truncate(nodes, SCHEMA)
                assert await self.count(endpoint, SCHEMA) == 0
                await system.truncate(nodes, SCHEMA)
                await self.write(endpoint, SCHEMA, keys("row"))
                assert await self.count(endpoint, SCHEMA) == ROWS

        asyncio.run(body())


class ThreeMembers(InFields, SystemContract):
    """Not collected: three members, wherever a site lends them."""

    module = "etcd"
    network = "127.98.2"
    database_nodes = 3
    settings: ClassVar = {"heartbeat_ms": 50, "election_ms": 500}


class TestThreeMembers(ThreeMembers):
    def test_the_load_may_go_to_the_leader_alone(self, tmp_path: Path) -> None:
        async def body() -> None:
            system = make_system("etcd", {**self.settings, "clients": "leader"}, tmp_path)
            async with self._running(tmp_path, system) as (_, nodes):
                (contact,) = system.endpoint(nodes, SCHEMA).contacts
                (leader,) = [node for node in nodes if (await system.facts(node))["role"] == "leader"]
                assert contact == f"{leader.address}:2379"
                await system.kill(leader)
                others = [node for node in nodes if node.name != leader.name]

                async def another() -> bool:
                    return await _leads(others)

                await until(another, 20.0, "another member leads")
                assert not await system.ready(others[0], 2), "one of three is missing"

        asyncio.run(body())

    def test_a_member_that_cannot_start_is_missed_although_the_others_have_a_quorum(self, tmp_path: Path) -> None:
        async def body() -> None:
            system, nodes = create(Settings(), tmp_path), self.nodes(tmp_path)
            await system.prepare()
            try:
                with socket.create_server((nodes[2].address, 2380)):
                    for node in nodes:
                        await system.install(node, nodes)
                        await system.start(node, nodes)

                    async def leads() -> bool:
                        return await _leads(nodes[:2])

                    await until(leads, 20.0, "two of three members have a leader")
                    assert [await system.ready(node, 3) for node in nodes[:2]] == [False, False]
                    await system.ready(nodes[2], 3)
            finally:
                for node in nodes:
                    await system.wipe(node)

        with pytest.raises(SystemFault, match=r"n3: etcd is not running: exited with code 1; .*address already in use"):
            asyncio.run(body())


class TestFiveMembers(ThreeMembers):
    network = "127.98.3"
    database_nodes = 5
    settings: ClassVar = {}


async def _leads(nodes: Sequence[Node]) -> bool:
    """Whether the nodes answer a read that only a leader can let them answer."""
    argv = ["curl", *CURL, "--fail-early", "--max-time", "2", "--data", json.dumps(ALL)]
    urls = [f"http://{node.address}:2379/v3/kv/range" for node in nodes]
    return (await run(None, [*argv, *urls], timeout_s=COMMAND_TIMEOUT_S, check=False)).exit_code == 0


def test_findings_name_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    (finding,) = asyncio.run(create(Settings(), tmp_path).findings())
    assert finding.hint.endswith("apt-get install etcd-server curl")
