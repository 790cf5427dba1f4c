"""Straight lines over a numeric hard-to-change factor: as published, and at the level that was randomised."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
from scipy import stats

from steelyard.analysis import estimates
from steelyard.analysis.frame import TrialFrame
from steelyard.analysis.results import UNITS, Fit, Regression, Treatment, part
from steelyard.analysis.summary import exclusions
from steelyard.model.estimate import Estimate

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
    """The response over a numeric hard factor, other factors fixed: over trials and over start means."""
    unit = UNITS[response]
    rows = frame.values(response, others).filter(pl.col(factor).is_not_null())
    x = [float(level) for level in rows[factor]]
    y = [float(value) for value in rows[response]]
    starts = rows.group_by(factor, "start", maintain_order=True).agg(pl.col(response).cast(pl.Float64).mean())
    per_level = starts.group_by(factor).len()["len"].to_list()
    repeated = max(per_level, default=0) > 1
    honest = None
    if repeated:
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
        starts=starts.height,
        excluded=sum(exclusion.trials for exclusion in exclusions(frame, response, others)),
        published=line(x, y, unit, confidence, "trials, counted as independent"),
        honest=honest,
        note=_note(factor, starts[factor].n_unique(), starts.height, repeated, honest is not None),
    )


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
