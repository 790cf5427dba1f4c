"""Distributions in cassandra-stress's option syntax: `UNIFORM(1..1000000)`, `~EXP(1..10)`, `fixed(1)/500`.

Their meaning follows cassandra-stress 3.11.4; the tests of `crates/steelyard-workload` compare them with its own
generators. This module has only their grammar and their form in the agent's order.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any

from steelyard.dropin.stress.parse.refusal import Refused

NAMES = {
    "exp": "exponential",
    "extr": "extreme",
    "extreme": "extreme",
    "weibull": "extreme",
    "qextr": "quantized-extreme",
    "qextreme": "quantized-extreme",
    "gaussian": "gaussian",
    "gauss": "gaussian",
    "normal": "gaussian",
    "norm": "gaussian",
    "uniform": "uniform",
    "fixed": "fixed",
    "seq": "sequence",
}
"""Names and aliases, case-insensitive."""
FORMS = (
    "EXP(min..max)",
    "EXTREME(min..max,shape)",
    "QEXTREME(min..max,shape,quantas)",
    "GAUSSIAN(min..max[,stdvrng | ,mean,stdev])",
    "UNIFORM(min..max)",
    "FIXED(value)",
    "SEQ(min..max)",
    "~ before the name turns the order round",
)
FULL = re.compile(r"(~?)([a-z]+)\((.+)\)", re.IGNORECASE)
RATIO = re.compile(r"(.*)/([0-9]+[kmb]?)", re.IGNORECASE)
MULTIPLES = {"k": 1_000, "m": 1_000_000, "b": 1_000_000_000}
BEYOND = 2**62
"""Exclusive upper bound of the agent's numbers."""
NORMAL_EDGES = 3.0
"""Standard deviations from the middle to either end of GAUSSIAN(min..max)."""


def whole_number(text: str) -> int:
    """The number in `1000000`, `1M`, `10k`, `1B` (10^9). Raises ValueError."""
    text = text.strip().lower()
    multiple = MULTIPLES.get(text[-1:], 1)
    number = int(text[:-1] if multiple > 1 else text) * multiple
    if abs(number) >= BEYOND:
        raise ValueError(text)
    return number


@dataclass(frozen=True)
class Distribution:
    """One distribution of whole numbers. `shape`, `mean`, `deviation`, `quanta` belong to some kinds only."""

    kind: str
    low: int
    high: int
    shape: float = 0.0
    mean: float = 0.0
    deviation: float = 0.0
    quanta: int = 0
    inverted: bool = False

    @property
    def is_fixed(self) -> bool:
        """Whether there is only one possible value."""
        return self.low == self.high

    @property
    def average(self) -> float:
        """Mean; for the skewed kinds computed from quantiles."""
        if self.kind in ("fixed", "uniform", "sequence"):
            return (self.low + self.high) / 2
        return sum(self.inverse((index + 0.5) / 200) for index in range(200)) / 200

    @property
    def scale(self) -> float:
        """Weibull's scale (the exponential's mean), chosen so that a draw exceeds `high` with probability
        sqrt(1 / (high - low)), as cassandra-stress sets it."""
        span = self.high - self.low
        tail = -math.log(math.sqrt(1 / span))
        edge = tail if self.kind == "exponential" else tail ** (1 / self.shape)
        return span / edge if edge else math.inf

    def shifted(self, by: int) -> Distribution:
        """The distribution shifted up by `by`."""
        return replace(self, low=self.low + by, high=self.high + by, mean=self.mean + by)

    def inverse(self, probability: float) -> int:
        """The number below which a share `probability` of the draws lies, as shown by cassandra-stress's `print`; for
        an inverted distribution, the number above which it lies."""
        if self.inverted:
            upright = replace(self, inverted=False)
            return self.low + self.high - upright.inverse(probability)
        match self.kind:
            case "fixed":
                return self.low
            case "uniform":
                number = self.low + probability * (self.high + 1 - self.low)
            case "sequence":
                number = self.low + probability * (self.high - self.low)
            case "gaussian":
                if not 0 < probability < 1:
                    return self.high if probability >= 1 else self.low
                number = NormalDist(self.mean, self.deviation).inv_cdf(probability)
            case _:
                if probability >= 1:
                    return self.high
                tail = -math.log1p(-probability)
                number = self.low + self.scale * (tail if self.kind == "exponential" else tail ** (1 / self.shape))
        return int(min(self.high, max(self.low, number)))

    def __str__(self) -> str:
        bounds = str(self.low) if self.is_fixed else f"{self.low}..{self.high}"
        return f"{'~' if self.inverted else ''}{self.kind}({bounds})"

    def wire(self) -> dict[str, Any]:
        """Form in the agent's order, see crates/steelyard-wire/src/program.rs."""
        bounds = {"min": self.low, "max": self.high}
        distribution: dict[str, Any]
        match self.kind:
            case "fixed":
                distribution = {"name": "fixed", "value": float(self.low)}
            case "uniform":
                distribution = {"name": "uniform", "min": float(self.low), "max": float(self.high)}
            case "sequence":
                distribution = {"name": "sequence", **bounds}
            case "gaussian":
                distribution = {"name": "gaussian", **bounds, "mean": self.mean, "deviation": self.deviation}
            case "exponential":
                distribution = {"name": "exponential", **bounds}
            case _:
                distribution = {"name": "extreme", **bounds, "shape": self.shape, "quanta": self.quanta or None}
        return {"name": "inverted", "of": distribution} if self.inverted else distribution


