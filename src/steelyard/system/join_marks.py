"""Marks of a node that joins or leaves, from the lines that Cassandra logs, and the simulated cluster like it. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from ipaddress import ip_address

from steelyard.model.activity import GOSSIPING, LEAVING, LEFT, LISTENING, RING_DELAY, SEEN_DOWN, STREAMED, STREAMING

Patterns = tuple[tuple[str, re.Pattern[str]], ...]

JOIN_LINES: Patterns = (
    (GOSSIPING, re.compile("Listening on address: ")),
    (RING_DELAY, re.compile(r"JOINING: sleeping \d+ ms for pending range setup")),
    (STREAMING, re.compile("JOINING: Starting to bootstrap")),
    (STREAMED, re.compile("Bootstrap completed")),
    (LISTENING, re.compile("Starting listening for CQL clients")),
)
"""Lines of the log of a node that joins, with the marks that they set."""
LEAVE_LINES: Patterns = (
    (LEAVING, re.compile(r"LEAVING: sleeping \d+ ms for batch processing and pending range setup")),
    (STREAMING, re.compile("LEAVING: replaying batch log and streaming data to other nodes")),
    (STREAMED, re.compile("All sessions completed")),
    (LEFT, re.compile(r"Announcing that I have left the ring for \d+ms")),
)
"""Lines of the log of a node that leaves. The others see it gone within seconds of its announcement."""
TIME = re.compile(r"\] (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}) ")


def marks(lines: Iterable[str], patterns: Patterns) -> Iterator[tuple[str, float]]:
    """Marks in lines of a log, in their order, with the times of the lines in seconds since the epoch by the clock of
    the node that wrote them."""
    for line in lines:
        for name, pattern in patterns:
            if pattern.search(line) and (t_s := time_s(line)) is not None:
                yield name, t_s


def named(address: str) -> str:
    """Pattern of a node's name in a line, by its address and no longer one."""
    return rf"/\[?{re.escape(str(ip_address(address)))}\]?(?::\d+)?(?!\S)"


def seen_down(lines: Iterable[str], address: str, since_s: float) -> float | None:
    """When the writer of a log first took the node of an address for dead after a time; None if it did not."""
    says = re.compile(rf"InetAddress \S*{named(address)} is now DOWN")
    return next((t_s for _, t_s in marks(lines, ((SEEN_DOWN, says),)) if t_s >= since_s), None)


def time_s(line: str) -> float | None:
    """Time of a line of a log, whose clock is UTC; None for a line without, as in a stack trace."""
    match = TIME.search(line)
    if match is None:
        return None
    return datetime.strptime(match[1], "%Y-%m-%d %H:%M:%S,%f").replace(tzinfo=UTC).timestamp()
