"""The seam `engine`: what generates load, our agent or a foreign tool."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from steelyard.node.base import Node

Record = Mapping[str, Any]
"""One line of the engine's output, see `schema/`."""


class Engine(Protocol):
    """Drives load from nodes. Raises EngineError if the generator itself failed (never for errors of the system)."""

    async def drive(
        self,
        order: Mapping[str, Any],
        nodes: Sequence[Node],
        on_record: Callable[[str, Record], None],
        timeout_s: float,
    ) -> None:
        """Carry out an order; hands each record to `on_record(node_name, record)` as it comes."""
        ...
