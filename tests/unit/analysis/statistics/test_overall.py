"""Geometric means of ratios, effects of a fraction, speed-up and efficiency: planted truths, and what is refused."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from steelyard.analysis.frame import TrialFrame
from steelyard.analysis.statistics.main_effect import main_effects
from steelyard.analysis.statistics.overall import overall
from steelyard.analysis.statistics.scaling import scaling
from steelyard.judging.fractional_design import Fraction, parsed
from steelyard.model.named_level import Level
from steelyard.model.trial import TrialRecord
from tests.unit.analysis.made import cell, drawn, elsewhere, frame, record

RESPONSE = "execution_time_ms"


def ends(one: Any) -> tuple[float, float]:
    assert one is not None
    assert one.low is not None
    assert one.high is not None
    return one.low, one.high


def two_workloads() -> list[TrialRecord]:
    return [
        *cell([[100.0], [110.0], [105.0]], nodes=1, workload="A"),
        *cell([[200.0], [231.0], [218.0]], nodes=2, workload="A"),
        *cell([[10.0], [10.0], [11.0]], nodes=1, workload="C"), *cell([[80.0], [84.0], [81.0]], nodes=2, workload="C"),
    ]  # fmt: skip


def other_blocks() -> list[TrialRecord]:
    return elsewhere([one for one in two_workloads() if one.treatment["nodes"] == 2])


def test_the_overall_ratio_is_the_geometric_mean_of_the_ratios() -> None:
    (found,) = overall(frame(two_workloads()), RESPONSE)
    a = stats.gmean([200, 231, 218]) / stats.gmean([100, 110, 105])
    c = stats.gmean([80, 84, 81]) / stats.gmean([10, 10, 11])
    assert found.ratio.value == pytest.approx(math.sqrt(a * c))
    assert (found.least, found.greatest) == pytest.approx((a, c))
    assert (found.least_at, found.greatest_at, found.cells, found.left_out) == ("workload A", "workload C", 2, 0)
    assert found.verdict == "slower"
    assert "over 2 combinations of the other factors" in found.sentence


@pytest.mark.parametrize("margin", [4.0, 7.0, 10.0, 20.0])
def test_within_a_declared_margin_two_one_sided_tests_decide(margin: float) -> None:
    """Against scipy's one-sided tests on what each block carries."""
    low = ([100.0, 104.0, 98.0, 103.0], [20.0, 21.0, 20.0, 20.5])
    high = ([103.0, 109.0, 104.0, 105.0], [20.5, 21.0, 21.0, 21.0])
    records = [
        one
        for nodes, sides in ((1, low), (2, high))
        for workload, values in zip("AC", sides, strict=True)
        for one in cell([[value] for value in values], nodes=nodes, workload=workload)
    ]
    (found,) = overall(frame(records), RESPONSE, margin_percent=margin)
    gaps = np.mean([np.log(b) - np.log(a) for a, b in zip(low, high, strict=True)], axis=0)
    above = stats.ttest_1samp(gaps, -math.log1p(margin / 100), alternative="greater").pvalue
    below = stats.ttest_1samp(gaps, math.log1p(margin / 100), alternative="less").pvalue
    (without,) = overall(frame(records), RESPONSE)
    assert found.verdict == ("equivalent" if max(above, below) < 0.05 else without.verdict)
    assert (f", within {margin:g}%; from" in found.sentence) == (found.verdict == "equivalent")


def test_its_interval_is_t_on_what_each_block_carries_and_welchs_where_blocks_are_not_shared() -> None:
    (found,) = overall(frame(two_workloads()), RESPONSE)
    (apart,) = overall(frame([*two_workloads()[:3], *two_workloads()[6:9], *other_blocks()]), RESPONSE)
    base = [math.log(a * c) / 2 for a, c in ((100, 10), (110, 10), (105, 11))]
    high = [math.log(a * c) / 2 for a, c in ((200, 80), (231, 84), (218, 81))]
    wanted = stats.ttest_rel(high, base).confidence_interval(0.95)
    assert ends(found.ratio) == pytest.approx((math.exp(wanted.low), math.exp(wanted.high)))
    wanted = stats.ttest_ind(high, base, equal_var=False).confidence_interval(0.95)
    assert ends(apart.ratio) == pytest.approx((math.exp(wanted.low), math.exp(wanted.high)))


