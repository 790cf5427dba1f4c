"""Objectives: a level meets the limit, does not, or is undecided by its interval; the highest that meets is named."""

from __future__ import annotations

import re

import numpy as np
import pytest

from steelyard.analysis.analyse import analyse
from steelyard.analysis.comparisons.level_ratios import centre
from steelyard.analysis.statistics.objective import ObjectiveLevel, answers, objective_levels
from steelyard.model.objective import parse
from tests.unit.analysis.made import cell, drawn, frame, study

SPREAD = (0.98, 1.0, 1.02)
LIMIT = "execution_time_ms < 100"


def levels(*means: float, limit: str = LIMIT) -> tuple[ObjectiveLevel, ...]:
    """Levels 1, 2, ... with three starts around each mean."""
    records = [
        record
        for nodes, mean in enumerate(means, start=1)
        for record in cell([[mean * f] for f in SPREAD], nodes=nodes)
    ]
    return objective_levels(frame(records), parse(limit))


def test_the_interval_over_starts_decides() -> None:
    rows = levels(80.0, 99.0, 130.0)
    assert [row.verdict for row in rows] == ["met", "undecided", "not met"]
    assert [row.highest for row in rows] == [True, False, False]
    assert rows[1].why == "the limit lies within the interval"
    assert [row.value for row in rows] == [centre([m * f for f in SPREAD], "ms", 0.95) for m in (80.0, 99.0, 130.0)]


def test_the_highest_level_that_meets_is_named_with_its_numbers() -> None:
    rows = levels(70.0, 130.0, 80.0, 99.0)
    (sentence,) = answers(rows)
    assert sentence == (
        "The highest level that meets the objective `execution_time_ms < 100` (execution time, ms) is 3 nodes: "
        f"{_told(rows[2])}; it is met on 1 node ({_told(rows[0])}); undecided on 4 nodes ({_told(rows[3])}); "
        f"not met on 2 nodes ({_told(rows[1])})."
    )


def _told(row: ObjectiveLevel) -> str:
    value, low, high = row.value.value, row.value.low, row.value.high
    assert low is not None
    assert high is not None
    return f"{float(f'{value:.3g}'):.{1 if value < 100 else 0}f} ms [{low:.1f}, {high:.1f}]"


def test_no_level_that_meets() -> None:
    (sentence,) = answers(levels(130.0, 150.0))
    assert sentence.startswith("No level of nodes is shown to meet the objective `execution_time_ms < 100`")
    assert re.search(
        r"not met on 1 node \(130 ms \[[\d.]+, [\d.]+\]\) and 2 nodes \(150 ms \[[\d.]+, [\d.]+\]\)\.$", sentence
    )


def test_fewer_than_three_starts_decide_nothing() -> None:
    (row,) = objective_levels(frame(cell([[50.0], [51.0]])), parse(LIMIT))
    assert (row.verdict, row.why) == ("undecided", "fewer than 3: no interval")


@pytest.mark.parametrize(("limit", "verdict"), [("throughput_per_s >= 5", "met"), ("throughput_per_s > 20", "not met")])
def test_limits_from_below(limit: str, verdict: str) -> None:
    """1,000 operations in 100 s are 10 a second."""
    (row,) = levels(100_000.0, limit=limit)
    assert row.verdict == verdict


def test_the_answer_of_a_study_has_the_objective_before_its_last_sentence() -> None:
    records = drawn(np.random.default_rng(1), {1: 80.0, 3: 150.0}, starts=4, trials=1, start_cv=0.01, trial_cv=0.01)
    results = analyse(records, study(analysis={"objective": LIMIT}), seed=1)
    rows = results.of(ObjectiveLevel)
    assert [row.verdict for row in rows] == ["met", "not met"]
    assert list(answers(rows)) == list(results.answer[1:-1])
    assert analyse(records, study(), seed=1).of(ObjectiveLevel) == ()


@pytest.mark.parametrize("written", ["response_ms_p99", "response_ms_p99 < fast", "response_ms_p9 < 10", "< 10"])
def test_what_is_no_objective_is_refused(written: str) -> None:
    with pytest.raises(ValueError, match=r"not a limit|did you mean 'response_ms_p9\d'"):
        study(analysis={"objective": written})


def test_intervals_of_levels_at_the_limit_decide_wrongly_as_seldom_as_announced() -> None:
    """Levels whose true mean is the limit: an interval of 95% leaves it out in 5% of 400 studies."""
    rng, wrong = np.random.default_rng(7), 0
    for _ in range(400):
        records = drawn(rng, {1: 100.0}, starts=5, trials=1, start_cv=0.05, trial_cv=0.0)
        (row,) = objective_levels(frame(records), parse(LIMIT))
        wrong += row.verdict != "undecided"
    assert 8 <= wrong <= 34
