from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.weightstats import ttost_paired

from steelyard.analysis.analyse import analyse
from steelyard.analysis.comparisons import level_pairs
from steelyard.analysis.comparisons.level_pairs import LevelPair
from steelyard.analysis.inference import multiplicity
from steelyard.analysis.statistics import effect_line
from steelyard.analysis.statistics.anova import AnovaTerm
from steelyard.analysis.statistics.comparison import compare, comparisons
from steelyard.analysis.statistics.differential import differentials
from steelyard.analysis.statistics.effect import Effect, effects_of
from steelyard.analysis.statistics.post_hoc import PostHoc, post_hoc
from steelyard.analysis.statistics.speedup import speedups
from steelyard.analysis.tables import tables
from tests.unit.analysis.made import cell, drawn, frame, record, study

TIME = "execution_time_ms"


def rng() -> np.random.Generator:
    return np.random.default_rng(1)


def test_effects_stand_over_start_means_and_over_trials():
    records = cell([[10.0, 11, 12], [13, 14, 15], [11.5, 12.5, 13.5]]) + cell(
        [[20.0, 21, 22], [25, 26, 27], [22.5, 23.5, 24.5]], nodes=3
    )
    over_starts, over_trials = effects_of(frame(records), TIME, rng())
    assert (over_starts.over, over_starts.n_baseline, over_starts.n_level) == ("start means", 3, 3)
    assert (over_trials.over, over_trials.n_baseline, over_trials.n_level) == ("trials", 9, 9)
    assert over_starts.difference.value == over_trials.difference.value == pytest.approx(11)
    assert over_trials.difference.high < over_starts.difference.high
    assert "counted as independent" in over_trials.cohens_d.method
    assert over_starts.ratio_fieller.value == pytest.approx(23.5 / 12.5)


def test_one_start_gives_effects_over_its_trials_only():
    (only,) = effects_of(frame(cell([[10.0, 11, 12]]) + cell([[20.0, 21, 22]], nodes=3)), TIME, rng())
    assert only.over == "trials"


def test_levels_that_share_their_starts_are_paired():
    made = frame(cell([[10.0], [14.0], [12.0]]) + cell([[11.0], [15.2], [12.9]], workload="C"))
    made = type(made)(made.data.drop("nodes"), {"workload": ("A", "C")}, (), 0)
    paired, _ = effects_of(made, TIME, rng())
    assert paired.paired
    assert paired.difference.n == 3
    assert paired.difference.low > 0  # unpaired it would hold 0
    assert level_pairs.level_pairs(made, TIME, "workload", "A", "C", {})[0].baseline == (10, 14, 12)


def test_equivalence_needs_a_margin_that_was_declared():
    same = LevelPair("start means", "start", (10.0, 11, 12, 10.5), (10.05, 10.9, 12.1, 10.6))
    assert same.tost_p(None) is None
    p = same.tost_p(5.0)
    logs = np.log(same.level), np.log(same.baseline)
    assert p == pytest.approx(ttost_paired(*logs, -np.log(1.05), np.log(1.05))[0])
    assert p < 0.05 < same.tost_p(0.1)
    few = LevelPair("trials", "", (1.0,), (1.0,))
    assert (few.lacks, few.tost_p(5.0)) == (level_pairs.TOO_FEW, None)
    for paired in (True, False):
        equal = LevelPair("start means", "start" if paired else "", (2.0, 2.0, 2.0), (2.02, 2.02, 2.02))
        assert (equal.lacks, equal.tost_p(5.0)) == (level_pairs.NOTHING_VARIES, None)
    identical = LevelPair("start means", "start", (1.0, 2, 3), (1.0, 2, 3))
    assert (identical.lacks, identical.tost_p(5.0)) == (level_pairs.NOTHING_VARIES, None)


def test_effects_over_start_means_rest_on_the_starts_of_the_ratio():
    """Two of five starts served both workloads, which is no comparison in pairs: all count. Of three only these do."""
    for starts_of_c, paired, n in (((3, 4, 5), "", 3), ((2, 3, 4, 5), "", 4), ((1, 2, 3, 4), "start", 3)):
        records = [
            record(100.0 + start**2 + (workload == "C"), workload=workload, start=start)
            for workload, starts in (("A", (1, 2, 3)), ("C", starts_of_c))
            for start in starts
        ]
        made = frame(records)
        over_starts, _ = level_pairs.level_pairs(made, TIME, "workload", "A", "C", {"nodes": 1})
        assert (over_starts.paired, len(over_starts.baseline), len(over_starts.level)) == (paired, 3, n)
        ratio = compare(made, TIME, "workload", "A", "C", {"nodes": 1})
        assert ratio is not None
        assert (ratio.starts_baseline, ratio.starts_level) == (3, n)


def test_differentials_are_paired_by_trial_order():
    records = cell([[10.0, 20.0, 30.0]]) + cell([[11.0, 25.0, 28.0]], nodes=3)
    (found,) = differentials(frame(records), TIME)
    assert (found.n, found.min, found.max, found.greatest) == (3, -2, 5, 5)
    assert found.mean.value == pytest.approx(4 / 3)
    (downwards,) = differentials(frame(cell([[10.0, 20.0]]) + cell([[1.0, 21.0]], nodes=3)), TIME)
    assert downwards.greatest == -9


def test_speedup_is_baseline_over_level_for_times_and_the_reverse_for_rates():
    made = frame(cell([[10.0, 12.0, 11.0]]) + cell([[5.0, 6.0, 5.5]], nodes=3))
    (times,) = speedups(made, TIME)
    assert times.ratio_max_to_min.value == pytest.approx(12 / 5)
    assert times.ratio_min_to_max.value == pytest.approx(10 / 6)
    assert times.ratio_means.value == times.ratio_medians.value == pytest.approx(2)
    assert times.ratio_sds.value == pytest.approx(2)
    (rates,) = speedups(made, "throughput_per_s")
    assert rates.ratio_max_to_min.value == pytest.approx(12 / 5)


