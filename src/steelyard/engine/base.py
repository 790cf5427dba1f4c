"""Plug-in interface `engine`: load generators, our agent or a third-party tool."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Literal, Protocol, runtime_checkable

from steelyard.node.base import Node
from steelyard.wire.order import Order
from steelyard.wire.record import Record
from steelyard.wire.word import PhaseWord


class Engine(Protocol):
    """Drives load from nodes. Raises EngineError if the generator itself failed (never for errors of the system)."""

    async def drive(
        self,
        order: Order,
        nodes: Sequence[Node],
        on_record: Callable[[str, Record], None],
        timeout_s: float,
    ) -> None:
        """Run an order; pass each record to `on_record(node_name, record)` as it arrives."""
        ...


@runtime_checkable
class ReportsRouting(Protocol):
    """Ability: learns of nodes that join and leave, and says when the first operation went to a new one (record
    `routed`). A policy needs it."""

    reports_routing: bool


@runtime_checkable
class ReadsBack(Protocol):
    """Ability: one load node reads rows back that it has written, once an order with `read_again_s` has ended."""

    reads_back: Literal[True]


@runtime_checkable
class DrivenByWords(Protocol):
    """Ability: takes the phases of a load as they are decided, on one set of connections. A search needs it."""

    async def drive_by_words(
        self,
        order: Order,
        nodes: Sequence[Node],
        on_record: Callable[[str, Record], None],
        phases: AsyncIterator[PhaseWord],
        timeout_s: float,
    ) -> None:
        """Run an order with `words`: its warm-up, then each phase that `phases` yields, whose rates and places in
        flight are over all load nodes; the load ends when `phases` does. Between phases nothing is in flight. Raises
        EngineError as `Engine.drive` does."""
        ...


@runtime_checkable
class StampedHere(Protocol):
    """Ability: the times of its records are by the conductor's clock. Those of any other engine are by the clock of the
    record's load node, and are corrected where that is another."""

    stamped_here: Literal[True]


@runtime_checkable
class FallsSilent(Protocol):
    """Ability: reports nothing until it has ended, or while the system does not answer. Its silence is not a fault,
    so only the time limit of the phase ends it."""

    falls_silent: Literal[True]


@runtime_checkable
class Fetched(Protocol):
    """Ability: a third-party tool that must be fetched once, with `steelyard setup NAME`."""

    name: str
    version: str

    async def prepare(self) -> None:
        """Fetch the tool; slow only the first time. Raises EngineError. Like a system, a module can also define
        `missing_packages`."""
        ...


@runtime_checkable
class Selective(Protocol):
    """Ability: refuses unsupported orders before anything starts."""

    def check(self, order: Order, load_nodes: int) -> None:
        """Raises EngineError, with what is allowed, for an order that `drive` would refuse, or if the tool is not
        installed."""
        ...


@runtime_checkable
class Calibrated(Protocol):
    """Ability: this is the load generator that `steelyard calibrate` measures."""

    calibrated_as: str
    """Name of the generator for people."""
