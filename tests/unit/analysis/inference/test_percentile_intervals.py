"""Percentiles within a trial: order statistics of histograms, and what parts of time that are alike are worth."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some
from scipy import signal, stats

from steelyard.analysis.inference import percentile_intervals
from steelyard.analysis.inference.percentile_intervals import HistogramSeries, below, quantile, shares, worth_of
from steelyard.model import histogram, percentiles
from steelyard.model.histogram import Bucket
from steelyard.model.percentiles import needed, supported


def buckets_of(values_ms: np.ndarray, width_ns: int = 1000) -> list[Bucket]:
    places, counts = np.unique((values_ms * 1e6 // width_ns).astype(np.int64), return_counts=True)
    return [(int(p * width_ns), int(p * width_ns) + width_ns - 1, int(c)) for p, c in zip(places, counts, strict=True)]


def even(n: int, q: float) -> list[tuple[int, int]]:
    """Parts of time that do not differ: operations are as if independent."""
    return [(n // percentile_intervals.PARTS, round(q * n / percentile_intervals.PARTS))] * percentile_intervals.PARTS


def test_a_trial_of_few_seconds_has_no_interval() -> None:
    """Of 2 s, binomial limits held the p99 of a queue at 80% load in 16% of trials."""
    found = quantile(buckets_of(np.linspace(1, 100, 5000)), 0.95, even(5000, 0.95)[:11])
    assert found is not None
    assert (found.low, found.high) == (None, None)
    assert found.method == "its operations are not independent, and 11 parts of time cannot say how far: no interval"


def test_the_threshold_is_named() -> None:
    assert [needed(q) for q in (0.5, 0.95, 0.99, 0.999)] == [20, 200, 1000, 10_000]
    assert supported(0.99, 1000)
    assert not supported(0.99, 999)
    few = buckets_of(np.arange(1.0, 1000.0))
    assert quantile(few, 0.99) is None
    assert quantile(few, 0.95) is not None
    assert quantile([], 0.5) is None


@pytest.mark.parametrize("q", [0.5, 0.95, 0.99])
def test_independent_operations_are_binomial(q: float) -> None:
    """The ranks are those that scipy's own exact interval of a share gives, and cover what they promise."""
    n = 10_000
    low, high = shares(q, n, 0.95)
    exact = stats.binomtest(round(q * n), n).proportion_ci(method="exact")
    assert (low, high) == pytest.approx((exact.low, exact.high), rel=1e-9)
    first, last = math.floor(low * n), math.ceil(high * n) + 1
    covered = stats.binom.cdf(last - 1, n, q) - stats.binom.cdf(first - 1, n, q)
    assert 0.95 <= covered < 0.965
    found = quantile(buckets_of(np.arange(1.0, n + 1)), q, even(n, q))
    assert found is not None
    assert found.low is not None
    assert found.high is not None
    assert (found.low, found.high) == pytest.approx((first, last), abs=0.002)
    assert found.value == pytest.approx(q * n, abs=0.002)
    assert "taken as independent" in found.method


def test_the_width_of_buckets_is_inside() -> None:
    coarse = quantile(buckets_of(np.linspace(1, 100, 5000), 5_000_000), 0.95, even(5000, 0.95))
    fine = quantile(buckets_of(np.linspace(1, 100, 5000)), 0.95, even(5000, 0.95))
    assert coarse is not None
    assert fine is not None
    assert (coarse.low or 0) < (fine.low or 0)
    assert (coarse.high or 0) > (fine.high or 0)


def test_operations_that_are_alike_are_worth_less() -> None:
    """Response times as an autoregression: the binomial interval covers half of the time, that over parts holds."""
    rng = np.random.default_rng(5)
    n, studies = 12_000, 150
    held = {"independent": 0, "parts": 0}
    truth = math.exp(float(stats.norm.ppf(0.95)))
    for _ in range(studies):
        noise = rng.normal(0, math.sqrt(1 - 0.9**2), n + 300)
        values = np.exp(signal.lfilter([1], [1, -0.9], noise)[300:])
        whole = buckets_of(values)
        parts = [buckets_of(one) for one in values.reshape(percentile_intervals.PARTS, -1)]
        at = percentiles.quantile_ns(whole, 0.95)
        assert at is not None
        for name, told in (("independent", even(n, 0.95)), ("parts", below(parts, at))):
            found = quantile(whole, 0.95, told)
            assert found is not None
            held[name] += (found.low or 0) <= truth <= (found.high or math.inf)
    assert held["independent"] / studies < 0.7
    assert held["parts"] / studies > 0.9


@given(some.lists(some.tuples(some.integers(1, 1000), some.integers(0, 1000)), min_size=2, max_size=30))
def test_parts_are_never_worth_more_than_their_count(pairs: list[tuple[int, int]]) -> None:
    parts = [(n, min(n, k)) for n, k in pairs]
    worth = worth_of(parts)
    assert worth is None or 0 < worth <= sum(n for n, _ in parts)


def test_a_pause_that_takes_a_whole_part_leaves_little() -> None:
    parts = [(1000, 1000)] * 19 + [(1000, 800)]
    worth = worth_of(parts)
    assert worth is not None
    assert worth < 200
    whole = [(0, 999, 19_800), (5_000_000, 5_000_999, 200)]
    found = quantile(whole, 0.99, parts)
    assert found is not None
    assert "likely too narrow" in found.method


@given(some.integers(1, 700))
def test_a_course_loses_no_whole_piece_and_stays_small(pieces: int) -> None:
    course = HistogramSeries()
    for _ in range(pieces):
        course.add([(1, 1, 1)])
    parts = course.parts()
    assert len(parts) <= 2 * percentile_intervals.PARTS
    if pieces < percentile_intervals.FEWEST_PARTS:
        assert parts == []
    else:
        assert sum(map(histogram.total, parts)) > 0.9 * pieces - 16
