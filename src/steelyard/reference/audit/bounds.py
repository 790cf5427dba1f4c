"""Sharp bounds of means and standard deviations from counts, order statistics, ranges and means; no models.

Standard deviations have the divisor n - 1 unless a function says otherwise; `ss` is the sum of squared deviations.
"""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from steelyard.heavy import optimize
from steelyard.reference.rounding import EVERYTHING, Interval, hull

Quartiles = Literal["linear", "any"]
"""`linear`: interpolated between order statistics (type 7 of Hyndman and Fan 1996), as pandas and R do by default.
`any`: one of their nine definitions."""

TINY = 1e-200
"""Width of a box that divides nothing."""
SAME_RANK = 1e-9
"""Distance of a rank from a whole number that is floating-point error: (n - 1) x 0.999 of 2,001 is 1998."""
MOST_CORNERS = 12


class Stretch(NamedTuple):
    """Consecutive sorted values with the same bounds: a cell of a million values has a few stretches."""

    n: int
    box: Interval


def ranks(n: int, fraction: float, quartiles: Quartiles) -> tuple[int, int]:
    """The order statistics (from 0) between which the quantile lies, for every definition that `quartiles` allows.

    Hyndman and Fan 1996: Q(p) lies between x(j) and x(j + 1), j = floor(n p + m), -1/2 <= m <= 1.
    """
    if quartiles == "linear" or fraction in (0.0, 1.0):
        at = (n - 1) * fraction
        near = round(at)
        return (near, near) if abs(at - near) < SAME_RANK else (math.floor(at), math.ceil(at))
    low, high = math.floor(n * fraction - 0.5 - SAME_RANK) - 1, math.floor(n * fraction + 1 + SAME_RANK)
    return max(0, low), min(n - 1, high)


def _ranks_or_more(n: int, fraction: float) -> tuple[int, int]:
    """`ranks` of which the shares hold for every count from n on, by any definition; -1 or n where there is none.

    At most floor(n p + 1) + 1 of n values, the share of which only falls towards p, lie below Q(p).
    """
    if fraction in (0.0, 1.0):
        return (-1, 0) if fraction == 0.0 else (n - 1, n)
    return max(-1, math.floor(n * fraction - 0.5) - 2), min(n, math.floor(n * fraction + 1) + 1)


def order_bounds(
    n: int, quantiles: Mapping[float, Interval], quartiles: Quartiles, *, exact: bool = True
) -> list[Stretch]:
    """The interval in which each of n sorted values lies; `quantiles`: 0 is the minimum, 0.5 the median.

    Not `exact`: n is the smallest count; the shares of the stretches then hold for every greater one as well."""
    known = [
        (*(ranks(n, fraction, quartiles) if exact else _ranks_or_more(n, fraction)), value)
        for fraction, value in quantiles.items()
    ]
    cuts = (0, n, *(below + 1 for below, _, _ in known), *(above for _, above, _ in known))
    edges = sorted({cut for cut in cuts if 0 <= cut <= n})
    stretches = []
    for start, end in itertools.pairwise(edges):
        low = max((value.low for _, above, value in known if above <= start), default=-math.inf)
        high = min((value.high for below, _, value in known if below >= end - 1), default=math.inf)
        stretches.append(Stretch(end - start, Interval(low, high)))
    return stretches


def mean_bounds(stretches: Sequence[Stretch]) -> Interval:
    """Range of the mean of values that lie in these boxes."""
    n = sum(stretch.n for stretch in stretches)
    return Interval(sum(k * box.low for k, box in stretches) / n, sum(k * box.high for k, box in stretches) / n)


def ss_bounds(
    boxes: Sequence[Interval],
    weights: Sequence[float] | None = None,
    mean: Interval = EVERYTHING,
    *,
    together: bool = True,
    exact: bool = True,
) -> Interval:
    """Range of the weighted sum of squared deviations from the mean, for values that lie in these boxes.

    Minimum: min over m of the sum of w dist(m, box)^2, a convex function of m. Maximum (without `mean`): every value is
    at an end of its box, the upper one from some box on in the order of their midpoints, because the function is convex
    in each value. With a known mean m it is at most the sum of w max((low - m)^2, (high - m)^2). `together`: a box is
    one value of weight w; else w values, of which some may be at either end (whole numbers of them, if `exact`).
    """
    weights = [1.0] * len(boxes) if weights is None else weights
    step = None if together else 1 if exact else 0
    return Interval(_least(boxes, weights, mean), _greatest(boxes, weights, mean, step))


def stretches_ss(stretches: Sequence[Stretch], mean: Interval = EVERYTHING, *, exact: bool = True) -> Interval:
    """Range of the sum of squared deviations of the values of these stretches."""
    boxes, counts = [stretch.box for stretch in stretches], [float(stretch.n) for stretch in stretches]
    return ss_bounds(boxes, counts, mean, together=False, exact=exact)