def test_all_pairs_are_corrected_together_and_those_with_the_baseline_are_comparisons():
    records = [
        one
        for nodes, mean in ((1, 10.0), (2, 11.0), (3, 16.0))
        for one in cell([[mean + nodes**start % 5 / 4] for start in (1, 2, 3, 4)], nodes=nodes)
    ]
    made = frame(records)
    (found,) = post_hoc(made, TIME)
    assert (found.baseline, found.level, found.over, found.pairs) == (2, 3, "start means", 3)
    p = [found.p, *(one.p for one in comparisons(made, TIME))]
    assert found.p_holm == pytest.approx(multipletests(p, method="holm")[1][0])
    assert multiplicity.holm([0.01, None, 0.04]) == [0.02, None, 0.04]


def test_a_further_pair_has_the_p_that_a_comparison_would_have():
    made = frame(drawn(rng(), {1: 100.0, 2: 120.0, 3: 150.0}, starts=4, trials=3, start_cv=0.05, trial_cv=0.02))
    compared = compare(made, TIME, "nodes", 2, 3, {})
    (pair,) = post_hoc(made, TIME)
    assert compared is not None
    assert pair.p == pytest.approx(compared.p, rel=1e-9)
    assert "on logarithms" in pair.method
    assert "paired t" in pair.difference.method


def test_holm_is_that_of_statsmodels():
    draws = rng()
    for _ in range(20):
        p = [*draws.uniform(0, 0.2, 12), 0.03, 0.03, 0.9]
        assert multiplicity.holm(p) == pytest.approx(list(multipletests(p, method="holm")[1]))


def test_pairs_over_trials_are_tested_only_where_no_level_has_a_second_start():
    for starts, over in ((1, {"trials"}), (2, set()), (3, {"start means"})):
        cells = [cell([[1.0 * nodes, 2.0 * nodes]] * starts, nodes=nodes) for nodes in (1, 2, 3)]
        rows = post_hoc(frame([record for records in cells for record in records]), TIME)
        assert {row.over for row in rows} == over


def test_two_levels_have_no_post_hoc():
    assert post_hoc(frame(cell([[1.0, 2]]) + cell([[2.0, 3]], nodes=3)), TIME) == ()


def test_a_response_that_never_varies_breaks_nothing():
    records = [one for nodes in (1, 2, 3) for one in cell([[5.0, 5.0], [5.0, 5.0]], nodes=nodes)]
    found = analyse(records, study(factors={"nodes": (1, 2, 3), "workload": ("A",)}), seed=1)
    assert all(one.p is None for one in found.of(PostHoc))
    assert all(one.cohens_d is None for one in found.of(Effect))
    assert all(one.f is None for one in found.of(AnovaTerm))


def test_identical_systems_are_called_different_about_as_often_as_promised():
    """Over start means, 300 studies: Holm's smallest p below 5% in about 5%; over trials far more often."""
    draws = np.random.default_rng(7)
    false = {"honest": 0, "published": 0}
    for _ in range(300):
        made = frame(drawn(draws, {1: 100.0, 3: 100.0}, starts=5, trials=4, start_cv=0.03, trial_cv=0.02))
        for one in level_pairs.pairs_of_levels(made):
            starts, trials = level_pairs.level_pairs(made, TIME, *one)
            false["honest"] += stats.ttest_ind(starts.baseline, starts.level, equal_var=False).pvalue < 0.05
            false["published"] += stats.ttest_ind(trials.baseline, trials.level, equal_var=False).pvalue < 0.05
    assert false["honest"] / 300 < 0.09
    assert false["published"] / 300 > 0.12


def test_everything_is_in_the_tables():
    records = drawn(rng(), {1: 100.0, 2: 120.0, 3: 150.0}, starts=3, trials=4, start_cv=0.03, trial_cv=0.02)
    asked = study(
        factors={"nodes": (1, 2, 3), "workload": ("A",)},
        analysis={"equivalence_margin_percent": 2.0},
    )
    made = tables(analyse(records, asked, seed=1))
    assert {
        name: made[name].height > 0 for name in ("effect", "differential", "speedup", "anova", "one_way", "post_hoc")
    } == (dict.fromkeys(("effect", "differential", "speedup", "anova", "one_way", "post_hoc"), True))
    row = made["effect"].row(0, named=True)
    assert row["cohens_d_low"] < row["cohens_d"] < row["cohens_d_high"]
    assert "noncentral t" in row["cohens_d_method"]


def test_a_line_over_0_and_1_is_the_baselines_mean_and_the_difference():
    made = frame(cell([[10.0, 12.0, 11.0]]) + cell([[15.0, 16.0, 15.5, 18.0]], nodes=3))
    (found,) = effect_line.effect_lines(made, TIME)
    assert found.intercept.value == pytest.approx(11)
    assert found.slope.value == pytest.approx(16.125 - 11)
    assert found.p == pytest.approx(stats.ttest_ind([10, 12, 11], [15, 16, 15.5, 18]).pvalue)


def test_the_error_of_a_line_over_0_and_1_is_that_of_a_pooled_difference():
    a, b = [46.0, 47.1, 45.2], [44.0, 43.1, 45.9]
    (found,) = effect_line.effect_lines(frame(cell([a]) + cell([b], nodes=2)), TIME)
    assert found.std_err == pytest.approx((np.var(a, ddof=1) / 2 + np.var(b, ddof=1) / 2) ** 0.5 * (2 / 3) ** 0.5)
