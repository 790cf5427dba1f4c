"""A setting of Cassandra is one field: files, tables, checks and snapshots follow from its annotation."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from steelyard.model.data_model import Schema, Table
from steelyard.node.base import Node
from steelyard.system.cassandra import Settings, _config, _java, _snapshots, _state
from steelyard.system.cassandra._settings import JvmOption, TableOption, YamlKey

JAVA = _java.Java(Path("/opt/java/bin/java"), "17.0.15")
SCHEMA = Schema("ks", "t", tables=(Table("t", "id int PRIMARY KEY"),))


class More(Settings):
    """Settings with one more of each kind."""

    memtable_mb: Annotated[int | None, YamlKey("memtable_heap_space", unit="MiB")] = None
    """Heap of the memtables, MiB."""
    direct_mb: Annotated[int | None, JvmOption("-XX:MaxDirectMemorySize={}m")] = None
    """Memory outside of the heap, MiB."""
    gc_grace_seconds: Annotated[int | None, TableOption(changes_files=False)] = None
    """How long tombstones are kept, s."""
    crc_check_chance: Annotated[float | None, TableOption()] = None
    """Share of reads that check sums."""


CHOSEN = More(memtable_mb=64, direct_mb=128, gc_grace_seconds=60, crc_check_chance=0.5)
NODE = Node("n1", "database", "10.0.0.1", (), Path("/n1"))


def test_a_setting_that_is_not_used_changes_nothing() -> None:
    assert _config.yaml_of(More(), NODE, (NODE,)) == _config.yaml_of(Settings(), NODE, (NODE,))
    assert _state.schema_statements(More(), SCHEMA) == _state.schema_statements(Settings(), SCHEMA)
    assert _snapshots.key_of(More(), (NODE,), SCHEMA, {}) == _snapshots.key_of(Settings(), (NODE,), SCHEMA, {})


def test_a_setting_is_written_where_its_annotation_says() -> None:
    assert _config.yaml_of(CHOSEN, NODE, (NODE,))["memtable_heap_space"] == "64MiB"
    assert "-XX:MaxDirectMemorySize=128m" in _config.server_argv(CHOSEN, JAVA.path, (), NODE)
    table = _state.schema_statements(CHOSEN, SCHEMA)[-1]
    assert "gc_grace_seconds = 60" in table
    assert CHOSEN.model_dump()["memtable_mb"] == 64


def test_a_table_option_is_read_back() -> None:
    rows = [{"table_name": "t", "gc_grace_seconds": 60, "crc_check_chance": 0.25, "compression": {}, "compaction": {}}]
    assert "gc_grace_seconds" in _state.table_questions(CHOSEN, SCHEMA)[1]
    asked, force = _state.asked_of_tables(CHOSEN, SCHEMA), _state.tables_in_force(CHOSEN, SCHEMA, ([], rows))
    assert (asked["gc_grace_seconds"], force["gc_grace_seconds"]) == ("60", "60")
    assert (asked["crc_check_chance"], force["crc_check_chance"]) == ("0.5", "0.25")


def test_only_what_changes_files_makes_another_snapshot() -> None:
    def key(settings: Settings) -> str:
        return _snapshots.key_of(settings, (NODE,), SCHEMA, {})

    assert key(More(gc_grace_seconds=60)) == key(Settings())
    assert key(More(crc_check_chance=0.5)) != key(Settings())
