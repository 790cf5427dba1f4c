"""Interaction contrasts: planted truths, scipy's own tests where they are the same, and what is undecided."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from steelyard.analysis.analyse import analyse
from steelyard.analysis.comparisons.identical_systems import Floors
from steelyard.analysis.frame import TrialFrame
from steelyard.analysis.statistics.interaction import Interaction, interactions
from steelyard.analysis.statistics.trend import Trend
from steelyard.judging.noise_floor import Spread
from steelyard.model.named_level import Level
from steelyard.model.study import Study
from steelyard.model.trial import TrialRecord
from tests.unit.analysis.made import cell, frame, study

RESPONSE = "execution_time_ms"
SMALL_A, SMALL_C = [[100.0], [110.0], [105.0]], [[200.0], [231.0], [218.0]]
LARGE_A, LARGE_C = [[300.0], [290.0], [330.0]], [[1500.0], [1400.0], [1700.0]]


def grid() -> list[TrialRecord]:
    """Sizes 1 and 3, workloads A and C: C takes twice as long on 1 node, about five times as long on 3."""
    return [
        *cell(SMALL_A, nodes=1, workload="A"), *cell(SMALL_C, nodes=1, workload="C"),
        *cell(LARGE_A, nodes=3, workload="A"), *cell(LARGE_C, nodes=3, workload="C"),
    ]  # fmt: skip


def flat(values: list[list[float]]) -> np.ndarray[Any, Any]:
    return np.asarray(values).ravel()


def only(rows: tuple[Interaction, ...]) -> Interaction:
    (row,) = rows
    return row


def test_both_contrasts_are_those_of_the_four_means() -> None:
    row = only(interactions(frame(grid()), RESPONSE, "nodes"))
    a, b = (
        stats.gmean(flat(LARGE_A)) / stats.gmean(flat(SMALL_A)),
        stats.gmean(flat(LARGE_C)) / stats.gmean(flat(SMALL_C)),
    )
    assert (row.factor, row.baseline, row.level) == ("nodes", 1, 3)
    assert (row.by, row.by_baseline, row.by_level, row.others) == ("workload", "A", "C", {})
    assert (row.ratio_by_baseline, row.ratio_by_level) == pytest.approx((a, b))
    assert row.ratio_of_ratios is not None
    assert row.ratio_of_ratios.value == pytest.approx(b / a)
    low, high = flat(LARGE_A).mean() - flat(SMALL_A).mean(), flat(LARGE_C).mean() - flat(SMALL_C).mean()
    assert (row.difference_by_baseline, row.difference_by_level) == pytest.approx((low, high))
    assert row.difference_of_differences.value == pytest.approx(high - low)
    assert (row.verdict, row.verdict_of_differences) == ("higher", "higher")


def test_where_a_factor_varies_within_starts_it_is_welch_on_their_differences() -> None:
    row = only(interactions(frame(grid()), RESPONSE, "nodes"))
    small, large = flat(SMALL_C) - flat(SMALL_A), flat(LARGE_C) - flat(LARGE_A)
    wanted = stats.ttest_ind(large, small, equal_var=False)
    ends = wanted.confidence_interval(0.95)
    found = row.difference_of_differences
    assert (found.low, found.high) == pytest.approx((ends.low, ends.high))
    assert row.p_of_differences == pytest.approx(wanted.pvalue)
    logs = [np.log(flat(c)) - np.log(flat(a)) for c, a in ((SMALL_C, SMALL_A), (LARGE_C, LARGE_A))]
    of_logs = stats.ttest_ind(logs[1], logs[0], equal_var=False)
    quotient = row.ratio_of_ratios
    assert quotient is not None
    assert quotient.low == pytest.approx(math.exp(of_logs.confidence_interval(0.95).low))
    assert row.p == pytest.approx(of_logs.pvalue)


def test_where_both_factors_vary_within_starts_it_is_one_sample_of_double_differences() -> None:
    shared = [one.model_copy(update={"start": f"b{one.start_replicate}"}) for one in grid()]
    row = only(interactions(frame(shared, hard=()), RESPONSE, "nodes"))
    doubles = (flat(LARGE_C) - flat(SMALL_C)) - (flat(LARGE_A) - flat(SMALL_A))
    wanted = stats.ttest_1samp(doubles, 0).confidence_interval(0.95)
    found = row.difference_of_differences
    assert (found.low, found.high) == pytest.approx((wanted.low, wanted.high))


def test_a_change_may_shrink_as_a_ratio_and_grow_as_a_difference() -> None:
    records = [
        *cell([[100.0], [101.0], [99.0]], nodes=1, workload="A"),
        *cell([[200.0], [202.0], [201.0]], nodes=1, workload="C"),
        *cell([[400.0], [404.0], [398.0]], nodes=3, workload="A"),
        *cell([[600.0], [606.0], [603.0]], nodes=3, workload="C"),
    ]
    row = only(interactions(frame(records), RESPONSE, "workload"))
    assert (row.verdict, row.verdict_of_differences) == ("lower", "higher")
    assert row.sentence.startswith("from 1 node to 3 nodes, workload C against A: 2.0 times as long, then +51%")
    assert "as a difference 101 ms, then 202 ms (+101 ms [" in row.sentence


def test_a_size_is_looked_at_from_the_least_to_the_greatest_whatever_the_order_of_its_levels() -> None:
    records = [
        *grid(),
        *cell([[700.0], [720.0], [690.0]], nodes=6, workload="A"),
        *cell([[900.0], [940.0], [910.0]], nodes=6, workload="C"),
    ]  # fmt: skip
    factors: dict[str, list[Level]] = {"nodes": [6, 1, 3], "workload": ["A", "C"]}
    rows = interactions(TrialFrame.build(records, factors, ["nodes"], 0), RESPONSE, "workload")
    assert [(row.by_baseline, row.by_level) for row in rows] == [(1, 3), (1, 6)]


def test_two_starts_have_no_interval_and_no_verdict() -> None:
    few = [one for one in grid() if one.block < 3]
    row = only(interactions(frame(few), RESPONSE, "nodes"))
    assert (row.verdict, row.verdict_of_differences, row.p) == ("descriptive", "descriptive", None)
    assert row.difference_of_differences.low is None


def test_without_a_treatment_there_is_no_row() -> None:
    known = [one for one in grid() if one.treatment != {"nodes": 3, "workload": "C"}]
    assert interactions(frame(known), RESPONSE, "nodes") == ()


def test_what_holms_correction_takes_away_is_said() -> None:
    """Ten levels beside, with nothing in them: one difference of eleven that is not sure enough for all."""
    beside = [
        record
        for size in range(4, 14)
        for workload in ("A", "C")
        for record in cell([[100.0], [111.0], [92.0]], nodes=size, workload=workload)
    ]
    small = [*cell([[100.0], [101.0], [102.0]], nodes=1, workload="A"), *cell(SMALL_C, nodes=1, workload="C")]
    large = [
        *cell([[103.0], [100.0], [102.0]], nodes=3, workload="A"),
        *cell([[250.0], [262.0], [290.0]], nodes=3, workload="C"),
    ]
    rows = interactions(frame([*small, *large, *beside]), RESPONSE, "nodes")
    first = rows[0]
    assert (first.level, first.verdict_of_differences, len(rows)) == (3, "higher", 11)
    assert first.p_of_differences is not None
    assert first.p_holm_of_differences is not None
    assert first.p_of_differences < 0.05 < first.p_holm_of_differences
    assert "; the difference would not survive Holm's correction over 11 comparisons (p 0." in first.sentence


def trend(nodes: int, factor: float, **more: Level) -> Trend:
    return Trend(
        treatment={"nodes": nodes, **more}, start="3 starts", series="trials", response=RESPONSE, n=9, starts=3,
        factor=factor, verdict="warming", detail="",
    )  # fmt: skip


def test_a_trend_that_treatments_share_leaves_the_ratio_and_may_explain_the_difference() -> None:
    row = only(interactions(frame(grid()), RESPONSE, "nodes", trends=[trend(3, 0.4)]))
    assert (row.verdict, row.verdict_of_differences) == ("higher", "undecided")
    assert row.why == ""
    assert row.why_of_differences == "trends within starts may be all of it"
    assert "higher); as a difference" in row.sentence
    assert row.sentence.endswith(": undecided, because trends within starts may be all of it)")
    assert row.trend == "3 nodes still warming: by a factor of 0.400 in all"


def test_a_trend_of_starts_of_their_own_may_explain_both() -> None:
    apart = frame(
        [one.model_copy(update={"start": f"{one.start}-{one.treatment['workload']}"}) for one in grid()],
        hard=("nodes", "workload"),
    )
    assert only(interactions(apart, RESPONSE, "nodes")).verdict == "higher"
    row = only(interactions(apart, RESPONSE, "nodes", trends=[trend(3, 0.2, workload="C")]))
    assert (row.verdict, row.verdict_of_differences) == ("undecided", "undecided")
    assert row.trend.startswith("workload C: 3 nodes")


def test_the_noise_of_both_ratios_counts_in_quadrature() -> None:
    spread = Spread(
        response=RESPONSE, starts=10, trials=30, between_mean_square=0.003, between_degrees=9,
        within_mean_square=0.0004, within_degrees=20, trials_a_start=3.0,
    )  # fmt: skip
    floors = Floors(own={RESPONSE: spread})
    row = only(interactions(frame(grid()), RESPONSE, "nodes", floors=floors))
    single = floors.of(RESPONSE, [1, 1, 1], [1, 1, 1], False)
    assert single is not None
    one = math.log1p(single.percent.value / 100)
    assert row.floor_percent == pytest.approx(100 * math.expm1(math.sqrt(2) * one))
    assert row.verdict == "higher"
    noisy = Floors(own={RESPONSE: spread.model_copy(update={"between_mean_square": 3.0})})
    row = only(interactions(frame(grid()), RESPONSE, "nodes", floors=noisy))
    assert (row.verdict, row.why) == ("undecided", "it lies within the noise of this machine")


def of_links(link: str, nodes: int, values: list[list[float]], threads: int = 1) -> list[TrialRecord]:
    extra: dict[str, Level] = {"link": link, "load.threads": threads}
    values = [[value * (1 + threads / 1000) for value in of] for of in values]
    return [
        one.model_copy(update={"start": f"{one.start}-{link}", "id": f"{one.id}-{link}-{threads}", "shares": ("cpu",)})
        for one in cell(values, nodes=nodes, extra=extra)
    ]


def linked(threads: tuple[int, ...] = (1,)) -> list[TrialRecord]:
    return [
        record
        for number in threads
        for link, nodes, values in (
            ("nodal", 1, SMALL_A), ("802.11n", 1, SMALL_C), ("nodal", 3, LARGE_A), ("802.11n", 3, LARGE_C),
        )
        for record in of_links(link, nodes, values, number)
    ]  # fmt: skip


def asked(compared: str, threads: tuple[int, ...] = (1,)) -> Study:
    factors = {"link": ("nodal", "802.11n"), "nodes": (1, 3), "load.threads": threads}
    return study(analysis={"compared": compared}, factors=factors)


def test_the_answer_compares_the_factor_that_the_study_names() -> None:
    records = [one.model_copy(update={"hard": ("nodes", "link")}) for one in linked()]
    results = analyse(records, asked("link"), seed=1)
    assert results.answer_table is not None
    assert (results.factor_asked, results.answer_table.factor) == ("link", "link")
    (about,) = [sentence for sentence in results.answer if sentence.startswith("From 1 node to 3 nodes")]
    assert "link 802.11n against nodal: 2.1 times as long, then 5.0 times as long (ratio of ratios 2.4" in about
    assert results.answer[-1].startswith("The nodes share one processor, so a larger cluster may be slower here")
    assert analyse(records, asked(""), seed=1).factor_asked == "nodes"


def test_with_many_lines_the_answer_counts() -> None:
    threads = (1, 8, 16)
    records = [one.model_copy(update={"hard": ("nodes", "link")}) for one in linked(threads)]
    results = analyse(records, asked("link", threads), seed=1)
    (about,) = [sentence for sentence in results.answer if sentence.startswith("From 1 node to 3 nodes")]
    assert about == (
        "From 1 node to 3 nodes, the change of link 802.11n against nodal, in 3 lines: "
        "ratio higher in 3; difference higher in 3."
    )
