"""Limits of nodes and numbers of links, asked and measured, and the nodes that stand out. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from steelyard.model.gauged import Gauged
from steelyard.model.link import LinkChoice

TOLERANCE = 0.1
"""Deviation from what was asked, or from the other nodes, from which a node stands out; of a link's numbers, too."""
SPEED = "work_per_cpu_s"
BASE_ROUND_TRIP_MS: Final = 0.5
"""Round trip of kernels and programs at both ends, apart from the link's own: a measured one may be longer by this."""
AFTER: Final = "_after"
"""End of the name of a covariate that was measured after the last trial of a start."""


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


class AskedAndMeasured(NamedTuple):
    """One number of a link."""

    quantity: str
    covariate: str
    """Name of the covariate that is the measured number."""
    unit: str
    asked: float | None
    """None if the link does not say, or nothing single can be said: of a radio channel that stations share."""
    measured: float
    differs: bool
    """Whether it differs from what was asked by more than TOLERANCE. Loss never does: too few frames are sent
    for that."""


def asked_and_measured(link: LinkChoice, covariates: Mapping[str, float], end: str = "") -> Iterator[AskedAndMeasured]:
    """The numbers of a link that a start has measured in full; none if only round trips were measured. `end`: AFTER
    for those after the last trial."""
    if f"link_mbit_per_s{end}" not in covariates:
        return
    wanted = (
        ("rate", "link_mbit_per_s", "Mbit/s", link.goodput_mbit_per_s),
        ("rate of the slowest path", "link_mbit_per_s_least", "Mbit/s", link.goodput_mbit_per_s),
        ("least round trip", "rtt_ms_min", "ms", link.round_trip_ms),
        ("loss", "link_loss_percent", "%", link.loss_percent),
    )
    for quantity, name, unit, asked in wanted:
        measured = covariates.get(f"{name}{end}")
        if measured is not None:
            yield AskedAndMeasured(quantity, name, unit, asked, measured, _differs(unit, asked, measured))


def _differs(unit: str, asked: float | None, measured: float) -> bool:
    if asked is None or unit == "%":
        return False
    slack = TOLERANCE * asked
    longest = asked + slack + (BASE_ROUND_TRIP_MS if unit == "ms" else 0.0)
    return not asked - slack <= measured <= longest
