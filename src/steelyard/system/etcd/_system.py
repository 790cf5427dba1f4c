"""The system `etcd`: what is its own among systems of one server for each node."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from steelyard.model.data_model import Schema
from steelyard.model.errors import CommandFailed, SystemFault
from steelyard.model.workload_shape import WorkloadShape
from steelyard.node import kept
from steelyard.node.base import Node
from steelyard.system.base import ClusterTimes, Endpoint
from steelyard.system.etcd import _members
from steelyard.system.etcd._members import Member
from steelyard.system.etcd._settings import Settings, client_url, flags, peer_url
from steelyard.system.packaged import ASK_TIMEOUT_S, CURL, Packaged, PackagedServer
from steelyard.wire.order import ETCD

NAME = "etcd"
MEMORY_MB = 128
"""Memory of a member, MiB: 64 to 98 were read under load. The pages of its database are the kernel's cache."""
SAY_TIMEOUT_S = 5.0
TRUNCATE_TIMEOUT_S = 90.0
ALL = {"key": "AA==", "range_end": "AA=="}
"""All keys, as the gateway writes them in base 64."""
START_S, START_EACH_S = 0.5, 0.5
RATE_PER_CORE = 3_500.0
"""Writes per second and core of one member, clients included."""
SLOWER_EACH = 0.3
"""Share by which each further member lengthens a write, where all share processors and disk."""
SERVICE_MS = 0.6
LOG_BYTES = 128 << 20
"""Two files of a member's log, allocated in advance."""
SHARED_DISK = (
    "etcd: a write waits until a majority of members has it on disk; where members share one disk, as on one machine, "
    "they wait for each other's writes to it, which is part of what a further member costs"
)
DEPARTURES = {
    "flags": "read from the command line of the running server: etcd does not list its settings",
    "initial-cluster": "names all members, so that they start at once",
    "/etc/default/etcd": "not read: the package's service is not used",
}
"""Differences between the way we start etcd and its own packages' service, and what the facts rest on."""


