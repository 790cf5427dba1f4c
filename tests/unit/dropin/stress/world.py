"""A load and a server that are not there: what an action is told, and what it asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from steelyard.dropin.agent_run import LoadResult, PhaseOutcome
from steelyard.dropin.stress.run.execution import Tools
from steelyard.wire.order import Order
from steelyard.wire.record import Connected
from steelyard.wire.schedule import in_flight
from tests.unit.wire import made

MS = 1_000_000


@dataclass
class World:
    """`outcomes` of each operation in an interval; `rate` by threads; `intervals` at most so many a load."""

    outcomes: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    rate: Callable[[int], int] = lambda threads: 100
    intervals: int = 3
    signalled: bool = False
    rows: int = 3
    """In the answer to each operation."""
    columns: Sequence[Mapping[str, Any]] = ()
    keyspaces: Sequence[Mapping[str, Any]] = ()
    """In the answer to whether a keyspace is there."""
    others: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    unsent: int = 0
    orders: list[Order] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    variables: Mapping[str, str] = field(default_factory=dict)

    @property
    def tools(self) -> Tools:
        return Tools(self.drive, self.cql, self.discover, 0.0)

    async def drive(self, order: Order, **told: Any) -> LoadResult:
        self.orders.append(order)
        self.variables = told["variables"]
        stop: asyncio.Event = told["stop"]
        connected = Connected(nodes=("127.0.0.1:9042",), absent=self.absent, connections=1, server="5.0.5")
        told["on_connected"](connected)
        each = self.rate(in_flight(order.schedule))
        tables = []
        for operation in order.work.operations:
            for outcome, number in self.outcomes.get(operation.name, {"ok": each}).items():
                for measure, ms in (("service", 1), ("response", 7), ("lag", 6)):
                    tables.append(made.counts([(ms * MS, ms * MS + 999, number)], operation.name, outcome, measure))
        for number in range(self.intervals):
            rows = {operation.name: self.rows * each for operation in order.work.operations}
            interval = made.interval(*tables, t_s=1000.0 + number, rows=rows)
            told["on_interval"](interval)
            if stop.is_set():
                break
        if self.signalled:
            stop.set()
        ended = made.done(operations=self.intervals * each, unsent=self.unsent, execution_ns=self.intervals * 10**9)
        phases = {"measure": PhaseOutcome(ended, made.interval(*tables).tables)}
        return LoadResult(connected, phases, stop.is_set())

    async def cql(self, contacts: Sequence[str], statements: Sequence[str], **told: Any) -> Any:
        self.asked.extend(one for one in statements if "system_schema.keyspaces" not in one)
        self.variables = told["variables"]
        return tuple(
            tuple(self.keyspaces)
            if "system_schema.keyspaces" in one
            else tuple(self.columns)
            if "system_schema" in one
            else ({"data_center": "dc1"},)
            if "system.local" in one
            else ()
            for one in statements
        )

    async def discover(self, contacts: Sequence[str], **_: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
        return (*contacts, *self.others), self.missing
