"""A straight line by ordinary least squares, with intervals of slope and intercept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from steelyard.analysis.inference import estimates
from steelyard.analysis.row import HIDDEN, IN_UNIT, Column, InUnit, Number, P
from steelyard.heavy import stats
from steelyard.model.estimate import Estimate
from steelyard.model.value import Value

FEWEST_POINTS = 3
"""Two points leave no degree of freedom for an error."""


class Fit(Value):
    """One least-squares line."""

    slope: Annotated[Estimate, Column(unit=f"{IN_UNIT} per step of the factor")]
    """Slope."""
    intercept: InUnit
    """Intercept."""
    r: Number = None
    """Pearson's correlation; none where the response does not vary."""
    p: P = None
    """Two-sided p-value of slope 0: Wald, t with n - 2 degrees of freedom."""
    std_err: Annotated[float, Column(unit="unit of the slope", head="std. error")]
    """Standard error of the slope."""
    n: int
    """Points fitted."""
    intercept_std_err: Annotated[float, HIDDEN]


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
