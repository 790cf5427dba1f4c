from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Sequence

import numpy as np
import pytest
from scipy import stats

from steelyard.analysis.comparisons.level_pairs import LevelPair, baseline_of
from steelyard.analysis.comparisons.level_ratios import difference_of, judge, level_value
from steelyard.analysis.inference.gaps import Gap, in_blocks, of_samples
from steelyard.analysis.statistics.anova import anova
from steelyard.analysis.statistics.comparison import compare, comparisons, head, sentence
from steelyard.analysis.statistics.one_way import one_ways
from steelyard.model.estimate import Estimate
from steelyard.model.trial import TrialRecord
from tests.unit.analysis.made import cell, drawn, elsewhere, frame, record

TIME, LOST = "execution_time_ms", "lost_operations"
A = {"workload": "A"}


def ratio(low: float | None, value: float, high: float | None) -> Estimate:
    return Estimate(value=value, low=low, high=high, n=4, unit="", method="made")


@pytest.mark.parametrize(
    ("response", "low", "high", "verdict"),
    [
        (TIME, 1.2, 1.7, "slower"),
        (TIME, 0.6, 0.9, "faster"),
        (TIME, 0.9, 1.1, "undecided"),
        (TIME, 1.0, 1.5, "undecided"),
        (TIME, None, None, "descriptive"),
        ("throughput_per_s", 1.2, 1.7, "faster"),
        ("throughput_per_s", 0.6, 0.9, "slower"),
        ("response_ms_p99", 1.2, 1.7, "higher"),
        ("generator_cpu_us_per_operation", 1.2, 1.7, "higher"),
    ],
)
def test_verdicts_have_three_values_and_know_the_direction(response, low, high, verdict):
    assert judge(response, ratio(low, 1.0, high)) == verdict


@pytest.mark.parametrize(
    ("low", "value", "high", "words"),
    [
        (20, 41, 66, "workload A, 3 nodes against 1 node: slower: execution time +41% [20, 66]"),
        (-40, -28, -15, "workload A, 3 nodes against 1 node: faster: execution time −28% [−40, −15]"),
        (-5, 3, 12, "workload A, 3 nodes against 1 node: undecided: +3.0% [−5.0, 12.0] includes no change"),
        (120, 210, 340, "workload A, 3 nodes against 1 node: slower: execution time 3.1 times as long [2.2, 4.4]"),
    ],
)
def test_sentences(low, value, high, words):
    change = ratio(1 + low / 100, 1 + value / 100, 1 + high / 100)
    assert sentence(head("nodes", 1, 3, A), TIME, change, judge(TIME, change)) == words


def test_welch_is_scipys():
    a, b = [1.0, 1.3, 0.9], [1.6, 1.9, 1.4, 1.7]
    gap = of_samples([a, b], [-1, 1])
    oracle = stats.ttest_ind(b, a, equal_var=False)
    interval = oracle.confidence_interval(0.95)
    assert (*ends(gap), gap.error()[1], gap.p()) == pytest.approx(
        (interval.low, interval.high, oracle.df, oracle.pvalue)
    )


def test_two_levels_in_blocks_are_scipys_pairs():
    a, b = [0.1, 0.3, 0.2, 0.25], [0.4, 0.8, 0.3, 0.45]
    oracle = stats.ttest_rel(b, a)
    gap = in_blocks([a, b], [-1, 1])
    assert (*ends(gap), gap.p()) == pytest.approx((*oracle.confidence_interval(0.95), oracle.pvalue))


def ends(gap: Gap) -> tuple[float, float]:
    return gap.value - gap.half(0.95), gap.value + gap.half(0.95)


def test_hard_factors_rest_on_starts():
    records = cell([[100.0, 102, 98], [104.0, 106, 102], [96, 98, 94]]) + elsewhere(
        cell([[200.0, 204, 196], [208.0, 212, 204], [192, 196, 188]], nodes=3)
    )
    found = compare(frame(records), TIME, "nodes", 1, 3, A)
    assert found is not None
    assert found.ratio.value == pytest.approx(2.0)
    assert (found.starts_baseline, found.starts_level, found.n_baseline, found.verdict) == (3, 3, 9, "slower")
    spread = np.std(np.log([100, 104, 96]), ddof=1)
    assert found.ratio.low == pytest.approx(2 / math.exp(stats.t.ppf(0.975, 4) * spread * math.sqrt(2 / 3)), rel=1e-9)
    assert "Welch" in found.ratio.method