def _least(boxes: Sequence[Interval], weights: Sequence[float], mean: Interval) -> float:
    def away(m: float) -> float:
        return sum(w * max(box.low - m, m - box.high, 0.0) ** 2 for w, box in zip(weights, boxes, strict=True))

    def pull(m: float) -> float:
        """Half the slope of `away`, which is linear between two ends of boxes."""
        return sum(w * (max(m - box.high, 0.0) - max(box.low - m, 0.0)) for w, box in zip(weights, boxes, strict=True))

    ends = sorted({end for box in boxes for end in box if math.isfinite(end)})
    if not ends:
        return 0.0
    low, high = max(ends[0], mean.low), min(ends[-1], mean.high)
    if low >= high:
        return away(mean.low if mean.low >= ends[-1] else mean.high if mean.high <= ends[0] else low)
    knots = [low, *(end for end in ends if low < end < high), high]
    pulls = [pull(knot) for knot in knots]
    at = next((index for index, value in enumerate(pulls) if value >= 0), None)
    if at is None or at == 0:
        return away(high if at is None else low)
    before, after = pulls[at - 1], pulls[at]
    return away(knots[at - 1] + (knots[at] - knots[at - 1]) * before / (before - after))


def _greatest(boxes: Sequence[Interval], weights: Sequence[float], mean: Interval, step: int | None) -> float:
    if not all(box.finite for box in boxes):
        return math.inf
    ordered = sorted(zip(boxes, weights, strict=True), key=lambda pair: pair[0].low + pair[0].high)
    shift = ordered[0][0].low
    n = sum(w for _, w in ordered)
    first = sum(w * (box.high - shift) for box, w in ordered)
    second = sum(w * (box.high - shift) ** 2 for box, w in ordered)
    most = second - first**2 / n
    for box, w in ordered:
        slope, curve = box.low - box.high, (box.low - shift) ** 2 - (box.high - shift) ** 2
        moved = [w]
        if step is not None and slope < -TINY:
            # second + j curve - (first + j slope)^2 / n over the j values of this stretch that are at their lower end
            best = min(max((curve * n / (2 * slope) - first) / slope, 0.0), w)
            moved = [best, w] if step == 0 else [math.floor(best), min(math.floor(best) + 1, w), w]
        most = max(most, *(second + j * curve - (first + j * slope) ** 2 / n for j in moved))
        first, second = first + w * slope, second + w * curve
    if not mean.finite:
        return most
    return min(most, max(sum(w * max((box.low - m) ** 2, (box.high - m) ** 2) for box, w in ordered) for m in mean))


def range_ss(n: int, spread: Interval, *, exact: bool = True) -> Interval:
    """Range of the sum of squared deviations of n values with known range.

    Minimum: R^2 / 2, all but two values in the middle (von Szokefalvi Nagy 1918). Maximum: R^2 floor(n/2) ceil(n/2) /
    n, half at each end (Popoviciu 1935; its usual form is variance <= R^2 / 4). Not `exact`: per n, from n on."""
    if not exact:
        return Interval(0.0, spread.high**2 * n / 4)
    return Interval(max(spread.low, 0.0) ** 2 / 2, spread.high**2 * (n // 2) * (n - n // 2) / n)


def mean_ss(n: int, mean: Interval, least: Interval, most: Interval) -> float:
    """The largest sum of squared deviations with known mean, minimum and maximum: n (max - mean)(mean - min).

    Bhatia and Davis 2000, *American Mathematical Monthly* 107(4).
    """
    if not (least.finite and most.finite):
        return math.inf
    middle = min(max((least.low + most.high) / 2, mean.low), mean.high)
    return max(n * (most.high - middle) * (middle - least.low), 0.0)


def merged(cells: Sequence[Sequence[Stretch]]) -> list[Stretch]:
    """Bounds of the sorted values of all cells together: the k-th smallest lies between the k-th smallest of all lows
    and the k-th smallest of all highs."""
    lows = sorted((stretch.box.low, stretch.n) for stretches in cells for stretch in stretches)
    highs = sorted((stretch.box.high, stretch.n) for stretches in cells for stretch in stretches)
    stretches: list[Stretch] = []
    at_low = at_high = 0
    left_low, left_high = lows[0][1], highs[0][1]
    while at_low < len(lows):
        count = min(left_low, left_high)
        stretches.append(Stretch(count, Interval(lows[at_low][0], highs[at_high][0])))
        left_low, left_high = left_low - count, left_high - count
        if not left_low:
            at_low += 1
            left_low = lows[at_low][1] if at_low < len(lows) else 0
        if not left_high:
            at_high += 1
            left_high = highs[at_high][1] if at_high < len(highs) else 0
    return stretches


def quantile_bounds(stretches: Sequence[Stretch], fraction: float, quartiles: Quartiles) -> Interval:
    """Range of a quantile of sorted values, each of which lies in its box."""
    n = sum(stretch.n for stretch in stretches)
    below, above = ranks(n, fraction, quartiles)
    ends = (_box_at(stretches, below), _box_at(stretches, above))
    if quartiles == "any" and fraction not in (0.0, 1.0):
        return hull(ends)
    share = (n - 1) * fraction - below
    if below == above:
        return ends[0]
    return Interval(*(low + (high - low) * share for low, high in zip(*ends, strict=True)))


def _box_at(stretches: Sequence[Stretch], index: int) -> Interval:
    """The box of the value with this index."""
    sums = list(itertools.accumulate(stretch.n for stretch in stretches))
    return stretches[bisect.bisect_right(sums, index)].box


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
