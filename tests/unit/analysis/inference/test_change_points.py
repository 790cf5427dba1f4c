"""Change points: planted steps are found where they are, steady series stay steady, also where neighbours are alike."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import signal, stats

from steelyard.analysis.inference.change_points import FEWEST, changes, greatest, likeness, trend
from steelyard.analysis.statistics.course import courses
from steelyard.analysis.statistics.steady import steady
from tests.unit.analysis.made import cell, drawn, frame

TIME = "execution_time_ms"
A1 = {"nodes": 1, "workload": "A"}


def alike(rng: np.random.Generator, n: int, r: float) -> np.ndarray:
    """A stationary first-order autoregression of variance 1."""
    series = rng.normal(0, 1, n + 200) * np.sqrt(1 - r**2)
    return signal.lfilter([1], [1, -r], series)[200:]


def judged(series) -> str:
    found = steady(list(100 + series), trial_id="t", attempt=1, treatment=A1, response="response_ms_mean")
    assert found is not None
    return found.verdict


def test_the_place_is_that_of_the_greatest_rank_sum():
    """Against Mann and Whitney's z of every split, spelt out."""
    values = np.random.default_rng(3).normal(0, 1, 14) + np.r_[np.zeros(5), np.full(9, 1.5)]
    ranks = stats.rankdata(values)
    z = [
        abs(ranks[:k].sum() - k * 7.5) / np.sqrt(k * (14 - k) / 14) for k in range(2, 13)
    ]  # fmt: skip
    place, _ = greatest(values)
    assert place == 2 + int(np.argmax(z))


def test_p_is_the_share_of_orders_with_a_higher_one():
    """All 720 orders of six values."""
    import itertools

    def height(order):
        ranks = np.asarray(order)
        return max(abs(ranks[:k].sum() - k * 3.5) / np.sqrt(k * (6 - k) / 6) for k in range(2, 5))

    values = [1.0, 2.0, 3.0, 4.0, 6.0, 5.0]
    exact = np.mean([height(one) >= height(values) - 1e-9 for one in itertools.permutations(range(1, 7))])
    assert greatest(np.asarray(values))[1] == pytest.approx(exact, abs=0.02)


def test_planted_steps_are_found_where_they_are():
    rng = np.random.default_rng(5)
    values = rng.normal(0, 1, 60) + np.r_[np.full(15, 8.0), np.zeros(25), np.full(20, 6.0)]
    assert [one.after for one in changes(list(values))] == [15, 40]


def test_one_outlier_is_no_change():
    values = list(np.random.default_rng(2).normal(10, 0.1, 20))
    values[7] = 500.0
    assert changes(values) == ()


def test_too_few_or_equal_values_have_no_change():
    assert changes([1.0, 1, 1, 9, 9]) == ()
    assert changes([5.0] * 30) == ()
    assert trend([5.0] * 30) == (0.0, 1.0)
    assert likeness([5.0] * 30) == 0.0
    assert changes([1.0] * 10 + [2.0] * 10)[0].after == 10
    assert likeness([1.0] * 10 + [2.0] * 10) == 0.0


def test_the_correlation_of_neighbours_is_seen_beside_a_step():
    rng = np.random.default_rng(9)
    found = [likeness(list(alike(rng, 120, 0.7) + 6 * (np.arange(120) > 70))) for _ in range(40)]
    assert np.median(found) == pytest.approx(0.7, abs=0.06)


@pytest.mark.parametrize(("n", "r", "most"), [(30, 0.0, 0.05), (60, 0.3, 0.06), (60, 0.7, 0.08), (120, 0.7, 0.06)])
def test_steady_seconds_are_rarely_called_anything_else(n, r, most):
    rng = np.random.default_rng(n)
    assert np.mean([judged(alike(rng, n, r)) not in ("steady", "none") for _ in range(150)]) <= most


def test_a_warm_up_and_a_drift_of_seconds_are_told_apart():
    rng = np.random.default_rng(4)
    early = [judged(alike(rng, 120, 0.3) + 5 * (np.arange(120) < 20)) for _ in range(40)]
    assert early.count("warm-up") >= 36
    late = [judged(alike(rng, 120, 0.3) + 5 * (np.arange(120) > 90)) for _ in range(40)]
    assert late.count("drifting") >= 36
    assert judged(np.zeros(10)) == "none"


def test_a_day_that_changed_is_seen_in_all_treatments_together():
    """From the sixth block on everything takes 20% longer; each treatment has ten starts, one of each a block."""
    records = drawn(np.random.default_rng(6), {1: 4000.0, 3: 6000.0}, starts=10, trials=3, start_cv=0.02, trial_cv=0.01)
    slow = [
        one.model_copy(
            update={
                "responses": one.responses.model_copy(
                    update={TIME: (one.responses.execution_time_ms or 0) * (1.2 if one.block > 5 else 1.0)}
                )
            }
        )
        for one in records
    ]
    together, one, three = courses(frame(slow), TIME)
    assert (together.together, together.verdict, together.over) == (True, "warm-up", "start means")
    (change,) = together.change_points
    assert together.changes.startswith("after 10 (1.4 h): +")
    assert change.after == 10
    assert change.change_percent is not None
    assert change.change_percent.low < 20 < change.change_percent.high
    assert change.at_h == pytest.approx(5000 / 3600, rel=0.01)
    assert [len(item.change_points) for item in (one, three)] == [1, 1]


def test_level_studies_are_called_steady():
    rng, found = np.random.default_rng(7), []
    for _ in range(60):
        records = drawn(rng, {1: 4000.0, 3: 6000.0, 6: 7000.0}, starts=4, trials=2, start_cv=0.03, trial_cv=0.01)
        found.append(courses(frame(records), TIME)[0].verdict == "steady")
    assert np.mean(found) >= 0.93


def test_one_start_is_looked_at_by_its_trials_and_few_are_said_to_be_few():
    (found,) = courses(frame(cell([[9.0, 9.1, 9.2, 9.0, 5.0, 5.1, 5.2, 5.0, 5.1, 5.3, 5.0, 5.1]])), TIME)
    assert (found.over, found.starts, found.verdict) == ("trials", 1, "warm-up")
    assert "after trial 4" in found.detail
    (few,) = courses(frame(cell([[9.0, 9.1], [9.0, 9.2]])), TIME)
    assert (few.verdict, few.n) == ("none", 2)
    assert f"{FEWEST} are needed" in few.detail


def test_steady_is_not_said_of_values_that_could_not_show_a_change():
    """The nine trials of issue 9 were called steady; so would any nine values be."""
    nine = [463.0, 990, 2414, 3005, 2823, 2874, 2798, 2799, 2811]
    (course,) = courses(frame(cell([nine])), TIME)
    assert (course.verdict, course.over) == ("none", "trials")
    assert "a change by a factor of 1.2 would not be either" in course.detail
    rng = np.random.default_rng(11)
    assert judged(rng.normal(0, 40, 60)) == "none"
