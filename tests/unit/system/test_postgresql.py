"""What a node of PostgreSQL is started with, what its settings promise, and which of them cannot be."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from steelyard.model.load import Load
from steelyard.node.base import Node
from steelyard.system.postgresql import Settings, _system, create
from steelyard.system.postgresql._settings import options

NODE = Node("n1", "database", "10.0.0.1", (), Path("/n1"))
FORCE = {
    "fsync": "on", "synchronous_commit": "on", "synchronous_standby_names": "", "shared_buffers": "128MB",
}  # fmt: skip


def test_settings_become_options() -> None:
    config = {"fsync": False, "work_mem": "8MB"}
    settings = Settings(synchronous=2, shared_buffers_mb=2048, wal_keep_mb=0, config=config)
    asked = options(settings, NODE, "host=10.0.0.2")
    assert {name: asked[name] for name in ("listen_addresses", "port", "cluster_name", "unix_socket_directories")} == {
        "listen_addresses": "10.0.0.1", "port": "5432", "cluster_name": "10.0.0.1:5432", "unix_socket_directories": "",
    }  # fmt: skip
    assert (asked["shared_buffers"], asked["wal_keep_size"]) == ("2GB", "0")
    assert (asked["synchronous_standby_names"], asked["primary_conninfo"]) == ("ANY 2 (*)", "host=10.0.0.2")
    assert (asked["fsync"], asked["work_mem"]) == ("off", "8MB")
    assert options(Settings(), NODE, "")["synchronous_standby_names"] == ""
    assert options(Settings(config={"hot_standby_feedback": True}), NODE, "")["hot_standby_feedback"] == "on"


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("shared_buffers", "use the setting shared_buffers_mb"),
        ("wal_keep_size", "use the setting wal_keep_mb"),
        ("synchronous_standby_names", "use the setting synchronous"),
        ("max_connections", "use the setting max_connections"),
        ("listen_addresses", "set by the laboratory"),
        ("hba_file", "set by the laboratory"),
        ("ssl_key_file", "set by the laboratory"),
        ("--port", "match pattern"),
    ],
)
def test_options_of_the_laboratory_are_not_free(option: str, words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        Settings(config={option: "1"})


@pytest.mark.parametrize("condition", ["off", "local"])
def test_a_write_that_waits_for_no_replica_has_no_synchronous_ones(condition: str) -> None:
    with pytest.raises(ValidationError, match="waits for no replica"):
        Settings.model_validate({"synchronous": 1, "synchronous_commit": condition})
    assert Settings.model_validate({"synchronous_commit": condition}).synchronous == 0


@pytest.mark.parametrize(
    ("synchronous", "nodes", "possible"), [(0, 1, True), (1, 1, False), (1, 2, True), (2, 2, False)]
)
def test_writes_wait_for_no_more_replicas_than_there_are(synchronous: int, nodes: int, possible: bool) -> None:
    problems = list(create(Settings(synchronous=synchronous), Path("/none")).problems(nodes, Load(operations=1)))
    assert [problem.key for problem in problems] == ([] if possible else ["system.synchronous"])


def test_reads_from_replicas_need_one() -> None:
    load = Load(operations=1, read_from="replicas")
    system = create(Settings(), Path("/none"))
    assert [problem.key for problem in system.problems(1, load)] == ["load.read_from"]
    assert list(system.problems(2, load)) == []


def test_a_load_has_no_more_connections_than_a_server_takes() -> None:
    system = create(Settings(max_connections=20), Path("/none"))
    assert list(system.problems(1, Load(operations=1, connections_per_node=14))) == []
    (problem,) = system.problems(1, Load(operations=1, connections_per_node=15))
    assert (problem.key, problem.hint) == (
        "load.connections_per_node", "at most 14, or system.max_connections = 21: every load node opens as many"
    )  # fmt: skip


@pytest.mark.parametrize(
    ("settings", "mb"),
    [
        (Settings(), 1024 + 1024 + 16),
        (Settings(wal_keep_mb=0, config={"max_wal_size": "256MB"}), 256 + 16),
        (Settings(wal_keep_mb=64, config={"max_wal_size": "2GB"}), 2048 + 64 + 16),
    ],
)
def test_the_disk_has_room_for_the_log_that_each_server_keeps(settings: Settings, mb: int) -> None:
    system = create(settings, Path("/none"))
    assert system.disk_bytes(0, 1) == (mb << 20) + _system.EMPTY_BYTES
    assert system.disk_bytes(0, 3) == 3 * system.disk_bytes(0, 1)
    assert system.disk_bytes(1000, 1) > system.disk_bytes(0, 1) + 1000


@pytest.mark.parametrize(
    ("force", "said"),
    [
        ({}, "once it is on the primary's disk (synchronous_commit = on, synchronous_standby_names = none)"),
        (
            {"synchronous_standby_names": "ANY 1 (*)"},
            "once it is on the primary's disk, and on that of any 1 replica (sync",
        ),
        (
            {"synchronous_standby_names": "ANY 2 (*)", "synchronous_commit": "remote_write"},
            "once it is on the primary's disk, and in the memory of any 2 replicas (sync",
        ),
        ({"synchronous_commit": "off", "synchronous_standby_names": "ANY 1 (*)"}, "before it is on any disk"),
        ({"fsync": "off"}, "once it is on the primary's disk (fsync is off: not really)"),
    ],
)
def test_a_commit_promises_what_the_settings_in_force_say(force: dict[str, str], said: str) -> None:
    ((name, sentence),) = _system._promises({**FORCE, **force}).items()
    assert name == "promise: postgresql"
    assert sentence.startswith(f"PostgreSQL acknowledges a write {said}")


def test_the_newest_version_of_this_machine_is_used(tmp_path: Path) -> None:
    for version in ("9.6", "15", "17"):
        (tmp_path / version / "bin").mkdir(parents=True)
        (tmp_path / version / "bin" / "postgres").touch()
    assert _system.packaged(None, tmp_path).programs[0] == str(tmp_path / "17/bin/postgres")
    assert _system.packaged(None, tmp_path).packages == ("postgresql",)
    asked = _system.packaged(15, tmp_path)
    assert (asked.programs[1], asked.packages) == (str(tmp_path / "15/bin/psql"), ("postgresql-15",))
    found = asked.version.search("postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)")
    assert found is not None
    assert found[1] == "15.18"


@pytest.mark.postgresql
@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("wrok_mem", "8MB", 'unrecognized configuration parameter "wrok_mem"'),
        ("work_mem", "8 potatoes", "Valid units for this parameter"),
        ("work_mem", "8MB", ""),
        ("fsync", False, ""),
    ],
)
def test_options_that_the_server_refuses_are_found_before_it_starts(name: str, value: str | bool, words: str) -> None:
    problems = list(create(Settings(config={name: value}), Path("/none")).problems(1, Load(operations=1)))
    assert [problem.key for problem in problems] == ([f"system.config.{name}"] if words else [])
    assert all(words in problem.message for problem in problems)