class Etcd(PackagedServer):
    """etcd; implements `System` and most abilities of `steelyard.system.base`."""

    packaged = Packaged(
        NAME,
        ("etcd-server", "curl"),
        ("etcd", "curl"),
        re.compile(r"etcd Version: (\S+)"),
    )
    name = NAME
    protocol = ETCD
    dead = "etcd is not running"
    outputs = ("etcd.log", "etcd.log")
    offers = ("etcd", "curl")
    departures: ClassVar = DEPARTURES

    def __init__(self, settings: Settings, cache_folder: Path) -> None:
        super().__init__(settings.port, MEMORY_MB, cache_folder)
        self.settings = settings
        self._leader = ""
        """Address of the member that led when they were last asked."""

    async def command(self, node: Node, peers: Sequence[Node]) -> Sequence[str]:
        """The server with every flag, which knows all members from the beginning."""
        members = ",".join(f"{peer.name}={peer_url(peer, self.settings)}" for peer in peers)
        words = {**self.asked(node), "initial-cluster": members}
        return [(await self.programs(node)).server, *(f"--{name}={value}" for name, value in words.items())]

    def asked(self, node: Node) -> Mapping[str, str]:
        """Flags of a node's server, but for that with its peers. Pure."""
        return flags(self.settings, node)

    async def in_force(self, node: Node) -> Mapping[str, str]:
        """Version, and the flags in the running server's command line."""
        running = await kept.living(node, self.record(node))
        words = () if running is None else running.argv
        given = dict(word[2:].split("=", 1) for word in words if word.startswith("--") and "=" in word)
        return {**given, "version": (await self._own(node))[0].version}

    async def ready(self, node: Node, members: int) -> bool:
        """Whether all of `members` members answer and agree on a leader. Raises SystemFault if this one died."""
        await self.refuse_death([node])
        try:
            return _members.are_whole(await self._seen(node), members)
        except CommandFailed:
            return False

    async def waiting_for(self, node: Node) -> str:
        """Current activity of a node that is not ready."""
        try:
            seen = await self._seen(node)
        except CommandFailed:
            return await super().waiting_for(node)
        return f"sees {len(seen)} members, {'one' if any(member.leads for member in seen) else 'none'} leads"

    async def create_schema(self, nodes: Sequence[Node], schema: Schema) -> None:
        """Does nothing: there are no tables, only keys."""

    def endpoint(self, nodes: Sequence[Node], schema: Schema) -> Endpoint:
        """Client port of every member; with `clients = "leader"`, of the one that led when they were last asked."""
        if self.settings.clients == "all":
            return super().endpoint(nodes, schema)
        leaders = [node for node in nodes if client_url(node, self.settings) == self._leader]
        if not leaders:
            raise SystemFault("etcd: no member led when they were last asked", "system.clients = 'all'", system=NAME)
        return super().endpoint(leaders, schema)

    async def facts(self, node: Node) -> Mapping[str, str]:
        """Also its role, the cluster's size, the term and the database."""
        own, seen = await self._own(node)
        return {
            **await super().facts(node),
            "role": "leader" if own.leads else "follower",
            "members": str(len(seen)),
            "raft term": str(own.term),
            "database bytes": str(own.size_bytes),
        }

    async def busy(self, nodes: Sequence[Node]) -> Mapping[str, float]:
        """Committed entries of the log that are not yet in the data of a member, over all members."""
        seen = await self._seen(nodes[0])
        newest = max(member.committed for member in seen)
        return {"entries to apply": float(sum(newest - member.applied for member in seen))}

    async def truncate(self, nodes: Sequence[Node], schema: Schema) -> None:
        """Remove all keys with their versions, shrink the databases, and end alarms for their size."""
        first, urls = nodes[0], [client_url(node, self.settings) for node in nodes]
        (removed,) = await self._say(first, "kv/deleterange", ALL, limit_s=TRUNCATE_TIMEOUT_S)
        if "deleted" in removed:
            until = {"revision": removed["header"]["revision"], "physical": True}
            await self._say(first, "kv/compaction", until, limit_s=TRUNCATE_TIMEOUT_S)
        await self._say(first, "maintenance/defragment", {}, urls, limit_s=TRUNCATE_TIMEOUT_S)
        (raised,) = await self._say(first, "maintenance/alarm", {"action": "GET"})
        for alarm in raised.get("alarms", ()):
            await self._say(first, "maintenance/alarm", {"action": "DEACTIVATE", **alarm})

    def times(self, shape: WorkloadShape, nodes: int, cores: int) -> ClusterTimes:
        """Expected times by rules of thumb, from readings on 2 cores."""
        slower = 1 + SLOWER_EACH * (nodes - 1)
        rate = RATE_PER_CORE * cores / slower
        return ClusterTimes(
            start_s=START_S + START_EACH_S * nodes, schema_s=0.0, fill_s=0.5 + shape.records / rate, restore_s=1.0,
            settle_s=0.1, wipe_s=0.1, service_ms=SERVICE_MS * slower, most_per_s=rate,
        )  # fmt: skip

    def copies(self, nodes: int) -> int:
        """One on each member."""
        return nodes

    def disk_bytes(self, stored_bytes: float, nodes: int) -> int:
        """The data in the database and in the log, and the log's allocated files."""
        return int(2 * stored_bytes) + nodes * LOG_BYTES

    def size_notes(self, nodes: int) -> Sequence[str]:
        """Sentences on even numbers of members, and on the disk that members share."""
        even = f"etcd: {nodes} members tolerate no more failures than {nodes - 1}, and more must store each write"
        return [*[even] * (nodes % 2 == 0), *[SHARED_DISK] * (nodes > 1)]

    async def _own(self, node: Node) -> tuple[Member, tuple[Member, ...]]:
        seen = await self._seen(node)
        (own,) = (member for member in seen if member.url == client_url(node, self.settings))
        return own, seen

    async def _seen(self, node: Node) -> tuple[Member, ...]:
        """All members that a node knows, each by its own words. Raises CommandFailed if one does not answer."""
        (listed,) = await self._say(node, "cluster/member/list", {})
        urls = [url for member in listed["members"] for url in member.get("clientURLs", ())]
        seen = _members.seen(urls, await self._say(node, "maintenance/status", {}, urls) if urls else ())
        self._leader = next((member.url for member in seen if member.leads), "")
        return seen

    async def _say(
        self,
        node: Node,
        what: str,
        body: Mapping[str, Any],
        urls: Sequence[str] = (),
        *,
        limit_s: float = SAY_TIMEOUT_S,
    ) -> list[Any]:
        """Answers of the node, or of some members, to a request of the JSON gateway. Raises CommandFailed."""
        asked = [f"{url}/v3/{what}" for url in urls or [client_url(node, self.settings)]]
        options = ("--fail-early", "--max-time", f"{limit_s:g}", "--write-out", "\\n", "--data", json.dumps(body))
        text = await self.ask(node, *CURL, *options, *asked, timeout_s=limit_s * len(asked) + ASK_TIMEOUT_S)
        return [json.loads(line) for line in text.splitlines() if line]
