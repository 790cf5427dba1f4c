"""Power of the t tests on a ratio and on its equivalence, and the further starts needed."""

from __future__ import annotations

import math
from collections.abc import Callable

from steelyard.analysis.inference import estimates
from steelyard.analysis.inference.gaps import Gap
from steelyard.heavy import stats
from steelyard.model.value import Value

POWER = 0.8
"""Power that a number of starts must reach; `steelyard check` plans with the same."""
MOST_STARTS = 1000
"""Most further starts per side; the search ends there."""
FAR = 8.0
"""Standard errors beyond which noncentral t has no tail worth computing."""


class More(Value):
    """Further starts per side that would decide, if change and spread stay as they are."""

    starts: int
    percent: float
    """The change that they would show, or the margin within which it would lie, per cent."""
    shows: str
    """`change` or `equivalence`: whichever needs fewer starts."""


def more_starts(gap: Gap, margin_percent: float | None, confidence: float = 0.95) -> More | None:
    """The fewest further starts a side that decide with a chance of POWER, if change and spread stay as they are.

    `gap`: of logarithms. Decided: the interval of the ratio leaves 1 out, or the two one-sided tests put it within the
    margin, whichever needs fewer. With the gap d, its standard error e(n) and f degrees of freedom, T noncentral t with
    noncentrality d / e: the chance of the first is P(|T| > t(f)), that of the second
    P(T(upper) < -t'(f)) - P(T(lower) < t'(f)), t' one-sided, with noncentralities (d -+ log(1 + m)) / e (Cohen 1988,
    section 2.4; Phillips 1990, *Journal of Pharmacokinetics and Biopharmaceutics* 18(2)). The interval of expected
    width alone, without a chance, would decide only every second time. None below two units a side, or beyond
    MOST_STARTS.
    """
    bound = None if margin_percent is None else math.log1p(margin_percent / 100)

    def enough(more: int) -> str:
        error, degrees = gap.error(more)
        if chance_of_change(abs(gap.value), error, degrees, confidence) >= POWER:
            return "change"
        if bound is not None and chance_of_equivalence(abs(gap.value), bound, error, degrees, confidence) >= POWER:
            return "equivalence"
        return ""

    high = _fewest(lambda more: bool(enough(more))) if gap.samples else None
    if high is None:
        return None
    shows = enough(high)
    percent = 100 * abs(math.expm1(gap.value)) if shows == "change" or margin_percent is None else margin_percent
    return More(starts=high, percent=percent, shows=shows)


def more_starts_beyond(gap: Gap, bound: float, confidences: tuple[float, float]) -> int | None:
    """The fewest further starts a side after which the interval of a ratio lies on one side of `bound`, with a chance
    of POWER, if change and spread stay as they are.

    `gap`: the logarithm of the ratio; `confidences`: of the interval that must lie below the bound, and of the one that
    must lie above it. The chance is P(T > t(f)) of noncentral t with noncentrality |d - log(bound)| / e(n). None below
    two units a side, or beyond MOST_STARTS.
    """
    beyond = gap.value - math.log(bound)

    def enough(more: int) -> bool:
        return chance_beyond(abs(beyond), *gap.error(more), confidences[beyond > 0]) >= POWER

    return _fewest(enough) if gap.samples else None


def chance_beyond(distance: float, error: float, degrees: float, confidence: float) -> float:
    """Chance that the two-sided interval of a difference leaves out a value that lies `distance` beside it, on the side
    where it lies."""
    if error == 0:
        return float(distance > 0)
    return _above(estimates.t_quantile(confidence, degrees), degrees, distance / error)


def _fewest(enough: Callable[[int], bool]) -> int | None:
    """The fewest further starts, from 1 on, that are enough; None beyond MOST_STARTS."""
    if not enough(MOST_STARTS):
        return None
    low, high = 0, MOST_STARTS
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def chance_of_change(change: float, error: float, degrees: float, confidence: float) -> float:
    """Power of the two-sided t test on the difference `change` with this standard error."""
    if error == 0:
        return float(change > 0)
    critical, shift = estimates.t_quantile(confidence, degrees), change / error
    return _above(critical, degrees, shift) + 1 - _above(-critical, degrees, shift)


def _above(value: float, degrees: float, shift: float) -> float:
    """P(T > value) of noncentral t, `shift` not below 0; scipy's far tails, which are nan, are 0 or 1."""
    if abs(shift - value) > abs(value) + FAR:
        return float(shift > value)
    probability = float(stats.nct.sf(value, degrees, shift))
    return probability if math.isfinite(probability) else float(stats.norm.sf(value - shift))


def chance_of_equivalence(change: float, bound: float, error: float, degrees: float, confidence: float) -> float:
    """Power of the two one-sided t tests that a difference lies within -bound and bound; a lower bound of it."""
    if error == 0 or change >= bound:
        return float(change < bound)
    critical = float(stats.t.ppf(confidence, degrees))
    shifts = (bound - change) / error, (bound + change) / error
    return max(0.0, sum(_above(critical, degrees, shift) for shift in shifts) - 1)