def test_hard_factors_are_paired_by_block():
    """Blocks differ by half, the two levels by a steady tenth."""
    blocks = [100.0, 150.0, 80.0, 121.0]
    low, high = [[base + at] for at, base in enumerate(blocks)], [[1.1 * base] for base in blocks]
    made = frame(cell(low, nodes=1) + cell(high, nodes=3))
    found = compare(made, TIME, "nodes", 1, 3, A)
    assert found is not None
    oracle = stats.ttest_rel(np.log(high).ravel(), np.log(low).ravel())
    assert (found.verdict, found.p) == ("slower", pytest.approx(oracle.pvalue))
    assert "paired by block, 3 degrees of freedom" in found.ratio.method


@pytest.mark.parametrize("blocks", [3, 5, 6, 10])
def test_one_hypothesis_has_one_p(blocks):
    """In answer, analysis of variance, one-way analysis and all pairs; from six blocks on without the place."""
    rng = np.random.default_rng(blocks)
    records = [
        record(100 * math.exp(rng.normal(0, 0.02) + 0.03 * (nodes == 3) + 0.06 * place + 0.1 * (block % 3)),
               nodes=nodes, start=block, begun_s=1000.0 * block + 100 * place)
        for block in range(1, blocks + 1)
        for place, nodes in enumerate((1, 3) if block % 2 else (3, 1))
    ]  # fmt: skip
    made = frame(records)
    found = compare(made, TIME, "nodes", 1, 3, A)
    assert found is not None
    assert ("the place in the block taken out" in found.ratio.method) == (blocks in (6, 10))
    terms = [one for one in anova(made, TIME) if one.term == "nodes" and one.form == "honest" and one.p is not None]
    ways = [one for one in one_ways(made, TIME) if one.factor == "nodes" and one.over == "start means"]
    assert [one.p for one in (*terms, *ways)] == pytest.approx([found.p] * 2)


def test_blocks_with_one_level_only_are_left_out_and_with_two_whole_ones_nothing_is_paired():
    both, rest = cell([[100.0], [150.0], [80.0]], nodes=1), cell([[110.0], [167.0], [88.0], [91.0]], nodes=3)
    found = compare(frame(both + rest), TIME, "nodes", 1, 3, A)
    assert found is not None
    assert (found.starts_baseline, found.starts_level) == (3, 3)
    late = [one for one in rest if one.block > 1]
    found = compare(frame(both + late), TIME, "nodes", 1, 3, A)
    assert found is not None
    assert (found.starts_baseline, found.starts_level) == (3, 3)
    assert "Welch" in found.ratio.method


def test_other_factors_are_paired_by_start():
    """Starts differ by half, the two workloads by a steady tenth: only pairing sees it."""
    records = []
    for start, base in enumerate([100.0, 150.0, 80.0], start=1):
        for place, (workload, factor) in enumerate([("A", 1.0), ("C", 1.1)]):
            records.append(record(base * factor + start / 10, workload=workload, start=start, order=place + 1))
    found = compare(frame(records), TIME, "workload", "A", "C", {"nodes": 1})
    assert found is not None
    assert found.verdict == "slower"
    assert "paired by start" in found.ratio.method


def test_one_start_a_level_is_only_described():
    records = cell([[100.0, 101, 99]]) + cell([[200.0, 201, 199], [205.0, 204, 206]], nodes=3)
    found = compare(frame(records), TIME, "nodes", 1, 3, A)
    assert found is not None
    assert (found.verdict, found.ratio.low, found.ratio.high) == ("descriptive", None, None)
    assert "neither interval nor verdict" in found.sentence


def test_a_level_without_valid_trials_is_not_compared():
    assert compare(frame(cell([[100.0]])), TIME, "nodes", 1, 3, A) is None


def test_the_baseline_is_the_smallest_number_or_the_first_word():
    assert baseline_of((6, 1, 3)) == 1
    assert baseline_of(("QUORUM", "ONE")) == "QUORUM"
    assert baseline_of((True, False)) is True


