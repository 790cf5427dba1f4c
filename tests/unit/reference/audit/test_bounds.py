"""Bounds hold for every sample, and are sharp where a sample reaches them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from steelyard.reference.audit import bounds
from steelyard.reference.audit.regression_rows import Group, fitted
from steelyard.reference.rounding import Interval, exactly

METHODS = (
    "inverted_cdf", "averaged_inverted_cdf", "closest_observation", "interpolated_inverted_cdf", "hazen", "weibull",
    "linear", "median_unbiased", "normal_unbiased",
)  # fmt: skip
"""The nine definitions of Hyndman and Fan."""
SAMPLES = st.lists(st.floats(0, 1000), min_size=2, max_size=60)


def around(value: float, width: float = 0.5) -> Interval:
    return Interval(value - width, value + width)


def boxes_of(stretches: list[bounds.Stretch]) -> list[Interval]:
    """The box of each value."""
    return [stretch.box for stretch in stretches for _ in range(stretch.n)]


def inside(value: float, interval: Interval, slack: float = 1e-6) -> bool:
    room = slack * max(1.0, abs(value))
    return interval.low - room <= value <= interval.high + room


@settings(max_examples=150, deadline=None)
@given(SAMPLES, st.sampled_from(METHODS), st.floats(0, 3))
def test_order_bounds_hold_for_all_nine_quartiles(sample: list[float], method: str, width: float) -> None:
    values = np.sort(sample)
    marks = {share: around(float(np.quantile(values, share, method=method)), width) for share in (0.25, 0.75)}
    marks |= {
        0.0: around(values[0], width),
        0.5: around(float(np.median(values)), width),
        1.0: around(values[-1], width),
    }
    ways: tuple[bounds.Quartiles, ...] = ("linear", "any") if method == "linear" else ("any",)
    for quartiles in ways:
        stretches = bounds.order_bounds(len(values), marks, quartiles)
        boxes = boxes_of(stretches)
        assert all(inside(value, box) for value, box in zip(values, boxes, strict=True))
        assert inside(values.mean(), bounds.mean_bounds(stretches))
        ss = float(((values - values.mean()) ** 2).sum())
        assert inside(ss, bounds.ss_bounds(boxes))
        assert inside(ss, bounds.ss_bounds(boxes, None, around(values.mean(), width)))
        assert bounds.stretches_ss(stretches) == pytest.approx(bounds.ss_bounds(boxes), rel=1e-9, abs=1e-6)
        assert inside(ss, bounds.range_ss(len(values), around(values[-1] - values[0], width)))
        assert (
            ss <= bounds.mean_ss(len(values), around(values.mean(), width), marks[0.0], marks[1.0]) * (1 + 1e-9) + 1e-6
        )


def test_bounds_are_reached() -> None:
    n = 21
    half = [0.0] * 10 + [1.0] * 11
    middle = [0.0, 1.0] + [0.5] * (n - 2)
    greatest, least = (sum((x - sum(sample) / n) ** 2 for x in sample) for sample in (half, middle))
    assert bounds.range_ss(n, exactly(1.0)) == pytest.approx((least, greatest))
    boxes = boxes_of(bounds.order_bounds(n, {0.0: exactly(0.0), 1.0: exactly(1.0)}, "linear"))
    assert bounds.ss_bounds(boxes) == pytest.approx((least, greatest), rel=1e-9)
    two = [0.0] * 6 + [1.0] * 15
    assert bounds.mean_ss(n, exactly(15 / 21), exactly(0.0), exactly(1.0)) == pytest.approx(
        sum((x - 15 / 21) ** 2 for x in two)
    )
    assert bounds.ss_bounds(boxes, None, exactly(15 / 21)).low > least


@settings(max_examples=100, deadline=None)
@given(st.lists(SAMPLES, min_size=2, max_size=5), st.floats(0, 3), st.sampled_from((0.25, 0.5, 0.75)))
def test_pooled_quantiles(samples: list[list[float]], width: float, share: float) -> None:
    cells = []
    for sample in samples:
        marks = {p: around(float(np.quantile(sample, p)), width) for p in (0.0, 0.25, 0.5, 0.75, 1.0)}
        cells.append(bounds.order_bounds(len(sample), marks, "linear"))
    together = np.concatenate([np.asarray(sample) for sample in samples])
    stretches = bounds.merged(cells)
    assert inside(float(np.quantile(together, share)), bounds.quantile_bounds(stretches, share, "linear"))
    assert inside(
        float(np.quantile(together, share, method="weibull")), bounds.quantile_bounds(stretches, share, "any")
    )


GROUPS = st.lists(st.lists(st.floats(0, 1000), min_size=2, max_size=15), min_size=2, max_size=6)


@settings(max_examples=100, deadline=None)
@given(GROUPS, st.floats(0.001, 5))
def test_a_line_from_summaries_is_the_line_through_the_values(samples: list[list[float]], width: float) -> None:
    x = [float(at) for at, sample in enumerate(samples) for _ in sample]
    y = [value for sample in samples for value in sample]
    if len(set(y)) < 3 or float(np.std(y)) < 1e-3:
        return
    groups = [
        Group(float(at), len(one), around(float(np.mean(one)), width), around(float(np.std(one, ddof=1)), width), "")
        for at, one in enumerate(samples)
    ]
    true, allowed = stats.linregress(x, y), fitted(groups, (1,))
    assert inside(true.slope, allowed.slope)
    assert inside(true.intercept, allowed.intercept)
    assert inside(true.rvalue, allowed.r)
    assert inside(true.stderr, allowed.std_err)


def test_without_rounding_the_line_is_exact() -> None:
    rng = np.random.default_rng(7)
    samples = [rng.normal(100 * at, 5, 21) for at in range(1, 5)]
    groups = [
        Group(float(at), 21, exactly(float(one.mean())), exactly(float(one.std(ddof=1))), "")
        for at, one in enumerate(samples, start=1)
    ]
    true = stats.linregress(np.repeat([1, 2, 3, 4], 21), np.concatenate(samples))
    allowed = fitted(groups, (1,))
    for value, interval in ((true.slope, allowed.slope), (true.rvalue, allowed.r), (true.stderr, allowed.std_err)):
        assert interval.high - interval.low < 1e-5 * abs(value)
        assert inside(value, interval)


def test_what_has_no_line() -> None:
    one = Group(1.0, 5, exactly(1.0), exactly(1.0), "")
    with pytest.raises(ValueError, match="two different x"):
        fitted([one, one], (1,))


def test_open_boxes() -> None:
    boxes = boxes_of(bounds.order_bounds(5, {0.5: exactly(3.0)}, "any"))
    assert boxes[0] == Interval(-math.inf, 3.0)
    assert bounds.ss_bounds(boxes).low == 0
    assert bounds.ss_bounds(boxes).high == math.inf


@settings(max_examples=100, deadline=None)
@given(SAMPLES, st.integers(2, 60), st.sampled_from((0.5, 0.9, 0.95, 0.99)), st.sampled_from(METHODS))
def test_bounds_for_a_count_and_all_above_it(sample: list[float], fewest: int, share: float, method: str) -> None:
    """What is allowed for 'at least so many values' holds for every larger sample."""
    values = np.sort(np.tile(sample, -(-fewest // len(sample))))
    marks = {0.0: exactly(values[0]), share: exactly(float(np.quantile(values, share, method=method))),
             1.0: exactly(values[-1])}  # fmt: skip
    stretches = bounds.order_bounds(fewest, marks, "any", exact=False)
    assert inside(float(values.mean()), bounds.mean_bounds(stretches))
    variance = float(values.var())
    assert variance <= bounds.stretches_ss(stretches, exact=False).high / fewest * (1 + 1e-9) + 1e-6
    assert variance >= bounds.stretches_ss(stretches, exact=False).low / fewest * (1 - 1e-9) - 1e-6
    assert variance <= bounds.range_ss(fewest, exactly(values[-1] - values[0]), exact=False).high / fewest + 1e-6
