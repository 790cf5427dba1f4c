"""nginx from Debian's packages: a server on each node."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Final

from pydantic import Field

from steelyard.node.base import Node, with_port
from steelyard.node.command import run
from steelyard.system.document_server import STATUS, DocumentServer, DocumentSettings, documents
from steelyard.system.one_server import data, logs
from steelyard.system.packaged import ASK_TIMEOUT_S, Packaged

VERSION: Final = re.compile(r"nginx/(\S+)")
DIRECTIVE: Final = re.compile(r"^\s*(\w+) (.*);$", re.MULTILINE)
UNLIMITED: Final = 1 << 30
"""Requests for a connection that no trial reaches: nginx has no word for it."""
FOLDERS: Final = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
"""Folders for bodies, which nginx creates at its start, used or not."""


class Settings(DocumentSettings):
    """Settings of the system `nginx`. All are hard to change: another value needs a new start."""

    workers: int = Field(default=1, ge=1, le=1000)
    """Processes that answer (worker_processes)."""
    worker_connections: int = Field(default=1024, ge=16, le=1 << 20)
    """Connections of each worker at the same time."""


class Nginx(DocumentServer):
    """nginx; implements `System` and abilities of `steelyard.system.base`."""

    name = "nginx"
    rate_per_core = 20_000.0
    dead = "nginx is not running"
    outputs = ("nginx.log", "nginx.log")
    packaged = Packaged("nginx", ("nginx", "curl"), ("/usr/sbin/nginx", "curl"), VERSION, asks=("-v", "--version"))
    departures: ClassVar = {
        "configuration": "complete in the node's folder; none of the package's is read",
        "workers": "system.workers, and not one for each core of the machine",
        "keep-alive": "unlimited requests for a connection, unless system.keepalive_requests",
        "access log": "off, unless system.access_log",
        "gzip": "off: bodies have the length that the client expects",
        "user": "that of the study, without capabilities",
    }

    def __init__(self, settings: Settings, cache_folder: Path) -> None:
        super().__init__(settings, cache_folder)
        self.settings = settings
        self.processes = settings.workers

    async def command(self, node: Node, peers: Sequence[Node]) -> Sequence[str]:
        """The server in the foreground, with our configuration alone."""
        return await self._argv(node)

    def asked(self, node: Node) -> Mapping[str, str]:
        """Directives of a node, with their values. Pure."""
        return {name: value for part in self._parts(node) for name, value in part.items()}

    async def configured(self, node: Node) -> str:
        """The directives in their blocks."""
        main, events, http, server = (
            "".join(f"{name} {value};\n" for name, value in part.items()) for part in self._parts(node)
        )
        status = f"location = {STATUS} {{\nstub_status;\n}}\n"
        return f"{main}events {{\n{events}}}\nhttp {{\n{http}server {{\n{server}{status}}}\n}}\n"

    async def in_force(self, node: Node) -> Mapping[str, str]:
        """The configuration as the program reads it, the running server's version, and its processes."""
        argv = [*await self._argv(node), "-T", "-q"]
        read = (await run(node, argv, timeout_s=ASK_TIMEOUT_S, watch=True)).stdout.decode(errors="replace")
        version = VERSION.search(await self.get(node, STATUS))
        _, workers = await self._processes(node)
        return {
            **dict(DIRECTIVE.findall(read)),
            **({} if workers is None else {"worker_processes": str(len(workers))}),
            "version": version[1] if version else "unknown",
        }

    async def _argv(self, node: Node) -> list[str]:
        server = (await self.programs(node)).server
        log = logs(node) / self.outputs[1]
        return [server, "-p", str(data(node)), "-c", str(data(node) / self.configuration), "-e", str(log)]

    def _parts(self, node: Node) -> tuple[dict[str, str], ...]:
        """Directives of each block: main, events, http, server."""
        of = self.settings
        main = {
            # Without it a server of root's would change its user, for which it lacks the capability.
            "user": "root root",
            "daemon": "off",
            "worker_processes": str(of.workers),
            "worker_rlimit_nofile": str(2 * of.worker_connections),
            "pid": str(data(node) / "pid"),
            "error_log": str(logs(node) / self.outputs[1]),
        }
        http = {
            "access_log": str(data(node) / "access.log") if of.access_log else "off",
            "sendfile": "on",
            "tcp_nopush": "on",
            "keepalive_requests": str(of.keepalive_requests or UNLIMITED),
            "keepalive_timeout": f"{of.keepalive_timeout_s}s",
            **{f"{name}_temp_path": str(data(node) / name) for name in FOLDERS},
        }
        server = {"listen": with_port(node.address, of.port), "root": str(documents(node))}
        return main, {"worker_connections": str(of.worker_connections)}, http, server


missing_packages = Nginx.packaged.missing


def create(settings: Settings, cache_folder: Path) -> Nginx:
    """Make the system; no side effects."""
    return Nginx(settings, cache_folder)
