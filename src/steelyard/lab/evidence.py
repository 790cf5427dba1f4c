"""What logs say, kept before the nodes are given back."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from steelyard.node.base import Node
from steelyard.system.base import System

LOG_TAIL_BYTES = 2 << 20


def size(path: Path) -> int:
    """Bytes of a file; 0 if it is not there."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


def since(path: Path, offset: int) -> bytes:
    """What was appended to a log since `offset`, at most its last LOG_TAIL_BYTES; empty if it is not there."""
    try:
        with path.open("rb") as handle:
            handle.seek(max(offset, size(path) - LOG_TAIL_BYTES))
            return handle.read()
    except OSError:
        return b""


def tails(system: System, nodes: Sequence[Node]) -> dict[str, dict[str, bytes]]:
    """Node to name of log to its end."""
    return {node.name: {path.name: since(path, 0) for path in system.logs(node)} for node in nodes}
