"""A lease: nodes that a site has lent until an instant."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from steelyard.node.base import Node


@dataclass(frozen=True)
class Lease:
    """Lent nodes. `id` marks everything that was created for it; `record` is the file that says so."""

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
