"""NIST's Statistical Reference Datasets whose data are a rule: univariate summaries, larger analyses of variance.

The certified values are as NIST prints them; the data are made by the rule that the data set is built on (those of
SmLs02 to SmLs09 were held against NIST's files, value by value). Data sets that are measurements stand in `fixtures`.
"""

from __future__ import annotations

import pytest

from steelyard.analysis.inference import effect_sizes, estimates
from steelyard.analysis.inference.variance_table import table
from steelyard.judging import t_interval


def about(centre: float, n: int) -> list[float]:
    """NumAcc2 to 4: the centre, then 0.1 below and above it in turn."""
    return [centre, *(round(centre + (0.1 if place % 2 else -0.1), 1) for place in range(n - 1))]


@pytest.mark.parametrize(
    ("name", "values", "mean", "sd", "close"),
    [
        ("NumAcc1", [10000001.0, 10000003.0, 10000002.0], 10000002.0, 1.0, 1e-15),
        ("NumAcc2", about(1.2, 1001), 1.2, 0.1, 1e-13),
        ("NumAcc3", about(1000000.2, 1001), 1000000.2, 0.1, 1e-8),
        ("NumAcc4", about(10000000.2, 1001), 10000000.2, 0.1, 1e-7),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_certified_values_of_univariate_summaries(name, values, mean, sd, close):
    """In doubles 0.1 beside ten million has nine digits of its own left, so the deviation cannot have more."""
    found = estimates.mean(values, "", 0.95, "values")
    assert found.value == pytest.approx(mean, rel=1e-15), name
    assert t_interval.deviation(values) == pytest.approx(sd, rel=close)


@pytest.mark.parametrize(
    ("name", "leading", "replicates", "between", "within", "f", "close"),
    [
        ("SmLs02", 1, 201, 1.60800000000000e01, 1.80000000000000e01, 201.0, 1e-12),
        ("SmLs03", 1, 2001, 1.60080000000000e02, 1.80000000000000e02, 2001.0, 1e-12),
        ("SmLs05", 10**6, 201, 1.60800000000000e01, 1.80000000000000e01, 201.0, 1e-9),
        ("SmLs06", 10**6, 2001, 1.60080000000000e02, 1.80000000000000e02, 2001.0, 1e-9),
        ("SmLs08", 10**12, 201, 1.60800000000000e01, 1.80000000000000e01, 201.0, 1e-3),
        ("SmLs09", 10**12, 2001, 1.60080000000000e02, 1.80000000000000e02, 2001.0, 1e-3),
    ],
)
def test_certified_values_of_the_larger_analyses_of_variance(name, leading, replicates, between, within, f, close):
    """Nine treatments about .4, .3, .5, .3 ...; with 13 leading digits a double has three of the data's own."""
    values, groups = [], []
    for treatment, tenths in enumerate((4, 3, 5, 3, 5, 3, 5, 3, 5), start=1):
        for place in range(replicates):
            moved = tenths + (0 if place == 0 else -1 if place % 2 else 1)
            values.append(float(f"{leading}.{moved}"))
            groups.append(treatment)
    found = table(values, {"treatment": groups}, [("treatment",)])
    assert (found.lines[0].df, found.error_df) == (8, 9 * replicates - 9), name
    assert found.lines[0].squares == pytest.approx(between, rel=close)
    assert found.error_squares == pytest.approx(within, rel=close)
    assert found.lines[0].f == pytest.approx(f, rel=close)


@pytest.mark.parametrize("t", [1e9, -1e12])
def test_a_difference_far_beyond_any_spread_has_no_limits(t: float) -> None:
    """Identical trials, as planted laws give, have spreads of rounding alone."""
    assert effect_sizes.noncentral_limits(t, 2.0, 0.95) is None


def test_limits_of_a_noncentrality_are_the_published_ones():
    """R's MBESS (Kelley 2007), `conf.limits.nct(2.83, 126)`, prints 0.8337502 and 4.815359."""
    assert effect_sizes.noncentral_limits(2.83, 126, 0.95) == pytest.approx((0.8337502, 4.815359), abs=5e-7)


def test_limits_of_a_noncentrality_bear_what_scipy_calls_nan():
    """Where t and the noncentrality differ in sign scipy gives NaN for a probability next to 0 or 1."""
    for t, degrees in ((-3.8082465321512298, 15.101434545961533), (5.168724499067302, 32.555524534300986)):
        low, high = effect_sizes.noncentral_limits(t, degrees, 0.95)
        assert low < t < high
