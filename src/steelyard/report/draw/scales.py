"""Axis scales: the mapping from values to pixels, and round tick values.

The page's zoom redraws axes by the same rules (`templates/zoom.js`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Literal

from steelyard.format import MINUS, number

Kind = Literal["linear", "log"]

MANTISSAS: Final = (1.0, 2.0, 5.0)
MOST_LOG_TICKS: Final = 8
FEWEST_LOG_TICKS: Final = 3
FEWEST_STEPS: Final = 4
"""This many requested steps give at least two ticks, wherever the axis begins."""
HEADROOM: Final = 1.06
ROOM: Final = 0.08
NICE_STEPS: Final = 10
NEARLY: Final = 0.8
"""A step of this share of the requested one is accepted: one more tick is better than half as many."""
ROUNDING: Final = 1e-9
"""In steps of the axis: a tick this near to an end counts as inside."""


@dataclass(frozen=True)
class Domain:
    """Range of an axis and the kind of its scale. `log` needs both ends above 0."""

    low: float
    high: float
    kind: Kind = "linear"

    def share(self, value: float) -> float:
        """Position of a value along the axis, from 0 to 1; values beyond an end are set to the end."""
        inside = min(max(value, self.low), self.high)
        if self.kind == "log":
            return math.log(inside / self.low) / (math.log(self.high / self.low) or 1.0)
        return (inside - self.low) / ((self.high - self.low) or 1.0)

    def ticks(self, most: int = 5) -> tuple[float, ...]:
        """Round values within the domain: about `most` steps of 1, 2 or 5 times a power of ten; on
        a logarithmic axis 1, 2 and 5 of each decade, or of the decades only."""
        if self.kind == "log":
            return _log_ticks(self.low, self.high, most)
        return _even_ticks(self.low, self.high, most)

    def labels(self, ticks: Sequence[float]) -> tuple[str, ...]:
        """Labels of ticks."""
        gaps = [right - left for left, right in pairwise(ticks)]
        if len(ticks) == 1:
            return (number(ticks[0], spread=self.high - self.low, trim=True),)
        if not gaps or max(gaps) - min(gaps) > 1e-6 * max(gaps):
            return tuple(number(tick, trim=True) for tick in ticks)
        places = max(0, -math.floor(math.log10(gaps[0]) + ROUNDING))
        return tuple(f"{tick:,.{places}f}".replace("-", MINUS) if tick else "0" for tick in ticks)

    def rounded(self) -> Domain:
        """The domain with a round upper end, so that the axis ends at or near a tick."""
        step = round_step(self.high - self.low, NICE_STEPS)
        return Domain(self.low, math.ceil(self.high / step - ROUNDING) * step, self.kind)


@dataclass(frozen=True)
class Scale:
    """Mapping of a domain to pixels; `first_px` belongs to its low end."""

    domain: Domain
    first_px: float
    last_px: float

    def of(self, value: float) -> float:
        """Pixel of a value; values beyond an end are set to the end."""
        return self.first_px + self.domain.share(value) * (self.last_px - self.first_px)


def from_zero(values: Iterable[float | None]) -> Domain:
    """From 0 to a round number above all values."""
    top = max((value for value in values if value is not None), default=0.0)
    return Domain(0.0, (top if top > 0 else 1.0) * HEADROOM).rounded()


def around(values: Iterable[float | None], room: float = ROOM) -> Domain:
    """A domain that holds all values with some room. It may leave out 0; the caption must say so."""
    known = [value for value in values if value is not None] or [0.0, 1.0]
    low, high = min(known), max(known)
    beside = (high - low) * room or abs(high) * ROOM / 2 or 1.0
    return Domain(low - beside, high + beside)


def logarithmic(values: Iterable[float | None], room: float) -> Domain:
    """A logarithmic domain that holds all values above 0, with the factor `room` at both ends."""
    positive = [value for value in values if value is not None and value > 0] or [1.0]
    return Domain(min(positive) / room, max(positive) * room, "log")


def round_step(span: float, most: int) -> float:
    """The smallest step of 1, 2 or 5 times a power of ten of which about `most` (at most a quarter more) fit into a
    span. It is smaller if no step would fit, because an axis with a single tick shows no scale."""
    rough = span / most or 1.0
    power = 10.0 ** math.floor(math.log10(rough))
    steps = [mantissa * power for mantissa in (*MANTISSAS, 10.0)]
    step = next((step for step in steps if step >= rough * NEARLY), steps[-1])
    return step if step <= span else max((one for one in steps if one <= span), default=step)


def _even_ticks(low: float, high: float, most: int) -> tuple[float, ...]:
    step = round_step(high - low, most)
    first, last = math.ceil(low / step - ROUNDING), math.floor(high / step + ROUNDING)
    return tuple(min(max(step * index, low), high) for index in range(first, last + 1))


def _log_ticks(low: float, high: float, most: int) -> tuple[float, ...]:
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    inside = [
        tick for power in powers for mantissa in MANTISSAS if low <= (tick := float(f"{mantissa:g}e{power}")) <= high
    ]
    if len(inside) < FEWEST_LOG_TICKS:
        return _even_ticks(low, high, max(most, FEWEST_STEPS))
    if len(inside) <= MOST_LOG_TICKS:
        return tuple(inside)
    decades = [tick for tick in inside if f"{tick:e}".startswith("1")]
    return tuple(decades[:: -(-len(decades) // MOST_LOG_TICKS)])
