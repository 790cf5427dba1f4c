"""Contract tests of a system; authors of systems inherit them.

    class TestMySystem(SystemContract):
        module = "path/to/my_system.py"     # module name, entry point or path, as in a study
        settings = {"heap_mb": 256}

Each test starts the system for real, on nodes that are plain folders and loopback addresses. Rows are written and
counted in CQL; documents, which the system writes, are read over HTTP; a system with another protocol overrides `write`
and `count`.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import string
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, ClassVar

import pytest
from pydantic import ValidationError

from steelyard.model.data_model import Schema
from steelyard.model.errors import SystemFault
from steelyard.model.load import Load
from steelyard.model.workload_shape import WorkloadShape
from steelyard.node import agent, files
from steelyard.node.base import Node
from steelyard.node.command import run
from steelyard.plugins import find
from steelyard.system.base import (
    CompilesCode,
    Endpoint,
    Footprint,
    Maintains,
    NoticesDeath,
    Observed,
    Offers,
    Provides,
    Settles,
    Snapshots,
    System,
    Timed,
    ValidatesLoad,
)
from steelyard.testing.findings import check_findings
from steelyard.wire.order import HTTP

POLL_S = 0.1
COMMAND_TIMEOUT_S = 60.0
DEATH_TIMEOUT_S = 10.0
ROWS = 40
ROWS_A_STATEMENT = 20
DOCUMENTS = tuple((f"/{index}/{index * 100}.bin", index * 100) for index in range(ROWS))
SCHEMA = Schema("contract", "rows", "k", ("f0", "f1"), documents=DOCUMENTS)
DATA = {"records": ROWS, "seed": 1}


def make_system(module: str, settings: Mapping[str, Any], cache_folder: Path) -> System:
    """The system that a study with these settings would get."""
    system_plugin = find.find("system", module)
    system: System = system_plugin.create(system_plugin.Settings(**settings), cache_folder)
    return system


class OnNodes:
    """Nodes on which the tests of a contract run a system, and their defaults."""

    module: ClassVar[str]
    settings: ClassVar[Mapping[str, Any]] = {}
    database_nodes: ClassVar[int] = 1
    network: ClassVar[str] = "127.91.0"
    """First three octets of the nodes' addresses."""
    write_consistency: ClassVar[str] = "ONE"
    """Replicas that have stored a row when `write` returns, as CQL names them."""
    start_timeout_s: ClassVar[float] = 180.0
    quiet_timeout_s: ClassVar[float] = 60.0

    def cache_folder(self, tmp_path: Path) -> Path:
        """Cache folder of the system's downloads; override to share it between tests."""
        return tmp_path / "cache"

    def snapshots(self, tmp_path: Path) -> Path:
        """Folder below which the first node's snapshots are, as this process sees it."""
        return self.cache_folder(tmp_path)

    def nodes(self, tmp_path: Path) -> tuple[Node, ...]:
        """Empty nodes, as a site lends them."""
        nodes = []
        for index in range(self.database_nodes):
            folder = tmp_path / "nodes" / f"n{index + 1}"
            folder.mkdir(parents=True, exist_ok=True)
            nodes.append(Node(f"n{index + 1}", "database", f"{self.network}.{index + 1}", (), folder))
        return tuple(nodes)

    def client(self) -> Node | None:
        """The node from which rows are written and counted; None for this machine."""
        return None

    async def write(self, endpoint: Endpoint, schema: Schema, keys: Sequence[str]) -> None:
        """Write one row for each key, and return when all are stored."""
        if endpoint.protocol == HTTP:
            return
        columns = ", ".join((schema.key, *schema.fields))
        rows = [", ".join(f"'{word}'" for word in (key, *("x" * 100 for _ in schema.fields))) for key in keys]
        inserts = [f"INSERT INTO {schema.keyspace}.{schema.table} ({columns}) VALUES ({row})" for row in rows]
        for begin in range(0, len(inserts), ROWS_A_STATEMENT):
            await _cql(self.client(), endpoint, inserts[begin : begin + ROWS_A_STATEMENT], self.write_consistency)

    async def count(self, endpoint: Endpoint, schema: Schema) -> int:
        """The number of rows, or of documents that every node has."""
        if endpoint.protocol == HTTP:
            return min([await _right(self.client(), contact, schema) for contact in endpoint.contacts])
        (rows,) = await _cql(self.client(), endpoint, [f"SELECT {schema.key} FROM {schema.keyspace}.{schema.table}"])
        return rows

    async def _start(self, system: System, nodes: Sequence[Node]) -> None:
        for node in nodes:
            await system.start(node, nodes)

        async def ready() -> bool:
            states = [await system.ready(node, len(nodes)) for node in nodes]
            assert all([await system.waiting_for(node) for node in nodes])
            return all(states)

        await until(ready, self.start_timeout_s, "every node is ready")

    @asynccontextmanager
    async def _running(
        self, tmp_path: Path, system: System | None = None, at_first: int | None = None
    ) -> AsyncIterator[tuple[System, tuple[Node, ...]]]:
        """A running cluster of the nodes, or of the first few of them; all are wiped at the end."""
        system = system or make_system(self.module, self.settings, self.cache_folder(tmp_path))
        nodes = self.nodes(tmp_path)
        first = nodes[:at_first]
        await system.prepare()
        if isinstance(system, Provides):
            await system.provide(nodes)
        for node in first:
            await system.install(node, first)
            await system.install(node, first)
            assert await system.process_ids(node) == ()
        try:
            await self._start(system, first)
            yield system, nodes
        finally:
            for node in nodes:
                await system.kill(node)
                await system.wipe(node)


