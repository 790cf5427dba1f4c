"""Straight lines over a numeric factor: as published, and at the level that was randomised.

Over a hard-to-change factor the honest form fits start means; over one that varies within starts it fits each start by
itself, and the starts' slopes are what is counted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import polars as pl
from scipy import stats

from steelyard.analysis import estimates
from steelyard.analysis.ancova import numeric
from steelyard.analysis.frame import TrialFrame
from steelyard.analysis.results import UNITS, Fit, Regression, Treatment, part
from steelyard.analysis.summary import exclusions
from steelyard.model.estimate import Estimate

FEWEST_STARTS = 2
FEWEST_LEVELS = 3
"""Two levels are a comparison, not a line; the factor of sizes has its line from two on, as published."""
FEWEST_POINTS = 3
"""Two points leave no degree of freedom for an error."""


def line(x: Sequence[float], y: Sequence[float], unit: str, confidence: float, over: str) -> Fit | None:
    """Ordinary least squares y = intercept + slope x (scipy.stats.linregress); None below three points or two x.

    Intervals: estimate +- t(n - 2) standard error. `over` names what a point is.
    """
    n = len(x)
    if n < FEWEST_POINTS or len(set(x)) < 2:
        return None
    if len(set(y)) == 1:
        return _level(y[0], n, unit, confidence)
    fit = stats.linregress(x, y)
    quantile = estimates.t_quantile(confidence, n - 2)
    method = f"least squares over {over}, t interval with {n - 2} degrees of freedom"

    def estimate(value: float, error: float, of: str) -> Estimate:
        half = quantile * error
        return Estimate(
            value=value, low=value - half, high=value + half, confidence=confidence, n=n, unit=of, method=method
        )

    return Fit(
        slope=estimate(float(fit.slope), float(fit.stderr), f"{unit} per step"),
        intercept=estimate(float(fit.intercept), float(fit.intercept_stderr), unit),
        r=float(fit.rvalue),
        p=float(fit.pvalue),
        std_err=float(fit.stderr),
        intercept_std_err=float(fit.intercept_stderr),
        n=n,
    )


def _level(value: float, n: int, unit: str, confidence: float) -> Fit:
    """A response that never varies: slope 0 without error, and no correlation to speak of."""

    def exactly(centre: float, of: str) -> Estimate:
        method = "the response does not vary"
        return Estimate(value=centre, low=centre, high=centre, confidence=confidence, n=n, unit=of, method=method)

    return Fit(
        slope=exactly(0.0, f"{unit} per step"), intercept=exactly(value, unit), std_err=0.0, intercept_std_err=0.0, n=n
    )


def regress(frame: TrialFrame, response: str, factor: str, others: Treatment, confidence: float = 0.95) -> Regression:
    """The response over a numeric factor, other factors fixed: over trials, and over start means or within starts."""
    unit = UNITS[response]
    rows = frame.values(response, others).filter(pl.col(factor).is_not_null())
    x = [float(level) for level in rows[factor]]
    y = [float(value) for value in rows[response]]
    starts = rows.group_by(factor, "start", maintain_order=True).agg(pl.col(response).cast(pl.Float64).mean())
    per_level = starts.group_by(factor).len()["len"].to_list()
    repeated = max(per_level, default=0) > 1
    honest = None
    if factor not in frame.hard:
        honest = _within_starts(starts, response, factor, unit, confidence)
        note = "" if honest else f"Fewer than two starts have two levels of {factor} each: no error term for its slope."
    else:
        note = ""
    if repeated and factor in frame.hard:
        honest = line(
            [float(level) for level in starts[factor]],
            [float(value) for value in starts[response]],
            unit,
            confidence,
            "start means",
        )
    return Regression(
        factor=factor,
        others=others,
        response=response,
        unit=unit,
        n=len(x),
        starts=starts["start"].n_unique(),
        excluded=sum(exclusion.trials for exclusion in exclusions(frame, response, others)),
        published=line(x, y, unit, confidence, "trials, counted as independent"),
        honest=honest,
        note=note if factor not in frame.hard
        else _note(factor, starts[factor].n_unique(), starts.height, repeated, honest is not None),
    )  # fmt: skip


def _within_starts(cells: pl.DataFrame, response: str, factor: str, unit: str, confidence: float) -> Fit | None:
    """Mean of the starts' own slopes and intercepts, t over starts; None below two starts with a line.

    A start is one unit: what its slopes differ from each other's is the error, so the factor's effect may change from
    start to start (summary measures: J. N. S. Matthews et al., British Medical Journal 300, 1990).
    """
    slopes, intercepts = [], []
    for one in cells.partition_by("start", maintain_order=True):
        if one[factor].n_unique() > 1:
            fit = stats.linregress([float(x) for x in one[factor]], [float(y) for y in one[response]])
            slopes.append(float(fit.slope))
            intercepts.append(float(fit.intercept))
    if len(slopes) < FEWEST_STARTS:
        return None
    over = "the starts' own slopes"
    slope = estimates.mean(slopes, f"{unit} per step", confidence, over)
    errors = [estimates.deviation(values) / math.sqrt(len(values)) for values in (slopes, intercepts)]
    p = float(2 * stats.t.sf(abs(slope.value) / errors[0], len(slopes) - 1)) if errors[0] > 0 else None
    return Fit(
        slope=slope, intercept=estimates.mean(intercepts, unit, confidence, "the starts' own intercepts"), p=p,
        std_err=errors[0], intercept_std_err=errors[1], n=len(slopes),
    )  # fmt: skip


def _note(factor: str, levels: int, starts: int, repeated: bool, fitted: bool) -> str:
    if fitted:
        return ""
    if levels < 2:
        return f"Only {levels} level of {factor} has valid trials: there is no line to fit."
    if not repeated:
        return (
            f"Each level of {factor} was started once, so there is no error term for {factor}: what one start differs "
            "from another cannot be told from what the levels differ. The published form counts trials as if they "
            "were starts."
        )
    return f"{starts} starts leave no degree of freedom for an error of the slope over {part(factor, 2)} and others."


def regressions(frame: TrialFrame, response: str, factor: str, confidence: float = 0.95) -> tuple[Regression, ...]:
    """One regression for each combination of the other factors."""
    return tuple(regress(frame, response, factor, others, confidence) for others in frame.others(factor))


def other_regressions(
    frame: TrialFrame, response: str, size: str | None, confidence: float = 0.95
) -> tuple[Regression, ...]:
    """The same over every other numeric factor with three levels or more."""
    names = [name for name in numeric(frame, FEWEST_LEVELS) if name != size]
    return tuple(one for name in names for one in regressions(frame, response, name, confidence))
