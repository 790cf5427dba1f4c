"""Further starts that would decide whether a ratio is a change or equivalent, or lies beyond a bound."""

from __future__ import annotations

import math

from steelyard.analysis.inference.gaps import Gap
from steelyard.judging.t_interval import POWER, chance_beyond, chance_of_change, chance_of_equivalence, fewest
from steelyard.model.value import Value

MOST_STARTS = 1000
"""Most further starts per side; the search ends there."""


class More(Value):
    """Further starts per side that would decide, if change and spread stay as they are."""

    starts: int
    percent: float
    """The change that they would show, or the margin within which it would lie, percent."""
    shows: str
    """`change` or `equivalence`: whichever needs fewer starts."""


def more_starts(gap: Gap, margin_percent: float | None, confidence: float = 0.95) -> More | None:
    """The fewest further starts per side that decide with a chance of POWER, if change and spread stay as they are.

    `gap`: of logarithms. Decided: the interval of the ratio leaves 1 out, or the two one-sided tests put it within the
    margin, whichever needs fewer. With the gap d, its standard error e(n) and f degrees of freedom, T noncentral t with
    noncentrality d / e: the chance of the first is P(|T| > t(f)), that of the second P(T(upper) < -t'(f)) - P(T(lower)
    < t'(f)), t' one-sided, with noncentralities (d -+ log(1 + m)) / e (Cohen 1988, section 2.4; Phillips 1990, *Journal
    of Pharmacokinetics and Biopharmaceutics* 18(2)). The interval of expected width alone, without a chance, would
    decide only every second time. None with fewer than two units per side, or beyond MOST_STARTS.
    """
    bound = None if margin_percent is None else math.log1p(margin_percent / 100)

    def enough(more: int) -> str:
        error, degrees = gap.error(more)
        if chance_of_change(abs(gap.value), error, degrees, confidence) >= POWER:
            return "change"
        if bound is not None and chance_of_equivalence(abs(gap.value), bound, error, degrees, confidence) >= POWER:
            return "equivalence"
        return ""

    high = fewest(lambda more: bool(enough(more)), MOST_STARTS) if gap.samples else None
    if high is None:
        return None
    shows = enough(high)
    percent = 100 * abs(math.expm1(gap.value)) if shows == "change" or margin_percent is None else margin_percent
    return More(starts=high, percent=percent, shows=shows)


def more_starts_beyond(gap: Gap, bound: float, confidences: tuple[float, float]) -> int | None:
    """The fewest further starts per side after which the interval of a ratio lies on one side of `bound`, with a chance
    of POWER, if change and spread stay as they are.

    `gap`: the logarithm of the ratio; `confidences`: of the interval that must lie below the bound, and of the one that
    must lie above it. The chance is P(T > t(f)) of noncentral t with noncentrality |d - log(bound)| / e(n). None below
    two units per side, or beyond MOST_STARTS.
    """
    beyond = gap.value - math.log(bound)

    def enough(more: int) -> bool:
        return chance_beyond(abs(beyond), *gap.error(more), confidences[beyond > 0]) >= POWER

    return fewest(enough, MOST_STARTS) if gap.samples else None
