"""Local processes by id and start time: status, record on disk, end.

Ids are reused, and the starter of a process may be dead when it is looked for again. The start time distinguishes the
process from a later one with the same id.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steelyard.atomic_file import replace_file
from steelyard.node.processor import start_ticks

POLL_S = 0.02
ENDING_KNOWN_S = 1.0
KILL_TIMEOUT_S = 10.0
"""Time limit for a killed process to disappear; beyond it, something (a dead disk, a debugger) holds it."""


@dataclass(frozen=True)
class Server:
    """A process by id and start time (clock ticks after boot), so that a reused id is never taken for it."""

    pid: int
    started_ticks: int

    @property
    def alive(self) -> bool:
        """Whether exactly this process exists and is not a zombie."""
        return start_ticks(self.pid) == self.started_ticks

    def signal(self, number: int) -> None:
        """Send a signal, if it is still this process."""
        if self.alive:
            try:
                os.kill(self.pid, number)
            except ProcessLookupError:
                return


def write_record(path: Path, pid: int, **more: Any) -> Server | None:
    """Record a process, with `more` for the reader; return None and write no file if it has already ended."""
    ticks = start_ticks(pid)
    if ticks is None:
        return None
    replace_file(path, json.dumps({"pid": pid, "started_ticks": ticks, **more}), sync=False)
    return Server(pid, ticks)


def read_record(path: Path) -> Server | None:
    """The recorded process; None if there is none, or it was stopped."""
    try:
        read = json.loads(path.read_text(encoding="utf-8"))
        return Server(int(read["pid"]), int(read["started_ticks"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def living(path: Path) -> Server | None:
    """The recorded process, if it is still running."""
    server = read_record(path)
    return server if server and server.alive else None


def how_ended(process: asyncio.subprocess.Process | None) -> str:
    """How a process that this one started ended: `killed by SIGKILL`, `ended with code 1`; `ended` if it is not known,
    or not yet."""
    code = None if process is None else process.returncode
    if code is None:
        return "ended"
    if code >= 0:
        return f"ended with code {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"


async def ending_known(process: asyncio.subprocess.Process | None) -> None:
    """Wait, ENDING_KNOWN_S at most, until it is known how a process that is gone has ended."""
    if process is not None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), ENDING_KNOWN_S)


async def gone(server: Server, timeout_s: float) -> bool:
    """Wait until a process has ended; False if it has not after `timeout_s`."""
    deadline = time.monotonic() + timeout_s
    while server.alive:
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(POLL_S)
    return True


async def stop(record_path: Path, grace_s: float) -> None:
    """Send SIGTERM, then SIGKILL after `grace_s` (at once if 0), and remove the record. Idempotent."""
    server = living(record_path)
    if server is not None:
        if grace_s > 0:
            server.signal(signal.SIGTERM)
        if grace_s <= 0 or not await gone(server, grace_s):
            server.signal(signal.SIGKILL)
            await gone(server, KILL_TIMEOUT_S)
    record_path.unlink(missing_ok=True)
