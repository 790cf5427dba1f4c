"""Plug-in interface `probe`: measuring instruments on a node. A plug-in module defines `create() -> Probe`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from steelyard.model.sample import Metric, Sample
from steelyard.node.base import Node


class Probe(Protocol):
    """A command that prints readings, and a pure parser for its lines."""

    name: str
    metrics: tuple[Metric, ...]

    def command(self, node: Node, interval_s: float, process_ids: Sequence[int]) -> Sequence[str]:
        """argv to run on the node (under `watch_prefix`) while samples are needed."""
        ...

    def parse(self, node: str, line: bytes) -> Iterable[Sample]:
        """Samples on one line. Pure. Raises ProbeError on a line that is not its own."""
        ...