def fixed(value: int) -> Distribution:
    """A constant."""
    return Distribution("fixed", value, value)


def parse(text: str, option: str) -> Distribution:
    """Parse a distribution. Raises Refused with the name of the option."""
    match = FULL.fullmatch(text)
    if match is None:
        raise Refused(option, text, "this is not a distribution", "; ".join(FORMS))
    inverted, name, inner = match[1] == "~", match[2].lower(), match[3].split(",")
    kind = NAMES.get(name)
    if kind is None:
        raise Refused(option, text, f"unknown distribution {match[2]!r}", "; ".join(FORMS))
    try:
        distribution = _distribution(kind, inner)
    except (ValueError, IndexError, ArithmeticError):
        raise Refused(option, text, f"the parameters do not fit {match[2]}", "; ".join(FORMS)) from None
    return replace(distribution, inverted=inverted and not distribution.is_fixed)


def _distribution(kind: str, inner: list[str]) -> Distribution:
    """A distribution of this kind. Raises ValueError for a wrong number or type of parameters."""
    counts = {"gaussian": (1, 2, 3), "extreme": (2,), "quantized-extreme": (3,)}.get(kind, (1,))
    if len(inner) not in counts:
        raise ValueError(inner)
    if kind == "fixed":
        return fixed(whole_number(inner[0]))
    low_text, high_text = re.split(r"\.\.+", inner[0])
    low, high = whole_number(low_text), whole_number(high_text)
    if low > high or (kind == "sequence" and low == high):
        raise ValueError(inner)
    shape = mean = deviation = 0.0
    quanta = 0
    if kind in ("extreme", "quantized-extreme"):
        shape = float(inner[1])
        quanta = int(inner[2]) if kind == "quantized-extreme" else 0
        if not 0 < shape < math.inf or quanta < 0:
            raise ValueError(inner)
    if kind == "gaussian" and len(inner) == 3:
        mean, deviation = float(inner[1]), float(inner[2])
    elif kind == "gaussian":
        edges = float(inner[1]) if len(inner) == 2 else NORMAL_EDGES
        mean, deviation = (low + high) / 2, (high - low) / 2 / edges
    if kind == "gaussian" and low < high and not (0 < deviation < math.inf and math.isfinite(mean)):
        raise ValueError(inner)
    if low == high:
        return fixed(low)
    distribution = Distribution(kind, low, high, shape, mean, deviation, quanta)
    if kind in ("extreme", "quantized-extreme") and not 0 < distribution.scale < math.inf:
        raise ValueError(inner)
    return distribution


@dataclass(frozen=True)
class Ratio:
    """A ratio: a draw from a distribution over a divisor, at most 1."""

    of: Distribution
    divisor: int

    @property
    def is_whole(self) -> bool:
        """Whether the ratio is always 1."""
        return self.of.low >= self.divisor

    @property
    def greatest(self) -> float:
        """The largest possible ratio."""
        return min(1.0, self.of.high / self.divisor)


WHOLE = Ratio(fixed(1), 1)


def parse_ratio(text: str, option: str) -> Ratio:
    """Parse `DIST(...)/divisor`. Raises Refused."""
    match = RATIO.fullmatch(text)
    divisor = whole_number(match[2]) if match else 0
    if match is None or divisor <= 0:
        raise Refused(option, text, "this is not a share", "DIST(..)/divisor, for example fixed(1)/1")
    return Ratio(parse(match[1], option), divisor)
