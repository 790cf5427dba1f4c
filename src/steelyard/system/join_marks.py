"""Marks of a node that joins or leaves, from the lines that Cassandra logs, and the simulated cluster like it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from steelyard.model.activity import (
    GOSSIPING,
    IN_SERVICE,
    LEAVING,
    LEFT,
    LISTENING,
    RING_DELAY,
    STREAMED,
    STREAMING,
)

LINE = re.compile(r"[A-Z]+ +\[[^\]]*\] (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}) \S+ - (.*)")
"""The pattern of `logback.xml`: level, thread, time in UTC, file and line, message."""
TIME = "%Y-%m-%d %H:%M:%S,%f"
MESSAGES = (
    (GOSSIPING, r"Listening on address: "),
    (RING_DELAY, r"JOINING: sleeping \d+ ms for pending range setup"),
    (STREAMING, r"JOINING: Starting to bootstrap"),
    (STREAMED, r"Bootstrap completed"),
    (LISTENING, r"Starting listening for CQL clients"),
    (LEAVING, r"LEAVING: sleeping \d+ ms for batch processing and pending range setup"),
    (STREAMING, r"LEAVING: streaming data to other nodes"),
    (STREAMED, r"(?:LEAVING: )?stream acks all received"),
)
"""Beginnings of messages of the node itself."""
SEEN = ((IN_SERVICE, r"Node {node} state jump to NORMAL"), (LEFT, r"Removing tokens .* for {node}"))
"""Messages of every member about the node."""


def marks(lines: Iterable[str], address: str) -> Iterator[tuple[str, float]]:
    """Marks of the node with this address in lines of its own log or of a member's, in their order, with the times of
    the lines in seconds since the epoch by that node's clock."""
    node = rf"/\[?{re.escape(address)}\]?(?::\d+)?(?!\S)"
    patterns = [*MESSAGES, *((name, text.format(node=node)) for name, text in SEEN)]
    for line in lines:
        if (parts := LINE.match(line)) is None:
            continue
        for name, pattern in patterns:
            if re.match(pattern, parts[2]):
                yield name, datetime.strptime(parts[1], TIME).replace(tzinfo=UTC).timestamp()
                break
