"""Standard deviations, quartiles and extremes: intervals that hold, and words where there are none."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from steelyard.analysis.inference.estimates import extreme, quartile, standard_deviation


def test_the_interval_of_a_standard_deviation_is_the_textbooks():
    values = [3.0, 5.0, 4.0, 8.0, 6.0]
    found = standard_deviation(values, "ms", 0.95)
    assert found is not None
    squares = 4 * np.var(values, ddof=1)
    assert found.value == pytest.approx(np.std(values, ddof=1))
    assert (found.low, found.high) == pytest.approx(tuple(np.sqrt(squares / stats.chi2.ppf((0.975, 0.025), 4))))
    assert standard_deviation([5.0], "ms", 0.95) is None
    level = standard_deviation([5.0, 5.0], "ms", 0.95)
    assert level is not None
    assert (level.value, level.low, level.high) == (0, None, None), "equal values do not say how much starts differ"


def test_quartiles_have_order_statistics_from_thirteen_values_on():
    assert quartile(range(12), 0.25, "ms", 0.95).low is None
    assert "too few" in quartile(range(12), 0.25, "ms", 0.95).method
    found = quartile([float(value) for value in range(1, 14)], 0.25, "ms", 0.95)
    assert (found.value, found.low, found.high) == (4, 1, 7)
    assert stats.binom.cdf(0, 13, 0.25) <= 0.025 < stats.binom.cdf(1, 13, 0.25)
    assert stats.binom.sf(6, 13, 0.25) <= 0.025 < stats.binom.sf(5, 13, 0.25)
    upper = quartile([float(value) for value in range(1, 14)], 0.75, "ms", 0.95)
    assert (upper.low, upper.high) == (7, 13)


@pytest.mark.parametrize("draw", ["normal", "exponential"])
def test_the_interval_of_a_quartile_holds_whatever_the_distribution(draw):
    rng = np.random.default_rng(3)
    truth = stats.norm.ppf(0.25) if draw == "normal" else stats.expon.ppf(0.25)
    held = []
    for _ in range(400):
        values = rng.normal(size=30) if draw == "normal" else rng.exponential(size=30)
        found = quartile(list(values), 0.25, "ms", 0.95)
        held.append(found.low <= truth <= found.high)
    assert np.mean(held) >= 0.93


def test_an_extreme_says_what_it_is():
    found = extreme(5.0, 6, "ms", 0.95, "least")
    assert (found.value, found.low, found.n) == (5.0, None, 6)
    assert found.method.startswith("least of 6 trials, as measured")
