"""Processes of this machine by id and start time: whether they live, and signals to them.

Ids are reused, and the starter of a process may be dead when it is looked for again. The start time distinguishes the
process from a later one with the same id. Servers on a node, which may be elsewhere, are in `steelyard.node.kept`.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from steelyard.node.processor import start_ticks


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
