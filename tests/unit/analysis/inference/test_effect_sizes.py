"""Effect sizes against published examples, identities and simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
import statsmodels.api as sm
from scipy import stats
from statsmodels.stats.weightstats import DescrStatsW, ttost_ind, ttost_paired

from steelyard.analysis.inference import effect_sizes, estimates, gaps
from steelyard.analysis.inference.effect_sizes import TwoSamples

CONTROL = [10, 20, 30, 40, 40, 50]
TREATMENT = [10, 10, 20, 20, 20, 30, 30, 30, 40, 50]


def spread(mean: float, sd: float, n: int) -> list[float]:
    z = np.linspace(-1, 1, n)
    return list(mean + sd * z / z.std(ddof=1))


def test_cliffs_delta_is_the_published_example():
    """The example of R's effsize (Torchiano), which its own tests assert."""
    found = effect_sizes.cliffs_delta(TwoSamples(CONTROL, TREATMENT, "trials"), 0.95)
    assert found is not None
    assert found.value == -0.25


def test_the_interval_of_cliffs_delta_is_where_newcombes_score_just_fails():
    """Method 5 of Newcombe 2006, written out again: the distance is z standard errors of the end's own value."""
    found = effect_sizes.cliffs_delta(TwoSamples(CONTROL, TREATMENT, "trials"), 0.95)
    p = (found.value + 1) / 2
    for end in (found.low, found.high):
        q = (end + 1) / 2
        m = (6 + 10) / 2 - 1
        variance = q * (1 - q) / (6 * 10) * (1 + m * (1 - q) / (2 - q) + m * q / (1 + q))
        assert (p - q) ** 2 == pytest.approx(1.959964**2 * variance, rel=1e-6)


def test_cliffs_delta_of_samples_apart_keeps_an_interval():
    found = effect_sizes.cliffs_delta(TwoSamples([1, 2, 3, 4], [5, 6, 7, 8], "trials"), 0.95)
    assert (found.value, found.high) == (1, 1)
    assert found.low < 1
    mirrored = effect_sizes.cliffs_delta(TwoSamples([5, 6, 7, 8], [1, 2, 3, 4], "trials"), 0.95)
    assert mirrored.low == -1
    assert mirrored.high == pytest.approx(-found.low)


def test_too_few_units_have_an_effect_without_an_interval():
    few = effect_sizes.cliffs_delta(TwoSamples([1, 2, 3], [5, 6, 7], "starts"), 0.95)
    assert (few.value, few.low, few.high) == (1, None, None)
    assert "no interval below 4 units" in few.method
    pairs = effect_sizes.cohens_d(TwoSamples([1.0, 2], [2.1, 3], "starts", True), 0.95)
    assert (pairs.low, pairs.high) == (None, None)
    drawn = effect_sizes.bootstrap_ratio(
        TwoSamples([1.0, 2, 3, 4], [2.0, 2, 3, 4], "starts"), np.random.default_rng(1), 0.95
    )
    assert (drawn.low, drawn.value) == (None, pytest.approx(1.1))
    assert "below 5 units" in drawn.method


def test_cohens_d_has_the_standardiser_of_srinadhuni2018():
    """From printed means and deviations: (70 - 60) / sqrt((4^2 + 3^2) / 2)."""
    found = effect_sizes.cohens_d(TwoSamples(spread(60, 4, 12), spread(70, 3, 12), "trials"), 0.95)
    assert found.value == pytest.approx(10 / math.sqrt(12.5))
    assert found.low < found.value < found.high


def test_the_interval_of_d_inverts_noncentral_t():
    a, b = spread(0, 1, 10), spread(1.16275, 1, 10)
    found = effect_sizes.cohens_d(TwoSamples(a, b, "trials"), 0.95)
    t = stats.ttest_ind(b, a).statistic
    scale = math.sqrt(2 / 10)
    assert stats.nct.cdf(t, 18, found.low / scale) == pytest.approx(0.975)
    assert stats.nct.cdf(t, 18, found.high / scale) == pytest.approx(0.025)


def test_hedges_g_shrinks_by_the_exact_factor():
    """J(df), the exact formula of Hedges (1981): 0.5642 for 2, 0.7979 for 4, 0.9228 for 10 degrees of freedom."""
    assert effect_sizes.correction(2) == pytest.approx(0.5642, abs=5e-5)
    assert effect_sizes.correction(4) == pytest.approx(0.7979, abs=5e-5)
    assert effect_sizes.correction(10) == pytest.approx(1 - 3 / (4 * 10 - 1), abs=5e-4)
    a, b = spread(5, 1, 6), spread(7, 1, 6)
    d, g = effect_sizes.cohens_d(TwoSamples(a, b, "t"), 0.95), effect_sizes.hedges_g(TwoSamples(a, b, "t"), 0.95)
    assert g.value == pytest.approx(effect_sizes.correction(10) * d.value)
    assert (g.low, g.high) == pytest.approx((d.low, d.high))


