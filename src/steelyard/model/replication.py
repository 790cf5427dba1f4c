"""Consistency checks of a replication factor, for systems that copy rows and answer at consistency levels."""

from __future__ import annotations

from collections.abc import Iterator

from steelyard.model.errors import StudyError
from steelyard.model.load import Load

LEAST_REPLICAS = {"TWO": 2, "THREE": 3}
"""Consistency levels that need this many replicas whatever the replication factor."""


def replication_problems(copies: int, nodes: int, load: Load) -> Iterator[StudyError]:
    """Reasons why `nodes` nodes cannot hold `copies` of each row (`system.replication_factor`), or why the load cannot
    request the consistency that it does."""
    if copies > nodes:
        yield StudyError(
            f"system.replication_factor = {copies} with {nodes} node{'s' if nodes > 1 else ''}: more copies than nodes",
            f"allowed: 1 to {nodes}, or more nodes",
            key="system.replication_factor",
            read=copies,
        )
    for field in ("read_consistency", "write_consistency"):
        level = getattr(load, field)
        if LEAST_REPLICAS.get(level, 1) > copies:
            yield StudyError(
                f"load.{field} = {level!r} with replication factor {copies}: no operation could succeed",
                f"needs a replication factor of {LEAST_REPLICAS[level]} or more",
                key=f"load.{field}",
                read=level,
            )
