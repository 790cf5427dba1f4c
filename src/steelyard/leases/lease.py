"""Lease: nodes that a site lends until a given time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from steelyard.node.base import Node


@dataclass(frozen=True)
class Lease:
    """Leased nodes. `id` marks everything that was created for the lease; `record` is the file that records it."""

    id: str
    site: str
    nodes: tuple[Node, ...]
    until: datetime
    record: Path

    @property
    def databases(self) -> tuple[Node, ...]:
        """Nodes of the system under test, in order."""
        return tuple(node for node in self.nodes if node.role == "database")

    @property
    def loaders(self) -> tuple[Node, ...]:
        """Nodes that drive load."""
        return tuple(node for node in self.nodes if node.role == "load")