def test_differences_are_scipys():
    a, b = [5.0, 6, 7, 9], [6.0, 8, 8, 12]
    independent = effect_sizes.difference(TwoSamples(a, b, "trials"), "ms", 0.95)
    interval = stats.ttest_ind(b, a, equal_var=False).confidence_interval(0.95)
    assert (independent.low, independent.high) == pytest.approx(tuple(interval))
    paired = effect_sizes.difference(TwoSamples(a, b, "trials", True), "ms", 0.95)
    assert (paired.low, paired.high) == pytest.approx(DescrStatsW(np.subtract(b, a)).tconfint_mean(0.05))


def test_z_and_t_intervals_are_those_of_statsmodels():
    values = [5.0, 6, 7, 9, 4]
    t, z = (make(values, "ms", 0.95, "trials") for make in (estimates.mean, estimates.mean_z))
    assert (t.low, t.high) == pytest.approx(DescrStatsW(values).tconfint_mean(0.05))
    assert (z.low, z.high) == pytest.approx(DescrStatsW(values).zconfint_mean(0.05))


def test_welchs_degrees_are_scipys_for_equal_numbers_and_never_above_it():
    rng = np.random.default_rng(4)
    for n, m in ((4, 4), (2, 9), (3, 5), (12, 5)):
        a, b = rng.normal(10, 1, n), rng.normal(10, 2, m)
        _, degrees = TwoSamples(list(a), list(b), "starts").gap.error()
        oracle = stats.ttest_ind(b, a, equal_var=False)
        assert degrees == pytest.approx(oracle.df) if n == m else degrees <= oracle.df + 1e-9
        if n == m:
            assert effect_sizes.p_of_difference(TwoSamples(list(a), list(b), "starts")) == pytest.approx(oracle.pvalue)
            p = ttost_ind(b, a, -2, 2, usevar="unequal")[0]
            assert gaps.of_samples([list(a), list(b)], [-1, 1]).p_within(2) == pytest.approx(p)
    assert estimates.satterthwaite((1e-9, 1.0), (2, 20)) == pytest.approx(1.2094, abs=1e-4)  # scipy's is 19


def test_paired_p_values_are_scipys():
    a, b = [5.0, 6, 7, 9], [6.0, 8, 8, 12]
    assert effect_sizes.p_of_difference(TwoSamples(a, b, "starts", True)) == pytest.approx(stats.ttest_rel(b, a).pvalue)
    assert gaps.in_blocks([a, b], [-1, 1]).p_within(3) == pytest.approx(
        ttost_paired(np.asarray(b), np.asarray(a), -3, 3)[0]
    )


def test_the_ratio_of_medians_is_the_published_example():
    """`ci.ratio.median2` of R's statpsych (Bonett), whose page prints 1.162162, 0.927667, 1.455933."""
    y2 = [32, 39, 26, 35, 43, 27, 40, 37, 34, 29, 49, 42, 40]
    y1 = [36, 44, 47, 42, 49, 39, 46, 31, 33, 48]
    found = effect_sizes.ratio_of_medians(TwoSamples(y2, y1, "trials"), 0.95)
    assert (found.value, found.low, found.high) == pytest.approx((1.162162, 0.927667, 1.455933), abs=5e-7)


def test_a_ratio_of_deviations_has_ends_where_values_are_hardly_skew():
    a, b = spread(100, 4, 9), spread(100, 8, 9)
    found = effect_sizes.ratio_of_deviations(TwoSamples(a, b, "trials"), 0.95)
    assert found.value == pytest.approx(2)
    assert found.low == pytest.approx(2 / math.sqrt(stats.f.ppf(0.975, 8, 8)))
    assert effect_sizes.ratio_of_deviations(TwoSamples(a, spread(100, 12, 9), "trials"), 0.95).low is None


def test_fieller_is_where_the_test_of_a_ratio_just_fails():
    """Its ends are the r for which level - r baseline differs from 0 with p of exactly 5%."""
    a, b = [10.0, 11, 9, 10.5], [14.0, 15, 16, 13]
    found = effect_sizes.fieller(TwoSamples(a, b, "starts", True), 0.95)
    for end in (found.low, found.high):
        assert stats.ttest_1samp(np.subtract(b, end * np.asarray(a)), 0).pvalue == pytest.approx(0.05)


def test_fieller_has_no_ends_where_the_baseline_is_not_told_from_0():
    found = effect_sizes.fieller(TwoSamples([-10.0, 11, 1], [14.0, 15, 16], "starts"), 0.95)
    assert (found.low, found.high) == (None, None)
    assert "unbounded" in found.method


def test_the_bootstrap_is_seeded_and_holds_its_value():
    rng = np.random.default_rng(1)
    a, b = list(rng.normal(10, 1, 15)), list(rng.normal(13, 1, 15))
    first, again = (
        effect_sizes.bootstrap_ratio(TwoSamples(a, b, "starts"), np.random.default_rng(3), 0.95) for _ in range(2)
    )
    assert first == again
    assert first.low < first.value < first.high
    exact = effect_sizes.fieller(TwoSamples(a, b, "starts"), 0.95)
    assert (first.low, first.high) == pytest.approx((exact.low, exact.high), rel=0.03)


