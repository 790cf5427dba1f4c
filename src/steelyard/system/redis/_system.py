"""The system `redis`: its methods in the order in which the laboratory calls them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from steelyard.model.data_model import Schema
from steelyard.model.errors import CommandFailed, StudyError
from steelyard.model.facts import PROMISE
from steelyard.model.load import Load
from steelyard.model.workload_shape import WorkloadShape
from steelyard.node import files
from steelyard.node.base import Node
from steelyard.node.tasks import together
from steelyard.system.base import ClusterTimes
from steelyard.system.one_server import data
from steelyard.system.packaged import ASK_TIMEOUT_S, Packaged, PackagedServer
from steelyard.system.redis import _layout
from steelyard.system.redis._layout import Member
from steelyard.system.redis._settings import Settings, options
from steelyard.wire.order import RESP

NAME = "redis"
TRUNCATE_TIMEOUT_S = 90.0
LEAST_TO_ELECT = 3
"""Masters without which no replica can take the place of one that failed."""
BUSY = {
    "saves": "rdb_bgsave_in_progress", "log rewrites": "aof_rewrite_in_progress", "loads": "loading",
    "copies to replicas": "master_sync_in_progress",
}  # fmt: skip
"""Kind of background work to its field of INFO."""
DEPARTURES = {
    "save": "off: data are not written to disk while the servers run, unless system.appendonly; they are at their end",
    "nodes.conf": "names all first nodes with their slots, so that they start at once and need not meet",
}
"""Differences between the way we start Redis and its own packages' settings."""
START_S, START_EACH_S = 2.2, 0.1
"""A master waits for 2 s after its start before it serves."""
RATE_PER_CORE = 40_000.0
"""Operations per second and core, servers alone; clients take as much again."""
SERVICE_MS = 0.05


