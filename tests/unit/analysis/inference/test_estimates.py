from __future__ import annotations

import numpy as np
import pytest
import statsmodels.stats.weightstats as weightstats
from scipy import stats

from steelyard.analysis.inference import estimates
from steelyard.model.estimate import Estimate


def test_t_interval_is_that_of_statsmodels():
    values = [4.1, 3.9, 4.4, 4.0, 4.7]
    found = estimates.mean(values, "s", 0.9, "trials")
    assert (found.low, found.high) == pytest.approx(weightstats.DescrStatsW(values).tconfint_mean(alpha=0.1))
    assert (found.n, found.unit) == (5, "s")


def test_a_meters_gain_error_does_not_average_out():
    """Half width 3 and twice 2% of 100: 5."""
    alone = Estimate.around(100.0, 3.0, "J", 0.95, 5, "mean")
    found = estimates.with_gain_error(alone, 2.0)
    assert (found.low, found.high) == (pytest.approx(95.0), pytest.approx(105.0))
    assert found.method == "mean, and a gain error of the meter of 2% (GUM)"
    assert estimates.with_gain_error(alone, 0.0) == alone
    without = alone.without_interval("mean")
    assert estimates.with_gain_error(without, 2.0) == without


def test_one_value_has_no_interval():
    found = estimates.mean([3.0], "s", 0.95, "trials")
    assert (found.value, found.low, found.high) == (3.0, None, None)


@pytest.mark.parametrize(
    ("n", "rank"), [(5, None), (6, 1), (8, 1), (9, 2), (15, 4), (20, 6), (21, 6), (30, 10), (100, 40)]
)
def test_ranks_of_the_median_interval(n, rank):
    """The ranks of the sign test's table at 95% (e.g. Conover, Practical Nonparametric Statistics)."""
    assert estimates.median_rank(n, 0.95) == rank


def test_the_rank_is_the_largest_that_covers():
    for n in range(6, 60):
        rank = estimates.median_rank(n, 0.95)
        assert rank is not None
        assert 2 * stats.binom.cdf(rank - 1, n, 0.5) <= 0.05 < 2 * stats.binom.cdf(rank, n, 0.5)


@pytest.mark.parametrize("n", [6, 11, 21])
def test_the_median_interval_covers_what_it_promises(n):
    """Skewed data, 3000 samples; the true median of the exponential is log 2."""
    rng = np.random.default_rng(11)
    found = [estimates.median(values, "ms", 0.95) for values in rng.exponential(1.0, (3000, n))]
    assert np.mean([one.low <= np.log(2) <= one.high for one in found]) == pytest.approx(0.95, abs=0.012)


def test_below_six_the_median_has_no_interval():
    assert estimates.median([1, 2, 3, 4, 5], "ms", 0.95).low is None
    six = estimates.median([3, 1, 2, 6, 5, 4], "ms", 0.95)
    assert six.value == 3.5
    assert 1 < six.low < 2
    assert six.low + six.high == pytest.approx(7)


def test_whole_ranks_are_the_ends_where_they_cover_just_what_is_asked():
    for n, k in ((6, 1), (9, 2), (20, 6), (31, 10)):
        covered = 1 - 2 * float(stats.binom.cdf(k - 1, n, 0.5))
        rank, share = estimates.median_ranks(n, covered - 1e-9)
        assert (rank, share) == (k, pytest.approx(0, abs=1e-6))
    rank, share = estimates.median_ranks(31, covered + 1e-9)
    assert (rank, share) == (9, pytest.approx(1, abs=1e-6))


def test_a_bounded_mean_ends_at_its_bounds_and_says_so() -> None:
    inside = estimates.mean_within([4, 5, 6], "%", 0.95, 0, 100)
    assert inside == estimates.mean([4, 5, 6], "%", 0.95, "start means")
    low = estimates.mean_within([0, 0, 3], "%", 0.95, 0, 100)
    assert (low.low, low.method.endswith("2 degrees of freedom, cut at 0")) == (0, True)
    assert low.high == estimates.mean([0, 0, 3], "%", 0.95, "start means").high
    both = estimates.mean_within([0, 50, 100], "%", 0.95, 0, 100)
    assert (both.low, both.high, both.method.endswith("cut at 0 and 100")) == (0, 100, True)


@pytest.mark.parametrize(("values", "why"), [([1, 2], "fewer than three starts"), ([2, 2, 2], "nothing varies")])
def test_a_bounded_mean_without_an_interval_says_why(values: list[float], why: str) -> None:
    estimate = estimates.mean_within(values, "%", 0.95, 0, 100)
    assert (estimate.low, estimate.high) == (None, None)
    assert estimate.method == f"mean over start means; {why}: no interval"
