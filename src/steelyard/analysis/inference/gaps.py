"""Gap between means: its standard error and degrees of freedom, in whole blocks or between independent samples.

Whole blocks (a randomised complete block design; R. A. Fisher, The Design of Experiments, 1935): with y(h, b) the mean
of level h in block b, a contrast sum of w(h) y(h, .) has the variance s^2 sum w(h)^2 / B, s^2 the mean square of what
the means of levels and of blocks leave, (H - 1)(B - 1) degrees of freedom; of two levels it is Student's paired t. The
place at which a level stood within its block is taken out of the error as a straight line, with one degree of freedom,
where that leaves the contrast as it is: from FEWEST_FOR_PLACE blocks on, over which the levels had their places equally
often (analysis of covariance: W. G. Cochran, Biometrics 13(3), 1957).

Independent samples: the sum of their variances, degrees of freedom by `satterthwaite`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from steelyard.analysis.inference import estimates
from steelyard.heavy import np, special
from steelyard.judging import t_interval
from steelyard.judging.t_interval import FEWEST_FOR_PLACE

TINY = 1e-9
ROUNDING = 1e-28
"""A sum of squares below this share of the values' own is rounding."""


@dataclass(frozen=True)
class Gap:
    """A weighted sum of means, and what its error is made of."""

    value: float
    samples: tuple[tuple[float, int], ...]
    """Variance of one unit and number of units, of each independent sample; of blocks there is one."""
    levels: int = 2
    """Levels of each block."""
    place: bool = False
    """The place within the block is taken out of the variance."""
    ordered: bool = False
    """The places within the blocks are known: further blocks may balance them, and the place then comes out."""

    def error(self, more: int = 0) -> tuple[float, float]:
        """(standard error, degrees of freedom), with `more` further units in each sample."""
        sizes = [n + more for _, n in self.samples]
        parts = [variance / n for (variance, _), n in zip(self.samples, sizes, strict=True)]
        if len(sizes) == 1:
            place = self.place or (more > 0 and self.ordered and sizes[0] >= FEWEST_FOR_PLACE)
            degrees = float((self.levels - 1) * (sizes[0] - 1) - place)
        else:
            degrees = estimates.satterthwaite(parts, sizes)
        return math.sqrt(math.fsum(parts)), degrees

    def half(self, confidence: float) -> float:
        """Half of the interval's width: t times the standard error."""
        error, degrees = self.error()
        return t_interval.t_quantile(confidence, degrees) * error

    def p(self) -> float:
        """Two-sided p that the gap is 0."""
        error, degrees = self.error()
        return 2 * float(special.stdtr(degrees, -abs(self.value) / error))

    def p_within(self, bound: float) -> float:
        """The greater p of two one-sided t tests that the gap lies within -bound and bound (Schuirmann 1987)."""
        error, degrees = self.error()
        return max(float(special.stdtr(degrees, -(bound + side * self.value) / error)) for side in (-1, 1))


def in_blocks(
    values: Sequence[Sequence[float]], weights: Sequence[float], places: Sequence[Sequence[float]] | None = None
) -> Gap:
    """The gap of levels that were all tried in each block: shape (levels, blocks), two blocks or more.

    `weights`: one per level, with the sum 0; `places`: at which place each level stood in each block.
    """
    y, w = np.asarray(values, dtype=float), np.asarray(weights, dtype=float)
    levels, n = y.shape
    rest = _centred(y)
    squares, degrees = float((rest**2).sum()), (levels - 1) * (n - 1)
    if squares <= ROUNDING * float((y**2).sum()):
        squares = 0.0
    place = places is not None and place_comes_out(places, weights)
    if place:
        along = _centred(np.asarray(places, dtype=float))
        squares, degrees = squares - float((along * rest).sum()) ** 2 / float((along**2).sum()), degrees - 1
    variance = max(squares, 0.0) / degrees * float((w**2).sum())
    return Gap(float(w @ y.mean(axis=1)), ((variance, n),), levels, place, places is not None)


def place_comes_out(places: Sequence[Sequence[float]] | np.ndarray, weights: Sequence[float] | np.ndarray) -> bool:
    """Whether the place within the block is taken out of the error: it leaves the contrasts as they are.

    `places`: shape (levels, blocks); `weights`: shape (levels,), or (contrasts, levels).
    """
    x = np.asarray(places, dtype=float)
    if x.shape[1] < FEWEST_FOR_PLACE or float((_centred(x) ** 2).sum()) <= TINY:
        return False
    return float(np.abs(np.asarray(weights, dtype=float) @ x.mean(axis=1)).max()) < TINY


def _centred(y: np.ndarray) -> np.ndarray:
    """Residuals after the means of rows and of columns."""
    return np.asarray(y - y.mean(axis=1, keepdims=True) - y.mean(axis=0) + y.mean())


def of_samples(samples: Sequence[Sequence[float]], signs: Sequence[float]) -> Gap:
    """The sum of sign x mean over independent samples, two values or more in each."""
    value = math.fsum(sign * math.fsum(one) / len(one) for sign, one in zip(signs, samples, strict=True))
    return Gap(value, tuple((t_interval.deviation(one) ** 2, len(one)) for one in samples))
