"""Processes of this machine by id and start time: whether they live, and their end.

Ids are reused, and the starter of a process may be dead when it is looked for again. The start time distinguishes the
process from a later one with the same id. Servers on a node, which may be elsewhere, are in `steelyard.node.kept`.
"""

from __future__ import annotations

import asyncio
import os
import time
from dataclasses import dataclass

from steelyard.node.processor import start_ticks

POLL_S = 0.02


@dataclass(frozen=True)
class KnownProcess:
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


async def gone(process: KnownProcess, timeout_s: float) -> bool:
    """Wait until a process has ended; False if it has not after `timeout_s`."""
    deadline = time.monotonic() + timeout_s
    while process.alive:
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(POLL_S)
    return True
