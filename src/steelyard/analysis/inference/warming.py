"""Test for a warm-up or a trend within a series, by regression on decaying curves with correlated errors.

Logarithms of the values are regressed on one curve at a time in addition to the levels of the series (a level per
treatment of a start, or per trial): steps, ramps and exponentials that settle after k values (k = 1, 2, 3, 5, 8, ...,
at most half of the series), and a line over all of it. The smallest p of these t tests is multiplied by their number
(Bonferroni; O. J. Dunn, Multiple comparisons among means, Journal of the American Statistical Association 56, 1961).
The errors are a first-order autoregression of known correlation: generalised least squares (A. C. Aitken, On least
squares and linear combinations of observations, Proceedings of the Royal Society of Edinburgh 55, 1935), so t is exact
for normal errors of that correlation, and cautious below it. Several series with the same curve are tested as one
regression.

A few trials cannot show their own correlation, so `CORRELATION` is assumed of them; that of seconds is estimated. Ranks
are not used: of nine values no p by ranks survives Holm's correction over the starts of a study.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from steelyard.analysis.inference import estimates
from steelyard.heavy import linalg, np, special
from steelyard.judging import t_interval
from steelyard.model.estimate import Estimate

ALPHA = 0.05
"""Chance of any alarm in a study without a trend, after Holm's correction over all of its tests."""
CORRELATION = 0.3
"""Assumed correlation of consecutive trials, and the smallest of seconds."""
HIGHEST = 0.95
"""Seconds more correlated than this are not tested."""
CERTAIN = 1.5
"""Standard errors that are added to an estimated correlation."""
LEAST_DEGREES = 2
LEAST_ABOUT_CURVE = 5
"""With fewer degrees of freedom the curve that fits best takes too much of the noise away."""
POWER = 0.8
"""Chance with which `least_factor` would be found."""
VANISHES = 1e-6
"""Norm below which a curve cannot be distinguished from the levels."""

Numbers: TypeAlias = "np.ndarray[Any, Any]"


@dataclass(frozen=True)
class Series:
    """Values of one or several starts, with all that the test needs to know of them. All fields have one length."""

    logs: Numbers
    at: Numbers
    """Place within the start, in trials; the first value of a start is at 0."""
    level: Numbers
    """Number of the level that the value belongs to: its treatment in its start, or its trial."""
    block: Numbers
    """Values of different blocks are independent."""
    place: Numbers
    """Place within the block; values one apart have the correlation r, values d apart r^d."""
    settles: tuple[float, ...]
    """Places at which curves settle."""
    steps: bool
    """Whether steps are among the curves: for trials; seconds have none."""

    @property
    def span(self) -> float:
        """Length of the longest start, in trials."""
        return float(self.at.max()) + (1.0 if self.steps else 0.0)


@dataclass(frozen=True)
class Curve:
    """A curve over places: 1 at the beginning, 0 once settled."""

    kind: str
    settles: float

    def of(self, at: Numbers) -> Numbers:
        """Its values at these places."""
        if self.kind == "step":
            return np.asarray((at < self.settles - 1e-9) * 1.0)
        if self.kind == "exponential":
            return np.asarray(np.exp(-2 * at / self.settles))
        return np.asarray(np.clip(1 - at / self.settles, 0.0, None))


def settling_places(values: float) -> tuple[float, ...]:
    """1, 2, 3, 5, 8, ... up to half of the values."""
    places, following = [1.0], 2.0
    while following <= values / 2 + 1e-9:
        places.append(following)
        following = places[-1] + places[-2]
    return tuple(places)


