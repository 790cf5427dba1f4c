from __future__ import annotations

import numpy as np
import pytest

from steelyard.analysis.inference.steadiness import judged, mser5
from steelyard.analysis.statistics.steady import steady
from steelyard.analysis.statistics.warm_up import warm_up
from tests.unit.analysis.made import cell, frame

A1 = {"nodes": 1, "workload": "A"}


def brute_force(series):
    """MSER-5 spelt out, as an oracle: the cut with the least standard error of what is left, batches of five."""
    z = [sum(series[i : i + 5]) / 5 for i in range(0, len(series) - 4, 5)]
    scores = []
    for d in range(len(z) // 2 + 1):
        left = z[d:]
        mean = sum(left) / len(left)
        scores.append(sum((value - mean) ** 2 for value in left) / len(left) ** 2)
    return 5 * scores.index(min(scores))


def test_mser5_against_the_definition():
    rng = np.random.default_rng(5)
    for n in (20, 23, 30, 61):
        series = list(rng.normal(10, 1, n) + 5 * np.exp(-np.arange(n) / 4))
        assert mser5(series) == brute_force(series)


def test_a_step_is_cut_where_it_is():
    assert mser5([20.0] * 10 + [10.0] * 20) == 10


def test_five_trials_are_too_few_for_a_verdict_and_nineteen_for_a_cut():
    few = judged([10.0] * 5, "trial", "trials", 0.95)
    assert (few.verdict, few.cut) == ("none", None)
    assert few.detail == "5 trials, too few to distinguish a change of level from chance; 6 are needed"
    assert judged([10.0] * 19, "trial", "trials", 0.95).cut is None


def shaped(kind: str, rng: np.random.Generator, n: int = 30) -> list[float]:
    noise = rng.normal(0, 0.02, n)
    curve = {"level": np.zeros(n), "warm-up": 0.5 * (np.arange(n) < 9), "rising": 0.02 * np.arange(n)}[kind]
    return list(10 * (1 + curve + noise))


@pytest.mark.parametrize(
    ("kind", "verdicts", "least"),
    [("level", {"steady"}, 0.95), ("warm-up", {"warm-up"}, 0.95), ("rising", {"drifting", "none"}, 0.99)],
)
def test_verdicts_are_right_most_of_the_time(kind, verdicts, least):
    rng = np.random.default_rng(7)
    right = [judged(shaped(kind, rng), "trial", "trials", 0.95).verdict in verdicts for _ in range(200)]
    assert np.mean(right) >= least


def test_the_fixed_count_stands_beside_the_detected_one():
    series = [20.0] * 10 + [10.0, 10.1, 9.9, 10.0] * 5
    found = warm_up(frame(cell([series]), warm_up_trials=9), "execution_time_ms", A1, "b01-n1")
    assert found is not None
    assert (found.n, found.fixed_cut, found.detected_cut, found.verdict) == (30, 9, 10, "warm-up")
    assert found.mean_fixed is not None
    assert found.mean_detected is not None
    assert found.mean_detected.value == pytest.approx(10.0)
    assert found.mean_fixed.value == pytest.approx((20 + 200) / 21)
    assert found.change_detected == pytest.approx((10 - 400 / 30) / (400 / 30))


def test_seconds_of_a_changed_level_are_said_to_be_taken_as_independent():
    series = [20.0 + 0.1 * (at % 3) for at in range(10)] + [10.0 + 0.1 * (at % 3) for at in range(30)]
    found = steady(series, trial_id="t", attempt=1, treatment={}, response="response_ms_mean", confidence=0.9)
    assert found is not None
    (change,) = found.change_points
    assert found.changes.startswith("after 10: ")
    assert change.after == 10
    assert change.change_percent is not None
    assert change.change_percent.confidence == 0.9
    assert "seconds, counted as independent" in change.change_percent.method
