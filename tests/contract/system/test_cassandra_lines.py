"""The contract of a system over real Cassandra of each older line; `make test` starts one node of one line.

By hand, all of it for the lines in the cache (`steelyard setup cassandra --version 4.1.9`): `pytest` with this file.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest

from steelyard.model.errors import SystemFault
from steelyard.node.folders import cache_folder
from steelyard.system.cassandra import Settings, _jars, _lines, create
from steelyard.testing.system import SCHEMA
from tests.contract.system import test_cassandra, test_cassandra_grows
from tests.contract.system.test_cassandra import KEYS, nodes_of, own_cache, ring_of_three, started

pytestmark = [pytest.mark.cassandra, pytest.mark.agent, pytest.mark.usefixtures("brief_java")]

WITHOUT_UNITS = {"concurrent_reads": 24, "memtable_heap_space_in_mb": 24, "compaction_throughput_mb_per_sec": 32}
OLDER = [line for line in _lines.LINES if line.name != "5.0"]


def settings_of(line: _lines.Line, **others: Any) -> Settings:
    return Settings(version=line.tried, **others)


@pytest.fixture(autouse=True)
def fetched(request: pytest.FixtureRequest) -> None:
    """Jars and Java of the line that a test names, in the cache that everybody shares."""
    line = request.node.callspec.params["line"] if hasattr(request.node, "callspec") else request.cls.line
    if _jars.installed_class_path(settings_of(line), cache_folder()) is None:
        pytest.skip(f"Cassandra {line.tried} is not in the cache: steelyard setup cassandra --version {line.tried}")
    asyncio.run(create(settings_of(line), cache_folder()).prepare())


class _Older(test_cassandra.TestOneNode):
    """Not collected: one node of a line."""

    line: ClassVar[_lines.Line]

    def cache_folder(self, tmp_path: Path) -> Path:
        return own_cache(tmp_path, self.line.tried)


def of_line(name: str, **others: Any) -> Mapping[str, Any]:
    line = _lines.of(name)
    own = {} if line.units else {"yaml": WITHOUT_UNITS, "compression": "deflate"}
    return {**test_cassandra.TestOneNode.settings, "version": line.tried, **own, **others}


@pytest.mark.by_hand
class TestOf41(_Older):
    line, network, settings = _lines.of("4.1"), "127.92.11", of_line("4.1")


@pytest.mark.by_hand
class TestOf311(_Older):
    line, network, settings = _lines.of("3.11"), "127.92.12", of_line("3.11")


@pytest.mark.by_hand
class TestOf39(_Older):
    line, network, settings = _lines.of("3.9"), "127.92.13", of_line("3.9")


@pytest.mark.by_hand
class TestOf30(_Older):
    line, network, settings = _lines.of("3.0"), "127.92.14", of_line("3.0")


@pytest.mark.by_hand
class TestGrowthOf41(test_cassandra_grows.TestGrowth):
    line, network = _lines.of("4.1"), "127.92.15"
    settings: ClassVar = {**test_cassandra_grows.TestGrowth.settings, "version": _lines.of("4.1").tried}

    def cache_folder(self, tmp_path: Path) -> Path:
        return own_cache(tmp_path, self.line.tried)


@pytest.mark.by_hand
@pytest.mark.parametrize("line", OLDER, ids=lambda line: line.name)
def test_a_ring_of_three(line: _lines.Line, tmp_path: Path) -> None:
    timeout = {"write_request_timeout": "20000ms"} if line.units else {"write_request_timeout_in_ms": 20000}
    network = f"127.92.{20 + OLDER.index(line)}"
    ring_of_three(settings_of(line, replication_factor=3, yaml=timeout), tmp_path, network)


@pytest.mark.parametrize("line", [_lines.of("3.9")], ids=lambda line: line.name)
def test_one_node_of_an_older_line(line: _lines.Line, tmp_path: Path) -> None:
    """It serves, with the settings that were requested; it says on which Java, and refuses to grow."""

    async def body() -> None:
        suite = test_cassandra.TestOneNode()
        system = create(settings_of(line, commitlog_total_space_mb=128), own_cache(tmp_path, line.tried))
        assert isinstance(system, test_cassandra.Cassandra)
        nodes = nodes_of(tmp_path, "127.92.30", 1)
        try:
            await started(system, nodes)
            await system.create_schema(nodes, SCHEMA)
            await suite.write(system.endpoint(nodes, SCHEMA), SCHEMA, KEYS)
            key = system.snapshot_key(nodes, SCHEMA, {"records": len(KEYS)})
            await system.snapshot(nodes, SCHEMA, key)
            await system.restore(nodes, SCHEMA, key)
            assert await suite.count(system.endpoint(nodes, SCHEMA), SCHEMA) == len(KEYS)
            assert await system.differing(nodes[0]) == {}
            facts = await system.facts(nodes[0])
            assert (facts["version"], facts["setting commitlog_total_space_in_mb"]) == (line.tried, "128")
            assert facts["caveat: Java"] == "Cassandra 3.9 ran on Java 11; its releases were made for Java 8."
            with pytest.raises(SystemFault, match=r"nodes of Cassandra 3\.9 neither join nor leave"):
                await system.leave(nodes[0], nodes, lambda name, t_s: None)
        finally:
            await system.wipe(nodes[0])

    asyncio.run(body())
