"""What decides a comparison, and what would: p-values with Holm's correction, how many more starts, how many hours.

Verdicts rest on intervals. The p-values here come last: they say which verdicts would not survive if all comparisons
of a page or a command were asked for at once.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from scipy import stats

from steelyard.analysis import effects, estimates
from steelyard.analysis.frame import TrialFrame
from steelyard.format import count, forecast
from steelyard.model.value import Value

POWER = 0.8
"""Chance of deciding that a number of starts is asked for; the one that `steelyard check` plans with."""
MOST_STARTS = 1000
"""So many starts more a side are no advice; the search ends there."""
ROUNDING = 1e-12
"""Logarithms that differ by less are of equal values."""
FAR = 8.0
"""Standard errors beyond which noncentral t has no tail worth computing."""


class More(Value):
    """How many more starts a side would decide, if the change and the spread stay as they are."""

    starts: int
    percent: float
    """What they would decide: that there is a change of this size, or that it lies within this margin."""
    shows: str
    """`change` or `equivalence`: which of both comes first."""


def holm(values: Sequence[float | None]) -> list[float | None]:
    """Holm's step-down correction (S. Holm, Scandinavian Journal of Statistics 6, 1979) over the p-values there are.

    The i-th smallest of m is multiplied by m - i + 1, and none may be below the one before it. Not by statsmodels,
    whose `multipletests` collects garbage at every call, 0.2 s each; the tests hold the two together.
    """
    known = sorted((p, place) for place, p in enumerate(values) if p is not None)
    found: list[float | None] = [None] * len(values)
    least = 0.0
    for rank, (p, place) in enumerate(known):
        least = max(least, min(1.0, (len(known) - rank) * p))
        found[place] = least
    return found


DIFFERENT = frozenset({"slower", "faster", "higher", "lower"})
"""The verdicts that say that there is a difference."""


def survives(verdict: str, p_holm: float | None, confidence: float) -> bool | None:
    """Whether a verdict of a difference would still be given at Holm's p; None where the verdict says no difference."""
    if verdict not in DIFFERENT or p_holm is None:
        return None
    return p_holm < 1 - confidence


def lost(family: int, p: float | None, p_holm: float | None) -> str:
    """The sentence of a verdict that does not survive."""
    return f"would not survive Holm's correction over {family} comparisons (p {p:.2g}, corrected {p_holm:.2g})"


def p_of_change(a: Sequence[float], b: Sequence[float], paired: bool) -> float | None:
    """Two-sided p that the ratio of geometric means is 1: t of pairs, else Welch's, on logarithms.

    The test whose interval `compare.ratio_between` gives: p is below 1 - confidence where that leaves 1 out. None below
    two units a side, where a value is not above 0, or where nothing varies.
    """
    if min(len(a), len(b)) < 2 or min(*a, *b) <= 0:
        return None
    logs = np.log(a), np.log(b)
    if not varies(*([logs[1] - logs[0]] if paired else logs)):
        return None
    return effects.p_of_difference([float(one) for one in logs[0]], [float(one) for one in logs[1]], paired)


def varies(*logs: Sequence[float] | np.ndarray) -> bool:
    """Whether any of the samples of logarithms varies by more than their rounding."""
    return any(float(np.ptp(one)) > ROUNDING for one in logs)


def more_starts(
    a: Sequence[float], b: Sequence[float], paired: bool, margin_percent: float | None, confidence: float = 0.95
) -> More | None:
    """The fewest further starts a side that decide with a chance of POWER, if change and spread stay as they are.

    Decided: the interval of the ratio leaves 1 out, or the two one-sided tests put it within the margin, whichever
    needs fewer. With differences of logarithms d, standard error e(n) and f degrees of freedom (Welch's, or n - 1 of
    pairs), T noncentral t with noncentrality d / e: the chance of the first is P(|T| > t(f)), that of the second
    P(T(upper) < -t'(f)) - P(T(lower) < t'(f)), t' one-sided, with noncentralities (d -+ log(1 + m)) / e (Cohen 1988,
    section 2.4; Phillips 1990, *Journal of Pharmacokinetics and Biopharmaceutics* 18(2)). The interval of expected
    width alone, without a chance, would decide every second time only. None below two units a side, for values that
    are not above 0, or beyond MOST_STARTS.
    """
    if min(len(a), len(b)) < 2 or min(*a, *b) <= 0:
        return None
    logs = [math.log(one) for one in a], [math.log(one) for one in b]
    signed = statistics.fmean(logs[1]) - statistics.fmean(logs[0])
    change = abs(signed)
    bound = None if margin_percent is None else math.log1p(margin_percent / 100)

    def enough(more: int) -> str:
        error, degrees = _error(*logs, paired, more)
        if chance_of_change(change, error, degrees, confidence) >= POWER:
            return "change"
        if bound is not None and chance_of_equivalence(change, bound, error, degrees, confidence) >= POWER:
            return "equivalence"
        return ""

    if not enough(MOST_STARTS):
        return None
    low, high = 0, MOST_STARTS
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    shows = enough(high)
    percent = 100 * abs(math.expm1(signed)) if shows == "change" or margin_percent is None else margin_percent
    return More(starts=high, percent=percent, shows=shows)


