"""Nodes that join and leave a cluster that runs. Progress is read from logs, as questions in CQL would be load."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any

from steelyard.model import activity
from steelyard.model.errors import SystemFault
from steelyard.node import files
from steelyard.node.base import Node
from steelyard.node.tasks import together
from steelyard.system.base import MarkIt
from steelyard.system.cassandra import _config, _joining, _process, _state
from steelyard.system.cassandra._settings import Settings
from steelyard.system.cassandra._system import MOST_LOG_BYTES, Cassandra
from steelyard.system.join_marks import JOIN_LINES, LEAVE_LINES, Patterns
from steelyard.system.one_at_a_time import HINT, OneAtATime

POLL_S = 0.25
POLL_ELSEWHERE_S = 1.0
"""Pause between looks at a node whose log or server only a command there can see. Marks have the log's own times."""
VIEW_POLL_S = 0.5
VIEW_TIMEOUT_S = 60.0
"""Time for all members to see a change after the node itself has finished it."""
QUARANTINE_GRACE_S = 2.0
SYSTEM_COPIES = 3
"""Copies of `system_distributed`: if fewer nodes remain, Cassandra lets a node leave only by force."""
LAST_LINES = 6

log = logging.getLogger(__name__)


class ElasticCassandra(Cassandra):
    """Cassandra whose nodes join and leave while it runs; implements `Elastic`, too."""

    def __init__(self, settings: Settings, cache_folder: Path) -> None:
        super().__init__(settings, cache_folder)
        self._alone = OneAtATime(self.name)
        self._failed: dict[str, Node] = {}
        """By address: nodes whose join ended early, so that the members may count them as joining."""
        self._quarantined_until: dict[str, float] = {}
        """By address of a node that is gone: when the members take gossip of it again."""

    def keeps_size(self) -> str:
        """With TLS, whose certificate is made for the first nodes."""
        return "the certificate of system.client_tls names the first nodes only" if self.settings.client_tls else ""

    async def join(self, node: Node, members: Sequence[Node], mark: MarkIt) -> int | None:
        """Start a node that bootstraps next to `members`. Returns the bytes that it received."""
        async with self._alone(node, "joins"):
            if not _config.joins(node, members) or await self._lives(node):
                raise _fault(node, "it cannot join: it runs already")
            if why := self.keeps_size():
                raise _fault(node, f"it cannot join: {why}")
            await self._forget_failed(members)
            await self._refuse_movement(node, members)
            await asyncio.sleep(self._quarantined_until.get(node.address, 0.0) - time.monotonic())
            try:
                return await self._in_time(node, self._join(node, members, mark))
            except BaseException:
                self._failed[node.address] = node
                raise

    async def leave(self, node: Node, members: Sequence[Node], mark: MarkIt) -> int | None:
        """Decommission a node and end its server. Returns the bytes that it sent."""
        others = [member for member in members if member.name != node.name]
        async with self._alone(node, "leaves"):
            copies = self.settings.replication_factor
            if len(others) < copies:
                raise _fault(node, f"it cannot leave: {copies} copies of each row need {copies} nodes")
            await self._refuse_movement(node, members)
            sent_bytes = await self._in_time(node, self._leave(node, others, mark))
            await self.kill(node)
            self._quarantine(node.address)
            return sent_bytes

    async def clean_up(self, nodes: Sequence[Node]) -> bool:
        """Have one node after the other remove the rows that it no longer owns, if the settings ask for it."""
        if self.settings.cleanup != "after-joins" or self._schema is None:
            return False
        for node in nodes:
            await self._on_tables([node], "cleanup", self._schema, self.settings.join_timeout_s)
        return True

    async def _join(self, node: Node, members: Sequence[Node], mark: MarkIt) -> int:
        folders = _config.Folders(node.folder)
        # With the data of an earlier attempt it would come into service without streaming.
        await files.remove(node, folders.storage, below=folders.root)
        await self.provide([node])
        await self.install(node, members)
        await self.start(node, members)
        mark(activity.STARTED, None)
        # A start begins a log of its own.
        own = _Log(node, JOIN_LINES)
        while activity.LISTENING not in own.report.seen:
            await asyncio.sleep(own.pause_s)
            for name, t_s in await own.read():
                mark(name, t_s)
            await self._refuse_failure(own)
        self._refuse_gaps(own)
        everyone = [*members, node]
        looks = await self._until_seen(everyone)
        # Members do not log it, so they are asked.
        mark(activity.IN_SERVICE, own.report.seen[activity.LISTENING] if looks == 1 else None)
        ((state,),) = await self._ask(node, "SELECT bootstrapped FROM system.local")
        if state["bootstrapped"] != "COMPLETED":
            raise _fault(node, f"its bootstrap is {state['bootstrapped']}, not COMPLETED")
        await self._agreed(everyone)
        return own.report.received_bytes

    async def _leave(self, node: Node, others: Sequence[Node], mark: MarkIt) -> int:
        forced = len(others) < SYSTEM_COPIES
        if forced:
            log.info(
                "%s leaves by force: %d nodes cannot hold the %d copies of system_distributed",
                node.name, len(others), SYSTEM_COPIES,
            )  # fmt: skip
        own = await _Log.from_now(node, LEAVE_LINES)
        targets = {node.name: [f"{self._beans_of(node)}={str(forced).lower()}"]}
        calling = asyncio.create_task(self._call([node], "decommission", "-", targets, self.settings.join_timeout_s))
        try:
            over = False
            while not over:
                over = bool((await asyncio.wait([calling], timeout=own.pause_s))[0])
                for name, t_s in await own.read():
                    if name == activity.LEFT:
                        await self._until_seen(others)
                    mark(name, None if name == activity.LEFT else t_s)
            await calling
        finally:
            calling.cancel()
            await asyncio.wait([calling])
        if activity.LEFT not in own.report.seen:
            raise await _with_last_lines(node, "it has not left the ring")
        return own.report.sent_bytes

    async def _forget_failed(self, members: Sequence[Node]) -> None:
        """Have the members forget nodes whose join ended early. Until then they refuse any other join, for five
        minutes."""
        for address, node in list(self._failed.items()):
            if await self._lives(node):
                raise _fault(node, "its join ended early, and its server still runs", "end the node first")
            answers = await together(self._ask(member, _joining.VIEW[0]) for member in members)
            for member, (gossip,) in zip(members, answers, strict=True):
                # Where it is unknown, this would make up a state that is newer than all starts of the next minute.
                if _joining.knows(gossip, address):
                    targets = {member.name: [f"{self._beans_of(member)}={address}"]}
                    await self._call([member], "assassinate", "-", targets)
                    self._quarantine(address)
                    break
            del self._failed[address]

    async def _lives(self, node: Node) -> bool:
        return await _process.living(node) is not None

    def _quarantine(self, address: str) -> None:
        self._quarantined_until[address] = time.monotonic() + _config.quarantine_s(self.settings) + QUARANTINE_GRACE_S

    async def _refuse_movement(self, node: Node, members: Sequence[Node]) -> None:
        addresses = [member.address for member in members]
        answers = await together(self._ask(member, *_joining.VIEW) for member in members)
        for member, (gossip, streams) in zip(members, answers, strict=True):
            if reason := _joining.movement(addresses, gossip, streams):
                raise _fault(node, f"it can neither join nor leave now: as {member.name} sees it, {reason}", HINT)

    async def _refuse_failure(self, own: _Log) -> None:
        if not await self._lives(own.node):
            raise await self._died(own.node)
        if own.report.failure:
            raise await _with_last_lines(own.node, "it could not join")

    def _refuse_gaps(self, own: _Log) -> None:
        """A joiner bootstraps what it knows of after the ring delay, however little that is."""
        keyspaces = set() if self._schema is None else {self._schema.keyspace}
        if activity.STREAMED not in own.report.seen or not keyspaces <= own.report.keyspaces:
            what = "it came into service without having asked for all rows, so reads from it miss some"
            raise _fault(own.node, what, "raise system.ring_delay_ms: Cassandra's own is 30000")

    async def _in_time(self, node: Node, moving: Coroutine[Any, Any, int]) -> int:
        limit_s = self.settings.join_timeout_s
        try:
            async with asyncio.timeout(limit_s):
                return await moving
        except TimeoutError as error:
            raise await _with_last_lines(node, f"not done after {limit_s:g} s (system.join_timeout_s)") from error

    async def _until_seen(self, members: Sequence[Node]) -> int:
        """Look until all members see exactly each other in service, connected; returns the number of looks."""
        deadline = time.monotonic() + VIEW_TIMEOUT_S
        waiting, looks = list(members), 0
        while True:
            ready = await together(self.ready(viewer, len(members)) for viewer in waiting)
            waiting, looks = (
                [viewer for viewer, is_ready in zip(waiting, ready, strict=True) if not is_ready],
                looks + 1,
            )
            if not waiting:
                return looks
            if time.monotonic() > deadline:
                raise _fault(waiting[0], f"it does not see exactly {len(members)} nodes in service")
            await asyncio.sleep(VIEW_POLL_S)


