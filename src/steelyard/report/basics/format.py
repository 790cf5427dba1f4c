"""Number formatting: significant digits from the interval's width, a minus sign, thousands separators."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from steelyard.model.estimate import Estimate

NONE: Final = "–"
"""Placeholder for a missing number."""

MINUS: Final = "−"
DIGITS: Final = 4
"""Significant digits of a number whose spread is not known."""
SECONDS_FROM_MS: Final = 10_000.0
"""From this many milliseconds on, seconds are easier to read."""


@dataclass(frozen=True)
class Scale:
    """The factor from a value to the shown value, and the unit of the shown value."""

    factor: float
    unit: str

    def of(self, value: float | None) -> float | None:
        """A value in the shown unit."""
        return None if value is None else value * self.factor

    def estimate(self, estimate: Estimate) -> Estimate:
        """An estimate in the shown unit."""
        return estimate.model_copy(
            update={
                "value": estimate.value * self.factor,
                "low": self.of(estimate.low),
                "high": self.of(estimate.high),
                "unit": estimate.unit.replace("ms", self.unit, 1) if estimate.unit.startswith("ms") else estimate.unit,
            }
        )


def scale_for(unit: str, greatest: float) -> Scale:
    """Seconds instead of milliseconds if the numbers are large; other units stay."""
    if unit == "ms" and greatest >= SECONDS_FROM_MS:
        return Scale(0.001, "s")
    return Scale(1.0, unit)


def number(value: float | None, *, spread: float | None = None, digits: int = DIGITS, trim: bool = False) -> str:
    """A number as text; with `spread` (half-width of the interval, or standard deviation) to two digits of the spread.

    `trim` drops zeros at the end, for a number that stands alone.
    """
    if value is None or not math.isfinite(value):
        return NONE
    if spread is not None and spread > 0 and math.isfinite(spread):
        places = 1 - math.floor(math.log10(spread))
    elif value == 0:
        places = 0
    else:
        places = digits - 1 - math.floor(math.log10(abs(value)))
    places = max(0, min(places, 8))
    text = f"{value:,.{places}f}"
    if places and (trim or (spread is None and float(value).is_integer())):
        text = text.rstrip("0").rstrip(".")
    return text.replace("-", MINUS)


def interval(estimate: Estimate | None) -> str:
    """`[low, high]`, or an empty text without an interval."""
    if estimate is None or estimate.low is None or estimate.high is None:
        return ""
    spread = (estimate.high - estimate.low) / 2
    return f"[{number(estimate.low, spread=spread)}, {number(estimate.high, spread=spread)}]"


def with_interval(estimate: Estimate | None) -> str:
    """`value [low, high]`."""
    if estimate is None:
        return NONE
    known = estimate.low is not None and estimate.high is not None
    spread = (estimate.high - estimate.low) / 2 if known else None  # type: ignore[operator]
    return f"{number(estimate.value, spread=spread)} {interval(estimate)}".strip()


def p_value(p: float | None) -> str:
    """`0.034`, `< 0.0001`."""
    if p is None:
        return NONE
    return "< 0.0001" if p < 0.0001 else f"{p:.4f}" if p < 0.01 else f"{p:.3f}"


def percent(fraction: float | None, places: int = 1) -> str:
    """A fraction as per cent, with its sign."""
    return NONE if fraction is None else f"{100 * fraction:+.{places}f} %".replace("-", MINUS)


def count(amount: int, singular: str, plural: str = "") -> str:
    """`1 trial`, `48 trials`."""
    return f"{amount:,} {singular if amount == 1 else plural or singular + 's'}"


def listed(words: list[str] | tuple[str, ...], last: str = "and") -> str:
    """`a, b and c`."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {last} {words[-1]}" if words else ""


def moment(seconds: float | None) -> str:
    """A time of day in UTC, to the second."""
    return NONE if seconds is None else f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"


def duration(seconds: float) -> str:
    """`38 s`, `12 min`, `6 h 05 min`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02d} min"
