"""Snapshots: filled states kept as hard links to their SSTables, which Cassandra never changes once written.

A state is a folder `<key>` with one folder per node, in it one per table, and a manifest; it exists if the manifest
does. To restore it, the files are linked into a folder on the node's own volume and the running node imports them: the
node moves its links, those of the snapshot stay.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from steelyard.model.data_model import Schema
from steelyard.model.errors import StoreError, SystemFault
from steelyard.node.base import Node
from steelyard.system.cassandra._config import Folders
from steelyard.system.cassandra._settings import Settings, TableOption, YamlKey

MANIFEST = "manifest.json"
FORMAT = 2
STABLE_TIMEOUT_S = 60.0
STABLE_POLL_S = 0.1
NAMESPACE = uuid.UUID("5d9a3f2e-6b7c-5c1d-9e4f-0a1b2c3d4e5f")

LAYOUT_KEYS = (
    "column_index_size",
    "default_compaction",
    "memtable",
    "sstable",
    "storage_compatibility_mode",
    "uuid_sstable_identifiers_enabled",
)
"""Keys of `cassandra.yaml` that change how SSTables are written, so that states with different ones differ."""


def table_id(schema: Schema, table: str) -> uuid.UUID:
    """Id of a table, the same in every cluster, so that a snapshot's files match."""
    return uuid.uuid5(NAMESPACE, f"{schema.keyspace}.{table}")


def table_folder(node: Node, schema: Schema, table: str) -> Path:
    """Folder of a table's SSTables on a node."""
    return Folders(node.folder).data / schema.keyspace / f"{table}-{table_id(schema, table).hex}"


def key_of(
    settings: Settings, nodes: Sequence[Node], schema: Schema, data: Mapping[str, Any], jars_hash: str = ""
) -> str:
    """Name of a state: a hash of everything that determines which bytes each node holds. `jars_hash`: of a build whose
    version nobody said."""
    determined_by = {
        "format": FORMAT,
        "version": settings.build.release or f"jars {jars_hash}",
        "nodes": [node.name for node in nodes],
        "tokens": settings.num_tokens,
        "replication_factor": settings.replication_factor,
        **{name: value for name, option, value in settings.annotated(TableOption) if option.changes_files},
        **{name: value for name, key, value in settings.annotated(YamlKey) if key.changes_files},
        "schema": asdict(schema),
        "yaml": {key: settings.yaml[key] for key in LAYOUT_KEYS if key in settings.yaml},
        "data": dict(data),
    }
    text = json.dumps(determined_by, sort_keys=True, default=str)
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    return f"{schema.table}-{len(nodes)}n-rf{settings.replication_factor}-{digest}"


@dataclass(frozen=True)
class KeptSnapshots:
    """The snapshots of one cache folder."""

    root: Path
    former: Path | None = None
    """Folder of earlier versions: a snapshot in it is moved when it is first requested."""

    def has(self, key: str) -> bool:
        """Whether a complete snapshot of the state exists."""
        if self.former is not None and not (self.root / key).exists() and (self.former / key / MANIFEST).is_file():
            with contextlib.suppress(OSError):
                self.root.mkdir(parents=True, exist_ok=True)
                (self.former / key).rename(self.root / key)
        return (self.root / key / MANIFEST).is_file()

    def keep(self, nodes: Sequence[Node], schema: Schema, key: str) -> None:
        """Link the flushed SSTables of every node into the snapshot. Raises SystemFault if they keep changing."""
        temporary = self.root / f"{key}.tmp-{os.getpid()}"
        shutil.rmtree(temporary, ignore_errors=True)
        try:
            files = {node.name: _keep_all(node, schema, temporary / node.name) for node in nodes}
            manifest = {"format": FORMAT, "key": key, "made_s": time.time(), "schema": asdict(schema), "files": files}
            (temporary / MANIFEST).write_text(json.dumps(manifest, indent=1), encoding="utf-8")
            shutil.rmtree(self.root / key, ignore_errors=True)
            temporary.rename(self.root / key)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)

    def files(self, key: str) -> dict[str, dict[str, int]]:
        """Node name to `table/file` to size, checked against the files on disk. Raises StoreError on a damaged
        state."""
        folder = self.root / key
        try:
            manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
            files: dict[str, dict[str, int]] = manifest["files"]
            sound = manifest["format"] == FORMAT and all(
                (folder / node / name).stat().st_size == size
                for node, sizes in files.items()
                for name, size in sizes.items()
            )
        except (OSError, ValueError, KeyError) as error:
            raise _damaged(folder, str(error)) from error
        if not sound:
            raise _damaged(folder, "format or sizes differ from its manifest")
        return files

    def stage(self, node: Node, schema: Schema, key: str, sizes: Mapping[str, int]) -> dict[str, Path]:
        """Links to a node's snapshot files, in new folders on the node's volume: table to folder, for those tables of
        which the node holds any data."""
        root = Folders(node.folder).storage / "restore" / schema.keyspace
        shutil.rmtree(root, ignore_errors=True)
        staged = {}
        for name in sizes:
            table = name.partition("/")[0]
            if table not in staged:
                staged[table] = root / table
                staged[table].mkdir(parents=True)
            link_or_copy(self.root / key / node.name / name, root / name)
        return staged


def link_or_copy(source: Path, target: Path) -> None:
    """Create a hard link, or a copy if the file systems differ or links are not allowed."""
    try:
        os.link(source, target)
    except FileNotFoundError:
        raise
    except OSError:
        shutil.copyfile(source, target)


def _sstable_files(folder: Path) -> tuple[dict[str, int], bool]:
    """Name to size of the components of complete SSTables, and whether no transaction is changing their set."""
    entries = {entry.name: entry.stat().st_size for entry in os.scandir(folder) if entry.is_file()}
    still = not any("_txn_" in name or name.startswith("tmp") for name in entries)
    return {name: size for name, size in sorted(entries.items()) if not name.endswith(".log")}, still


def _keep_all(node: Node, schema: Schema, into: Path) -> dict[str, int]:
    """Link the SSTables of all tables; returns `table/file` to size."""
    return {
        f"{table.name}/{name}": size
        for table in schema.all_tables()
        for name, size in _keep(table_folder(node, schema, table.name), into / table.name, node.name).items()
    }


def _keep(source: Path, into: Path, node: str) -> dict[str, int]:
    """Link a set of SSTables that did not change while being linked; retry until that is the case."""
    deadline = time.monotonic() + STABLE_TIMEOUT_S
    while time.monotonic() < deadline:
        shutil.rmtree(into, ignore_errors=True)
        into.mkdir(parents=True)
        try:
            files, still = _sstable_files(source)
            if still:
                for name in files:
                    link_or_copy(source / name, into / name)
                if _sstable_files(source) == (files, True):
                    return files
        except FileNotFoundError:
            # A compaction has just replaced a file: list them again.
            still = False
        time.sleep(STABLE_POLL_S)
    raise SystemFault(
        f"{node}: the SSTables in {source} kept changing for {STABLE_TIMEOUT_S:g} s, so no snapshot can be taken",
        "wait until compactions are over",
        node=node,
        system="cassandra",
    )


def _damaged(folder: Path, what: str) -> StoreError:
    return StoreError(
        f"the snapshot {folder} is damaged: {what}", f"remove {folder}; it will be filled anew", path=str(folder)
    )