def test_one_cell_has_no_overall_ratio_and_one_start_no_interval() -> None:
    assert overall(frame(cell([[1.0], [2.0]], nodes=1) + cell([[1.0], [2.0]], nodes=2)), RESPONSE) == ()
    single = [one for one in two_workloads() if one.start_replicate == 1]
    (found,) = overall(frame(single), RESPONSE)
    assert (found.ratio.low, found.verdict) == (None, "descriptive")
    assert "too few starts" in found.sentence


def test_where_starts_do_not_vary_there_is_no_verdict() -> None:
    records = [
        *cell([[100.0]] * 3, nodes=1, workload="A"), *cell([[102.0]] * 3, nodes=2, workload="A"),
        *cell([[10.0]] * 3, nodes=1, workload="C"), *cell([[11.0]] * 3, nodes=2, workload="C"),
    ]  # fmt: skip
    (found,) = overall(frame(records), RESPONSE)
    assert (found.ratio.low, found.verdict) == (None, "descriptive")
    assert "nothing varies between starts, so there is no verdict" in found.sentence


def test_a_small_side_that_is_calm_by_chance_gives_no_more_degrees_than_equal_spreads_would() -> None:
    records = [
        *cell([[100.0], [100.1], [100.05]], nodes=1, workload="A"),
        *cell([[10.0], [10.01], [10.005]], nodes=1, workload="C"),
        *elsewhere(cell([[90.0], [115.0], [100.0], [108.0], [97.0]] * 2, nodes=2, workload="A")),
        *elsewhere(cell([[9.0], [11.0], [10.0], [10.8], [9.9]] * 2, nodes=2, workload="C")),
    ]  # fmt: skip
    (found,) = overall(frame(records), RESPONSE)
    degrees = (1 / 3 + 1 / 10) ** 2 / (1 / (9 * 2) + 1 / (100 * 9))
    assert f"{degrees:.1f} degrees of freedom" in found.ratio.method


def test_a_cell_without_one_of_the_levels_is_counted_as_left_out() -> None:
    more = [*two_workloads(), *cell([[5.0], [6.0]], nodes=1, workload="E")]
    (found,) = overall(frame(more), RESPONSE)
    assert (found.cells, found.left_out) == (2, 1)


def test_identical_systems_are_called_different_at_most_as_often_as_promised() -> None:
    rng = np.random.default_rng(11)
    studies, wrong = 150, 0
    for _ in range(studies):
        records = [
            one
            for workload in ("A", "C")
            for one in drawn(
                rng, {1: 100.0, 2: 100.0}, starts=4, trials=1, start_cv=0.03, trial_cv=0.02, workload=workload
            )
        ]
        (found,) = overall(frame(records), RESPONSE)
        wrong += found.verdict != "undecided"
    assert wrong / studies <= 0.1


FACTORS: dict[str, tuple[Level, ...]] = {"nodes": (1, 2), "t": (1, 8), "k": ("ONE", "ALL")}


def of_fraction(
    noise: float, rng: np.random.Generator, without: int = -1, starts: int = 2
) -> tuple[TrialFrame, Fraction]:
    """t doubles the time, nodes halve it, k does nothing; two starts of each size."""
    made = Fraction(tuple(FACTORS), parsed({"k": "nodes * t"}, tuple(FACTORS)))
    records = []
    for start in range(1, starts + 1):
        for place, signs in enumerate(made.combinations()):
            levels = {name: FACTORS[name][sign > 0] for name, sign in signs.items()}
            value = 100.0 * 2 ** ((signs["t"] - signs["nodes"]) / 2) * math.exp(rng.normal(0, noise))
            if place != without:
                one = record(value, nodes=levels["nodes"], start=start, replicate=place, order=place)
                treatment = dict(levels)
                records.append(one.model_copy(update={"treatment": treatment, "id": f"{place}-{start}"}))
    return TrialFrame.build(records, FACTORS, ("nodes",), 0), made


