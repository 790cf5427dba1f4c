"""Fit of scalability laws and of a broken line: least squares on logarithms, with a vectorised residual bootstrap.

Residual bootstrap-t: residuals r / sqrt(1 - h), h their leverage, less their mean, are drawn with replacement, added to
the fitted curve and fitted again; the interval of a quantity q is [q - T_high se, q - T_low se], T the quantiles of
(q* - q) / se* over draws (B. Efron, R. J. Tibshirani, An Introduction to the Bootstrap, Chapman & Hall 1993, sections
9.5 and 12.5). It was chosen by simulation (docs/reference/numbers/size.md): percentiles of the same draws, the wild
bootstrap and drawing starts within sizes are all too narrow where a size has one to three starts.

The broken line, throughput min(a n, c), is a segmented line of the logarithm of n: log(n / X) = log(1 / a) up to the
knee, and rises with slope 1 beyond. Its intervals are by t, linear in both parts (V. M. R. Muggeo, Estimating
regression models with unknown break-points, Statistics in Medicine 22, 2003): they hold the planted a, c and knee in 94
to 96%.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from steelyard.analysis.inference import estimates
from steelyard.heavy import np, optimize, special
from steelyard.judging import t_interval
from steelyard.model.estimate import Estimate

Law = Literal["usl", "amdahl", "linear", "broken"]

DRAWS = 1999
ROUNDS = 40
"""Most steps of a fit of a draw."""
HALVINGS = 12
CLOSE = 1e-9
FLOOR = 1e-9
"""Keeps the logarithm defined while the optimiser tries impossible parameters."""
ENOUGH = 0.98
"""Share of draws that must give a fit with an error for the bootstrap to be used."""
NO_SPREAD = 1e-10
"""Residuals of the logarithm below this are rounding: the points lie on the law."""

FARTHEST = 1000.0
"""Ends of a peak are searched up to this many times the largest size."""
BISECTIONS = 50
FLAT = 1e-9
"""Below this kappa x largest size squared, and above 1 less this sigma, there is no peak."""

PARAMETERS: dict[Law, tuple[str, ...]] = {
    "usl": ("sigma", "kappa"), "amdahl": ("sigma",), "linear": (), "broken": ("knee_nodes",)
}  # fmt: skip

Numbers: TypeAlias = "np.ndarray[Any, Any]"


@dataclass(frozen=True)
class Solution:
    """Fitted theta = (log base, sigma, kappa ...), or (log base, log knee), its covariance, and the residuals."""

    law: Law
    theta: Numbers
    covariance: Numbers
    degrees: int
    squares: float
    residuals: Numbers
    leverage: Numbers

    @property
    def exact(self) -> bool:
        """Whether the points lie on the law, up to rounding."""
        return math.sqrt(self.squares / len(self.residuals)) < NO_SPREAD


@dataclass(frozen=True)
class Draws:
    """Fits of bootstrap samples: parameters and covariances, those with an error only."""

    theta: Numbers
    covariance: Numbers


def columns(law: Law, sizes: Numbers) -> Numbers:
    """Design columns of the law: (n - 1) and n (n - 1), as many as it has parameters; of the broken line log n."""
    if law == "broken":
        return np.log(sizes)[:, None]
    return np.column_stack([sizes - 1, sizes * (sizes - 1)])[:, : len(PARAMETERS[law])]


def solve(law: Law, sizes: Sequence[float], demands: Sequence[float]) -> Solution:
    """Least squares of log demand = log base + log(1 + sigma (n - 1) + kappa n (n - 1)), or of the broken line
    log base + max(0, log n - log knee): errors are proportional.

    `demands` is s(n), or n / X(n); one per start. Covariance: s^2 (J'J)^-1 with s^2 = squares / (points - parameters).
    Raises ValueError unless there are more points than parameters.
    """
    n, y = np.asarray(sizes, dtype=float), np.log(np.asarray(demands, dtype=float))
    design = columns(law, n)
    count = 1 + design.shape[1]
    if len(n) <= count:
        raise ValueError(f"{len(n)} points are too few for {count} parameters and an error")

    theta = _knee(design[:, 0], y) if law == "broken" else _curved(design, y)
    jacobian = gradient(law, design, theta)
    left = y - height(law, design, theta)
    squares = float(left @ left)
    degrees = len(n) - count
    orthogonal, _ = np.linalg.qr(jacobian)
    return Solution(
        law, theta, squares / degrees * np.linalg.pinv(jacobian.T @ jacobian), degrees, squares, left,
        np.minimum(np.sum(orthogonal**2, axis=1), 1 - CLOSE),
    )  # fmt: skip


def _curved(design: Numbers, y: Numbers) -> Numbers:
    def residuals(theta: Numbers) -> Numbers:
        return np.asarray(theta[0] + np.log(np.maximum(1 + design @ theta[1:], FLOOR)) - y)

    fit = optimize.least_squares(residuals, _first_guess(design, np.exp(y)), x_scale="jac", xtol=1e-14, ftol=1e-14)
    return np.asarray(fit.x, dtype=float)


def _knee(x: Numbers, y: Numbers) -> Numbers:
    """(log base, log knee): between two sizes each part is the mean of its points; else the knee is at a size."""
    places = np.unique(x)
    lines = [(float(np.mean(y - np.maximum(x - knee, 0))), float(knee)) for knee in places]
    for low, high in itertools.pairwise(places):
        base, top = float(np.mean(y[x <= low])), float(np.mean((x - y)[x > low]))
        if low < base + top < high:
            lines.append((base, base + top))
    return np.asarray(min(lines, key=lambda one: float(np.sum((y - one[0] - np.maximum(x - one[1], 0)) ** 2))))


def _first_guess(design: Numbers, demands: Numbers) -> Numbers:
    """Linear least squares of demand = a + b (n - 1) + c n (n - 1) and relative errors; sigma = b/a, kappa = c/a."""
    weighted = np.column_stack([np.ones(len(demands)), design]) / demands[:, None]
    a, *rest = np.linalg.lstsq(weighted, np.ones(len(demands)), rcond=None)[0]
    if a <= 0 or np.any(1 + design @ np.asarray(rest) / a <= 0):
        return np.asarray([math.log(float(demands.min())), *(0.0 for _ in rest)])
    return np.asarray([math.log(a), *(value / a for value in rest)])


def gradient(law: Law, design: Numbers, theta: Numbers) -> Numbers:
    """Gradient of the logarithm of the demand by each parameter; `theta` may be one row or many, one result each."""
    if law == "broken":
        beyond = design[:, 0] > theta[..., 1:]
        return np.stack([np.ones(beyond.shape), -1.0 * beyond], axis=-1)
    inner = np.maximum(1 + theta[..., 1:] @ design.T, FLOOR)
    return np.concatenate([np.ones((*inner.shape, 1)), design / inner[..., None]], axis=-1)


def height(law: Law, design: Numbers, theta: Numbers) -> Numbers:
    """The logarithm of the demand at each size; `theta` may be one row or many."""
    if law == "broken":
        return np.asarray(theta[..., :1] + np.maximum(design[:, 0] - theta[..., 1:], 0))
    return np.asarray(theta[..., :1] + np.log(np.maximum(1 + theta[..., 1:] @ design.T, FLOOR)))


def bootstrap(design: Numbers, solution: Solution, rng: np.random.Generator) -> Draws | None:
    """Fits of `DRAWS` samples of residuals; None for a broken line, or where residuals are rounding or too few draws
    have an error."""
    law = solution.law
    if solution.exact or law == "broken":
        return None
    left = solution.residuals / np.sqrt(1 - solution.leverage)
    left = left - left.mean()
    samples = height(law, design, solution.theta) + rng.choice(left, (DRAWS, len(left)))
    theta = _fit_all(law, design, samples, solution.theta)
    slopes = gradient(law, design, theta)
    squares = np.sum((samples - height(law, design, theta)) ** 2, axis=1)
    products = np.einsum("dni,dnj->dij", slopes, slopes)
    whole = np.isfinite(theta).all(axis=1) & (squares > CLOSE * solution.squares)
    # Hadamard's ratio: 1 if the parameters' gradients are at right angles, 0 if they are collinear.
    whole &= np.linalg.det(products) > CLOSE**2 * np.prod(np.diagonal(products, axis1=1, axis2=2), axis=1)
    if np.mean(whole) < ENOUGH:
        return None
    scale = squares[whole] / solution.degrees
    return Draws(theta[whole], scale[:, None, None] * np.linalg.inv(products[whole]))


def _fit_all(law: Law, design: Numbers, samples: Numbers, first: Numbers) -> Numbers:
    """Gauss and Newton's steps of all samples at once, halved where they would leave the law undefined."""
    theta = np.tile(first, (len(samples), 1))
    ridge = CLOSE * np.eye(len(first))
    for _ in range(ROUNDS):
        slopes = gradient(law, design, theta)
        left = samples - height(law, design, theta)
        products = np.einsum("dni,dnj->dij", slopes, slopes)
        products = products + ridge * np.trace(products, axis1=1, axis2=2)[:, None, None]
        step = np.linalg.solve(products, np.einsum("dni,dn->di", slopes, left)[..., None])[..., 0]
        for _ in range(HALVINGS):
            bad = ((1 + (theta + step)[:, 1:] @ design.T) <= FLOOR).any(axis=1)
            if not bad.any():
                break
            step[bad] *= 0.5
        theta = theta + step
        if float(np.max(np.abs(step))) < CLOSE:
            break
    return theta


@dataclass(frozen=True)
class Interval:
    """Intervals of quantities that are (nearly) linear in the parameters, by bootstrap-t or by t."""

    solution: Solution
    draws: Draws | None
    confidence: float

    @property
    def how(self) -> str:
        """The method in words."""
        degrees = f"{self.solution.degrees} degrees of freedom"
        if self.draws is not None:
            return f"bootstrap-t interval of {DRAWS} draws of residuals ({degrees})"
        if self.solution.law == "broken":
            return f"t interval with {degrees}"
        if self.solution.exact:
            return f"t interval with {degrees}: the points lie on the law, there is nothing to draw from"
        return f"t interval with {degrees}: too few draws of the bootstrap could be fitted"

    def of(
        self, value_of: Callable[[Numbers], Numbers], slope_of: Callable[[Numbers], Numbers]
    ) -> tuple[float, float, float]:
        """(value, low, high) of a quantity: its value and its gradient by the parameters, of one theta or of many."""
        theta = self.solution.theta
        value, slope = float(value_of(theta)), slope_of(theta)
        error = math.sqrt(max(float(slope @ self.solution.covariance @ slope), 0.0))
        if self.draws is None:
            t = t_interval.t_quantile(self.confidence, self.solution.degrees)
            return value, value - t * error, value + t * error
        slopes = np.broadcast_to(slope_of(self.draws.theta), self.draws.theta.shape)
        errors = np.sqrt(np.maximum(np.einsum("di,dij,dj->d", slopes, self.draws.covariance, slopes), 0.0))
        off = value_of(self.draws.theta) - value
        shifts = np.divide(off, errors, out=np.zeros_like(errors), where=errors > 0)
        tail = (1 - self.confidence) / 2
        low, high = (float(one) for one in np.quantile(shifts, [tail, 1 - tail]))
        return value, value - high * error, value - low * error

    def of_parameter(self, index: int) -> tuple[float, float, float]:
        """(value, low, high) of one parameter of theta."""
        unit = np.eye(len(self.solution.theta))[index]
        return self.of(lambda theta: theta[..., index], lambda theta: unit)

    def of_height(self, size: float) -> tuple[float, float, float]:
        """(value, low, high) of the logarithm of the demand at one size."""
        law, design = self.solution.law, columns(self.solution.law, np.asarray([size]))
        return self.of(
            lambda theta: height(law, design, theta)[..., 0], lambda theta: gradient(law, design, theta)[..., 0, :]
        )


def aicc(n: int, solution: Solution) -> float | None:
    """Akaike's criterion, corrected (Hurvich and Tsai 1989): n log(RSS / n) + 2 k + 2 k (k + 1) / (n - k - 1), k
    including the error's variance."""
    k = len(solution.theta) + 1
    if n - k - 1 <= 0 or solution.exact:
        return None
    return n * math.log(solution.squares / n) + 2 * k + 2 * k * (k + 1) / (n - k - 1)


def residual_sd(solution: Solution, confidence: float) -> Estimate:
    """Standard deviation of the residuals: sqrt(squares / degrees) of logarithms, with a chi-squared interval."""
    degrees = solution.degrees
    value, (low, high) = math.sqrt(solution.squares / degrees), estimates.of_deviation(degrees, confidence)
    method = f"standard deviation of residuals of the logarithm, chi-squared interval with {degrees} degrees of freedom"
    return Estimate.of(value, (value * low, value * high), "", confidence, len(solution.residuals), method)


def lack_of_fit(sizes: Sequence[float], demands: Sequence[float], solution: Solution) -> float | None:
    """p of the F test for lack of fit of the law, against the pure error between starts of one size (N. R. Draper,
    H. Smith, Applied Regression Analysis, 3rd edition, section 2.1); None without starts of one size that differ."""
    groups: dict[float, list[float]] = {}
    for size, demand in zip(sizes, demands, strict=True):
        groups.setdefault(size, []).append(math.log(demand))
    pure = sum(float(np.sum((np.asarray(one) - np.mean(one)) ** 2)) for one in groups.values())
    pure_df = len(sizes) - len(groups)
    lack_df = solution.degrees - pure_df
    if pure_df < 1 or lack_df < 1 or math.sqrt(pure / len(sizes)) < FLAT:
        return None
    f = max(solution.squares - pure, 0.0) / lack_df / (pure / pure_df)
    return float(special.fdtrc(lack_df, pure_df, f))


def peak(interval: Interval, n: int, largest: float) -> Estimate | None:
    """Size of the largest throughput: all m for which 1 - sigma - kappa m^2 does not differ from 0 (Fieller)."""
    sigma, kappa = float(interval.solution.theta[1]), float(interval.solution.theta[2])
    if kappa * largest**2 <= FLAT or sigma >= 1 - FLAT:
        return None
    square = (1 - sigma) / kappa

    def holds(m: float) -> bool:
        slope = np.asarray([0.0, -1.0, -m])
        _, low, high = interval.of(lambda theta: 1 - theta[..., 1] - m * theta[..., 2], lambda theta: slope)
        return low <= 0 <= high

    most = (FARTHEST * largest) ** 2
    low = 0.0 if holds(0.0) else _end(holds, square, 0.0)
    high = None if square >= most or holds(most) else _end(holds, square, most)
    method = f"sqrt((1 - sigma) / kappa), sizes at which the slope is not distinguishable from 0, {interval.how}"
    method += "; no upper end: the law may have no peak" if high is None else ""
    ends = math.sqrt(low), None if high is None else math.sqrt(high)
    return Estimate.of(math.sqrt(square), ends, "nodes", interval.confidence, n, method)


def _end(holds: Callable[[float], bool], inside: float, outside: float) -> float:
    """Bisection for the point where `holds` turns false, on logarithms if possible."""
    for _ in range(BISECTIONS):
        middle = math.sqrt(inside * outside) if outside > 0 else inside / 2
        if outside == 0.0 and middle < FLAT:
            return 0.0
        inside, outside = (middle, outside) if holds(middle) else (inside, middle)
        if abs(inside - outside) < FLAT * max(inside, outside):
            break
    return inside
