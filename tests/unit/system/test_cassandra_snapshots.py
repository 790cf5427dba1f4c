"""Snapshots as files: what names a state, what is linked, what is refused."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from steelyard.model.data_model import Schema, Table
from steelyard.model.errors import StoreError, SystemFault
from steelyard.node.base import Node
from steelyard.system.cassandra import Settings, _snapshots

SCHEMA = Schema("ycsb", "usertable", "y_id", ("field0", "field1"))


def filled(folder: Path, count: int = 2) -> list[Node]:
    nodes = [Node(f"n{i + 1}", "database", f"10.0.0.{i + 1}", (), folder / f"n{i + 1}") for i in range(count)]
    for node in nodes:
        table = _snapshots.table_folder(node, SCHEMA, "usertable")
        (table / "backups").mkdir(parents=True)
        (table / "nb-1-big-Data.db").write_text(f"data of {node.name}")
        (table / "nb-1-big-TOC.txt").write_text("toc")
    return nodes


@pytest.mark.parametrize(
    "other",
    [
        {"replication_factor": 2},
        {"compression": "none"},
        {"compaction": "leveled"},
        {"num_tokens": 4},
        {"version": "5.0.4"},
        {"yaml": {"column_index_size": "4KiB"}},
    ],
)
def test_another_state_has_another_name(tmp_path: Path, other: dict[str, object]) -> None:
    nodes = filled(tmp_path)
    key = _snapshots.key_of(Settings(), nodes, SCHEMA, {"records": 10})
    assert key != _snapshots.key_of(Settings.model_validate(other), nodes, SCHEMA, {"records": 10})


def test_the_same_state_has_the_same_name(tmp_path: Path) -> None:
    nodes = filled(tmp_path)
    key = _snapshots.key_of(Settings(), nodes, SCHEMA, {"records": 10, "seed": 1})
    for same in (Settings(heap_mb=512), Settings(gc="g1"), Settings(yaml={"concurrent_reads": 8})):
        assert key == _snapshots.key_of(same, nodes, SCHEMA, {"seed": 1, "records": 10})
    assert key != _snapshots.key_of(Settings(), nodes[:1], SCHEMA, {"records": 10, "seed": 1})
    assert key != _snapshots.key_of(Settings(), nodes, SCHEMA, {"records": 11, "seed": 1})
    assert key.startswith("usertable-2n-rf1-")


def keep(kept: _snapshots.KeptSnapshots, nodes: Sequence[Node], schema: Schema = SCHEMA) -> None:
    for node in nodes:
        asyncio.run(kept.keep(node, schema, "k"))


def files_of(kept: _snapshots.KeptSnapshots, nodes: Sequence[Node]) -> dict[str, dict[str, int]]:
    return {node.name: asyncio.run(kept.files(node, "k")) for node in nodes}


def has(kept: _snapshots.KeptSnapshots, nodes: Sequence[Node], key: str = "k") -> list[bool]:
    return [asyncio.run(kept.has(node, key)) for node in nodes]


def test_keep_and_stage_share_the_bytes(tmp_path: Path) -> None:
    nodes, kept = filled(tmp_path), _snapshots.KeptSnapshots(tmp_path)
    assert has(kept, nodes) == [False, False]
    keep(kept, nodes[:1])
    assert has(kept, nodes) == [True, False]
    keep(kept, nodes)
    assert has(kept, nodes) == [True, True]
    files = files_of(kept, nodes)
    assert files == {node.name: {"usertable/nb-1-big-Data.db": 10, "usertable/nb-1-big-TOC.txt": 3} for node in nodes}
    staged = asyncio.run(kept.stage(nodes[1], SCHEMA, "k", files["n2"]))["usertable"]
    file = tmp_path / "snapshots/k/n2/usertable/nb-1-big-Data.db"
    assert (staged / "nb-1-big-Data.db").stat().st_ino == file.stat().st_ino
    (staged / "nb-1-big-Data.db").rename(staged / "nb-7-big-Data.db")
    assert files_of(kept, nodes) == files
    assert [path.name for path in (tmp_path / "snapshots").iterdir()] == ["k"]


def test_every_table_of_a_workload_is_kept(tmp_path: Path) -> None:
    tables = tuple(Table(name, "id int PRIMARY KEY") for name in ("users", "orders"))
    schema = Schema("shop", "users", tables=tables)
    node = Node("n1", "database", "10.0.0.1", (), tmp_path / "n1")
    kept = _snapshots.KeptSnapshots(tmp_path)
    for table in ("users", "orders"):
        folder = _snapshots.table_folder(node, schema, table)
        folder.mkdir(parents=True)
        (folder / "nb-1-big-Data.db").write_text(table)
    keep(kept, [node], schema)
    files = files_of(kept, [node])
    assert files == {"n1": {"users/nb-1-big-Data.db": 5, "orders/nb-1-big-Data.db": 6}}
    staged = asyncio.run(kept.stage(node, schema, "k", files["n1"]))
    assert {table: (folder / "nb-1-big-Data.db").read_text() for table, folder in staged.items()} == {
        "users": "users",
        "orders": "orders",
    }
    assert _snapshots.table_id(schema, "users") != _snapshots.table_id(schema, "orders")


def test_a_node_without_data_has_nothing_to_import(tmp_path: Path) -> None:
    nodes, kept = filled(tmp_path, 1), _snapshots.KeptSnapshots(tmp_path)
    for path in _snapshots.table_folder(nodes[0], SCHEMA, "usertable").glob("nb-*"):
        path.unlink()
    keep(kept, nodes)
    assert files_of(kept, nodes) == {"n1": {}}
    assert asyncio.run(kept.stage(nodes[0], SCHEMA, "k", {})) == {}


def test_waits_for_a_compaction_to_end(tmp_path: Path) -> None:
    (node,), kept = filled(tmp_path, 1), _snapshots.KeptSnapshots(tmp_path)
    table = _snapshots.table_folder(node, SCHEMA, "usertable")
    transaction = table / "nb_txn_compaction_1.log"
    transaction.touch()

    def compact() -> None:
        time.sleep(0.2)
        for path in table.glob("nb-1-*"):
            path.rename(path.with_name(path.name.replace("nb-1-", "nb-2-")))
        transaction.unlink()

    thread = threading.Thread(target=compact)
    thread.start()
    keep(kept, [node])
    thread.join()
    assert set(files_of(kept, [node])["n1"]) == {"usertable/nb-2-big-Data.db", "usertable/nb-2-big-TOC.txt"}


def test_gives_up_on_files_that_never_hold_still(tmp_path: Path) -> None:
    (node,), kept = filled(tmp_path, 1), _snapshots.KeptSnapshots(tmp_path, stable_s=0.05)
    (_snapshots.table_folder(node, SCHEMA, "usertable") / "nb_txn_compaction_1.log").touch()
    with pytest.raises(SystemFault, match="kept changing"):
        keep(kept, [node])
    assert has(kept, [node]) == [False]
    assert not (tmp_path / "snapshots").exists() or list((tmp_path / "snapshots").iterdir()) == []


@pytest.mark.parametrize("damage", ["size", "missing", "manifest"])
def test_damage_is_told(tmp_path: Path, damage: str) -> None:
    nodes, kept = filled(tmp_path), _snapshots.KeptSnapshots(tmp_path)
    keep(kept, nodes)
    file = tmp_path / "snapshots" / "k" / ("n1.json" if damage == "manifest" else "n1/usertable/nb-1-big-Data.db")
    file.unlink()
    if damage != "missing":
        file.write_text("x")
    with pytest.raises(StoreError, match="damaged") as caught:
        files_of(kept, nodes)
    assert "remove" in caught.value.hint