def test_workloads_are_not_compared_where_nodes_are_asked_about():
    records = [
        one for workload in "AC" for nodes in (1, 3) for one in cell([[5.0], [6.0]], nodes=nodes, workload=workload)
    ]
    assert {one.factor for one in comparisons(frame(records), TIME)} == {"nodes"}


@pytest.mark.parametrize("starts", [2, 3, 4, 5])
def test_identical_systems_are_called_different_at_most_about_one_time_in_twenty(starts):
    """Starts differ by 3%, trials by 2%: the interval over start means keeps its promise with two starts already.

    2000 studies: 6% is two standard errors above 5%.
    """
    rng = np.random.default_rng(100 + starts)
    logs = rng.normal(0, 0.03, (2000, 2, starts)) + rng.normal(0, 0.02 / np.sqrt(3), (2000, 2, starts))
    different = [of_samples(pair, [-1, 1]).p() < 0.05 for pair in logs.tolist()]
    assert np.mean(different) <= 0.06
    shocks = rng.normal(0, 0.1, (2000, 1, starts))
    called = [in_blocks(pair, [-1, 1]).p() < 0.05 for pair in (logs + shocks).tolist()]
    assert 0.04 <= np.mean(called) <= 0.06


def test_the_whole_comparison_keeps_the_promise_and_trials_as_starts_would_not():
    rng = np.random.default_rng(8)
    wrong = naive = 0
    for _ in range(120):
        records = drawn(rng, {1: 100.0, 3: 100.0}, starts=3, trials=6, start_cv=0.05, trial_cv=0.01)
        rows = frame(records)
        found = compare(rows, TIME, "nodes", 1, 3, A)
        assert found is not None
        wrong += found.verdict != "undecided"
        one, other = (rows.values(TIME, {"nodes": nodes})[TIME].to_list() for nodes in (1, 3))
        naive += stats.ttest_ind(one, other, equal_var=False).pvalue < 0.05
    assert wrong <= 10
    assert naive >= 40


def test_a_value_that_is_not_above_0_is_said_to_be_the_reason():
    records = cell([[-1.0], [1.0], [2.0]]) + cell([[3.0], [4.0], [5.0]], nodes=3)
    found = compare(frame(records), TIME, "nodes", 1, 3, A)
    assert found is not None
    assert found.sentence.endswith("a value is not above 0, so there is neither interval nor verdict")


def lost(values: Sequence[Sequence[float]], *, nodes: int = 1) -> list[TrialRecord]:
    """Trials that lost so many operations: one inner sequence per start."""
    ordered = (value for trials in values for value in trials)
    records = cell([[1.0] * len(trials) for trials in values], nodes=nodes)
    return [one.model_copy(update={"measures": {LOST: value}}) for one, value in zip(records, ordered, strict=True)]


def test_what_a_control_has_none_of_is_compared_by_its_difference():
    control, disrupted = [[0.0], [0.0], [1.0]], [[900.0], [880.0], [950.0]]
    found = compare(frame(lost(control) + lost(disrupted, nodes=3)), LOST, "nodes", 1, 3, A)
    assert found is not None
    gaps = [900.0, 880.0, 949.0]
    low, high = stats.t.interval(0.95, 2, np.mean(gaps), stats.sem(gaps))
    assert found.ratio is found.change_percent is None
    assert found.difference is not None
    assert (found.difference.value, found.difference.low, found.difference.high) == pytest.approx(
        (np.mean(gaps), low, high)
    )
    assert found.p == pytest.approx(stats.ttest_1samp(gaps, 0).pvalue)
    assert (found.mean_baseline.value, found.mean_level.value) == pytest.approx((1 / 3, 910))
    assert found.sentence == ("workload A, 3 nodes against 1 node: higher: lost operations +910 operations [821, 998]")


def test_a_difference_that_includes_none_is_undecided_and_forecasts_nothing():
    found = compare(frame(lost([[0.0], [0.0], [1.0]]) + lost([[6.0], [35.0], [18.0]], nodes=3)), LOST, "nodes", 1, 3, A)
    assert found is not None
    assert found.verdict == "undecided"
    assert found.sentence == (
        "workload A, 3 nodes against 1 node: undecided: +19 operations [−17, 56] includes no change"
    )
    assert (found.advice, found.to_decide, found.more_starts) == ("", "", None)


