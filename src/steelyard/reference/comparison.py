"""Comparison of own with published numbers: agrees, differs by a percentage, or not comparable.

Pure functions of own trial values and estimates; nothing here reads a store.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal

from steelyard.format import signed
from steelyard.heavy import np, stats
from steelyard.model.estimate import Estimate
from steelyard.model.value import Value
from steelyard.reference.printed import Printed
from steelyard.reference.rounding import Interval

Verdict = Literal["agrees", "differs", "not comparable", "no number"]

STATISTICS = ("count", "mean", "std", "min", "25%", "50%", "75%", "max", "range")
RATIOS: Mapping[str, tuple[str, str]] = {
    "ratio_max_to_min": ("max", "min"),
    "ratio_min_to_max": ("min", "max"),
    "ratio_of_the_means": ("mean", "mean"),
    "ratio_of_the_medians": ("50%", "50%"),
    "ratio_of_the_stddevs": ("std", "std"),
}
"""Definition in speedup.csv to the baseline's statistic (above) and the treatment's (below)."""


class PublishedPair(Value):
    """One own number and one published number."""

    table: str
    cell: dict[str, str]
    statistic: str
    unit: str = ""
    """Unit of the printed number; empty if the table has one unit for all."""
    printed: str
    published_low: float | None = None
    published_high: float | None = None
    """Ends of the interval of the printed number."""
    ours: Estimate | None = None
    verdict: Verdict
    change_percent: float | None = None
    """100 (ours / published - 1); also given with `not comparable`, for the scale only."""
    low: float | None = None
    high: float | None = None
    """Ends of the change, from our interval and the printed digits together; None if we have no interval."""
    reasons: tuple[str, ...] = ()
    """Reasons why it is not comparable, or why the verdict is weaker."""

    def sentence(self) -> str:
        """The verdict in words."""
        if self.verdict == "agrees":
            return "agrees: our interval and what the printed digits allow have values in common"
        if self.verdict == "no number":
            return f"no number: {'; '.join(self.reasons)}"
        change = "" if self.change_percent is None else _change(self.change_percent, self.low, self.high)
        if self.verdict == "differs":
            return f"differs by {change or 'a quantity that has no ratio to 0'}"
        return f"not comparable because {'; '.join(self.reasons)}" + (f" (ours is {change})" if change else "")


def _change(value: float, low: float | None, high: float | None) -> str:
    ends = "" if low is None or high is None else f" [{signed(low, digits=3)}, {signed(high, digits=3)}]%"
    return f"{signed(value, digits=3)}%{ends}"


def shown(value: object) -> str:
    """A condition's level as text: whole numbers with commas."""
    text = str(value)
    return f"{int(text):,}" if text.isdecimal() else text


def lay(
    table: str,
    cell: Mapping[str, str],
    statistic: str,
    printed: Printed,
    ours: Estimate | None,
    reasons: Sequence[str] = (),
) -> PublishedPair:
    """Compare one own estimate with one printed number. `reasons`: why they are not comparable.

    They agree if our interval (our value, if it has none) and the interval of the printed digits overlap. Otherwise the
    result is the change in percent; its interval is [ours.low / published.high - 1, ours.high / published.low - 1] for
    positive numbers, so that it includes the rounding of both sides.
    """
    published = printed.interval
    known = {
        "table": table,
        "cell": dict(cell),
        "statistic": statistic,
        "printed": printed.text,
        "published_low": None if published is None else published.low,
        "published_high": None if published is None else published.high,
        "ours": ours,
    }
    if published is None or printed.value is None or ours is None:
        missing = ("nothing was published",) if published is None else ("we have no number",)
        return PublishedPair.model_validate({**known, "verdict": "no number", "reasons": missing})
    mine = Interval(ours.value, ours.value)
    if ours.low is not None and ours.high is not None:
        mine = Interval(ours.low, ours.high)
    change: dict[str, float] = {}
    if published.low > 0 and ours.value > 0:
        change["change_percent"] = 100 * (ours.value / printed.value - 1)
        if ours.low is not None and ours.high is not None:
            share = mine.over(published)
            change |= {"low": 100 * (share.low - 1), "high": 100 * (share.high - 1)}
    if reasons:
        return PublishedPair.model_validate({**known, **change, "verdict": "not comparable", "reasons": tuple(reasons)})
    verdict = "agrees" if mine.meets(published) else "differs"
    weak = () if ours.low is not None else ("our value has no interval",)
    return PublishedPair.model_validate({**known, **change, "verdict": verdict, "reasons": weak})


def summary(values: Sequence[float]) -> dict[str, float]:
    """The published kind of summary for own trial values: count, mean, std (n - 1), min, quartiles (linear), max,
    range.

    nan if n is too small, as printed by richardson2017's tool.
    """
    array = np.asarray(values, dtype=float)
    if not array.size:
        return {name: 0.0 if name == "count" else math.nan for name in STATISTICS}
    quartiles = np.quantile(array, (0.0, 0.25, 0.5, 0.75, 1.0))
    std = float(np.std(array, ddof=1)) if array.size > 1 else math.nan
    numbers = (array.size, np.mean(array), std, *quartiles, quartiles[-1] - quartiles[0])
    return {name: float(value) for name, value in zip(STATISTICS, numbers, strict=True)}


def speedup(baseline: Sequence[float], treatment: Sequence[float]) -> dict[str, float]:
    """The published kind of speedup table for own trial values, baseline over treatment; nan without data or over 0."""
    over, under = summary(baseline), summary(treatment)
    return {name: _ratio(over[top], under[bottom]) for name, (top, bottom) in RATIOS.items()}


def _ratio(over: float, under: float) -> float:
    return over / under if under and math.isfinite(over) and math.isfinite(under) else math.nan


def regression(x: Sequence[float], y: Sequence[float]) -> dict[str, float]:
    """The published kind of regression for own trial values: slope, intercept, r_value, p_value, std_err (scipy's
    linregress).

    Computed over trials, counted as independent, as published. nan for fewer than three values or a single x.
    """
    names = ("slope", "intercept", "r_value", "p_value", "std_err")
    if len(x) < 3 or len(set(x)) < 2:
        return dict.fromkeys(names, math.nan)
    fit = stats.linregress(np.asarray(x, dtype=float), np.asarray(y, dtype=float))
    numbers = (fit.slope, fit.intercept, fit.rvalue, fit.pvalue, fit.stderr)
    return {name: float(value) for name, value in zip(names, numbers, strict=True)}
