"""Measures of elasticity over trials: a row per treatment, intervals over starts, a speed-up in blocks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
import pytest

from steelyard.analysis.analyse import analyse
from steelyard.analysis.comparisons.level_pairs import LevelPair
from steelyard.analysis.comparisons.level_ratios import ratio_of
from steelyard.analysis.frame import frame_of
from steelyard.analysis.inference import estimates
from steelyard.analysis.results import Results
from steelyard.analysis.statistics.elasticity import MEASURES, Elasticity, lacking
from steelyard.analysis.tables import tables
from steelyard.judging.elasticity import ElasticityMeasures
from steelyard.judging.elasticity import elasticity as measures_of
from steelyard.model.trial import TrialRecord
from steelyard.study.read import read_text
from tests.unit.report import elastic, growing

STEP_S, LENGTH_S = 30.0, 60.0
SLOWER = [1 + 0.1 * block for block in range(1, 5)]
"""Factor on the times of both joins in each block."""


def analysed(records: Sequence[TrialRecord], text: str = elastic.STUDY) -> Results:
    return analyse(records, read_text(text), seed=1)


def rows(text: str = elastic.STUDY, **changes: Any) -> dict[str, Elasticity]:
    """Rows by policy; `changes` of every record."""
    records = [one.model_copy(update=changes) for one in growing.records(text)]
    return {str(row.treatment["policy"]): row for row in analysed(records, text).of(Elasticity)}


def expected_under(slower: float) -> tuple[float, float]:
    """theta and tau under of a cluster that grows: 5 nodes are needed from 30 s on."""
    fourth_s, fifth_s = 20 + 10.1 * slower, 20 + 20.2 * slower
    lacked = (fourth_s - STEP_S) * 2 / 5 + (fifth_s - fourth_s) * 1 / 5
    return 100 * lacked / LENGTH_S, 100 * (fifth_s - STEP_S) / LENGTH_S


def test_the_control_has_the_same_demand_and_a_row() -> None:
    row = rows()["none"]
    values = [getattr(row, name).value for name in MEASURES]
    assert values == pytest.approx([20, 25, 50, 50, -3, 100 / 59])
    assert (row.n, row.starts, row.never_under, row.never_over) == (4, 4, 0, 0)
    assert (row.beyond_scale_percent, row.node_seconds) == (0, 3 * LENGTH_S)
    assert (row.elastic_speedup, row.speedup_lacks) == (None, "it is the control")
    assert row.theta_under_percent.low is None
    assert row.theta_under_percent.method == "mean over start means; nothing varies: no interval"


def test_a_policy_has_means_over_starts_and_a_speedup_in_blocks() -> None:
    row = rows()["scheduled"]
    thetas, taus = zip(*(expected_under(slower) for slower in SLOWER), strict=True)
    assert row.theta_under_percent.value == pytest.approx(math.fsum(thetas) / 4, rel=1e-3)
    assert row.tau_under_percent.value == pytest.approx(math.fsum(taus) / 4, rel=1e-3)
    assert row.theta_over_percent.value == pytest.approx(25)
    assert row.tau_over_percent.value == pytest.approx(50)
    assert "3 degrees of freedom" in row.theta_under_percent.method
    assert 3 * LENGTH_S < row.node_seconds < 5 * LENGTH_S
    speedup = row.elastic_speedup
    assert speedup is not None
    logs = [math.log(20 / theta * 50 / tau) / 4 for theta, tau in zip(thetas, taus, strict=True)]
    assert speedup.value == pytest.approx(math.exp(math.fsum(logs) / 4), rel=1e-3)
    assert speedup.low is not None
    assert 1 < speedup.low < speedup.value
    assert "t on logarithms of start means paired by block" in speedup.method


def test_the_measures_are_columns_of_the_trial_frame_by_the_demand_of_now() -> None:
    records, study = growing.records(elastic.STUDY), read_text(elastic.STUDY)
    data = frame_of(records, study).data
    grown = data.filter(pl.col("policy") == "scheduled").sort("block")
    for row, slower in zip(grown.iter_rows(named=True), SLOWER, strict=True):
        assert (row["theta_under_percent"], row["tau_under_percent"]) == pytest.approx(expected_under(slower), rel=1e-3)
    assert data.filter(pl.col("policy") == "none")["node_seconds"].to_list() == [3 * LENGTH_S] * 4
    demand = study.analysis.demand
    assert demand is not None
    more = demand.model_copy(update={"capacity": tuple((nodes, 2 * carried) for nodes, carried in demand.capacity)})
    again = frame_of(records, study.model_copy(update={"analysis": study.analysis.model_copy(update={"demand": more})}))
    assert again.data["theta_under_percent"].sum() == 0
    bare = frame_of(records, read_text(growing.STUDY)).data
    assert bare["theta_under_percent"].is_null().all()
    assert bare["node_seconds"].to_list() == data["node_seconds"].to_list(), "what is paid for needs no demand"
    assert all(name not in one.measures for one in records for name in MEASURES)


def test_a_measure_of_0_has_no_ratio_and_it_is_said_which() -> None:
    text = elastic.STUDY.replace("[50, 2]", "[50, 3]")
    of = rows(text)
    assert (of["scheduled"].never_over, of["scheduled"].theta_over_percent.value) == (4, 0)
    assert of["scheduled"].elastic_speedup is None
    assert of["scheduled"].speedup_lacks == (
        "theta and tau over are 0 in 4 of 4 trials and theta and tau over are 0 in 4 of 4 trials of the control"
    )


def test_without_a_control_there_is_no_speedup() -> None:
    records = [one for one in growing.records(elastic.STUDY) if one.activities]
    (row,) = analysed(records).of(Elasticity)
    assert row.elastic_speedup is None
    assert row.speedup_lacks.startswith("no treatment with the same other levels keeps its size")


def test_an_interval_ends_at_the_bounds_and_says_so() -> None:
    begins_s = {1: 0.0, 2: 5.0, 3: 25.0, 4: 38.0}  # the first two are through before the load rises
    records = [
        one.model_copy(update={"activities": (growing.growth(one.begun_s + begins_s[one.block]),)})
        if one.activities
        else one
        for one in growing.records(elastic.STUDY)
    ]
    row = next(row for row in analysed(records).of(Elasticity) if row.treatment["policy"] == "scheduled")
    assert (row.theta_under_percent.low, row.tau_under_percent.low, row.never_under) == (0, 0, 2)
    assert row.theta_under_percent.method.endswith("3 degrees of freedom, cut at 0")
    assert row.speedup_lacks == "theta and tau under are 0 in 2 of 4 trials"
    assert row.jitter_per_min.value == pytest.approx(2 - 3)


def test_what_the_largest_size_does_not_carry_is_counted_apart() -> None:
    text = elastic.STUDY.replace("rates_per_s = [1500, 4500]", "rates_per_s = [1500, 6000]")
    of = rows(text)
    assert {row.beyond_scale_percent for row in of.values()} == {50}
    assert of["none"].theta_under_percent.value == pytest.approx(20), "the demand is the largest size"
    caveats = "\n".join(analysed(growing.records(text), text).caveats)
    assert "In up to 50% of the time of a treatment the load offered more than the largest size carries" in caveats


def test_trials_that_do_not_count_are_in_no_row() -> None:
    records = list(growing.records(elastic.STUDY))
    records[0] = records[0].model_copy(update={"control": True})
    assert sum(row.n for row in analysed(records).of(Elasticity)) == 7


def test_without_what_it_takes_there_are_no_rows_and_it_is_said_why() -> None:
    def why(text: str, records: Sequence[TrialRecord]) -> str:
        assert analysed(records, text).of(Elasticity) == ()
        return lacking(read_text(text), records)

    decides = growing.STUDY.replace("times = [[20, 5]]", "threshold = 80\nmax_nodes = 5").replace(
        "scheduled", "threshold"
    )
    assert "the study does not say: `analysis.demand`" in why(decides, growing.records(decides))
    assert why(growing.STUDY, growing.records()) == ""
    closed = elastic.STUDY.replace('schedule = "steps"\nrates_per_s = [1500, 4500]\nstep_s = 30', "threads = 4")
    assert "closed loops, traces and fractions" in why(closed, growing.records(closed))
    fixed = [one for one in growing.records(elastic.STUDY) if not one.activities]
    assert why(elastic.STUDY, fixed) == ""
    assert lacking(read_text(elastic.STUDY), growing.records(elastic.STUDY)) == ""


def test_the_intervals_hold_the_truth_about_as_often_as_they_say() -> None:
    rng, demand = np.random.default_rng(7), [(0, 1), (7, 3), (14, 4), (21, 1)]

    def trial() -> ElasticityMeasures:
        third_s, fourth_s, last_s = rng.gamma(6, 0.5, 3)
        supply = [(0, 2), (7 + third_s, 3), (7 + third_s + fourth_s, 4), (21 + last_s, 1)]
        return measures_of(demand, sorted(supply), 35)

    many = [trial() for _ in range(8000)]
    theta = float(np.mean([one.theta_under_percent for one in many]))
    product = math.exp(float(np.mean([math.log(math.prod(one[:4])) for one in many])))
    held = {"theta": 0, "product": 0}
    for _ in range(400):
        trials = [trial() for _ in range(5)]
        mean = estimates.mean_within([one.theta_under_percent for one in trials], "%", 0.95, 0, 100)
        products = tuple(math.prod(one[:4]) for one in trials)
        ratio = ratio_of(LevelPair("start means", "block", products, (1.0,) * 5), 0.95)
        assert ratio is not None
        for name, estimate, truth in (("theta", mean, theta), ("product", ratio, 1 / product)):
            assert estimate.low is not None
            assert estimate.high is not None
            held[name] += estimate.low <= truth <= estimate.high
    assert 0.89 * 400 < held["theta"] < 0.98 * 400
    assert 0.93 * 400 < held["product"] < 0.99 * 400


def test_it_is_a_table_of_the_results() -> None:
    frame = tables(analysed(growing.records(elastic.STUDY)))["elasticity"]
    assert frame.height == 2
    assert {"policy", "theta_under_percent", "theta_under_percent_low", "elastic_speedup"} <= {*frame.columns}
    assert "others" not in frame.columns
