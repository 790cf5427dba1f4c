"""Snapshots: filled states kept as hard links to their SSTables, which Cassandra never changes once written.

A state is a folder `<key>` in the node's cache, with a folder and a manifest per node, and in the folder one per table;
a node has it if its manifest is there. To restore it, the files are linked into a folder on the node's own volume and
the running node imports them: the node moves its links, those of the snapshot stay.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from steelyard.model.data_model import Schema
from steelyard.model.errors import CommandFailed, StoreError, SystemFault
from steelyard.node import files
from steelyard.node.base import Node
from steelyard.system.cassandra._config import Folders
from steelyard.system.cassandra._settings import Settings, TableOption, YamlKey

FORMAT = 1
STABLE_TIMEOUT_S = 60.0
STABLE_POLL_S = 0.1
NAMESPACE = uuid.UUID("5d9a3f2e-6b7c-5c1d-9e4f-0a1b2c3d4e5f")

LAYOUT_KEYS = (
    "column_index_size",
    "column_index_size_in_kb",
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
    version is unknown."""
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
    """The snapshots in the caches of nodes; the nodes of this machine share one."""

    cache: Path
    """Cache folder of this machine, for nodes without one of their own."""
    stable_s: float = STABLE_TIMEOUT_S

    async def has(self, node: Node, key: str) -> bool:
        """Whether a node has its part of a complete snapshot of the state."""
        return await _listed(node, self._root(node) / key) is not None

    async def keep(self, node: Node, schema: Schema, key: str) -> None:
        """Link a node's flushed SSTables into the snapshot. Raises SystemFault if they keep changing."""
        root = self._root(node)
        folder, temporary = root / key, root / f"{key}.tmp-{os.getpid()}-{node.name}"
        manifest = folder / f"{node.name}.json"
        await files.remove(node, temporary, below=root)
        try:
            sizes: dict[str, int] = {}
            for table in schema.all_tables():
                kept = await _keep(node, table_folder(node, schema, table.name), temporary / table.name, self.stable_s)
                sizes |= {f"{table.name}/{name}": count for name, count in kept.items()}
            await files.make_folders(node, folder, temporary)
            await files.remove(node, manifest, folder / node.name, below=root)
            await files.move(node, temporary, folder / node.name)
            content = {"format": FORMAT, "key": key, "made_s": time.time(), "schema": asdict(schema), "files": sizes}
            await files.put(node, manifest, json.dumps(content, indent=1).encode())
        finally:
            await files.remove(node, temporary, below=root)

    async def files(self, node: Node, key: str) -> dict[str, int]:
        """`table/file` to size of a node's part, checked against the files on disk. Raises StoreError on a damaged
        state."""
        folder = self._root(node) / key
        listed = await _listed(node, folder)
        if listed is None:
            raise _damaged(folder, f"{node.name} has no readable manifest")
        there = await files.sizes(node, folder / node.name)
        if any(there.get(name) != count for name, count in listed.items()):
            raise _damaged(folder, "sizes differ from its manifest")
        return listed

    async def stage(self, node: Node, schema: Schema, key: str, sizes: Mapping[str, int]) -> dict[str, Path]:
        """Links to a node's snapshot files, in new folders on the node's volume: table to folder, for those tables of
        which the node holds any data."""
        storage = Folders(node.folder).storage
        root = storage / "restore" / schema.keyspace
        await files.remove(node, root, below=storage)
        tables = sorted({name.partition("/")[0] for name in sizes})
        for table in tables:
            await files.clone(node, self._root(node) / key / node.name / table, root / table)
        return {table: root / table for table in tables}

    def _root(self, node: Node) -> Path:
        return (node.cache or self.cache) / "snapshots"


async def _listed(node: Node, folder: Path) -> dict[str, int] | None:
    """`table/file` to size by a node's manifest; None without one of this format: then the snapshot is remade."""
    try:
        manifest = json.loads(await files.read(node, folder / f"{node.name}.json"))
        return dict(manifest["files"]) if manifest["format"] == FORMAT else None
    except (ValueError, KeyError, TypeError):
        return None


def _sstable_files(listed: Mapping[str, int]) -> tuple[dict[str, int], bool]:
    """Name to size of the components of complete SSTables, and whether no transaction is changing their set."""
    entries = {name: count for name, count in listed.items() if "/" not in name}
    still = not any("_txn_" in name or name.startswith("tmp") for name in entries)
    return {name: count for name, count in sorted(entries.items()) if not name.endswith(".log")}, still


async def _keep(node: Node, source: Path, into: Path, stable_s: float) -> dict[str, int]:
    """Link a set of SSTables that did not change while being linked; retry until that is the case. Returns name to
    size."""
    deadline = time.monotonic() + stable_s
    while time.monotonic() < deadline:
        await files.remove(node, into, below=into.parent)
        listed = await files.sizes(node, source)
        sstables, still = _sstable_files(listed)
        if still:
            with contextlib.suppress(OSError, CommandFailed):  # a compaction has just replaced a file: list them again
                await files.make_folders(node, into)
                if listed:
                    await files.clone(node, source, into)
                if _sstable_files(await files.sizes(node, source)) == (sstables, True):
                    others = {name.partition("/")[0] for name in listed if name not in sstables}
                    await files.remove(node, *(into / name for name in sorted(others)), below=into)
                    return sstables
        await asyncio.sleep(STABLE_POLL_S)
    raise SystemFault(
        f"{node.name}: the SSTables in {source} kept changing for {stable_s:g} s, so no snapshot can be taken",
        "wait until compactions have finished",
        node=node.name,
        system="cassandra",
    )


def _damaged(folder: Path, what: str) -> StoreError:
    return StoreError(
        f"the snapshot {folder} is damaged: {what}", f"remove {folder}; it will be refilled", path=str(folder)
    )
