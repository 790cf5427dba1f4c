"""Limits of nodes asked beside measured, and the nodes that stand out. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from steelyard.model.gauged import Gauged

TOLERANCE = 0.1
"""Deviation from what was asked, or from the other nodes, from which on a node stands out; of a link's numbers, too."""
SPEED = "work_per_cpu_s"


@dataclass(frozen=True)
class Reading:
    """One measured number."""

    node: str
    moment: str
    value: float


@dataclass(frozen=True)
class GaugedLimit:
    """One limit as asked, and all that was measured under it."""

    limit: str
    asked: float | None
    """None: nothing was asked, and the nodes are compared with one another."""
    readings: tuple[Reading, ...]

    @property
    def median(self) -> float:
        """Median of the readings."""
        return statistics.median(reading.value for reading in self.readings)

    @property
    def odd(self) -> tuple[Reading, ...]:
        """Readings more than TOLERANCE away from what was asked; without that, from the median."""
        expected = self.median if self.asked is None else self.asked
        return tuple(one for one in self.readings if abs(one.value - expected) > TOLERANCE * expected)


def limits_of(gaugings: Sequence[Gauged]) -> tuple[GaugedLimit, ...]:
    """A row for each limit and number asked, in order of occurrence; the speed of a core last."""
    by_limit: dict[tuple[str, float | None], list[Reading]] = {}
    for gauged in gaugings:
        for limit, asked, reading in _readings(gauged):
            by_limit.setdefault((limit, asked), []).append(reading)
    rows = [GaugedLimit(limit, asked, tuple(readings)) for (limit, asked), readings in by_limit.items()]
    return tuple(sorted(rows, key=lambda row: row.limit == SPEED))


def _readings(gauged: Gauged) -> Iterator[tuple[str, float | None, Reading]]:
    for node, values in gauged.measured.items():
        for limit, value in values.items():
            if limit in gauged.asked or limit == SPEED:
                yield limit, gauged.asked.get(limit), Reading(node, gauged.moment, value)
