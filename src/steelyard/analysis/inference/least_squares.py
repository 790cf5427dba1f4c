"""Linear least squares with several predictors, in extended precision; a straight line with its intervals.

Modified Gram and Schmidt, twice, in numpy's longest float (A. Bjorck, Numerical Methods for Least Squares Problems,
SIAM 1996, section 2.4). statsmodels' OLS, in double precision, keeps no digit of NIST's data set Filip and ten of
Longley; this keeps ten and fourteen (tests/unit/analysis/inference/test_least_squares.py lists all eleven sets).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias

from steelyard.analysis.row import HIDDEN, IN_UNIT, Column, InUnit, Number, P
from steelyard.heavy import np, stats
from steelyard.judging import t_interval
from steelyard.model.estimate import Estimate
from steelyard.model.value import Value

Numbers: TypeAlias = "np.ndarray[Any, Any]"

PASSES = 2
DEPENDENT = 1e4
"""A column is linearly dependent if its residual is below this multiple of the rounding error of its length."""


class Dependent(ValueError):
    """The columns are linearly dependent: `column` is a combination of those before it."""

    def __init__(self, column: int) -> None:
        super().__init__(f"column {column} (from 0) is a sum of multiples of the columns before it")
        self.column = column


@dataclass(frozen=True)
class Coefficients:
    """Coefficient and standard error of each column, and the residual spread."""

    values: tuple[float, ...]
    std_errors: tuple[float, ...]
    degrees: int
    residual_sd: float
    r_squared: float | None
    """1 - residual / total sum of squares, total about the mean, or about 0 without a constant; None if y does not
    vary."""
    n: int


def least_squares(columns: Sequence[Sequence[float]], y: Sequence[float], constant: bool = True) -> Coefficients:
    """y = b0 + b1 x1 + ... ; `columns` are the x, each as long as y; the constant comes first in the result.

    Raises ValueError unless there are more values than coefficients, `Dependent` for linearly dependent columns.
    """
    target = np.asarray(y, dtype=np.longdouble)
    parts = [np.ones(len(target), dtype=np.longdouble)] if constant else []
    design = np.column_stack([*parts, *(np.asarray(one, dtype=np.longdouble) for one in columns)])
    return _solve(design, target, constant)


def _solve(design: Numbers, y: Numbers, constant: bool) -> Coefficients:
    n, p = design.shape
    degrees = n - p
    if degrees < 1:
        raise ValueError(f"{n} values are too few for {p} coefficients and an error")
    q, r = _factored(design)
    values = _back(r, q.T @ y)
    left = y - design @ values
    centred = y - y.mean() if constant else y
    total = float(centred @ centred)
    squares = float(left @ left) if total > 0 else 0.0
    inverse = np.column_stack([_back(r, column) for column in np.eye(p, dtype=np.longdouble)])
    errors = np.sqrt(np.longdouble(squares) / degrees * np.sum(inverse**2, axis=1))
    return Coefficients(
        tuple(float(one) for one in values), tuple(float(one) for one in errors), degrees,
        math.sqrt(squares / degrees), 1 - squares / total if total > 0 else None, n,
    )  # fmt: skip


def _factored(design: Numbers) -> tuple[Numbers, Numbers]:
    """Q with orthonormal columns and upper triangular R, design = Q R; each pass makes Q orthogonal again."""
    p = design.shape[1]
    q, whole = design.copy(), np.eye(p, dtype=np.longdouble)
    lengths = np.sqrt(np.sum(design**2, axis=0))
    for turn in range(PASSES):
        r = np.zeros((p, p), dtype=np.longdouble)
        for j in range(p):
            for i in range(j):
                r[i, j] = q[:, i] @ q[:, j]
                q[:, j] -= r[i, j] * q[:, i]
            r[j, j] = np.sqrt(q[:, j] @ q[:, j])
            if not turn and r[j, j] <= DEPENDENT * np.finfo(np.longdouble).eps * lengths[j]:
                raise Dependent(j)
            q[:, j] /= r[j, j]
        whole = r @ whole
    return q, whole


def _back(r: Numbers, right: Numbers) -> Numbers:
    solution = np.zeros(len(right), dtype=np.longdouble)
    for j in reversed(range(len(right))):
        solution[j] = (right[j] - r[j, j + 1 :] @ solution[j + 1 :]) / r[j, j]
    return solution


FEWEST_POINTS = 3
"""Two points leave no degree of freedom for an error."""


class Fit(Value):
    """One least-squares line."""

    slope: Annotated[Estimate, Column(unit=f"{IN_UNIT} per step of the factor")]
    """Slope."""
    intercept: InUnit
    """Intercept."""
    r: Number = None
    """Pearson's correlation; none if the response does not vary."""
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
        slope, intercept = (
            Estimate.around(value, 0.0, of, confidence, n, "the response does not vary")
            for value, of in ((0.0, f"{unit} per step"), (y[0], unit))
        )
        return Fit(slope=slope, intercept=intercept, std_err=0.0, intercept_std_err=0.0, n=n)
    fit = stats.linregress(x, y)
    quantile = t_interval.t_quantile(confidence, n - 2)
    method = f"least squares over {over}, t interval with {n - 2} degrees of freedom"

    def estimate(value: float, error: float, of: str) -> Estimate:
        return Estimate.around(value, quantile * error, of, confidence, n, method)

    return Fit(
        slope=estimate(float(fit.slope), float(fit.stderr), f"{unit} per step"),
        intercept=estimate(float(fit.intercept), float(fit.intercept_stderr), unit),
        std_err=float(fit.stderr), intercept_std_err=float(fit.intercept_stderr),
        r=float(fit.rvalue), p=float(fit.pvalue), n=n,
    )  # fmt: skip