def test_a_fraction_gives_its_planted_effects_with_their_aliases() -> None:
    whole, made = of_fraction(0.01, np.random.default_rng(3))
    nodes, threads, consistency = main_effects(whole, RESPONSE, made)
    assert nodes.ratio is not None
    assert threads.ratio is not None
    assert consistency.ratio is not None
    assert (nodes.factor, threads.factor, consistency.factor) == ("nodes", "t", "k")
    assert nodes.ratio.value == pytest.approx(0.5, rel=0.03)
    assert threads.ratio.value == pytest.approx(2.0, rel=0.03)
    assert consistency.ratio.value == pytest.approx(1.0, rel=0.03)
    assert consistency.aliases == "nodes x t"
    assert "nodes x t, which this fraction cannot separate from it" in consistency.sentence
    low, high = ends(threads.ratio)
    assert low <= 2.0 <= high
    assert threads.verdict == "slower"


def test_a_fraction_that_lacks_a_treatment_is_compared_no_more() -> None:
    whole, made = of_fraction(0.0, np.random.default_rng(3))
    assert len(main_effects(whole, RESPONSE, made)) == 3
    assert main_effects(whole, RESPONSE, None) == ()
    lacking, made = of_fraction(0.0, np.random.default_rng(3), without=2)
    for one in main_effects(lacking, RESPONSE, made):
        assert (one.ratio, one.verdict, one.n) == (None, "descriptive", 3)
        assert "no estimate: 1 of them have no used trial" in one.sentence


def test_speedup_and_efficiency_have_a_base() -> None:
    records = [
        *cell([[400.0], [404.0], [402.0]], nodes=2),
        *cell([[200.0], [202.0], [201.0]], nodes=4),
        *cell([[160.0], [161.0], [160.5]], nodes=8),
    ]
    four, eight = scaling(frame(records), RESPONSE, "nodes")
    assert (four.base, four.level, four.ideal, eight.ideal) == (2, 4, 2.0, 4.0)
    assert four.speedup is not None
    assert four.speedup.value == pytest.approx(2.0)
    assert eight.efficiency is not None
    assert eight.efficiency.value == pytest.approx(2.5 / 4, rel=0.01)
    low, high = ends(eight.speedup)
    assert ends(eight.efficiency) == pytest.approx((low / 4, high / 4))
    assert "times as fast as 2 nodes, an efficiency of 63%" in eight.sentence
    rates = scaling(frame(records), "throughput_per_s", "nodes")
    assert rates[0].speedup is not None
    assert rates[0].speedup.value == pytest.approx(2.0)


def test_no_speedup_of_an_open_loop_nor_over_what_is_no_size() -> None:
    records = [*cell([[400.0]], nodes=2), *cell([[200.0]], nodes=4, shares=("cpu",))]
    (found,) = scaling(frame(records), RESPONSE, "nodes", is_open=True)
    assert (found.speedup, found.efficiency) == (None, None)
    assert "the schedule sets the rate" in found.sentence
    (one_start,) = scaling(frame(records), RESPONSE, "nodes")
    assert "fewer than three starts" in one_start.sentence
    assert "share one processor" in one_start.sentence
    assert scaling(frame(records), RESPONSE, None) == ()
    assert scaling(frame([*cell([[400.0]], nodes=0), *cell([[200.0]], nodes=4)]), RESPONSE, "nodes") == ()
    assert scaling(frame(records), RESPONSE, "heap") == ()