def pooled(series: Sequence[Series]) -> Series:
    """Several series as one: their levels and blocks are different, their curve is the same."""
    levels, blocks, level, block = [], [], 0, 0
    for part in series:
        levels.append(part.level + level)
        blocks.append(part.block + block)
        level, block = int(levels[-1].max()) + 1, int(blocks[-1].max()) + 1
    longest = max(series, key=lambda one: one.span)
    return Series(
        np.concatenate([one.logs for one in series]), np.concatenate([one.at for one in series]),
        np.concatenate(levels), np.concatenate(blocks), np.concatenate([one.place for one in series]),
        longest.settles, longest.steps,
    )  # fmt: skip


@dataclass(frozen=True)
class Fit:
    """A tested series."""

    n: int
    curve: Curve
    """The curve with the smallest p."""
    change: float
    """Logarithm of settled level over first value, by this curve."""
    p: float
    """Corrected for the number of curves."""
    curves: int
    degrees: float
    """Degrees of freedom left by a line."""
    slope: float
    """Change of the logarithm per trial, by a line."""
    slope_norm: float
    """Standard error of the slope, in standard deviations of the noise."""
    noise: float
    """Standard deviation of the noise about a line."""
    noise_about_curve: float
    """The same about a line and the curve, which has one degree of freedom less."""
    third_norm: float
    """Standard error of a warm-up that ends after a third of the series, in standard deviations of the noise."""

    def change_percent(self, detected: bool, confidence: float) -> Estimate:
        """Mean change per trial over the series, by a line, with its t interval.

        What the line leaves of a detected curve is not noise, so the noise is then taken about line and curve, where
        `LEAST_ABOUT_CURVE` degrees of freedom are left.
        """
        about_curve = detected and self.curve.kind != "line" and self.degrees >= LEAST_ABOUT_CURVE
        degrees, noise = (self.degrees - 1, self.noise_about_curve) if about_curve else (self.degrees, self.noise)
        half = t_interval.t_quantile(confidence, degrees) * noise * self.slope_norm
        method = f"line through logarithms, generalised least squares, t with {degrees:.0f} degrees of freedom"
        return estimates.percent(estimates.exponential(self.slope, half, "", confidence, self.n, method))

    def least_factor(self, family: int) -> float:
        """Factor between first value and settled level that would be found with a chance of `POWER`.

        For a warm-up that ends after a third of the series, tested as the first of `family` tests (Holm).
        """
        level = ALPHA / (family * self.curves)
        quantiles = float(special.stdtrit(self.degrees, POWER)) - float(special.stdtrit(self.degrees, level / 2))
        return math.exp(min(quantiles * self.noise * self.third_norm, 600.0))


def fit(series: Series, r: float) -> Fit | None:
    """Test a series for a decaying curve or a line; None if it is too short or does not vary.

    `r`: correlation of neighbours within a block.
    """
    work = _Whitened(series, r)
    degrees = len(series.logs) - work.levels - 1
    if degrees < LEAST_DEGREES:
        return None
    rest = work.residual(series.logs)
    total = float(rest @ rest)
    candidates = []
    for curve in _curves(series):
        x = work.residual(curve.of(series.at))
        norm = float(np.sqrt(x @ x))
        if norm > VANISHES:
            candidates.append((abs(float(x @ rest)) / norm, curve, x, norm))
    if not candidates or total < 1e-20:
        return None
    greatest, curve, x, norm = max(candidates, key=lambda one: one[0])
    error = max(total - greatest**2, total * 1e-12) / degrees
    p = 2 * float(special.stdtr(degrees, -greatest / math.sqrt(error)))
    line = work.residual(series.at)
    line_norm = float(np.sqrt(line @ line))
    left = rest - line * float(line @ rest) / line_norm**2
    across = x - line * float(line @ x) / line_norm**2
    square = float(across @ across)
    more = float(across @ left) ** 2 / square if square > VANISHES else 0.0
    third = work.residual(Curve("ramp", max(series.span / 3, min(series.settles))).of(series.at))
    return Fit(
        n=len(series.logs), curve=curve, change=-float(x @ rest) / norm**2, p=min(1.0, len(candidates) * p),
        curves=len(candidates), degrees=degrees, slope=float(line @ rest) / line_norm**2, slope_norm=1 / line_norm,
        noise=math.sqrt(max(float(left @ left), total * 1e-12) / degrees),
        noise_about_curve=math.sqrt(max(float(left @ left) - more, total * 1e-12) / max(degrees - 1, 1)),
        third_norm=1 / max(float(np.sqrt(third @ third)), VANISHES),
    )  # fmt: skip


