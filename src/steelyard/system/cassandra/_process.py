"""The server's process on a node of this machine: started, found again by pid and start time, stopped, diagnosed."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path

from steelyard.node.base import Node
from steelyard.system.cassandra._config import Folders

POLL_S = 0.05
KILL_TIMEOUT_S = 10.0
TAIL_LINES = 6
TAIL_BYTES = 65_536
FRAME = re.compile(r"^\s*(at |\.\.\. \d+|$|WARNING: )")
"""Lines of a stack trace and of Java's own complaints, which say less than their neighbours."""
REFUSALS = ("Invalid yaml", "ConfigurationException", "YAMLException")


@dataclass(frozen=True)
class Server:
    """A process by id and start time (clock ticks after boot), so that a reused id is never taken for it."""

    pid: int
    started_ticks: int

    @property
    def alive(self) -> bool:
        """Whether this very process exists and is no zombie."""
        return start_ticks(self.pid) == self.started_ticks

    def signal(self, number: int) -> None:
        """Send a signal, if it is still this process."""
        if self.alive:
            try:
                os.kill(self.pid, number)
            except ProcessLookupError:
                return


def start_ticks(pid: int) -> int | None:
    """Start time of a process in clock ticks since boot, None if there is none or it is a zombie."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The name in parentheses may hold anything; field 3 (state) follows the last ")", field 22 is the start time.
    fields = text.rpartition(")")[2].split()
    return None if fields[0] in {"Z", "X"} else int(fields[19])


def write_record(node: Node, pid: int) -> Server | None:
    """Write down the server of a node; None if it has ended already."""
    ticks = start_ticks(pid)
    if ticks is None:
        return None
    server = Server(pid, ticks)
    Folders(node.folder).process.write_text(json.dumps({"pid": pid, "started_ticks": ticks}), encoding="utf-8")
    return server


def read_record(node: Node) -> Server | None:
    """The server of a node as last written down; None if there never was one, or it was stopped."""
    try:
        read = json.loads(Folders(node.folder).process.read_text(encoding="utf-8"))
        return Server(int(read["pid"]), int(read["started_ticks"]))
    except (OSError, ValueError, KeyError):
        return None


def living(node: Node) -> Server | None:
    """The running server of a node, if there is one."""
    server = read_record(node)
    return server if server and server.alive else None


async def gone(server: Server, timeout_s: float) -> bool:
    """Wait until a server has ended; False if it has not after `timeout_s`."""
    deadline = time.monotonic() + timeout_s
    while server.alive:
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(POLL_S)
    return True


async def stop(node: Node, grace_s: float) -> None:
    """SIGTERM, SIGKILL after `grace_s`. Idempotent."""
    server = living(node)
    if server is not None:
        if grace_s > 0:
            server.signal(signal.SIGTERM)
        if grace_s <= 0 or not await gone(server, grace_s):
            server.signal(signal.SIGKILL)
            await gone(server, KILL_TIMEOUT_S)
    Folders(node.folder).process.unlink(missing_ok=True)


def tail(path: Path, lines: int) -> list[str]:
    """Last lines of a file, none if it is not there."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - TAIL_BYTES))
            return list(deque(file.read().decode(errors="replace").splitlines(), maxlen=lines))
    except OSError:
        return []


def memory_kills(node: Node) -> int:
    """How often the kernel killed a process of the node's cgroups for memory (cgroup v1 and v2)."""
    kills = 0
    for folder in node.cgroups:
        for name in ("memory.oom_control", "memory.events"):
            try:
                text = (folder / name).read_text(encoding="utf-8")
            except OSError:
                continue
            kills += sum(int(line.split()[1]) for line in text.splitlines() if line.startswith("oom_kill "))
    return kills


def why_dead(node: Node) -> tuple[str, str]:
    """The likely reason why a server died, and what to do about it, from its logs and its limits."""
    folders = Folders(node.folder)
    lines = tail(folders.logs / "stdout.log", 60) + tail(folders.logs / "stderr.log", 60)
    lines += tail(folders.logs / "system.log", 60)
    text = "\n".join(lines)
    telling = [line.strip() for line in lines if not FRAME.match(line)][-TAIL_LINES:]
    last = f"; last lines: {' | '.join(telling)}" if telling else "; it wrote nothing"
    if (kills := memory_kills(node)) > 0:
        limit = f" of {node.memory_mb} MB" if node.memory_mb else ""
        return f"killed by the memory limit{limit} ({kills} kills)", "raise site.memory_mb or lower system.heap_mb"
    if "OutOfMemoryError" in text:
        return f"Java ran out of memory{last}", "raise system.heap_mb"
    if "Address already in use" in text or "in use by another process" in text:
        return f"a port is in use{last}", "another Cassandra uses the address: `steelyard clean`, or set the ports"
    if any(mark in text for mark in REFUSALS):
        return f"it refused its configuration{last}", "correct system.yaml"
    return f"no known reason{last}", f"read {folders.logs}"


def command_line(node: Node) -> tuple[str, ...]:
    """The command line of the running server, as the kernel has it; empty if there is none."""
    server = living(node)
    if server is None:
        return ()
    try:
        return tuple(Path(f"/proc/{server.pid}/cmdline").read_text(encoding="utf-8", errors="replace").split("\0"))
    except OSError:
        return ()


def collector(node: Node) -> str:
    """The collector in force, as the virtual machine's first log line names it: serial, g1, ..."""
    try:
        with (Folders(node.folder).logs / "gc.log").open(encoding="utf-8", errors="replace") as file:
            found = next((line for line in file if "Using " in line), "")
    except OSError:
        return "unknown"
    return found.rpartition("Using ")[2].strip().lower() or "unknown"