class _Log:
    """The log of a node as far as it has been read, and its content."""

    def __init__(self, node: Node, patterns: Patterns = (), from_byte: int = 0) -> None:
        self.node = node
        self.report = _joining.Report(patterns)
        self.pause_s = POLL_S if node.files == node.processes == "same" else POLL_ELSEWHERE_S
        self._path = _config.Folders(node.folder).logs / "system.log"
        self._so_far = _state.LogSoFar(from_byte)

    @classmethod
    async def from_now(cls, node: Node, patterns: Patterns = ()) -> _Log:
        """Without the lines that the log has already."""
        path = _config.Folders(node.folder).logs / "system.log"
        return cls(node, patterns, (await files.sizes(node, path.parent)).get(path.name, 0))

    async def read(self) -> list[tuple[str, float]]:
        """New marks."""
        content = await files.read(self.node, self._path, self._so_far.bytes_read, MOST_LOG_BYTES)
        return self.report.take(self._so_far.take(content))


async def _with_last_lines(node: Node, what: str) -> SystemFault:
    lines = await _process.tail(node, _config.Folders(node.folder).logs / "system.log", LAST_LINES)
    return _fault(node, f"{what}; last lines: {' | '.join(lines)}", f"read {_config.Folders(node.folder).logs}")


def _fault(node: Node, what: str, hint: str = "") -> SystemFault:
    return SystemFault(f"{node.name}: {what}", hint, node=node.name, system="cassandra")