@pytest.mark.parametrize(("control", "disrupted", "why"), [
    ([[0.0]] * 3, [[0.0]] * 3, "nothing varies between starts"),
    ([[0.0], [1.0]], [[9.0], [7.0]], "fewer than three starts per level"),
])  # fmt: skip
def test_a_difference_without_an_interval_says_why(control, disrupted, why):
    found = compare(frame(lost(control) + lost(disrupted, nodes=3)), LOST, "nodes", 1, 3, A)
    assert found is not None
    assert found.verdict == "descriptive"
    assert found.sentence.endswith(f"{why}, so there is neither interval nor verdict")


@pytest.mark.parametrize(("of_control", "shift"), [(0.0, 100.0), (3.0, 100.0), (3.0, 0.0)])
def test_a_planted_difference_lies_within_its_interval_as_often_as_promised(of_control, shift):
    """Also where the control has none at all, and between equal levels."""
    rng, held, studies = np.random.default_rng(11), 0, 400
    for _ in range(studies):
        control = rng.poisson(of_control, (4, 1)).astype(float)
        disrupted = rng.poisson(of_control, (4, 1)) + rng.normal(shift, 10, (4, 1))
        records = lost(control.tolist()) + lost(disrupted.tolist(), nodes=3)
        found = compare(frame(records), LOST, "nodes", 1, 3, A)
        assert found is not None
        assert found.difference is not None
        assert found.difference.low is not None
        assert found.difference.high is not None
        held += found.difference.low <= shift <= found.difference.high
    assert held / studies == pytest.approx(0.95, abs=0.025)


@pytest.mark.parametrize(("cv", "blocks", "percent"), [
    (0.3, 3, 94), (0.5, 3, 93), (1.0, 3, 88), (0.3, 5, 94), (0.5, 5, 92), (1.0, 5, 86), (0.5, 10, 92), (1.0, 10, 87),
])  # fmt: skip
def test_skew_losses_are_covered_as_often_as_the_page_of_numbers_says(cv, blocks, percent):
    rng, sigma, studies = np.random.default_rng(7), math.sqrt(math.log1p(cv**2)), 4000
    losses = rng.lognormal(-(sigma**2) / 2, sigma, (studies, blocks)) * 100
    none = (0.0,) * blocks
    every = (LevelPair("start means", "block", none, tuple(one), compared="difference") for one in losses.tolist())
    ends = (difference_of(pair, "operations", 0.95) for pair in every)
    held = sum((one.low or 0) <= 100 <= (one.high or 0) for one in ends)
    assert 100 * held / studies == pytest.approx(percent, abs=1.8)


@pytest.mark.parametrize("lost_each", [0.0, 1.0])
def test_equal_means_of_starts_have_no_interval(lost_each):
    """Three trials without a loss do not prove that none can happen."""
    value = level_value([lost_each] * 3, LOST, 0.95)
    assert (value.value, value.low, value.high) == (lost_each, None, None)
    assert value.method == "mean over start means; nothing varies between starts: no interval"


def test_a_value_without_an_interval_needs_no_heavy_library():
    code = """
import sys
from steelyard.analysis.comparisons.level_ratios import level_value
assert level_value([1.0, 2.0, 6.0], "lost_operations", None).value == 3
assert not {"numpy", "scipy"} & sys.modules.keys()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr


def test_differences_and_ratios_are_one_family_of_holms_correction():
    records = [
        one.model_copy(update={"measures": {LOST: value}})
        for one, value in zip(
            cell([[100.0], [101.0], [103.0]]) + cell([[150.0], [157.0], [149.0]], nodes=3),
            [0.0, 0.0, 1.0, 9.0, 7.0, 8.0],
            strict=True,
        )
    ]
    (by_time,), (by_loss,) = (comparisons(frame(records), name, further=(other,))
                              for name, other in ((TIME, LOST), (LOST, TIME)))  # fmt: skip
    assert by_time.family == by_loss.family == 2
    assert by_loss.p is not None
    assert by_time.p is not None
    assert max(by_time.p_holm or 0, by_loss.p_holm or 0) == pytest.approx(max(by_time.p, by_loss.p))
