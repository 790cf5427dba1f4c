"""Life of nodes that run one server each: from the start of its process to its end, and its files."""

from __future__ import annotations

import asyncio
import contextlib
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import ClassVar

from steelyard.model.data_model import Schema
from steelyard.model.errors import CommandFailed, SystemFault
from steelyard.node import files, kept
from steelyard.node.base import Node, with_port
from steelyard.system.base import Endpoint

POLL_S = 0.25
LAST_LINES, LAST_BYTES = 6, 4096


class Waits(ABC):
    """Waits for servers, as long as all of them live."""

    name: str

    @abstractmethod
    async def death(self, node: Node) -> SystemFault | None:
        """Cause of the death of a node's server; None while it lives."""

    async def refuse_death(self, nodes: Sequence[Node]) -> None:
        """Raises SystemFault if a server has died; the last one, which joins or leaves, is asked first."""
        for node in reversed(nodes):
            if fault := await self.death(node):
                raise fault

    async def until(self, alive: Sequence[Node], condition: Callable[[], Awaitable[bool]]) -> None:
        """Wait for a condition; nodes that refuse to answer do not meet it. Raises SystemFault if one dies."""
        while True:
            await self.refuse_death(alive)
            # One that does not answer yet begins to, or its death is found.
            with contextlib.suppress(CommandFailed):
                if await condition():
                    return
            await asyncio.sleep(POLL_S)

    async def in_time(self, node: Node, moving: Awaitable[None], limit_s: float) -> None:
        """Let a node join or leave. Raises SystemFault if that fails, or takes longer than `system.join_timeout_s`."""
        try:
            async with asyncio.timeout(limit_s):
                await moving
        except CommandFailed as error:
            raise SystemFault(f"{node.name}: {error.message}", node=node.name, system=self.name) from error
        except TimeoutError as error:
            what = f"{node.name}: not done after {limit_s:g} s (system.join_timeout_s)"
            raise SystemFault(what, node=node.name, system=self.name) from error


class OneServer(Waits):
    """One server for each node. A system adds what starts it, and what it says of itself."""

    name: str
    protocol: str
    dead: ClassVar[str]
    """The fault of a server that has ended, in words."""
    memory_hint: ClassVar[str] = "raise node.memory_mb"
    record_name: ClassVar[str] = "server.json"
    outputs: ClassVar[tuple[str, str]] = ("server.log", "server.log")
    """Files of standard output and error."""
    stop_timeout_s: ClassVar[float] = 60.0

    def __init__(self, port: int) -> None:
        self._port = port

    @abstractmethod
    async def command(self, node: Node, peers: Sequence[Node]) -> Sequence[str]:
        """argv of a node's server, which stays in the foreground."""

    async def install(self, node: Node, peers: Sequence[Node]) -> None:
        """Create the node's folders. Idempotent."""
        await files.make_folders(node, data(node), logs(node))

    async def start(self, node: Node, peers: Sequence[Node]) -> None:
        """Start the server and return at once; does nothing if it is running."""
        if not await self.runs(node):
            await self.launch(node, await self.command(node, peers))

    async def launch(self, node: Node, argv: Sequence[str]) -> None:
        """Start the server by a command line."""
        out, err = (logs(node) / name for name in self.outputs)
        await kept.launch(node, argv, self.record(node), stdout=out, stderr=err)

    async def runs(self, node: Node) -> bool:
        """Whether the node's server lives."""
        return await kept.living(node, self.record(node)) is not None

    async def waiting_for(self, node: Node) -> str:
        """Current activity of a node that is not ready."""
        return "starting" if await self.runs(node) else "not running"

    async def death(self, node: Node) -> SystemFault | None:
        """Cause of the server's death; None while it lives."""
        if await self.runs(node):
            return None
        written = [await files.read(node, logs(node) / name, most=LAST_BYTES) for name in dict.fromkeys(self.outputs)]
        lines = b"\n".join(written).decode(errors="replace").split("\n")
        last = " | ".join([line for line in lines if line.strip()][-LAST_LINES:])
        how, hint = await kept.ending(node, self.record(node)), f"read {logs(node)}"
        if kept.memory_kills(node):
            how, hint = "killed by the memory limit", self.memory_hint
        what = f"{node.name}: {self.dead}: {how}; {f'last lines: {last}' if last else 'it wrote nothing'}"
        return SystemFault(what, hint, node=node.name, system=self.name)

    def endpoint(self, nodes: Sequence[Node], schema: Schema) -> Endpoint:
        """Client port of every node."""
        contacts = tuple(with_port(node.address, self._port) for node in nodes)
        return Endpoint(self.protocol, contacts, schema.keyspace, schema.table)

    async def stop(self, node: Node) -> None:
        """Send SIGTERM, on which the server ends in good order; SIGKILL after a time limit. Idempotent."""
        await kept.stop(node, self.record(node), self.stop_timeout_s)

    async def kill(self, node: Node) -> None:
        """Send SIGKILL. Idempotent."""
        await kept.stop(node, self.record(node), 0.0)

    async def wipe(self, node: Node) -> None:
        """Remove data and logs; kill a server that is still running. Idempotent."""
        await self.kill(node)
        await files.remove(node, self.record(node), data(node), logs(node), below=node.folder)

    async def process_ids(self, node: Node) -> tuple[int, ...]:
        """Process id of the server."""
        server = await kept.living(node, self.record(node))
        return () if server is None else (server.pid,)

    def logs(self, node: Node) -> tuple[Path, ...]:
        """The folder with the server's output."""
        return (logs(node),)

    def record(self, node: Node) -> Path:
        """The record of the server's process."""
        return node.folder / self.record_name


def data(node: Node) -> Path:
    """Folder of a node's data."""
    return node.folder / "data"


def logs(node: Node) -> Path:
    """Folder of a node's logs."""
    return node.folder / "logs"
