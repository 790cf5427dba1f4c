"""What a node of Cassandra says: logs, settings in force, background work, death."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from steelyard.model.data_model import Schema, Table
from steelyard.node.base import Node
from steelyard.system.cassandra import Settings, _facts, _process, _state
from steelyard.system.cassandra._config import Folders

SCHEMA = Schema("ycsb", "usertable", "y_id", ("field0", "field1"))


@pytest.fixture
def node(tmp_path: Path) -> Node:
    made = Node("n1", "database", "127.0.0.1", (), tmp_path)
    Folders(made.folder).logs.mkdir()
    return made


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("64MiB", "65536KiB"),
        ("10000ms", "10s"),
        ("64MiB/s", "64.0MiB/s"),
        (True, "true"),
        (32, "32"),
        (0.5, "0.5"),
        (1.0, "1"),
        (None, "null"),
        (["/a", "/b"], "[/a, /b]"),
    ],
)
def test_the_same_value_in_two_ways_of_writing(one: Any, other: Any) -> None:
    assert _facts.normal(one) == _facts.normal(other)


@pytest.mark.parametrize(("one", "other"), [("64MiB", "64KiB"), ("512m", "512ms"), (True, "false"), ("a", "A")])
def test_other_values(one: Any, other: Any) -> None:
    assert _facts.normal(one) != _facts.normal(other)


def test_tokens_are_compared_to_the_last_digit() -> None:
    token = -(2**63) + 1
    assert _facts.normal(str(token)) != _facts.normal(str(token + 1))


def test_compare_names_what_differs() -> None:
    rows = [
        {"name": "concurrent_reads", "value": "32"},
        {"name": "commitlog_sync_period", "value": "10000ms"},
        {"name": "authenticator.class_name", "value": "AllowAllAuthenticator"},
        {"name": "memtable.configurations", "value": "{default={class_name=TrieMemtable}}"},
    ]
    asked = {
        "concurrent_reads": 24,
        "commitlog_sync_period": "10s",
        "authenticator": {"class_name": "AllowAllAuthenticator"},
        "memtable": {"configurations": {"default": {"class_name": "TrieMemtable"}}},
        "unheard_of": 1,
        "seed_provider": [{"class_name": "x"}],
    }
    assert _facts.compare(asked, rows) == {"concurrent_reads": ("24", "32"), "unheard_of": ("1", "not listed")}


def test_old_names_are_left_out_of_the_facts() -> None:
    rows = [
        {"name": "read_request_timeout", "value": "5000ms"},
        {"name": "read_request_timeout_in_ms", "value": "5000"},
        {"name": "paxos_cache_size", "value": None},
    ]
    assert _facts.in_force(rows) == {"read_request_timeout": "5000ms"}


@pytest.mark.parametrize(("text", "mb"), [("256M", 256.0), ("1g", 1024.0), ("268435456", 256.0), ("x", None)])
def test_heap_sizes(text: str, mb: float | None) -> None:
    assert _facts.heap_mb(text) == mb
    assert _facts.option(["-Xmx1g", "-Xmx256M"], "-Xmx") == "256M"


def test_log_tells_phase_and_peers() -> None:
    assert _state.seen("", 3).doing == "starting the Java machine"
    assert _state.seen("INFO Initializing system.local\n", 3).doing == "opening tables"
    up = "INFO InetAddress /10.0.0.{}:7000 is now {}\n"
    text = "Initializing system\nStarting listening for CQL clients on x\n" + up.format(2, "UP")
    seen = _state.seen(text, 3)
    assert (seen.ready, seen.doing) == (False, "sees 2 of 3 nodes up")
    text += up.format(3, "UP")
    assert _state.seen(text, 3).ready
    down = "INFO InetAddress 10.0.0.2/10.0.0.2:7000 is now DOWN\n"
    for line in (up.format(2, "DOWN"), down):
        assert not _state.seen(text + line, 3).ready
        assert _state.seen(text + line, 1).ready


def test_a_log_is_read_once_line_by_line() -> None:
    so_far = _state.LogSoFar()
    first = b"noise\nInitializing system\nStarting listening for CQL cli"
    so_far.append(first)
    assert so_far.bytes_read == first.rfind(b"\n") + 1
    assert not _state.seen(so_far.text, 1).listening
    so_far.append((first + b"ents\n" + b"noise\n" * 1000)[so_far.bytes_read :])
    assert _state.seen(so_far.text, 1).ready
    assert "noise" not in so_far.text
    so_far.append(b"")
    assert _state.seen(so_far.text, 1).ready


def test_logs_of_earlier_starts_are_kept() -> None:
    assert _state.earlier_name([]) == {}
    first = _state.earlier_name(["system.log", "gc.log", "archive/old.log"])
    assert first == {"system.log": "start-1.system.log", "gc.log": "start-1.gc.log"}
    assert _state.earlier_name([*first.values(), "system.log"]) == {"system.log": "start-2.system.log"}


@pytest.mark.parametrize(
    ("row", "normal"),
    [
        ({"status_with_port": "NORMAL,-1", "rpc_ready": "true"}, True),
        ({"status_with_port": "NORMAL,-1", "rpc_ready": "false"}, False),
        ({"status_with_port": "BOOT,-1", "rpc_ready": "true"}, False),
        ({"status": "NORMAL,-1", "status_with_port": None, "rpc_ready": True}, True),
        ({"status": None, "status_with_port": None, "rpc_ready": None}, False),
    ],
)
def test_normal_members(row: dict[str, Any], normal: bool) -> None:
    assert _state.is_normal(row) is normal


def test_busy_adds_up_over_nodes() -> None:
    idle = [{"name": "CompactionExecutor", "active_tasks": 0, "pending_tasks": 0}]
    working = [
        {"name": "CompactionExecutor", "active_tasks": 2, "pending_tasks": 3},
        {"name": "MemtableFlushWriter", "active_tasks": 1, "pending_tasks": 0},
        {"name": "ReadStage", "active_tasks": 9, "pending_tasks": 9},
    ]
    nodes = [
        ((), idle, (), ()),
        (({"task_id": 1}, {"task_id": 2}), working, ({"files": 4},), ({"status": "start"}, {"status": "success"})),
    ]
    assert _state.busy(nodes) == {"compactions": 5.0, "flushes": 1.0, "hints": 4.0, "streams": 1.0}
    assert not any(_state.busy(nodes[:1]).values())


def test_schema_says_what_was_set() -> None:
    settings = Settings(replication_factor=3, compression="none", compaction="leveled")
    keyspace, table = _state.schema_statements(settings, SCHEMA)
    assert "'replication_factor': 3" in keyspace
    assert "y_id text PRIMARY KEY, field0 text, field1 text" in table
    assert "compression = {'enabled': 'false'}" in table
    assert "LeveledCompactionStrategy" in table


def test_table_in_force_speaks_the_words_of_the_settings() -> None:
    answers = (
        [{"replication": {"class": "org.apache.cassandra.locator.SimpleStrategy", "replication_factor": "3"}}],
        [
            {
                "table_name": "usertable",
                "compression": {"class": "org.apache.cassandra.io.compress.ZstdCompressor", "chunk_length_in_kb": "16"},
                "compaction": {"class": "org.apache.cassandra.db.compaction.UnifiedCompactionStrategy"},
            }
        ],
    )
    settings = Settings(replication_factor=3, compression="zstd", compaction="unified")
    asked = {"replication_factor": "3", "compression": "zstd", "compaction": "unified"}
    assert _state.asked_of_tables(settings, SCHEMA) == asked
    assert _state.tables_in_force(settings, SCHEMA, answers) == asked
    assert set(_state.tables_in_force(settings, SCHEMA, ([], [])).values()) == {"missing"}


def test_a_workload_brings_types_tables_and_indexes() -> None:
    schema = Schema(
        "Shop",
        "users",
        types=(("address", "street text"),),
        tables=(
            Table("users", "id int PRIMARY KEY, at frozen<address>", ("compaction = {'class': 'X'}",), ("(at)",)),
            Table("hits", "id int PRIMARY KEY, n counter"),
        ),
    )
    keyspace, made_type, users, hits, index = _state.schema_statements(Settings(), schema)
    assert keyspace.startswith('CREATE KEYSPACE IF NOT EXISTS "Shop" WITH')
    assert made_type == 'CREATE TYPE IF NOT EXISTS "Shop".address (street text)'
    assert users.count("compaction") == 1
    assert "SizeTieredCompactionStrategy" in hits
    assert index == 'CREATE INDEX IF NOT EXISTS users_0_index ON "Shop".users (at)'
    assert _state.asked_of_tables(Settings(), schema) == {
        "replication_factor": "1",
        "compression of users": "lz4",
        "compression of hits": "lz4",
        "compaction of hits": "size-tiered",
    }


@pytest.mark.parametrize(
    ("file", "text", "told"),
    [
        ("stderr.log", "Terminating due to java.lang.OutOfMemoryError: Java heap space", "ran out of memory"),
        ("system.log", "java.net.BindException: Address already in use", "port is in use"),
        ("stdout.log", "org.apache.cassandra.exceptions.ConfigurationException: bad", "refused its configuration"),
        ("system.log", "INFO nothing in particular", "for an unknown reason"),
    ],
)
def test_reasons_of_death(node: Node, file: str, text: str, told: str) -> None:
    (Folders(node.folder).logs / file).write_text(f"{text}\n\tat java.base/x.y(Z.java:1)\n")
    message, hint = asyncio.run(_process.why_dead(node))
    assert told in message
    assert text in message
    assert "Z.java" not in message
    assert hint


def test_a_memory_limit_that_killed_is_told_before_anything_else(node: Node, tmp_path: Path) -> None:
    (tmp_path / "memory.oom_control").write_text("oom_kill_disable 0\nunder_oom 0\noom_kill 1\n")
    limited = Node("n1", "database", "127.0.0.1", (), node.folder, memory_mb=300, cgroups=(tmp_path,))
    message, hint = asyncio.run(_process.why_dead(limited))
    assert "memory limit of 300 MB" in message
    assert "heap_mb" in hint


@pytest.mark.parametrize(
    ("force", "where"),
    [
        ({"commitlog_sync": "periodic", "commitlog_sync_period": "10000ms"}, "synced to the disk every 10000ms (comm"),
        ({"commitlog_sync": "batch"}, "synced to the disk by then (commitlog_sync = batch)"),
    ],
)
def test_a_write_promises_what_the_settings_in_force_say(force: dict[str, str], where: str) -> None:
    (sentence,) = _facts.promises(force).values()
    assert where in sentence
