"""Sharp bounds of means and standard deviations from counts, order statistics, ranges and means; no models.

Standard deviations have the divisor n - 1 unless a function says otherwise; `ss` is the sum of squared deviations.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal

from steelyard.heavy import optimize
from steelyard.reference.rounding import EVERYTHING, Interval, hull

Quartiles = Literal["linear", "any"]
"""`linear`: interpolated between order statistics (type 7 of Hyndman and Fan 1996), as pandas and R do by default.
`any`: one of their nine definitions."""

THIRDS = 100
"""Steps of the ternary search for a minimum: (2/3)^100 of the interval is left, less than a float resolves."""
MOST_CORNERS = 12


def ranks(n: int, fraction: float, quartiles: Quartiles) -> tuple[int, int]:
    """The order statistics (from 0) between which the quantile lies, for every definition that `quartiles` allows.

    Hyndman and Fan 1996: Q(p) lies between x(j) and x(j + 1), j = floor(n p + m), -1/2 <= m <= 1.
    """
    if quartiles == "linear" or fraction in (0.0, 0.5, 1.0):
        at = (n - 1) * fraction
        return math.floor(at), math.ceil(at)
    low, high = math.floor(n * fraction - 0.5) - 1, math.floor(n * fraction + 1)
    return max(0, low), min(n - 1, high)


def order_bounds(n: int, quantiles: Mapping[float, Interval], quartiles: Quartiles) -> list[Interval]:
    """The interval in which each of n sorted values lies; `quantiles`: 0 is the minimum, 0.5 the median."""
    lows, highs = [-math.inf] * n, [math.inf] * n
    for fraction, value in quantiles.items():
        below, above = ranks(n, fraction, quartiles)
        highs[below] = min(highs[below], value.high)
        lows[above] = max(lows[above], value.low)
    for index in range(1, n):
        lows[index] = max(lows[index], lows[index - 1])
        highs[n - 1 - index] = min(highs[n - 1 - index], highs[n - index])
    return [Interval(low, high) for low, high in zip(lows, highs, strict=True)]


def mean_bounds(boxes: Sequence[Interval]) -> Interval:
    """Range of the mean of values that lie in these boxes."""
    return Interval(sum(box.low for box in boxes) / len(boxes), sum(box.high for box in boxes) / len(boxes))


def ss_bounds(
    boxes: Sequence[Interval], weights: Sequence[float] | None = None, mean: Interval = EVERYTHING
) -> Interval:
    """Range of the weighted sum of squared deviations from the mean, for values that lie in these boxes.

    Minimum: min over m of the sum of w dist(m, box)^2, a convex function of m. Maximum (without `mean`): every value is
    at an end of its box, the upper one from some box on in the order of their midpoints, because the function is convex
    in each value. With a known mean m it is at most the sum of w max((low - m)^2, (high - m)^2).
    """
    weights = [1.0] * len(boxes) if weights is None else weights
    return Interval(_least(boxes, weights, mean), _greatest(boxes, weights, mean))


def _least(boxes: Sequence[Interval], weights: Sequence[float], mean: Interval) -> float:
    def away(m: float) -> float:
        return sum(w * max(box.low - m, m - box.high, 0.0) ** 2 for w, box in zip(weights, boxes, strict=True))

    ends = [end for box in boxes for end in box if math.isfinite(end)]
    if not ends:
        return 0.0
    if mean.low >= max(ends) or mean.high <= min(ends):
        return away(mean.low if mean.low >= max(ends) else mean.high)
    low, high = max(min(ends), mean.low), min(max(ends), mean.high)
    for _ in range(THIRDS):
        left, right = low + (high - low) / 3, high - (high - low) / 3
        if away(left) <= away(right):
            high = right
        else:
            low = left
    return away((low + high) / 2)


def _greatest(boxes: Sequence[Interval], weights: Sequence[float], mean: Interval) -> float:
    if not all(box.finite for box in boxes):
        return math.inf
    ordered = sorted(zip(boxes, weights, strict=True), key=lambda pair: pair[0].low + pair[0].high)
    shift = ordered[0][0].low
    sums = [sum(w for _, w in ordered), 0.0, 0.0]
    for box, w in ordered:
        sums[1] += w * (box.high - shift)
        sums[2] += w * (box.high - shift) ** 2
    most = sums[2] - sums[1] ** 2 / sums[0]
    for box, w in ordered:
        sums[1] += w * (box.low - box.high)
        sums[2] += w * ((box.low - shift) ** 2 - (box.high - shift) ** 2)
        most = max(most, sums[2] - sums[1] ** 2 / sums[0])
    if not mean.finite:
        return most
    return min(most, max(sum(w * max((box.low - m) ** 2, (box.high - m) ** 2) for box, w in ordered) for m in mean))


def range_ss(n: int, spread: Interval) -> Interval:
    """Range of the sum of squared deviations of n values with known range.

    Minimum: R^2 / 2, all but two values in the middle (von Szokefalvi Nagy 1918). Maximum: R^2 floor(n/2) ceil(n/2) /
    n, half at each end (Popoviciu 1935; its usual form is variance <= R^2 / 4)."""
    return Interval(max(spread.low, 0.0) ** 2 / 2, spread.high**2 * (n // 2) * (n - n // 2) / n)


def mean_ss(n: int, mean: Interval, least: Interval, most: Interval) -> float:
    """The largest sum of squared deviations with known mean, minimum and maximum: n (max - mean)(mean - min).

    Bhatia and Davis 2000, *American Mathematical Monthly* 107(4).
    """
    if not (least.finite and most.finite):
        return math.inf
    middle = min(max((least.low + most.high) / 2, mean.low), mean.high)
    return max(n * (most.high - middle) * (middle - least.low), 0.0)


def merged(cells: Sequence[Sequence[Interval]]) -> list[Interval]:
    """Bounds of the sorted values of all cells together: the k-th smallest lies between the k-th smallest of all lows
    and the k-th smallest of all highs."""
    lows = sorted(box.low for boxes in cells for box in boxes)
    highs = sorted(box.high for boxes in cells for box in boxes)
    return [Interval(low, high) for low, high in zip(lows, highs, strict=True)]


def quantile_bounds(boxes: Sequence[Interval], fraction: float, quartiles: Quartiles) -> Interval:
    """Range of a quantile of sorted values, each of which lies in its box."""
    below, above = ranks(len(boxes), fraction, quartiles)
    if quartiles == "any" and fraction not in (0.0, 0.5, 1.0):
        return hull((boxes[below], boxes[above]))
    share = (len(boxes) - 1) * fraction - below
    ends = (boxes[below], boxes[above])
    if share == 0:
        return ends[0]
    return Interval(*(low + (high - low) * share for low, high in zip(*ends, strict=True)))


def misfit_ss(xs: Sequence[float], counts: Sequence[int], means: Sequence[Interval]) -> Interval:
    """Range of the weighted sum of squared distances of cell means from their least-squares line.

    Minimum: a bounded least-squares problem (scipy.optimize.lsq_linear). Maximum: at corners, because it is convex;
    above 12 cells the sum about the mean, which is never smaller, is used instead.
    """
    import numpy as np

    if len(xs) < 3:
        return Interval(0.0, 0.0)
    roots = np.sqrt(np.asarray(counts, dtype=float))
    design = np.column_stack([roots, roots * np.asarray(xs, dtype=float)])
    basis, _ = np.linalg.qr(design)
    residual = (np.eye(len(xs)) - basis @ basis.T) * roots
    lows, highs = (np.asarray(ends, dtype=float) for ends in zip(*means, strict=True))
    scale = float(np.max(np.abs([lows, highs]))) or 1.0
    widest = np.maximum(highs / scale, lows / scale + 1e-12)
    solution = optimize.lsq_linear(residual, np.zeros(len(xs)), bounds=(lows / scale, widest), method="bvls")
    least = max(0.0, (2 * float(solution.cost) - 1e-12) * scale**2 * (1 - 1e-6))
    if len(xs) > MOST_CORNERS:
        return Interval(least, ss_bounds(means, [float(n) for n in counts]).high)
    corners = np.asarray(np.meshgrid(*zip(lows, highs, strict=True))).reshape(len(xs), -1)
    return Interval(least, float(np.max(np.sum((residual @ corners) ** 2, axis=0))))
