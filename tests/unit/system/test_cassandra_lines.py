"""What differs between the lines of Cassandra's releases, and what a node of version 3 says of itself."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from steelyard.model.errors import SystemFault
from steelyard.node import artifacts
from steelyard.node.base import Node
from steelyard.system.cassandra import Cassandra, Settings, _config, _facts, _jars, _lines, create
from steelyard.system.cassandra._elastic import ElasticCassandra
from steelyard.system.cassandra._older import OlderCassandra, configuration, renumbered

LOG = """INFO  [main] 21:00 CassandraDaemon.java:471 - JVM vendor/version: OpenJDK 64-Bit Server VM/11.0.13
INFO  [main] 21:00 Config.java:474 - Node configuration:[authenticator=null; \
client_encryption_options=<REDACTED>; \
commitlog_total_space_in_mb=128; data_file_directories=[Ljava.lang.String;@1b4fb997; \
row_cache_size_in_mb=0; seed_provider=org.apache.cassandra.locator.SimpleSeedProvider{seeds=127.0.0.1,127.0.0.2}]
INFO  [main] 21:00 DatabaseDescriptor.java:323 - DiskAccessMode 'auto' determined to be mmap
"""


def nodes(folder: Path, count: int) -> list[Node]:
    return [Node(f"n{i + 1}", "database", f"10.0.0.{i + 1}", (), folder / f"n{i + 1}") for i in range(count)]


@pytest.mark.parametrize("line", _lines.LINES, ids=lambda line: line.name)
def test_a_line_has_its_keys_and_the_checksums_of_the_release_that_was_tried(line: _lines.Line, tmp_path: Path) -> None:
    settings = Settings(version=line.tried, commitlog_total_space_mb=128)
    assert settings.line is line
    assert isinstance(create(settings, tmp_path), ElasticCassandra if line.views else OlderCassandra)
    listed = artifacts.parse(_jars.shipped_list(settings) or "")
    assert f"cassandra-all-{line.tried}.jar" in listed
    assert all(re.fullmatch("[0-9a-f]{64}", checksum) for checksum in listed.values())
    assert [name for name in listed if name.startswith("ecj-")] == ["ecj-3.33.0.jar"]
    ring = nodes(tmp_path, 3)
    assert _config.yaml_of(settings, ring[0], ring).keys() <= line.keys


def test_version_3_writes_numbers_without_units_and_seeds_without_ports(tmp_path: Path) -> None:
    ring = nodes(tmp_path, 2)
    written = _config.yaml_of(Settings(version="3.9", commitlog_total_space_mb=128), ring[0], ring)
    assert (written["commitlog_total_space_in_mb"], written["commitlog_sync_period_in_ms"]) == (128, 10000)
    assert written["seed_provider"][0]["parameters"][0]["seeds"] == "10.0.0.1,10.0.0.2"
    assert written["start_rpc"] is False


def test_of_no_line() -> None:
    with pytest.raises(ValueError, match=r"has '2\.2': 5\.0, 4\.1, 3\.11, 3\.9, 3\.0"):
        _lines.of("2.2")


def test_nodes_of_version_3_neither_join_nor_leave(tmp_path: Path) -> None:
    system = create(Settings(version="3.0.8"), tmp_path)
    assert isinstance(system, OlderCassandra)
    assert "Cassandra 3.0 neither join nor leave here; those of 4.1 and 5.0 do" in system.keeps_size()
    with pytest.raises(SystemFault, match="n1: it cannot leave: nodes of Cassandra"):
        asyncio.run(system.leave(nodes(tmp_path, 1)[0], [], lambda name, t_s: None))
    assert "cql" in Cassandra.offers
    assert "cql" not in system.offers


def test_settings_in_force_are_those_of_the_log() -> None:
    rows = configuration(LOG)
    assert _facts.in_force(rows, units=False) == {
        "client_encryption_options": "not shown",
        "commitlog_total_space_in_mb": "128",
        "data_file_directories": "not shown",
        "row_cache_size_in_mb": "0",
        "seed_provider": "org.apache.cassandra.locator.SimpleSeedProvider{seeds=127.0.0.1,127.0.0.2}",
    }
    asked = {
        "commitlog_total_space_in_mb": 256,
        "data_file_directories": ["/d"],
        "client_encryption_options": {"enabled": True},
        "row_cache_size_in_mb": 0,
        "no_such_key": 1,
    }
    assert _facts.compare(asked, rows) == {
        "commitlog_total_space_in_mb": ("256", "128"),
        "no_such_key": ("1", "not listed"),
    }
    assert configuration("INFO nothing of it") == []


def test_restored_tables_get_numbers_of_their_own() -> None:
    assert renumbered("mc-12-big-Data.db") == "mc-1000012-big-Data.db"
    assert renumbered("mc-3-big-TOC.txt") == "mc-1000003-big-TOC.txt"
    assert renumbered("backups") == "backups"
