"""Scalability laws over cluster sizes, each parameter with its interval; refused where the sizes cannot carry them.

Universal scalability law: X(n) = lambda n / (1 + sigma (n - 1) + kappa n (n - 1)), N. J. Gunther, Guerrilla Capacity
Planning, Springer 2007, chapter 4; sigma is contention, kappa coherency. Amdahl's law is kappa = 0, linear scaling
sigma = kappa = 0.

Both loads reduce to one regression. Saturated: n / X(n) = (1 / lambda)(1 + sigma (n - 1) + kappa n (n - 1)). A single
closed-loop client does not saturate anything, so X is 1 / s(n), and the law is that of the service demand:
s(n) = s1 (1 + sigma (n - 1) + kappa n (n - 1)), fitted to the time per operation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import polars as pl
from scipy import optimize

from steelyard.analysis import estimates
from steelyard.analysis.frame import TrialFrame
from steelyard.analysis.results import CurvePoint, LawFit, Treatment
from steelyard.model.estimate import Estimate

Law = Literal["usl", "amdahl", "linear"]
Load = Literal["saturated", "single"]

LAWS: tuple[Law, ...] = ("usl", "amdahl", "linear")
FEWEST_SIZES = 5
CURVE_POINTS = 60
DRAWS = 4000
FLOOR = 1e-9
"""Keeps the logarithm defined while the optimiser looks at impossible parameters."""

_PARAMETERS: dict[str, tuple[str, ...]] = {"usl": ("sigma", "kappa"), "amdahl": ("sigma",), "linear": ()}


@dataclass(frozen=True)
class Solution:
    """Fitted theta = (log base, sigma, kappa ...), its covariance, and what is left."""

    theta: np.ndarray[Any, Any]
    covariance: np.ndarray[Any, Any]
    degrees: int
    squares: float


def _columns(law: Law, sizes: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """(n - 1) and n (n - 1), as many as the law has."""
    return np.column_stack([sizes - 1, sizes * (sizes - 1)])[:, : len(_PARAMETERS[law])]


def solve(law: Law, sizes: Sequence[float], demands: Sequence[float]) -> Solution:
    """Least squares of log demand = log base + log(1 + sigma (n - 1) + kappa n (n - 1)): errors are proportional.

    `demands` is s(n), or n / X(n); one per start. Covariance: s^2 (J'J)^-1 with s^2 = squares / (points - parameters).
    Raises ValueError unless there are more points than parameters.
    """
    n, y = np.asarray(sizes, dtype=float), np.log(np.asarray(demands, dtype=float))
    columns = _columns(law, n)
    count = 1 + columns.shape[1]
    if len(n) <= count:
        raise ValueError(f"{len(n)} points cannot carry {count} parameters and an error")

    def residuals(theta: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return np.asarray(theta[0] + np.log(np.maximum(1 + columns @ theta[1:], FLOOR)) - y)

    fit = optimize.least_squares(residuals, _first_guess(columns, np.exp(y)), x_scale="jac", xtol=1e-14, ftol=1e-14)
    theta = np.asarray(fit.x, dtype=float)
    jacobian = _gradient(columns, theta)
    squares = float(np.sum(residuals(theta) ** 2))
    degrees = len(n) - count
    covariance = squares / degrees * np.linalg.pinv(jacobian.T @ jacobian)
    return Solution(theta, covariance, degrees, squares)


def _first_guess(columns: np.ndarray[Any, Any], demands: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Linear least squares of demand = a + b (n - 1) + c n (n - 1) and relative errors; sigma = b/a, kappa = c/a."""
    design = np.column_stack([np.ones(len(demands)), columns]) / demands[:, None]
    a, *rest = np.linalg.lstsq(design, np.ones(len(demands)), rcond=None)[0]
    if a <= 0 or np.any(1 + columns @ np.asarray(rest) / a <= 0):
        return np.asarray([math.log(float(demands.min())), *(0.0 for _ in rest)])
    return np.asarray([math.log(a), *(value / a for value in rest)])


def _gradient(columns: np.ndarray[Any, Any], theta: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    inner = np.maximum(1 + columns @ theta[1:], FLOOR)
    return np.column_stack([np.ones(len(columns)), columns / inner[:, None]])


def fit_law(
    points: Sequence[tuple[float, float]], law: Law, load: Load, *, factor: str = "nodes",
    others: Treatment | None = None, response: str = "execution_time_ms",
    confidence: float = 0.95, rng: np.random.Generator,
) -> LawFit:  # fmt: skip
    """Fit a law to (size, value) of each start: throughput in operations/s (saturated) or ms per operation (single).

    sigma, kappa: estimate +- t se; base: the same on its logarithm; the peak: percentiles of its value over draws of
    the parameters from their multivariate t. Refused below five sizes, or where start means are too few for an error.
    """
    sizes = [size for size, _ in points]
    unit = "ms/operation" if load == "single" else "operations/s"
    about: dict[str, Any] = {
        "law": law, "load": load, "factor": factor, "others": dict(others or {}), "response": response, "unit": unit,
        "n": len(points), "sizes": len(set(sizes)),
    }  # fmt: skip
    refusal = _refusal(sizes, [value for _, value in points], 1 + len(_PARAMETERS[law]))
    if refusal:
        return LawFit(**about, refusal=refusal)
    demands = [value if load == "single" else size / value for size, value in points]
    found = solve(law, sizes, demands)
    quantile = estimates.t_quantile(confidence, found.degrees)
    errors = np.sqrt(np.diag(found.covariance))
    method = f"least squares on logarithms of start means, t interval with {found.degrees} degrees of freedom"

    def estimate(value: float, low: float, high: float, of: str, how: str = method) -> Estimate:
        ends = sorted((low, high))
        return Estimate(
            value=value, low=ends[0], high=ends[1], confidence=confidence, n=len(points), unit=of, method=how
        )

    sign = 1.0 if load == "single" else -1.0
    base = [math.exp(sign * (found.theta[0] + step * quantile * errors[0])) for step in (0, -1, 1)]
    parameters = {"base": estimate(base[0], base[1], base[2], unit)}
    for index, name in enumerate(_PARAMETERS[law], start=1):
        value, half = float(found.theta[index]), quantile * float(errors[index])
        parameters[name] = estimate(value, value - half, value + half, "")
    return LawFit(
        **about,
        parameters=parameters,
        residual_sd=math.sqrt(found.squares / found.degrees),
        aicc=_aicc(len(points), found),
        peak_nodes=_peak(found, confidence, len(points), rng) if law == "usl" else None,
        curve=tuple(_curve(law, load, found, quantile, min(sizes), max(sizes))),
    )


def _refusal(sizes: Sequence[float], values: Sequence[float], parameters: int) -> str:
    different = len(set(sizes))
    if different < FEWEST_SIZES:
        return f"A scalability law needs at least {FEWEST_SIZES} sizes; there are {different}."
    if len(sizes) <= parameters:
        return f"{len(sizes)} start means cannot carry {parameters} parameters and an error."
    if min(values) <= 0 or min(sizes) < 1:
        return "Sizes and values of a scalability law must be positive."
    return ""


def _aicc(n: int, found: Solution) -> float | None:
    """Hurvich and Tsai 1989: n log(RSS / n) + 2 k + 2 k (k + 1) / (n - k - 1), k counting the error's variance."""
    k = len(found.theta) + 1
    if n - k - 1 <= 0 or found.squares <= 0:
        return None
    return n * math.log(found.squares / n) + 2 * k + 2 * k * (k + 1) / (n - k - 1)


def _peak(found: Solution, confidence: float, n: int, rng: np.random.Generator) -> Estimate | None:
    sigma, kappa = float(found.theta[1]), float(found.theta[2])
    if kappa <= 0 or sigma >= 1:
        return None
    scale = np.sqrt(found.degrees / rng.chisquare(found.degrees, DRAWS))[:, None]
    normal = rng.multivariate_normal(np.zeros(2), found.covariance[1:, 1:], DRAWS, method="eigh")
    draws = np.asarray([sigma, kappa]) + normal * scale
    peaks = np.full(DRAWS, np.inf)
    has = (draws[:, 1] > 0) & (draws[:, 0] < 1)
    peaks[has] = np.sqrt((1 - draws[has, 0]) / draws[has, 1])
    peaks[draws[:, 0] >= 1] = 0.0
    ordered = np.sort(peaks)
    low = float(ordered[int((1 - confidence) / 2 * DRAWS)])
    high = float(ordered[min(DRAWS - 1, math.ceil((1 + confidence) / 2 * DRAWS))])
    return Estimate(
        value=math.sqrt((1 - sigma) / kappa),
        low=low if math.isfinite(low) else None,
        high=high if math.isfinite(high) else None,
        confidence=confidence,
        n=n,
        unit="nodes",
        method=f"sqrt((1 - sigma) / kappa), percentiles of {DRAWS} draws of the parameters (multivariate t)",
    )


def _curve(law: Law, load: Load, found: Solution, quantile: float, low: float, high: float) -> list[CurvePoint]:
    steps = int(min(CURVE_POINTS, max(2, 4 * (high - low) + 1)))
    sizes = np.linspace(low, high, steps)
    columns = _columns(law, sizes)
    gradient = _gradient(columns, found.theta)
    centre = found.theta[0] + np.log(np.maximum(1 + columns @ found.theta[1:], FLOOR))
    half = quantile * np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", gradient, found.covariance, gradient), 0.0))
    ends = [np.exp(np.clip(centre + step * half, -600, 600)) for step in (0, -1, 1)]
    value, one, other = ends if load == "single" else [sizes / end for end in ends]
    return [
        CurvePoint(level=float(n), value=float(v), low=float(min(a, b)), high=float(max(a, b)))
        for n, v, a, b in zip(sizes, value, one, other, strict=True)
    ]


def law_points(frame: TrialFrame, load: Load, factor: str, others: Treatment) -> list[tuple[float, float]]:
    """(size, mean over the trials of a start) of each start: operations/s, or ms per operation."""
    rows = frame.values("execution_time_ms", others).filter(
        pl.col(factor).is_not_null() & (pl.col("operations") > 0) & (pl.col("execution_time_ms") > 0)
    )
    per_operation = pl.col("execution_time_ms") / pl.col("operations")
    value = per_operation if load == "single" else 1000 / per_operation
    means = rows.group_by(factor, "start", maintain_order=True).agg(value.mean().alias("value"))
    return [(float(size), float(mean)) for size, _, mean in means.iter_rows()]


def laws(
    frame: TrialFrame, factor: str, load: Load, rng: np.random.Generator, confidence: float = 0.95
) -> tuple[LawFit, ...]:
    """Every law for each combination of the other factors; refusals included."""
    response = "execution_time_ms" if load == "single" else "throughput_per_s"
    return tuple(
        fit_law(law_points(frame, load, factor, others), law, load, factor=factor, others=others, response=response,
                confidence=confidence, rng=rng)
        for others in frame.others(factor)
        for law in LAWS
    )  # fmt: skip
