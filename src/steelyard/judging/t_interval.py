"""Student's t: the interval of a mean, and the chance of what it will show; for planning, stopping and analysis.

mean +- t(n - 1) s / sqrt(n): Student 1908, *The probable error of a mean*, Biometrika 6. Of a true difference d with
the standard error e, d / e is noncentral t with the noncentrality d / e: Cohen, *Statistical Power Analysis for the
Behavioral Sciences*, 2nd ed., 1988, section 2.4.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

from steelyard.heavy import special

POWER = 0.8
"""Chance with which a difference should be found, by a plan or by further starts."""
FEWEST_STARTS = 3
"""Start means below which there is no interval over starts: with one degree of freedom t spans a hundredfold."""
FEWEST_FOR_PLACE = 6
"""Blocks from which the place within the block is taken out of an error, for a degree of freedom: of four blocks the
interval would be 35% wider, of six it is 8%."""


@functools.lru_cache(maxsize=4096)
def t_quantile(confidence: float, degrees: float) -> float:
    """The two-sided quantile of Student's t."""
    return float(special.stdtrit(degrees, 0.5 + confidence / 2))


def deviation(values: Sequence[float]) -> float:
    """Standard deviation with n - 1; 0 for fewer than two values."""
    n = len(values)
    if n < 2:
        return 0.0
    mean = math.fsum(values) / n
    return math.hypot(*(value - mean for value in values)) / math.sqrt(n - 1)


def half_width(sd: Any, n: int, confidence: float) -> Any:
    """Half width of the t interval for a mean of n values with this standard deviation (a number or an array), in the
    same unit. Raises ValueError for n < 2."""
    if n < 2:
        raise ValueError("one value has no interval")
    return t_quantile(confidence, n - 1) * sd / math.sqrt(n)


def chance_beyond(distance: float, error: float, degrees: float, confidence: float) -> float:
    """Chance that the two-sided interval of a difference leaves out a value that lies `distance` away from it, on the
    side where it lies."""
    if error == 0:
        return float(distance > 0)
    return _above(t_quantile(confidence, degrees), degrees, distance / error)


def chance_of_change(change: float, error: float, degrees: float, confidence: float) -> float:
    """Power of the two-sided t test on the difference `change` with this standard error."""
    if error == 0:
        return float(change > 0)
    critical, shift = t_quantile(confidence, degrees), change / error
    return _above(critical, degrees, shift) + 1 - _above(-critical, degrees, shift)


def chance_of_equivalence(change: float, bound: float, error: float, degrees: float, confidence: float) -> float:
    """Power of the two one-sided t tests that a difference lies within -bound and bound; a lower bound of it."""
    if error == 0 or change >= bound:
        return float(change < bound)
    critical = float(special.stdtrit(degrees, confidence))
    shifts = (bound - change) / error, (bound + change) / error
    return max(0.0, sum(_above(critical, degrees, shift) for shift in shifts) - 1)


def _above(value: float, degrees: float, shift: float) -> float:
    """P(T > value) of noncentral t, `shift` not below 0; of the normal distribution in far tails, where scipy has
    nan."""
    probability = 1 - float(special.nctdtr(degrees, shift, value))
    return probability if math.isfinite(probability) else float(special.ndtr(shift - value))


def fewest(enough: Callable[[int], bool], most: int, least: int = 1) -> int | None:
    """The fewest units, from `least` on, that are enough; None beyond `most`."""
    if not enough(most):
        return None
    low, high = least - 1, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