class SystemContract(OnNodes):
    """Inherit it and set `module`; everything else has a default."""

    def test_creating_changes_nothing(self, tmp_path: Path) -> None:
        """Creating a system has no side effects, and it describes itself."""
        cache = tmp_path / "untouched"
        system = make_system(self.module, self.settings, cache)
        assert system.name
        assert system.version
        assert system.memory_mb_per_node > 0
        nodes = self.nodes(tmp_path)
        assert system.endpoint(nodes, SCHEMA).protocol == system.protocol
        assert not cache.exists()

    def test_says_what_is_to_be_expected(self, tmp_path: Path) -> None:
        """Its estimated times, disk space and problems are usable by a plan."""
        system = make_system(self.module, self.settings, tmp_path)
        shape = WorkloadShape(records=1000, record_bytes=1000, mix={"read": 0.5, "update": 0.5})
        larger = shape.model_copy(update={"records": 100_000})
        for nodes in (1, 3):
            if isinstance(system, Timed):
                times = system.times(shape, nodes, 2)
                assert times == system.times(shape, nodes, 2)
                assert min(times.start_s, times.service_ms, times.most_per_s) > 0
                assert min(times.schema_s, times.snapshot_s, times.restore_s, times.settle_s, times.wipe_s) >= 0
                assert system.times(larger, nodes, 2).fill_s >= times.fill_s >= 0
            if isinstance(system, Footprint):
                assert 1 <= system.copies(nodes) <= nodes
                assert system.disk_bytes(2e9, nodes) >= system.disk_bytes(1e9, nodes) >= 0
            if isinstance(system, ValidatesLoad):
                assert all(error.key and error.message for error in system.problems(nodes, Load(operations=1)))

    def test_says_what_it_needs(self, tmp_path: Path) -> None:
        """A system that `Diagnoses` reports what is there, and gives a hint for the rest."""
        check_findings(make_system(self.module, self.settings, self.cache_folder(tmp_path)))

    def test_refuses_misspelt_settings(self) -> None:
        """A setting that does not exist is refused before anything starts."""
        system_plugin = find.find("system", self.module)
        wrong = {**self.settings, "no_such_setting": 1}
        with pytest.raises(ValidationError, match="no_such_setting"):
            system_plugin.Settings(**wrong)

    def test_ending_what_never_began(self, tmp_path: Path) -> None:
        """Stop, kill and wipe work on an empty node, any number of times."""

        async def body() -> None:
            system = make_system(self.module, self.settings, self.cache_folder(tmp_path))
            for node in self.nodes(tmp_path):
                for act in (system.stop, system.kill, system.wipe, system.wipe, system.kill, system.stop):
                    await act(node)
                assert await system.process_ids(node) == ()
                assert await log_files(system, node) == []

        asyncio.run(body())

    def test_life(self, tmp_path: Path) -> None:
        """Install, start, ready, schema, facts, stop, start again with its data, kill, wipe."""

        async def body() -> None:
            async with self._running(tmp_path) as (system, nodes):
                await self._serves(system, nodes)
                endpoint = system.endpoint(nodes, SCHEMA)
                await self.write(endpoint, SCHEMA, keys("row"))
                assert await self.count(endpoint, SCHEMA) == ROWS
                for node in nodes:
                    await system.stop(node)
                    await system.stop(node)
                    assert await system.process_ids(node) == ()
                await self._start(system, nodes)
                assert await self.count(endpoint, SCHEMA) == ROWS
                if isinstance(system, Maintains):
                    for task in sorted(system.maintenance):
                        await system.maintain(nodes[0], task)
                        assert await self.count(endpoint, SCHEMA) == ROWS, f"{task} keeps all rows"
                for node in nodes:
                    pids = await system.process_ids(node)
                    await system.kill(node)
                    await system.kill(node)
                    assert await files.texts(node, *(Path(f"/proc/{pid}/stat") for pid in pids)) == {}
                    assert await log_files(system, node)
                    await system.wipe(node)
                    await system.wipe(node)

        asyncio.run(body())

    def test_a_dead_server_is_a_fault(self, tmp_path: Path) -> None:
        """`ready`, and `death` if the system has it, report a server that dies, with the node's name, and never wait
        forever."""

        async def body() -> None:
            async with self._running(tmp_path) as (system, nodes):
                if isinstance(system, NoticesDeath):
                    assert [await system.death(node) for node in nodes] == [None] * len(nodes)
                for pid in await system.process_ids(nodes[0]):
                    # Processes end with the first.
                    argv = ["sh", "-c", 'kill -9 "$1"', "sh", str(pid)]
                    await run(nodes[0], argv, timeout_s=COMMAND_TIMEOUT_S, check=False)

                async def reports_death() -> bool:
                    try:
                        await system.ready(nodes[0], len(nodes))
                    except SystemFault as fault:
                        return fault.node == nodes[0].name
                    return False

                await until(reports_death, DEATH_TIMEOUT_S, "ready reports the dead server")
                if isinstance(system, NoticesDeath):
                    fault, *others = [await system.death(node) for node in nodes]
                    assert fault is not None
                    assert fault.node == nodes[0].name
                    assert others == [None] * len(others)

        asyncio.run(body())

    def test_takes_a_snapshot_and_restores_it(self, tmp_path: Path) -> None:
        """A snapshot can be restored after writes, after a truncation, and on a new cluster; it never changes
        itself."""

        async def body() -> None:
            cache = self.cache_folder(tmp_path)
            system = make_system(self.module, self.settings, cache)
            if not isinstance(system, Snapshots):
                return
            nodes = self.nodes(tmp_path)
            data = {**DATA, "test": str(tmp_path)}
            key = system.snapshot_key(nodes, SCHEMA, data)
            other = make_system(self.module, self.settings, cache)
            assert isinstance(other, Snapshots)
            assert key == other.snapshot_key(nodes, SCHEMA, data)
            assert key != system.snapshot_key(nodes, SCHEMA, {**data, "records": ROWS + 1})
            assert not await system.has(nodes, key)
            async with self._running(tmp_path, system) as (_, _):
                await system.create_schema(nodes, SCHEMA)
                endpoint = system.endpoint(nodes, SCHEMA)
                await self.write(endpoint, SCHEMA, keys("row"))
                await system.snapshot(nodes, SCHEMA, key)
                assert await system.has(nodes, key)
                kept = _checksums(self.snapshots(tmp_path), key)
                await self._comes_back(system, nodes, key)
                assert _checksums(self.snapshots(tmp_path), key) == kept
            async with self._running(tmp_path) as (fresh, _):
                assert isinstance(fresh, Snapshots)
                assert await fresh.has(nodes, key)
                await fresh.create_schema(nodes, SCHEMA)
                await self._comes_back(fresh, nodes, key)
            assert _checksums(self.snapshots(tmp_path), key) == kept

        asyncio.run(body())

    async def _comes_back(self, system: System, nodes: Sequence[Node], key: str) -> None:
        assert isinstance(system, Snapshots)
        endpoint = system.endpoint(nodes, SCHEMA)
        await system.restore(nodes, SCHEMA, key)
        assert await self.count(endpoint, SCHEMA) == ROWS
        await self.write(endpoint, SCHEMA, keys("more"))
        assert await self.count(endpoint, SCHEMA) == 2 * ROWS
        await system.restore(nodes, SCHEMA, key)
        assert await self.count(endpoint, SCHEMA) == ROWS
        await system.truncate(nodes, SCHEMA)
        assert await self.count(endpoint, SCHEMA) == 0
        await system.restore(nodes, SCHEMA, key)
        assert await self.count(endpoint, SCHEMA) == ROWS

    async def _serves(self, system: System, nodes: Sequence[Node]) -> None:
        """Check a ready cluster: starting again changes nothing, the schema exists, facts and settings are as
        requested."""
        pids = [await system.process_ids(node) for node in nodes]
        assert all(pids)
        for node in nodes:
            await system.start(node, nodes)
        assert [await system.process_ids(node) for node in nodes] == pids
        await system.create_schema(nodes, SCHEMA)
        await system.create_schema(nodes, SCHEMA)
        assert len(system.endpoint(nodes, SCHEMA).contacts) == len(nodes)
        for node in nodes:
            facts = await system.facts(node)
            assert all(isinstance(value, str) for value in facts.values())
            assert facts["version"] == system.version
            assert await system.differing(node) == {}
        for node in nodes:
            await self._ways_lead_there(system, node)
        if isinstance(system, CompilesCode):
            before_s, after_s = await system.compile_times_s(nodes), await system.compile_times_s(nodes)
            assert before_s.keys() == after_s.keys() == {node.name for node in nodes}
            assert all(0 <= before_s[name] <= after_s[name] for name in before_s), "seconds since the server's start"
        if isinstance(system, Settles):
            settling = system

            async def quiet() -> bool:
                return not any((await settling.busy(nodes)).values())

            await until(quiet, self.quiet_timeout_s, "an idle cluster becomes quiet")

    async def _ways_lead_there(self, system: System, node: Node) -> None:
        """Ways into a running server, if the system names any, are the same each time; CQL answers, and files exist."""
        if not isinstance(system, Observed):
            return
        ways = system.ways(node)
        assert ways == system.ways(node)
        assert all(name and way for name, way in ways.items())
        if isinstance(system, Offers):
            assert set(system.offers) == ways.keys()
        if "cql" in ways:
            endpoint = Endpoint("cql", (ways["cql"],))
            assert await _cql(node, endpoint, ["SELECT key FROM system.local"]) == [1]
        for name, path in ((name, way) for name, way in ways.items() if way.startswith("/")):
            there = await run(node, ["test", "-e", path], timeout_s=COMMAND_TIMEOUT_S, check=False)
            assert there.exit_code == 0, f"the way {name} names {path}, which does not exist"


