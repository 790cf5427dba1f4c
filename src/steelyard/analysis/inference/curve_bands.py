"""Bands of a mean curve: for all of its seconds together, or for each alone.

A pointwise band over 300 s leaves out a curve that is true somewhere in nearly every study, so no difference may be
read from it. The simultaneous band is sup-t: centre +- c times the standard error of each second, where c is the
quantile of the largest |t| over the seconds when the deviations of whole curves from their mean have their signs
flipped, each t with its own standard error (R. Davidson, E. Flachaire, The wild bootstrap, tamed at last, Journal of
Econometrics 146, 2008: signs). Whole curves are flipped, so it needs no model of how seconds depend on one another.
"""

from __future__ import annotations

import itertools
import math
from typing import Any, Final, Literal, NamedTuple

from steelyard.heavy import np
from steelyard.judging.t_interval import half_width

BandKind = Literal["simultaneous", "pointwise", "none"]
FEWEST_POINTWISE: Final = 5
"""Curves from which there is a pointwise band."""
MOST_SIGNS: Final = 1024
"""Signs of curves that are tried: all of them up to eleven curves, beyond that a draw."""


class Band(NamedTuple):
    """The mean of some curves with its band."""

    kind: BandKind
    centre: Any
    half: Any
    """Half the width of the band at each second; not a number where there is none, or nothing varies."""


def band(curves: Any, confidence: float, rng: np.random.Generator) -> Band:
    """The band of curves, a row each. None below FEWEST_POINTWISE; simultaneous where one choice of all signs is
    rarer than 1 - confidence, at 95% from six curves on. Raises ValueError for no curve."""
    n = len(curves)
    if not n:
        raise ValueError("the mean of no curves")
    centre = np.mean(curves, axis=0)
    if n < FEWEST_POINTWISE:
        return Band("none", centre, np.full_like(centre, math.nan))
    deviations = curves - centre
    spread = np.sqrt(np.sum(deviations**2, axis=0) / (n - 1))
    # Sums of equal values differ by rounding.
    spread[spread <= 1e-9 * np.max(np.abs(curves), axis=0)] = math.nan
    if 2.0 ** (1 - n) > 1 - confidence:
        return Band("pointwise", centre, half_width(spread, n, confidence))
    varying = deviations[:, np.isfinite(spread)]
    factor = largest_t(varying, confidence, rng) if varying.size else math.nan
    return Band("simultaneous", centre, factor * spread / math.sqrt(n))


def largest_t(deviations: Any, confidence: float, rng: np.random.Generator) -> float:
    """Quantile of the largest |t| over the seconds, over signs of the curves' deviations from their mean. A sign and
    its opposite are one, so that the first curve keeps its own."""
    n = len(deviations)
    if 2 ** (n - 1) <= MOST_SIGNS:
        signs = np.array([(1.0, *others) for others in itertools.product((1.0, -1.0), repeat=n - 1)])
    else:
        signs = np.column_stack([np.ones(MOST_SIGNS), rng.choice([-1.0, 1.0], (MOST_SIGNS, n - 1))])
    means = signs @ deviations / n
    squares = np.sum(deviations**2, axis=0)
    errors = np.sqrt(np.maximum(squares - n * means**2, 1e-12 * squares) / (n * (n - 1)))
    return float(np.quantile(np.max(np.abs(means) / errors, axis=1), confidence, method="inverted_cdf"))
