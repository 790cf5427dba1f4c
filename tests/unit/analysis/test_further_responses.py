"""Further responses of a study: every analysis of the main one, and one family of Holm's correction."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from statsmodels.stats.multitest import multipletests

from steelyard.analysis import statistics
from steelyard.analysis.analyse import analyse
from steelyard.analysis.frame import frame_of
from steelyard.analysis.results import Results
from steelyard.analysis.statistics.comparison import Comparison, comparisons
from steelyard.analysis.statistics.server_warm_up import WarmedStart
from steelyard.analysis.tables import tables, titles
from steelyard.model.server_warm_up import ServerWarmth
from steelyard.model.trial import TrialRecord
from tests.unit.analysis import made

CPU = "cpu_percent_mean"


def records(rng: np.random.Generator, ratio: float = 1.5, starts: int = 5) -> list[TrialRecord]:
    """Execution time as drawn; CPU with a planted ratio between 1 and 3 nodes, 2% from start to start."""
    trials = made.drawn(rng, {1: 100.0, 3: 110.0}, starts=starts, trials=2, start_cv=0.03, trial_cv=0.01)
    effects = {start: rng.normal(0, 0.02) for start in sorted({trial.start for trial in trials})}
    return [
        trial.model_copy(
            update={"measures": {CPU: 20.0 * (ratio if trial.treatment["nodes"] == 3 else 1.0)
                                 * float(np.exp(effects[trial.start] + rng.normal(0, 0.005)))}}
        )
        for trial in trials
    ]  # fmt: skip


@pytest.fixture(scope="module")
def results() -> Results:
    factors = {"nodes": (1, 3), "workload": ("A",)}
    asked = made.study(analysis={"responses": [CPU, "throughput_per_s"]}, factors=factors)
    return analyse(records(np.random.default_rng(5)), asked, seed=1)


def test_each_response_has_the_tables_of_the_main_one(results: Results) -> None:
    by_name = tables(results)
    for name in ("comparison", "effect", "anova", "summary", "one_way", "regression", "trend", "course"):
        assert {"execution_time_ms", CPU, "throughput_per_s"} <= set(by_name[name]["response"]), name
    assert [one.response for one in results.further] == [CPU, "throughput_per_s"]
    assert results.further[0].answer[0].startswith("CPU of a database node, workload A: 29.7% on 3 nodes and 19.7% on")
    assert "by execution time, CPU of a database node and throughput" in titles(results)["comparison"]


def test_a_main_response_alone_has_the_same_numbers(results: Results) -> None:
    """The CPU as main response: the same ratios, intervals and uncorrected p-values."""
    asked = made.study(analysis={"response": CPU}, factors={"nodes": (1, 3), "workload": ("A",)})
    alone = analyse(records(np.random.default_rng(5)), asked, seed=1)
    (row,), (same,) = results.further[0].of(Comparison), alone.of(Comparison)
    assert (row.ratio, row.p, row.verdict, row.mean_level) == (same.ratio, same.p, same.verdict, same.mean_level)


@pytest.mark.parametrize(("table", "form"), [("comparison", None), ("anova", "honest"), ("anova", "published")])
def test_p_values_of_all_responses_are_one_family(results: Results, table: str, form: str | None) -> None:
    frame = tables(results)[table].filter(pl.col("p").is_not_null())
    if form is not None:
        frame = frame.filter((pl.col("form") == form) & (pl.col("term") != "block"))
    assert frame["response"].n_unique() == 3
    adjusted = multipletests(frame["p"].to_list(), method="holm")[1]
    assert frame["p_holm"].to_list() == pytest.approx(list(adjusted))
    if table == "comparison":
        assert set(frame["family"]) == {frame.height}


def test_the_verdict_on_a_measure_covers_as_that_on_time_does() -> None:
    """Levels alike: of 200 studies a verdict of a difference in about 5%, because the functions are the same."""
    rng, wrong = np.random.default_rng(11), 0
    asked = made.study(analysis={"response": CPU}, factors={"nodes": (1, 3), "workload": ("A",)})

    for _ in range(200):
        (row,) = comparisons(frame_of(records(rng, ratio=1.0), asked), CPU)
        wrong += row.verdict != "undecided"
    assert 2 <= wrong <= 20


def test_covariates_of_a_start_are_a_table() -> None:
    trials = made.drawn(np.random.default_rng(1), {1: 100.0, 3: 110.0}, starts=1, trials=2, start_cv=0.0, trial_cv=0.1)
    known = [one.model_copy(update={"covariates": {"cores": 2.0 * int(one.treatment["nodes"])}}) for one in trials]
    asked = made.study(factors={"nodes": (1, 3), "workload": ("A",)})
    table = tables(analyse(known, asked, seed=1))["covariate"]
    assert table.select("nodes", "name", "value", "unit", "n").rows() == [
        (1, "cores", 2.0, "cores", 2),
        (3, "cores", 6.0, "cores", 2),
    ]
    assert tables(analyse(trials, asked, seed=1))["covariate"].is_empty()


def test_tables_of_records_are_shown_once() -> None:
    warmth = ServerWarmth(reached=True, seconds=60.0, rounds=3, operations=900, nodes={}, reasons=())
    warmed = [one.model_copy(update={"server_warm_up": warmth}) for one in records(np.random.default_rng(5))]
    asked = made.study(analysis={"responses": [CPU]}, factors={"nodes": (1, 3), "workload": ("A",)})
    found = analyse(warmed, asked, seed=1)
    assert {one.name for one in statistics.every() if one.of_records} == {
        "activities", "activity_phase", "activity_response", "aligned", "covariate", "derived_threshold", "elasticity",
        "job_stage", "link", "link_program", "search", "search_window", "server_warm_up", "time_to_event",
    }  # fmt: skip
    assert len(found.of(WarmedStart)) == tables(found)["server_warm_up"].height == 10
    assert found.further[0].of(WarmedStart) == ()


def disrupted(level: str, start: int, **measures: float) -> TrialRecord:
    """A trial at a level of the factor `disruption`, with measures of its own."""
    trial = made.record(100.0, nodes=level, start=start, extra={"disruption": level})
    kept = {name: level for name, level in trial.treatment.items() if name == "disruption"}
    return trial.model_copy(update={"treatment": kept, "hard": ("disruption",), "measures": measures})


def test_a_control_without_a_value_is_no_baseline() -> None:
    """It is said why it has none; the others are compared among each other, in one family with all."""
    levels: tuple[str, ...] = ("none", "noop", "pause")
    trials = [
        disrupted(level, start, availability_percent=100.0 - place * start,
                  **({"recovery_s": place * (2.0 + start / 10)} if place else {}))
        for start in (1, 2, 3) for place, level in enumerate(levels)
    ]  # fmt: skip
    asked = made.study(
        analysis={"response": "availability_percent", "responses": ["recovery_s"]}, factors={"disruption": levels},
        load={"duration_s": 60},
    )  # fmt: skip
    found = analyse(trials, asked, seed=1)
    assert [(row.baseline, row.level) for row in found.of(Comparison)] == [("none", "noop"), ("none", "pause")]
    (recovery,) = found.further
    (row,) = recovery.of(Comparison)
    assert (row.baseline, row.level, row.family) == ("noop", "pause", 3)
    assert recovery.answer_table is not None
    rows = {str(row.level): row for row in recovery.answer_table.rows}
    assert [rows[level].verdict for level in levels] == ["no value", "baseline", "higher"]
    assert rows["noop"].value_text == "2.2 s", "of whole seconds, with one decimal"
    assert rows["none"].why == "no value of this response: nothing was disrupted here"
    assert "none has no value of this response: nothing was disrupted here" in recovery.answer[0]
    assert recovery.factors == found.factors, "in the order of the study, as in the other figures"
    assert not any("No valid trial" in text or "No trial" in text for text in found.caveats)


def test_what_happened_in_no_trial_has_no_value_and_is_no_invalid_trial() -> None:
    trials = [
        disrupted(level, start, **({"recovery_s": 2.0 + start} if level == "pause" else {}))
        for start in (1, 2, 3) for level in ("kill", "pause")
    ]  # fmt: skip
    asked = made.study(
        analysis={"response": "recovery_s"}, factors={"disruption": ("kill", "pause")}, load={"duration_s": 60}
    )
    found = analyse(trials, asked, seed=1)
    assert "No trial with a value (recovery time) of: disruption kill." in found.caveats
    assert "kill has no value of this response in any trial" in " ".join(found.answer)
