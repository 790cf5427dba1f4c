"""The contract of a system over real PostgreSQL, alone and with replicas; and what only PostgreSQL promises."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import pytest

from steelyard import engine_order
from steelyard.engine.agent import AgentEngine
from steelyard.model.activity import IN_SERVICE, LEAVING, LEFT, STARTED, STREAMED, STREAMING
from steelyard.model.data_model import Schema
from steelyard.model.errors import SystemFault
from steelyard.model.load import Load
from steelyard.node.base import Node
from steelyard.node.command import run
from steelyard.system.base import Elastic, Endpoint
from steelyard.system.postgresql import PostgreSQL, Settings, _system, create
from steelyard.testing.elastic import ElasticContract, ElasticSystem
from steelyard.testing.system import COMMAND_TIMEOUT_S, ROWS, SCHEMA, OnNodes, SystemContract, keys, until
from steelyard.wire.order import Order
from steelyard.wire.record import Interval, Record, Routed
from steelyard.workload import ycsb
from tests.contract.system.taken_address import start_where_it_is_taken

pytestmark = [pytest.mark.postgresql, pytest.mark.agent]

THREADS = 8


class InTables(OnNodes):
    """Not collected: rows are written to the primary, and are there when every replica shows them."""

    async def _ask(self, contacts: Sequence[str], statement: str, server: str = "any") -> str:
        hosts, ports = zip(*(contact.rpartition(":")[::2] for contact in contacts), strict=True)
        addresses = ",".join(host.strip("[]") for host in hosts)
        where = f"host={addresses} port={','.join(ports)} target_session_attrs={server}"
        psql = _system.packaged(None).programs[1]
        argv = [psql, "-XqAt", "-d", f"{where} user=steelyard dbname=steelyard", "-c", statement]
        return (await run(self.client(), argv, timeout_s=COMMAND_TIMEOUT_S)).stdout.decode().strip()

    async def write(self, endpoint: Endpoint, schema: Schema, keys: Sequence[str]) -> None:
        values = ", ".join(f"('{key}', 'x', 'y')" for key in keys)
        await self._ask(endpoint.contacts, f"INSERT INTO {schema.table} VALUES {values}", "read-write")
        position = await self._ask(endpoint.contacts, "SELECT pg_current_wal_lsn()", "read-write")
        shown = f"SELECT NOT pg_is_in_recovery() OR pg_last_wal_replay_lsn() >= '{position}'"

        async def everywhere() -> bool:
            return {await self._ask([contact], shown) for contact in endpoint.contacts} == {"t"}

        await until(everywhere, COMMAND_TIMEOUT_S, "every replica shows what was written")

    async def count(self, endpoint: Endpoint, schema: Schema) -> int:
        return int(await self._ask(endpoint.contacts[:1], f"SELECT count(*) FROM {schema.table}"))


class TestOneNode(InTables, SystemContract):
    module = "postgresql"
    network = "127.99.1"
    settings: ClassVar = {"shared_buffers_mb": 64, "config": {"work_mem": "8MB", "autovacuum": False}}


class TestThreeNodes(TestOneNode):
    network = "127.99.2"
    database_nodes = 3
    settings: ClassVar = {"synchronous": 1, "synchronous_commit": "remote_apply"}

    def test_a_replica_takes_the_place_of_a_primary_that_died(self, tmp_path: Path) -> None:
        """The other one follows it; nothing is lost, and the time is a fact."""

        async def body() -> None:
            async with self._running(tmp_path) as (system, nodes):
                assert isinstance(system, PostgreSQL)
                with pytest.raises(SystemFault, match="the primary runs, or there is none"):
                    await system.promote(nodes)
                roles = [await system.facts(node) for node in nodes]
                assert [facts["role"] for facts in roles] == ["primary", "replica", "replica"]
                assert roles[0]["replicas"] == ", ".join(f"{node.address}:5432 quorum" for node in nodes[1:])
                await system.create_schema(nodes, SCHEMA)
                await self.write(system.endpoint(nodes, SCHEMA), SCHEMA, keys("row"))
                await system.kill(nodes[0])
                chosen = await system.promote(nodes)
                rest = nodes[1:]

                async def whole() -> bool:
                    return all([await system.ready(node, len(rest)) for node in rest])

                await until(whole, self.start_timeout_s, "the other replica follows the new primary")
                assert chosen in rest
                facts = await system.facts(chosen)
                assert facts["role"] == "primary"
                assert re.fullmatch(rf"{chosen.name} within \d+\.\d{{3}} s", facts["promoted"])
                assert [await system.differing(node) for node in rest] == [{}, {}]
                endpoint = system.endpoint(rest, SCHEMA)
                await self.write(endpoint, SCHEMA, keys("more"))
                counts = [await self.count(system.endpoint((node,), SCHEMA), SCHEMA) for node in rest]
                assert counts == [2 * ROWS, 2 * ROWS]

        asyncio.run(body())


class TestGrowth(InTables, ElasticContract):
    module = "postgresql"
    network = "127.99.3"
    interrupted_at = (("killed", STREAMING), ("cancelled", STREAMING))

    async def joins(
        self, system: ElasticSystem, joiner: Node, members: Sequence[Node]
    ) -> tuple[Mapping[str, float], int | None]:
        """It has every mark, and is a replica that the primary sends to."""
        marks, received = await super().joins(system, joiner, members)
        assert list(marks) == [STARTED, STREAMING, STREAMED, IN_SERVICE]
        assert (await system.facts(joiner))["role"] == "replica"
        assert joiner.address in (await system.facts(members[0]))["replicas"]
        return marks, received

    async def leaves(
        self, system: ElasticSystem, leaver: Node, members: Sequence[Node]
    ) -> tuple[Mapping[str, float], int | None]:
        marks, sent = await super().leaves(system, leaver, members)
        assert list(marks) == [LEAVING, LEFT]
        with pytest.raises(SystemFault, match="n1 can neither join nor leave: it is the primary"):
            await system.leave(members[0], members, lambda name, t_s: None)
        return marks, sent


class TestGrowthUnderLoad(InTables):
    module = "postgresql"
    network = "127.99.5"
    database_nodes = 2

    def test_a_replica_that_joins_is_read_from_until_it_leaves(self, tmp_path: Path) -> None:
        """Nothing is lost but what is in flight there when it leaves; a second time it is a node that joins again."""
        workload = ycsb.Core("c", ycsb.Settings(records=ROWS, read_proportion=1.0, update_proportion=0.0))
        schema, client = workload.schema(), Node("l1", "load", "127.0.0.1", (), tmp_path / "l1")
        client.folder.mkdir()
        said: list[Record] = []

        async def drive(order: Order) -> None:
            await AgentEngine().drive(order, [client], lambda _, record: said.append(record), 300.0)

        async def body() -> None:
            async with self._running(tmp_path, at_first=1) as (system, (primary, joiner)):
                assert isinstance(system, Elastic)
                await system.create_schema([primary], schema)
                endpoint = system.endpoint([primary], schema)
                (contact,) = system.endpoint([joiner], schema).contacts
                await drive(engine_order.populate(endpoint, schema, workload, 8))
                load = Load(schedule="constant", rate_per_s=500, threads=THREADS, duration_s=240, read_from="any")
                order = engine_order.measure(load, endpoint, schema, workload, 1, discover=True)
                driving = asyncio.ensure_future(drive(order))
                for _ in range(2):
                    await system.join(joiner, [primary], lambda name, t_s: None)

                    async def is_read() -> bool:
                        assert not driving.done(), driving.result()
                        reads = "SELECT sum(seq_scan + coalesce(idx_scan, 0)) > 500 FROM pg_stat_user_tables"
                        return await self._ask([contact], reads) == "t"

                    await until(is_read, COMMAND_TIMEOUT_S, "half of the reads are answered by the replica")
                    await system.leave(joiner, [primary, joiner], lambda name, t_s: None)
                    await system.wipe(joiner)
                driving.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await driving
                assert [record.contact for record in said if isinstance(record, Routed)] == [contact, contact]
                intervals = [record for record in said if isinstance(record, Interval)]
                assert sum(interval.errors for interval in intervals) <= 2 * THREADS

        asyncio.run(body())


class Smallest(TestGrowth):
    """Not collected: a node joins another, leaves, and joins again, on nodes that a site lends."""

    database_nodes = 2
    at_first = 1
    interrupted_at = ()


def test_an_address_that_is_taken_is_a_fault_with_its_reason(tmp_path: Path) -> None:
    system, node = create(Settings(), tmp_path), Node("n1", "database", "127.99.4.1", (), tmp_path)
    with pytest.raises(SystemFault, match=r"n1: PostgreSQL is not running: exited with code 1; .*already in use"):
        start_where_it_is_taken(system, node, 5432, timeout_s=30.0)


def test_findings_name_the_command(tmp_path: Path) -> None:
    system = create(Settings(version=99), tmp_path)
    (finding,) = asyncio.run(system.findings())
    (note,) = system.notes()
    assert note.endswith(finding.hint)
    assert finding.hint.endswith("apt-get install postgresql-99")
    with pytest.raises(SystemFault, match=r"bin/postgres and \S+/psql not found"):
        asyncio.run(system.prepare())