def correlation(series: Series) -> float:
    """Correlation of neighbours that a test allows for, at least `CORRELATION`, from what levels and curves leave.

    r = sum e(t) e(t + 1) / sum e(t)^2 falls short by about (1 + 4 r) / n for each mean that is taken out
    (M. G. Kendall, Note on bias in the estimation of autocorrelation, Biometrika 41, 1954); that is added, and
    `CERTAIN` standard errors sqrt((1 - r^2) / n) (M. S. Bartlett, Journal of the Royal Statistical Society 8(1), 1946),
    since a test that takes r for smaller than it is errs too often.
    """
    work = _Whitened(series, 0.0)
    columns = [work.residual(Curve("ramp", part * series.span).of(series.at)) for part in (0.125, 0.5, 1.0)]
    rest = work.residual(series.logs)
    basis = np.linalg.qr(np.column_stack(columns))[0]
    rest = rest - basis @ (basis.T @ rest)
    squares = float(rest @ rest)
    if squares < 1e-20:
        return CORRELATION
    follows = (np.diff(work.block) == 0) & (np.diff(work.place) < 1.5)
    r = float(np.sum((rest[:-1] * rest[1:])[follows])) / squares * len(rest) / max(int(follows.sum()), 1)
    r += (1 + 4 * max(r, 0.0)) * (work.levels + len(columns)) / len(rest)
    r += CERTAIN * math.sqrt(max(1 - r**2, 0.0) / len(rest))
    return max(r, CORRELATION)


def _curves(series: Series) -> list[Curve]:
    curves = [Curve("line", series.span)]
    for place in series.settles:
        curves.append(Curve("exponential", place))
        if series.steps:
            curves.append(Curve("step", place))
        if place > 1 or not series.steps:
            curves.append(Curve("ramp", place))
    return curves


class _Whitened:
    """Values without correlation and without levels: for an autoregression of first order, block by block."""

    def __init__(self, series: Series, r: float) -> None:
        self._order = np.lexsort((series.place, series.block))
        self.block, self.place = series.block[self._order], series.place[self._order]
        follows = np.concatenate([[False], np.diff(self.block) == 0])
        distance = np.concatenate([[1.0], np.maximum(np.diff(self.place), 1e-9)])
        self._weight = np.where(follows & (r > 0), r ** np.where(follows, distance, 1.0), 0.0)
        self._scale = np.where(self._weight > 0, 1 / np.sqrt(1 - self._weight**2), 1.0)
        names, column = np.unique(series.level, return_inverse=True)
        self.levels = len(names)
        indicators = np.zeros((len(series.logs), self.levels))
        indicators[np.arange(len(series.logs)), column] = 1.0
        self._means = self._whiten(indicators)
        # Not an orthonormal basis, which takes ten times as long; means of levels are never nearly the same.
        self._squares = linalg.cho_factor(self._means.T @ self._means)

    def _whiten(self, values: Numbers) -> Numbers:
        ordered = values[self._order]
        before = np.concatenate([ordered[:1], ordered[:-1]])
        shape = (-1, *([1] * (ordered.ndim - 1)))
        return np.asarray((ordered - self._weight.reshape(shape) * before) * self._scale.reshape(shape))

    def residual(self, values: Numbers) -> Numbers:
        """Whitened values without the levels."""
        white = self._whiten(np.asarray(values, dtype=float))
        return np.asarray(white - self._means @ linalg.cho_solve(self._squares, self._means.T @ white))
