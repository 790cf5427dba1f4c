"""Apache httpd from Debian's packages, with processes of threads (the module `mpm_event`): a server on each node."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Final

from pydantic import Field

from steelyard.node.base import Node, with_port
from steelyard.system.document_server import STATUS, DocumentServer, DocumentSettings, documents
from steelyard.system.one_server import data, logs
from steelyard.system.packaged import Packaged

MODULES: Final = Path("/usr/lib/apache2/modules")
LOADED: Final = ("mpm_event", "authz_core", "status", "info")
INFO: Final = "/server-info"
FORMAT: Final = '"%h %t %r %>s %b"'
DIRECTIVE: Final = re.compile(r"^<dd><tt>.*?:(?:&nbsp;)+(\w+) <i>(.*)</i></tt></dd>", re.MULTILINE)
"""A line of the configuration as the running server lists it."""
VERSION: Final = re.compile(r"Apache/(\S+)")


class Settings(DocumentSettings):
    """Settings of the system `apache`. All are hard to change: another value needs a new start."""

    processes: int = Field(default=4, ge=1, le=1000)
    """Processes that answer, all from the start (ServerLimit, StartServers)."""
    threads: int = Field(default=32, ge=1, le=1000)
    """Threads of each, one for each request in progress (ThreadsPerChild)."""


class Apache(DocumentServer):
    """Apache httpd; implements `System` and abilities of `steelyard.system.base`."""

    name = "apache"
    rate_per_core = 10_000.0
    dead = "Apache is not running"
    outputs = ("apache.log", "apache.log")
    packaged = Packaged(
        "apache", ("apache2-bin", "curl"), ("/usr/sbin/apache2", "curl"), VERSION, asks=("-v", "--version"),
        loads=tuple(str(MODULES / f"mod_{name}.so") for name in LOADED),
    )  # fmt: skip
    departures: ClassVar = {
        "configuration": "complete in the node's folder; none of the package's is read, and only these modules are "
        f"loaded: {', '.join(LOADED)}",
        "processes": "all run from the start to the end (MinSpareThreads, MaxSpareThreads, MaxConnectionsPerChild)",
        "keep-alive": "unlimited requests for a connection, unless system.keepalive_requests; 75 s without one",
        "access log": "off, unless system.access_log",
        "user": "that of the study, without capabilities; Apache cannot change it and logs AH02155 if it is root",
    }

    def __init__(self, settings: Settings, cache_folder: Path) -> None:
        super().__init__(settings, cache_folder)
        self.settings = settings
        self.processes = settings.processes

    async def command(self, node: Node, peers: Sequence[Node]) -> Sequence[str]:
        """The server in the foreground, with our configuration alone."""
        server = (await self.programs(node)).server
        return [server, "-d", str(data(node)), "-f", str(data(node) / self.configuration), "-D", "FOREGROUND"]

    def asked(self, node: Node) -> Mapping[str, str]:
        """Directives of a node, with their values. Pure."""
        of = self.settings
        workers = of.processes * of.threads
        log = {"CustomLog": f"{data(node) / 'access.log'} {FORMAT}"} if of.access_log else {}
        return {
            "Listen": with_port(node.address, of.port),
            "ServerName": "localhost",
            "DocumentRoot": str(documents(node)),
            "PidFile": str(data(node) / "pid"),
            "Mutex": f"file:{data(node)}",
            "ErrorLog": str(logs(node) / self.outputs[1]),
            "ServerLimit": str(of.processes),
            "StartServers": str(of.processes),
            "ThreadLimit": str(of.threads),
            "ThreadsPerChild": str(of.threads),
            "MaxRequestWorkers": str(workers),
            "MinSpareThreads": "1",
            "MaxSpareThreads": str(workers),
            "MaxConnectionsPerChild": "0",
            "MaxKeepAliveRequests": str(of.keepalive_requests),
            "KeepAliveTimeout": str(of.keepalive_timeout_s),
            "ExtendedStatus": "On",
            **log,
        }

    async def configured(self, node: Node) -> str:
        """The directives, those that load modules first."""
        server = Path((await self.programs(node)).server)
        folder = MODULES if str(server) == self.packaged.programs[0] else server.parent
        loads = [f"LoadModule {name}_module {folder}/mod_{name}.so" for name in LOADED]
        shown = [f"<Location {path}>\nSetHandler {path[1:]}\n</Location>" for path in (STATUS, INFO)]
        return "\n".join([*loads, *(f"{name} {value}" for name, value in self.asked(node).items()), *shown, ""])

    async def in_force(self, node: Node) -> Mapping[str, str]:
        """Directives, version and MPM as the running server lists them."""
        listed = DIRECTIVE.findall(await self.get(node, f"{INFO}?config"))
        status = await self.get(node, f"{STATUS}?auto")
        version, mpm = VERSION.search(status), re.search(r"^ServerMPM: (\S+)", status, re.MULTILINE)
        return {
            **{name: html.unescape(value) for name, value in listed},
            "MPM": mpm[1] if mpm else "unknown",
            "version": version[1] if version else "unknown",
        }


missing_packages = Apache.packaged.missing


def create(settings: Settings, cache_folder: Path) -> Apache:
    """Make the system; no side effects."""
    return Apache(settings, cache_folder)