class Redis(PackagedServer):
    """Redis Cluster; implements `System` and most abilities of `steelyard.system.base`."""

    packaged = Packaged(NAME, ("redis-server", "redis-tools"), ("redis-server", "redis-cli"), re.compile(r"\bv=(\S+)"))
    name = NAME
    protocol = RESP
    dead = "Redis is not running"
    outputs = ("redis.log", "redis.log")
    offers = ("resp", "redis_cli")
    departures: ClassVar = DEPARTURES
    memory_hint = "raise node.memory_mb, or set system.maxmemory_mb"

    def __init__(self, settings: Settings, cache_folder: Path) -> None:
        super().__init__(settings.port, settings.memory_mb, cache_folder)
        self.settings = settings

    def lost_by_kill(self) -> str:
        """A clause on a server without a log."""
        kept = self.settings.appendonly
        return "" if kept else "a server comes back empty, because system.appendonly = false keeps no data on its disk"

    async def install(self, node: Node, peers: Sequence[Node]) -> None:
        """Create the node's folders, and, unless it joins later, the file from which it knows its peers. Idempotent."""
        await super().install(node, peers)
        path = data(node) / "nodes.conf"
        if any(peer.name == node.name for peer in peers) and not await files.read(node, path):
            await files.put(node, path, _layout.file_of(node, peers, self.settings).encode())

    async def command(self, node: Node, peers: Sequence[Node]) -> Sequence[str]:
        """The server with every option as words."""
        asked = {"dir": str(data(node)), **self.asked(node)}
        return [
            (await self.programs(node)).server,
            *(word for name, value in asked.items() for word in (f"--{name}", value)),
        ]

    def asked(self, node: Node) -> Mapping[str, str]:
        """Options of a node's server, as `CONFIG GET` prints them. Pure."""
        return options(self.settings, node)

    async def ready(self, node: Node, members: int) -> bool:
        """Whether the node serves, and sees `members` nodes that do. Raises SystemFault if it died."""
        await self.refuse_death([node])
        try:
            seen = await self._seen(node)
            if len(seen) != members or not all(member.serves for member in seen):
                return False
            state = _fields(await self._ask(node, "CLUSTER", "INFO"))["cluster_state"]
            replication = _fields(await self._ask(node, "INFO", "replication"))
        except CommandFailed:
            return False
        return state == "ok" and replication.get("master_link_status", "up") == "up"

    async def waiting_for(self, node: Node) -> str:
        """Current activity of a node that is not ready."""
        try:
            seen = await self._seen(node)
        except CommandFailed:
            return await super().waiting_for(node)
        return f"waiting before it serves, sees {sum(member.serves for member in seen)} of {len(seen)} nodes"

    async def create_schema(self, nodes: Sequence[Node], schema: Schema) -> None:
        """Does nothing: there are no tables, only keys."""

    async def facts(self, node: Node) -> Mapping[str, str]:
        """Version, role and slots, every setting as the node lists it, and how our start differs."""
        server = _fields(await self._ask(node, "INFO", "server"))
        (own,) = (member for member in await self._seen(node) if member.is_myself)
        return {
            **await super().facts(node),
            "allocator": server.get("mem_allocator", ""),
            "role": "master" if own.is_master else "replica",
            "slots": " ".join(own.slots),
            **promises(await self.in_force(node)),
        }

    async def in_force(self, node: Node) -> Mapping[str, str]:
        """Version and every option."""
        lines = (await self._ask(node, "CONFIG", "GET", "*")).splitlines()
        version = _fields(await self._ask(node, "INFO", "server"))["redis_version"]
        return {**dict(zip(lines[::2], lines[1::2], strict=False)), "version": version}

    async def busy(self, nodes: Sequence[Node]) -> Mapping[str, float]:
        """Saves, rewrites of the log, loads and copies to replicas that are running, over all nodes."""
        answers = [_fields(text) for text in await together(self._ask(node, "INFO") for node in nodes)]
        return {what: sum(float(answer.get(field, 0)) for answer in answers) for what, field in BUSY.items()}

    async def truncate(self, nodes: Sequence[Node], schema: Schema) -> None:
        """Remove all keys."""
        masters = {member.address for member in await self._seen(nodes[0]) if member.is_master}
        await together(
            self._ask(node, "FLUSHALL", timeout_s=TRUNCATE_TIMEOUT_S) for node in nodes if node.address in masters
        )

    def times(self, shape: WorkloadShape, nodes: int, cores: int) -> ClusterTimes:
        """Expected times by rules of thumb, from readings on 2 cores."""
        rate = RATE_PER_CORE * cores / 2
        return ClusterTimes(
            start_s=START_S + START_EACH_S * nodes, schema_s=0.0, fill_s=0.5 + shape.records / rate, restore_s=0.1,
            settle_s=0.1, wipe_s=0.1, service_ms=SERVICE_MS * max(1.0, nodes / cores), most_per_s=rate,
        )  # fmt: skip

    def copies(self, nodes: int) -> int:
        """The master and its replicas, but at most one copy per node."""
        return min(self.settings.replicas + 1, nodes)

    def disk_bytes(self, stored_bytes: float, nodes: int) -> int:
        """The data as saved at the end, and twice again in a log that is being rewritten."""
        return int(stored_bytes * (3 if self.settings.appendonly else 1))

    def problems(self, nodes: int, load: Load) -> Iterator[StudyError]:
        """Errors for numbers of nodes with which not each of enough masters has its replicas."""
        group = self.settings.replicas + 1
        if nodes % group or (group > 1 and nodes // group < LEAST_TO_ELECT):
            yield StudyError(
                f"system.replicas = {self.settings.replicas} with {nodes} node{'s' if nodes > 1 else ''}: each of at "
                f"least {LEAST_TO_ELECT} masters needs as many replicas",
                f"allowed: {', '.join(str(group * count) for count in range(LEAST_TO_ELECT, LEAST_TO_ELECT + 3))}, ... "
                "nodes, or system.replicas = 0",
                key="system.replicas",
                read=self.settings.replicas,
            )

    async def _ask(self, node: Node, *words: str, timeout_s: float = ASK_TIMEOUT_S) -> str:
        """A node's answer to one command. Raises CommandFailed if it refuses, or does not answer."""
        return await self.ask(
            node, "-e", "-h", node.address, "-p", str(self.settings.port), *words, timeout_s=timeout_s
        )

    async def _seen(self, node: Node) -> tuple[Member, ...]:
        return _layout.seen(await self._ask(node, "CLUSTER", "NODES"))


def promises(force: Mapping[str, str]) -> dict[str, str]:
    """Promise of commits and reads under settings in force, and the use of memory. Pure."""
    synced = {"always": "which is on the disk by then", "everysec": "which is synced to the disk every second"}
    log = f" and in its log, {synced.get(force['appendfsync'], 'which the kernel writes to the disk when it wants')}"
    where = f"in memory{log}" if force["appendonly"] == "yes" else "in memory alone, and loses it when it dies"
    options = f"appendonly = {force['appendonly']}, appendfsync = {force['appendfsync']}"
    return {
        f"{PROMISE}redis": f"Redis acknowledges a write once it is {where} ({options}); a write is one command on one "
        "key, replicas follow later, and all data are in memory."
    }


def _fields(text: str) -> dict[str, str]:
    """Fields of an answer to INFO."""
    return dict(line.partition(":")[::2] for line in text.splitlines() if ":" in line)
