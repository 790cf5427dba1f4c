"""Processes on a node that outlive the command which started them: the servers of a system.

`steelyard-agent keep` starts one under a supervisor, which writes down who it is before it runs, and how it ended. The
record lies on the node. Where the node's processes are the conductor's own, it is read here, without any command.
"""

from __future__ import annotations

import asyncio
import json
import signal as signals
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steelyard.node import agent, files
from steelyard.node.base import Node
from steelyard.node.command import run
from steelyard.node.process import KnownProcess

LAUNCH_TIMEOUT_S = 60.0
POLL_S = 0.02
ASK_TIMEOUT_S = 30.0
ENDING_KNOWN_S = 1.0
"""Time from the end of a process until its supervisor has written how it ended."""
KILL_TIMEOUT_S = 10.0
"""Time limit for a killed process to disappear; beyond it, something (a dead disk, a debugger) holds it."""
STOP_GRACE_S = 15.0
"""Time beyond its own limits the command may take that stops a process elsewhere."""


@dataclass(frozen=True)
class Kept:
    """A kept process as the node's kernel and its record describe it."""

    pid: int
    started_ticks: int
    alive: bool
    argv: tuple[str, ...]
    """Command line in force while it lives, otherwise as requested."""
    ended: str = ""
    """Ending of the process: `killed by SIGKILL`, `exited with code 1`; `ended` if that is not known, empty while it
    lives."""


async def launch(
    node: Node, argv: Sequence[str], record: Path, *, stdout: Path | None = None, stderr: Path | None = None
) -> None:
    """Start a process that is kept on a node; its output is appended to files there. Raises CommandFailed if it cannot
    be executed."""
    options = ["--record", str(record)]
    for name, path in (("--stdout", stdout), ("--stderr", stderr)):
        options += [] if path is None else [name, str(path)]
    await run(node, [agent.on(node), "keep", "start", *options, "--", *argv], timeout_s=LAUNCH_TIMEOUT_S)


async def ask(node: Node, record: Path) -> Kept | None:
    """The process of a record; None if there is no record, as after `stop`."""
    if _here(node):
        return _read(record)
    done = await run(
        node, [agent.on(node), "keep", "ask", "--record", str(record)], timeout_s=ASK_TIMEOUT_S, watch=True
    )
    answer = json.loads(done.stdout.splitlines()[0])
    if answer.get("missing"):
        return None
    alive = bool(answer["alive"])
    return Kept(
        pid=int(answer["pid"]),
        started_ticks=int(answer["started_ticks"]),
        alive=alive,
        argv=tuple(answer["argv"]),
        ended="" if alive else how_ended(answer.get("ended")),
    )


async def living(node: Node, record: Path) -> Kept | None:
    """The process of a record, if it still runs."""
    kept = await ask(node, record)
    return kept if kept is not None and kept.alive else None


async def asked_argv(node: Node, record: Path) -> tuple[str, ...]:
    """The command line that the process of a record was asked to run; empty without a record."""
    try:
        return tuple(json.loads(await files.read(node, record))["argv"])
    except (ValueError, KeyError, TypeError):
        return ()


async def ending(node: Node, record: Path) -> str:
    """Ending of a process that is gone; waits ENDING_KNOWN_S at most until that is known."""
    deadline = time.monotonic() + ENDING_KNOWN_S
    while True:
        kept = await ask(node, record)
        if kept is None or (not kept.alive and kept.ended != how_ended(None)) or time.monotonic() > deadline:
            return how_ended(None) if kept is None else kept.ended
        await asyncio.sleep(POLL_S)


def memory_kills(node: Node) -> int:
    """Number of processes of the node's cgroups that the kernel killed for memory (cgroup v1 and v2)."""
    kills = 0
    for folder in node.cgroups:
        for name in ("memory.oom_control", "memory.events"):
            try:
                text = (folder / name).read_text(encoding="utf-8")
            except OSError:
                continue
            kills += sum(int(line.split()[1]) for line in text.splitlines() if line.startswith("oom_kill "))
    return kills


async def send(node: Node, record: Path, number: int) -> None:
    """Send a signal to the process of a record, if it still runs."""
    if _here(node):
        kept = _read(record)
        if kept is not None:
            KnownProcess(kept.pid, kept.started_ticks).signal(number)
        return
    words = ["keep", "signal", "--record", str(record), "--number", str(int(number))]
    await run(node, [agent.on(node), *words], timeout_s=ASK_TIMEOUT_S, watch=True)


async def stop(node: Node, record: Path, grace_s: float) -> None:
    """Send SIGTERM, then SIGKILL after `grace_s` (at once if 0), and remove the record. Idempotent."""
    if not _here(node):
        words = ["keep", "stop", "--record", str(record), "--grace-s", f"{grace_s:g}"]
        limit_s = grace_s + KILL_TIMEOUT_S + STOP_GRACE_S
        await run(node, [agent.on(node), *words], timeout_s=limit_s, watch=True)
        return
    kept = _read(record)
    if kept is not None and kept.alive:
        server = KnownProcess(kept.pid, kept.started_ticks)
        if grace_s > 0:
            server.signal(signals.SIGTERM)
        if grace_s <= 0 or not await gone(server, grace_s):
            server.signal(signals.SIGKILL)
            await gone(server, KILL_TIMEOUT_S)
        # The supervisor writes once more.
        await ending(node, record)
    record.unlink(missing_ok=True)


def how_ended(ended: Mapping[str, Any] | None) -> str:
    """The end of a process in words, from its supervisor's record."""
    if not ended:
        return "ended"
    if "signal" not in ended:
        return f"exited with code {ended.get('code')}"
    try:
        return f"killed by {signals.Signals(int(ended['signal'])).name}"
    except ValueError:
        return f"killed by signal {ended['signal']}"


def _here(node: Node) -> bool:
    """Whether records and processes of a node can be read without a command."""
    return node.files == "same" and node.processes == "same"


def _read(record: Path) -> Kept | None:
    try:
        content = json.loads(record.read_text(encoding="utf-8"))
        server = KnownProcess(int(content["pid"]), int(content["started_ticks"]))
        asked = tuple(content.get("argv", ()))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    alive = server.alive
    argv = (_command_line(server.pid) or asked) if alive else asked
    return Kept(server.pid, server.started_ticks, alive, argv, "" if alive else how_ended(content.get("ended")))


def _command_line(pid: int) -> tuple[str, ...]:
    try:
        text = Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ()
    # Empty for a moment after the process was started, and of one that ends.
    return tuple(text.rstrip("\0").split("\0")) if text else ()


async def gone(process: KnownProcess, timeout_s: float) -> bool:
    """Wait until a process has ended; False if it has not after `timeout_s`."""
    deadline = time.monotonic() + timeout_s
    while process.alive:
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(POLL_S)
    return True
