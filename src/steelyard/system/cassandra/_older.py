"""Cassandra from before 4.0, which has no `system_views`: a node's state from its log, its peers and its beans."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from steelyard.model.data_model import Schema
from steelyard.model.errors import SystemFault
from steelyard.node import files
from steelyard.node.base import Node
from steelyard.system.base import MarkIt
from steelyard.system.cassandra import _config, _cql, _snapshots
from steelyard.system.cassandra._elastic import ElasticCassandra
from steelyard.system.cassandra._facts import NOT_SHOWN

CONFIGURATION = re.compile(r"Node configuration:\[(.*)\]$", re.MULTILINE)
HEAD_BYTES = 1 << 20
"""Beginning of a log in which a node has written its configuration."""
MACHINE = re.compile(r"JVM vendor/version: (.*)/(.*)$", re.MULTILINE)
HIDDEN = re.compile(r"^\[L.*@[0-9a-f]+$|^<REDACTED>$")
"""Values that the log does not show: arrays, and what may be secret."""
SSTABLE = re.compile(r"(\w+)-(\d+)-(big-.+)")
FIRST_NUMBER = 1_000_000
"""Restored SSTables get higher numbers than those that a node is still removing; it then gives them its own."""

POOL = "org.apache.cassandra.metrics:type=ThreadPools,path=internal,scope={},name={}#Value"
TASKS = ("ActiveTasks", "PendingTasks")
BUSY = {
    "compactions": tuple(POOL.format("CompactionExecutor", name) for name in TASKS),
    "flushes": tuple(POOL.format(f"Memtable{pool}", name) for pool in ("FlushWriter", "PostFlush") for name in TASKS),
    "hints": tuple(POOL.format("HintsDispatcher", name) for name in TASKS),
    "streams": ("org.apache.cassandra.net:type=StreamManager#CurrentStreams",),
}
"""Beans and attributes, added up."""


class OlderCassandra(ElasticCassandra):
    """Cassandra 3; its nodes neither join nor leave."""

    maintenance = ElasticCassandra.maintenance - {"repair"}
    """A repair is followed by its status, which older ones do not keep."""
    offers = ("gc_log", "jmx", "jmx_password_file", "java", "beans")

    def keeps_size(self) -> str:
        """The reason that holds for every such cluster: the marks of a join are those of newer logs."""
        return f"nodes of Cassandra {self.settings.line.name} neither join nor leave here; those of 4.1 and 5.0 do"

    async def leave(self, node: Node, members: Sequence[Node], mark: MarkIt) -> int | None:
        """Refused."""
        raise SystemFault(f"{node.name}: it cannot leave: {self.keeps_size()}", node=node.name, system=self.name)

    def ways(self, node: Node) -> Mapping[str, str]:
        """The management beans and the collector's log; CQL shows nothing of a node's state."""
        return {name: way for name, way in super().ways(node).items() if name != "cql"}

    async def busy(self, nodes: Sequence[Node]) -> Mapping[str, float]:
        """Compactions, flushes, hints, streams that are running or pending, over all nodes."""
        contacts = {node.name: [self._beans_of(node)] for node in nodes}
        words = ";".join(bean for beans in BUSY.values() for bean in beans)
        lines = await self._call(nodes, "read", words, contacts)
        amounts = dict.fromkeys(BUSY, 0.0)
        for line in lines.values():
            values = iter(map(float, line.rsplit(" ", 1)[1].split(",")))
            for what, beans in BUSY.items():
                amounts[what] += sum(next(values) for _ in beans)
        return amounts

    async def _sees(self, node: Node, members: int) -> bool:
        try:
            (peers,) = await _cql.ask(node, self.settings.native_port, ("SELECT peer, tokens FROM system.peers",))
        except _cql.NotAnswering:
            return False
        return len([row for row in peers if row["tokens"]]) == members - 1

    async def _in_force(self, node: Node) -> tuple[str, str, Sequence[Mapping[str, Any]]]:
        (local,) = await self._ask(node, "SELECT release_version FROM system.local")
        log = _config.Folders(node.folder).logs / "system.log"
        head = (await files.read(node, log, most=HEAD_BYTES)).decode(errors="replace")
        settings, machine = configuration(head), MACHINE.search(head)
        if not settings:
            what = f"{node.name}: no configuration at the beginning of {log}"
            raise SystemFault(what, node=node.name, system=self.name)
        return str(local[0]["release_version"]), " ".join(machine.groups()) if machine else "unknown", settings

    async def _take_in(self, nodes: Sequence[Node], schema: Schema, staged: Sequence[Mapping[str, Path]]) -> None:
        targets: dict[str, list[str]] = {}
        for node, folders in zip(nodes, staged, strict=True):
            for table, folder in folders.items():
                into = _snapshots.table_folder(node, schema, table)
                for name in await files.sizes(node, folder):
                    await files.move(node, folder / name, into / renumbered(name))
            targets[node.name] = [f"{self._beans_of(node)}={table}" for table in folders]
        await self._call(nodes, "refresh", schema.keyspace, targets)


def configuration(log: str) -> list[dict[str, str | None]]:
    """The settings that a node has written to its log, as rows of `system_views.settings`. Pure."""
    match = CONFIGURATION.search(log)
    pairs = [pair.partition("=") for pair in match[1].split("; ")] if match else []
    hidden = {name for name, _, value in pairs if HIDDEN.search(value)}
    shown = {name: None if value == "null" else value for name, _, value in pairs}
    return [{"name": name, "value": NOT_SHOWN if name in hidden else value} for name, value in shown.items()]


def renumbered(name: str) -> str:
    """A restored file's name with a number that no other SSTable of the node has. Pure."""
    match = SSTABLE.fullmatch(name)
    return f"{match[1]}-{FIRST_NUMBER + int(match[2])}-{match[3]}" if match else name