@pytest.mark.parametrize("paired", [False, True])
def test_effects_that_no_spread_supports_have_none(paired):
    assert effect_sizes.cohens_d(TwoSamples([5.0, 5], [6.0, 6], "t", paired), 0.95) is None
    assert effect_sizes.hedges_g(TwoSamples([5.0], [6.0], "t", paired), 0.95) is None
    assert effect_sizes.cliffs_delta(TwoSamples([5.0], [6.0], "t"), 0.95) is None
    assert effect_sizes.difference(TwoSamples([5.0], [6.0], "t", paired), "ms", 0.95) is None
    assert effect_sizes.fieller(TwoSamples([5.0], [6.0], "t", paired), 0.95) is None
    same = effect_sizes.difference(TwoSamples([5.0, 5], [6.0, 6], "t", paired), "ms", 0.95)
    assert (same.value, same.low) == (1, None)
    for ratio in (
        effect_sizes.fieller(TwoSamples([5.0] * 5, [6.0] * 5, "t", paired), 0.95),
        effect_sizes.bootstrap_ratio(TwoSamples([5.0] * 5, [6.0] * 5, "t", paired), np.random.default_rng(1), 0.95),
        effect_sizes.ratio_of_medians(TwoSamples([5.0] * 5, [6.0] * 5, "t"), 0.95),
    ):
        assert (ratio.value, ratio.low) == (pytest.approx(1.2), None)
        assert "nothing varies" in ratio.method


def test_huge_effects_still_have_an_interval_around_them():
    found = effect_sizes.cohens_d(TwoSamples(spread(100, 0.01, 3), spread(200, 0.01, 3), "starts"), 0.95)
    assert found.low is None or found.low < found.value < found.high


@pytest.mark.parametrize("truth", [0.0, 1.5])
def test_intervals_of_effects_cover_the_truth_as_often_as_they_promise(truth):
    """400 simulated studies of eight starts a level; 95% +- 3.3 is three standard errors."""
    rng = np.random.default_rng(11)
    inside = {"d": 0, "fieller": 0, "difference": 0}
    for _ in range(400):
        a, b = list(rng.normal(20, 1, 8)), list(rng.normal(20 + truth, 1, 8))
        d = effect_sizes.cohens_d(TwoSamples(a, b, "s"), 0.95)
        inside["d"] += d.low <= truth <= d.high
        ratio = effect_sizes.fieller(TwoSamples(a, b, "s"), 0.95)
        inside["fieller"] += ratio.low <= (20 + truth) / 20 <= ratio.high
        gap = effect_sizes.difference(TwoSamples(a, b, "s"), "ms", 0.95)
        inside["difference"] += gap.low <= truth <= gap.high
    assert {name: count / 400 for name, count in inside.items()} == pytest.approx(
        dict.fromkeys(inside, 0.95), abs=0.033
    )


def test_partial_eta_squared_is_steigers():
    found = effect_sizes.eta_squared(5.0, 3, 20, 0.95, 24)
    assert found.value == pytest.approx(15 / 35)
    for end, p in ((found.low, 0.975), (found.high, 0.025)):
        shift = end * 24 / (1 - end)  # L / (L + df + error df + 1) = end
        assert stats.ncf.cdf(5.0, 3, 20, shift) == pytest.approx(p)
    assert effect_sizes.eta_squared(0.3, 3, 20, 0.95, 24).low == 0


def test_the_place_comes_out_of_difference_d_and_ratio_alike():
    """Six balanced blocks whose second start is 6% slower: errors are those of a regression with the place."""
    rng = np.random.default_rng(11)
    first = np.asarray([1, 2, 1, 2, 2, 1], dtype=float)
    places = (first, 3 - first)
    a, b = (100 * (1 + 0.06 * (place - 1)) + rng.normal(0, 1, 6) for place in places)
    fitted = sm.OLS(b - a, np.column_stack([np.ones(6), places[1] - places[0]])).fit()
    error, degrees = TwoSamples(a, b, "starts", True, places).gap.error()
    assert (error, degrees) == (pytest.approx(fitted.bse[0]), 4)
    blind = TwoSamples(a, b, "starts", True).gap.error()[0]
    assert error < blind / 2
    gap = effect_sizes.difference(TwoSamples(a, b, "start means", True, places), "ms", 0.95)
    assert (gap.low, gap.high) == pytest.approx(tuple(fitted.conf_int()[0]))
    for size in (effect_sizes.cohens_d, effect_sizes.hedges_g, effect_sizes.fieller):
        with_place, without = (size(TwoSamples(a, b, "start means", True, at), 0.95) for at in (places, None))
        assert with_place.value == without.value
        assert with_place.high - with_place.low < (without.high - without.low) / 1.5
    # Fieller: the ends are the r at which t of l - r b, regressed on the place, is the quantile.
    ratio = effect_sizes.fieller(TwoSamples(a, b, "start means", True, places), 0.95)
    for end in (ratio.low, ratio.high):
        of = sm.OLS(b - end * a, np.column_stack([np.ones(6), places[1] - places[0]])).fit()
        assert abs(of.tvalues[0]) == pytest.approx(stats.t.ppf(0.975, 4))