def _error(a: Sequence[float], b: Sequence[float], paired: bool, more: int) -> tuple[float, float]:
    """Standard error of the mean difference and its degrees of freedom with `more` further units a side."""
    if paired:
        n = len(a) + more
        return estimates.deviation([y - x for x, y in zip(a, b, strict=True)]) / math.sqrt(n), n - 1
    sizes = len(a) + more, len(b) + more
    parts = [estimates.deviation(values) ** 2 / n for values, n in zip((a, b), sizes, strict=True)]
    if sum(parts) == 0:
        return 0.0, sum(sizes) - 2
    return math.sqrt(sum(parts)), estimates.welch_degrees(parts[0], sizes[0], parts[1], sizes[1])


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
    found = float(stats.nct.sf(value, degrees, shift))
    return found if math.isfinite(found) else float(stats.norm.sf(value - shift))


def chance_of_equivalence(change: float, bound: float, error: float, degrees: float, confidence: float) -> float:
    """Power of the two one-sided t tests that a difference lies within -bound and bound; a lower bound of it."""
    if error == 0 or change >= bound:
        return float(change < bound)
    critical = float(stats.t.ppf(confidence, degrees))
    shifts = (bound - change) / error, (bound + change) / error
    return max(0.0, sum(_above(critical, degrees, shift) for shift in shifts) - 1)


def block_s(frame: TrialFrame) -> float | None:
    """Seconds that one more block takes by the pace of these trials: every combination of hard levels started once.

    A start takes the span of its attempts, voided ones too, and the time since the start before it ended, each as the
    median over the starts of its combination (the second over all), so that a study that was interrupted keeps its
    pace. None below two starts, where nothing says what a start costs.
    """
    by_start = frame.data.group_by("start", *frame.hard).agg(
        pl.col("begun_s").min(), pl.col("ended_s").fill_null(pl.col("begun_s")).max()
    )
    ordered = by_start.sort("begun_s", "start")
    if ordered["start"].n_unique() < 2:
        return None
    begun, ended = ordered["begun_s"].to_numpy(), ordered["ended_s"].to_numpy()
    between = float(np.median(np.maximum(begun[1:] - ended[:-1], 0.0)))
    served = ordered.with_columns(span=pl.col("ended_s") - pl.col("begun_s"))
    each = served.group_by(frame.hard).agg(pl.col("span").median()) if frame.hard else served.select(pl.median("span"))
    return float(each["span"].sum()) + each.height * between


@dataclass(frozen=True)
class Forecast:
    """What would decide, and how long that takes: a start more a side is a block more of the study."""

    more: More | None
    block_s: float | None

    def short(self) -> str:
        """`for 3% 14 more blocks (about 2 h 50 min)`, as a table has room for; `for ±3%`: until it lies within that."""
        if self.more is None:
            return f"more than {MOST_STARTS:,} more blocks"
        within = "\N{PLUS-MINUS SIGN}" if self.more.shows == "equivalence" else ""
        return f"for {within}{self.more.percent:.2g}% {self._blocks(self.more)}"

    def words(self) -> str:
        """The same as a sentence."""
        if self.more is None:
            return f"not even {MOST_STARTS:,} more blocks would decide"
        if self.more.shows == "equivalence":
            what = f"would show that it lies within {self.more.percent:.2g}%"
        else:
            what = f"would tell a change of {self.more.percent:.2g}% from none"
        return f"about {self._blocks(self.more)} {what}, with a chance of {POWER:.0%}"

    def _blocks(self, more: More) -> str:
        return blocks(more.starts, None if self.block_s is None else more.starts * self.block_s)


def blocks(starts: int, seconds: float | None) -> str:
    """`14 more blocks (about 2 h 50 min)`."""
    lasts = f" (about {forecast(seconds)})" if seconds is not None else ""
    return f"{count(starts, 'more block')}{lasts}"
