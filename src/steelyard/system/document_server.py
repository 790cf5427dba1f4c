"""Servers of documents over HTTP: their documents, their processes, what they say of themselves."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Final

from pydantic import Field

from steelyard.model.data_model import Schema
from steelyard.model.errors import CommandFailed, SystemFault
from steelyard.model.value import Value
from steelyard.model.workload_shape import WorkloadShape
from steelyard.node import files
from steelyard.node.base import Node, with_port
from steelyard.node.tasks import together
from steelyard.system.base import ClusterTimes
from steelyard.system.one_server import data
from steelyard.system.packaged import CURL, PackagedServer
from steelyard.wire.order import HTTP

STATUS: Final = "/server-status"
ASK: Final = (*CURL, "--include", "--max-time", "5")
"""One request by `curl`."""
LETTERS: Final = b"abcdefghijklmnopqrstuvwxyz"
SERVICE_MS = 0.1


class DocumentSettings(Value):
    """Settings of every server of documents."""

    port: int = Field(default=8080, ge=1024, le=65_535)
    """TCP port."""
    keepalive_requests: int = Field(default=0, ge=0, le=1 << 30)
    """Requests after which a server closes a connection; 0: never."""
    keepalive_timeout_s: int = Field(default=75, ge=1, le=3600)
    """Seconds without a request after which it closes a connection."""
    access_log: bool = False
    """Whether each request is a line of a log on the node's disk."""
    memory_mb: int = Field(default=64, ge=8, le=1 << 24)
    """Memory that one node needs at least, MiB."""


class DocumentServer(PackagedServer):
    """One server of documents for each node; the nodes know nothing of each other."""

    protocol = HTTP
    offers = ("server_status", "curl")
    processes: int
    """Processes that answer, children of the one that was started."""
    rate_per_core: ClassVar[float]
    """Requests for 1,000 bytes per second on connections that stay open, with the client on the same cores."""
    configuration: ClassVar[str] = "server.conf"

    def __init__(self, settings: DocumentSettings, cache_folder: Path) -> None:
        super().__init__(settings.port, settings.memory_mb, cache_folder)

    @abstractmethod
    async def configured(self, node: Node) -> str:
        """Text of a node's configuration."""

    async def install(self, node: Node, peers: Sequence[Node]) -> None:
        """Create the node's folders and write its configuration. Idempotent."""
        await files.make_folders(node, documents(node))
        await super().install(node, peers)
        await files.put(node, data(node) / self.configuration, (await self.configured(node)).encode())

    async def ready(self, node: Node, members: int) -> bool:
        """Whether the node answers, and all its processes run. Raises SystemFault if it died."""
        await self.refuse_death([node])
        try:
            await self.get(node, STATUS)
        except CommandFailed:
            return False
        _, children = await self._processes(node)
        return children is None or len(children) == self.processes

    async def create_schema(self, nodes: Sequence[Node], schema: Schema) -> None:
        """Write the documents that a node does not have. Raises SystemFault for one that is not below its folder."""
        await together(self._write(node, schema) for node in nodes)

    async def _write(self, node: Node, schema: Schema) -> None:
        written = await files.sizes(node, documents(node))
        for path, size in schema.documents:
            name = path.lstrip("/")
            if not name or ".." in Path(name).parts:
                raise SystemFault(f"the document {path!r} is not below the server's folder", system=self.name)
            if written.get(name) != size:
                body = (LETTERS * (size // len(LETTERS) + 1))[:size]
                await files.put(node, documents(node) / name, body)

    async def process_ids(self, node: Node) -> tuple[int, ...]:
        """Process ids of the server and of those that answer."""
        own, children = await self._processes(node)
        return (*own, *(children or ()))

    async def get(self, node: Node, path: str) -> str:
        """A node's answer to one request, with its head. Raises CommandFailed."""
        return await self.ask(node, *ASK, f"http://{with_port(node.address, self._port)}{path}")

    def times(self, shape: WorkloadShape, nodes: int, cores: int) -> ClusterTimes:
        """Expected times by rules of thumb, from readings on 2 cores."""
        return ClusterTimes(
            start_s=0.3 + 0.05 * nodes, schema_s=0.1 * nodes, fill_s=0.0, wipe_s=0.1, service_ms=SERVICE_MS,
            most_per_s=self.rate_per_core * cores, always_filled=True,
        )  # fmt: skip

    def copies(self, nodes: int) -> int:
        """Every node has all documents."""
        return nodes

    def disk_bytes(self, stored_bytes: float, nodes: int) -> int:
        """The documents alone."""
        return int(stored_bytes)

    async def _processes(self, node: Node) -> tuple[tuple[int, ...], tuple[int, ...] | None]:
        """Process ids of the server, and of those that answer; None if the node's kernel does not list them."""
        own = await super().process_ids(node)
        paths = [Path(f"/proc/{pid}/task/{pid}/children") for pid in own]
        texts = list((await files.texts(node, *paths)).values()) if own else []
        return own, tuple(map(int, texts[0].split())) if texts else None


def documents(node: Node) -> Path:
    """Folder of a node's documents."""
    return data(node) / "documents"
