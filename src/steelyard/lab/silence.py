"""Silence of load generators and probes: what no longer says anything is noticed, not waited for until a phase's limit.

An engine says how far it is once an interval, whether the system answers or not, so one that has begun and then says
nothing has been stopped, hangs, or is out of reach. That is the laboratory's fault, never the system's. Engines with
the ability `FallsSilent` are not judged by their silence.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from steelyard.engine.base import Engine, FallsSilent
from steelyard.model.errors import EngineError
from steelyard.model.load import WARM_UP
from steelyard.node.base import Node
from steelyard.wire.order import Order
from steelyard.wire.record import Done, Interval, Record

MS_PER_S = 1000.0
SILENCE_S = 30.0
"""Longest silence of a generator under load, and of a probe, beyond the interval in which it reports. To it belongs the
time-out of an operation: what is in flight at the end is waited for."""
FIRST_S = 180.0
"""Longest silence before the first interval and between phases: programs start, connections are opened."""
LOOK_S = 10.0
"""Time without a look after which silence means nothing: the conductor itself stood still."""


Who = TypeVar("Who")


class Hearing(Generic[Who]):
    """When each of several speakers was last heard. Silence between looks does not count."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._looked = monotonic()
        self._heard: dict[Who, float] = {}

    def heard(self, who: Who) -> None:
        """It has just said something."""
        self._heard[who] = self._monotonic()

    def forget(self, who: Who) -> None:
        """Stop expecting it to report."""
        self._heard.pop(who, None)

    def silences_s(self) -> dict[Who, float]:
        """Seconds for which each has been silent."""
        now = self._monotonic()
        away_s, self._looked = now - self._looked, now
        if away_s > LOOK_S:
            # What came in during the pause is not moved into the future.
            self._heard = {who: min(heard + away_s, now) for who, heard in self._heard.items()}
        return {who: now - heard for who, heard in self._heard.items()}


class Listening:
    """The generators of the load nodes, under one order."""

    def __init__(
        self,
        engine: Engine,
        order: Order,
        nodes: Sequence[Node],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._falls_silent = isinstance(engine, FallsSilent)
        self._hearing = Hearing[str](monotonic)
        for node in nodes:
            self._hearing.heard(node.name)
        self._under_load: set[str] = set()
        self._under_load_s = SILENCE_S + order.interval_s + order.timeout_ms / MS_PER_S
        self._last_phase = order.phases[-1].name if order.phases else ""
        self._by_words = order.words

    def to(self, on_record: Callable[[str, Record], None]) -> Callable[[str, Record], None]:
        """`on_record` that takes note of who speaks."""

        def take(node: str, record: Record) -> None:
            self._take(node, record)
            on_record(node, record)

        return take

    def _take(self, node: str, record: Record) -> None:
        if isinstance(record, Done) and self._is_last(record.phase):
            self._hearing.forget(node)
            return
        self._hearing.heard(node)
        if isinstance(record, Interval):
            self._under_load.add(node)
        else:
            self._under_load.discard(node)

    def _is_last(self, phase: str) -> bool:
        """Whether nothing need follow. Of a load by words it is not known: the next phase is not decided yet."""
        return not self._by_words and phase != WARM_UP and self._last_phase in ("", phase)

    def check(self) -> None:
        """Raises EngineError for a generator that has been silent for too long."""
        if self._falls_silent:
            return
        for node, silent_s in self._hearing.silences_s().items():
            limit_s = self._under_load_s if node in self._under_load else FIRST_S
            if silent_s > limit_s:
                what = "under load" if node in self._under_load else "before its first interval, or between phases"
                raise EngineError(
                    f"{node}: the load generator has said nothing for {silent_s:.0f} s {what}, limit {limit_s:g} s",
                    "it was stopped, hangs, or is out of reach; it is ended, and the trial repeated",
                )
