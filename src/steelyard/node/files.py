"""Copy of a small file to a node, local or remote."""

from __future__ import annotations

from pathlib import Path

from steelyard.node.base import Node
from steelyard.node.command import run

PUT_TIMEOUT_S = 30.0


async def put(node: Node, path: Path, content: bytes) -> None:
    """Write `content` to `path` on the node; the folder must exist. Raises CommandFailed."""
    if node.local:
        path.write_bytes(content)
        return
    await run(node, ["tee", str(path)], timeout_s=PUT_TIMEOUT_S, stdin=content)