async def log_files(system: System, node: Node) -> list[str]:
    """Names of the files in a node's log folders."""
    return [name for folder in system.logs(node) for name in await files.sizes(node, folder)]


async def until(true: Callable[[], Awaitable[bool]], timeout_s: float, what: str) -> None:
    """Wait until it is true; fails after the time limit, and says what did not come about."""
    deadline = time.monotonic() + timeout_s
    while not await true():
        assert time.monotonic() < deadline, f"not within {timeout_s:g} s: {what}"
        await asyncio.sleep(POLL_S)


async def _right(client: Node | None, contact: str, schema: Schema) -> int:
    """Number of documents that a server answers with in full."""
    urls = [f"http://{contact}{path}" for path, _ in schema.documents]
    argv = ["curl", "-q", "-g", "-s", "-S", "-f", "--noproxy", "*", "--write-out", "\\n", *urls]
    bodies = (await run(client, argv, timeout_s=COMMAND_TIMEOUT_S)).stdout.decode().split("\n")[:-1]
    letters = string.ascii_lowercase
    return sum(
        body == (letters * (size // len(letters) + 1))[:size]
        for body, (_, size) in zip(bodies, schema.documents, strict=True)
    )


async def _cql(
    client: Node | None, endpoint: Endpoint, statements: Sequence[str], consistency: str = "ONE"
) -> list[int]:
    """Number of rows in the answer to each statement, sent from a node."""
    assert endpoint.protocol == "cql", f"override write and count for the protocol {endpoint.protocol}"
    options = ("--contact", endpoint.contacts[0], "--consistency", consistency)
    argv = [str(agent.find()) if client is None else agent.on(client), "cql", *options, *statements]
    done = await run(client, argv, timeout_s=COMMAND_TIMEOUT_S)
    return [len(json.loads(line)["rows"]) for line in done.stdout.splitlines() if line.strip()]


def keys(prefix: str) -> list[str]:
    """As many keys as the tests write rows."""
    return [f"{prefix}{index}" for index in range(ROWS)]


def _checksums(cache: Path, key: str) -> dict[str, str]:
    """SHA-256 of every file in the cache whose path contains the state."""
    files = sorted(path for path in cache.rglob("*") if path.is_file() and key in str(path.relative_to(cache)))
    assert files, f"nothing in the cache is named {key}"
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
