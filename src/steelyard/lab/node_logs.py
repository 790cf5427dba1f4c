"""Logs of a system's servers: read before the nodes are released, bounded in bytes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from steelyard.node import files
from steelyard.node.base import Node
from steelyard.node.tasks import together
from steelyard.system.base import System

LOG_TAIL_BYTES = 2 << 20


async def sizes(system: System, nodes: Sequence[Node]) -> dict[str, dict[Path, int]]:
    """Node to each of its log files, as the node sees them, to bytes."""
    return {node.name: logs for node, logs in zip(nodes, await together(_sizes(system, n) for n in nodes), strict=True)}


async def since(node: Node, path: Path, offset: int) -> bytes:
    """Text appended to a log since `offset`, at most its last LOG_TAIL_BYTES; empty if it is not there."""
    return await files.read(node, path, offset, LOG_TAIL_BYTES)


async def tails(system: System, nodes: Sequence[Node]) -> dict[str, dict[str, bytes]]:
    """Node to name of log to its end."""
    by_node = await sizes(system, nodes)
    return {node.name: {path.name: await since(node, path, 0) for path in by_node[node.name]} for node in nodes}


async def _sizes(system: System, node: Node) -> dict[Path, int]:
    """Files that lie in the system's log folders themselves, not below them."""
    by_path = {}
    for folder in system.logs(node):
        listed = await files.sizes(node, folder)
        by_path.update({folder / name: count for name, count in listed.items() if "/" not in name})
    return by_path
