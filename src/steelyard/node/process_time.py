"""Processor time of processes on a node, which may be elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from steelyard.node import files
from steelyard.node.base import Node
from steelyard.node.processor import process_time_s, time_of_stat_s


async def processes_time_s(node: Node, process_ids: Sequence[int]) -> float:
    """User and system seconds of a node's processes and of the children that they have waited for, in sum; those that
    have ended count 0."""
    if node.processes == "same":
        return sum(process_time_s(pid) for pid in process_ids)
    stats = await files.texts(node, *(Path(f"/proc/{pid}/stat") for pid in process_ids))
    return sum(time_of_stat_s(text) for text in stats.values())
