"""Measures of a trial that scales: an exact made-up series, the golden scenario with noise, and properties."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from steelyard.judging import scaling_measures
from steelyard.judging.scaling_measures import by_second, greatest_rise, time_to_stability_s
from steelyard.model.activity import Activity, Mark
from steelyard.model.histogram import Bucket
from steelyard.model.scaling import Scaling
from steelyard.model.trial import TrialRecord
from steelyard.plan import expand
from steelyard.study.read import read_text
from steelyard.wire.record import Interval
from tests.unit.report import growing
from tests.unit.wire import made

STEPS = 'schedule = "steps"\nrates_per_s = [2400, 4000]\nstep_s = 30\nthreads = 256'
GOLDEN = growing.STUDY.replace('schedule = "constant"\nrate_per_s = 1000', STEPS)
GOLDEN = GOLDEN.replace("duration_s = 60", "duration_s = 150").replace("[[20, 5]]", "[[40, 5]]")
CLOSED = GOLDEN.replace(STEPS, "threads = 256")
CARRIED = ((0, 2884.6), (50, 3773.6), (59, 4629.6))
BEGUN_S = 1000.0
SECONDS = 150
LOST = 20 * (4000 - 2884.6) + 9 * (4000 - 3773.6)
STABLE_S = LOST / (4629.6 - 4000)
Series = NDArray[np.float64]


def scale_out(begun_s: float = 40, *arrived_s: float, outcome: str = "done") -> Activity:
    nodes = [f"n{place}" for place in range(4, 4 + max(2, len(arrived_s)))]
    marks = [Mark(name="in-service", t_s=BEGUN_S + t_s, node=node) for node, t_s in zip(nodes, arrived_s, strict=False)]
    return Activity.model_validate(
        {
            "kind": "scale-out", "nodes": nodes, "cause": "", "begun_s": BEGUN_S + begun_s, "outcome": outcome,
            "ended_s": BEGUN_S + 100, "marks": marks,
        }
    )  # fmt: skip


GROWS = scale_out(40, 50, 59)
SHRINKS = Activity(kind="scale-in", nodes=("n5",), cause="", begun_s=BEGUN_S + 140)


def record(*activities: Activity, text: str = GOLDEN, **changes: Any) -> TrialRecord:
    planned = next(one for one in expand(read_text(text)).trials if one.settings.policy.changes)
    return growing.record(planned, BEGUN_S - 3, *activities, scaling=Scaling(begun_s=BEGUN_S), **changes)


def measures(activities: Sequence[Activity], intervals: Sequence[Interval], text: str = GOLDEN) -> dict[str, float]:
    return scaling_measures.scaling_measures(record(*activities, text=text), intervals)


def interval(t_s: float, buckets: Sequence[Bucket], seconds: float = 1.0, outcome: str = "ok") -> Interval:
    counts = [made.counts(list(buckets), measure=measure, outcome=outcome) for measure in ("response", "service")]
    return made.interval(*counts, t_s=BEGUN_S + t_s, seconds=seconds)


def bucket(response_ms: float, count: int) -> Bucket:
    return round(1e6 * response_ms), round(1e6 * response_ms), count


def queue(rng: np.random.Generator | None, trials: int = 1, carried: Any = CARRIED, steps: int = 100) -> Series:
    """Seconds of trials of the golden scenario, as a queue in small steps of time: operations due, operations answered,
    mean response time in ms. Poisson arrivals; without `rng` evenly spaced ones."""
    seconds, waiting = np.zeros((3, trials, SECONDS)), np.zeros(trials)
    for step in range(SECONDS * steps):
        second = step // steps
        rate = (2400 if second < 30 else 4000) / steps
        can = max(value for begun_s, value in carried if begun_s <= second)
        new = np.full(trials, rate) if rng is None else rng.poisson(rate, trials)
        there = waiting + new
        done = np.minimum(there, can / steps)
        seconds[:, :, second] += new, done, done * (1 + 1000 * (waiting + there) / 2 / can)
        waiting = there - done
    seconds[2] /= seconds[1]
    return seconds


def intervals_of(answered: Series, response_ms: Series) -> list[Interval]:
    return [
        interval(second, [bucket(ms, round(n))])
        for second, (n, ms) in enumerate(zip(answered, response_ms, strict=True))
        if round(n)
    ]


def test_the_golden_scenario() -> None:
    _, answered, response_ms = queue(None)[:, 0]
    assert measures([GROWS], intervals_of(answered, response_ms)) == {
        "scale_out_decision_s": 40,
        "scale_out_s": 19,
        "time_to_stability_s": pytest.approx(STABLE_S, abs=1.6),
        "lost_operations": pytest.approx(LOST, rel=0.01),
        "excess_response_ms_s": pytest.approx(math.fsum(response_ms[40:98] - 1), rel=0.02),
    }


def test_what_did_not_happen_has_no_measure() -> None:
    _, answered, response_ms = queue(None, carried=CARRIED[:1])[:, 0]
    overloaded = intervals_of(answered, response_ms)
    lost = {"lost_operations": pytest.approx(120 * (4000 - 2884.6), rel=0.03)}
    assert measures([], overloaded) == lost, "it did not scale: the backlog is of the whole trial"
    assert measures([scale_out(40, 50, outcome="unfinished")], overloaded) == {"scale_out_decision_s": 40, **lost}
    assert measures([GROWS], overloaded) == {"scale_out_decision_s": 40, "scale_out_s": 19, **lost}, "never stable"
    assert measures([GROWS], []) == {}
    assert measures([GROWS], [interval(1, [bucket(2, 9)]), interval(1e9, [bucket(2, 9)])]) == {}
    assert measures([GROWS], [interval(1, [bucket(2, 9)], seconds=60)]) == {}, "of coarse intervals"


def test_without_an_excess_it_is_stable_at_once() -> None:
    calm = intervals_of(np.full(SECONDS, 1000.0), np.full(SECONDS, 5.0))
    assert measures([GROWS], calm) == {
        "scale_out_decision_s": 40, "scale_out_s": 19, "time_to_stability_s": 0, "excess_response_ms_s": 0,
        "lost_operations": pytest.approx(0, abs=5.1),
    }  # fmt: skip


def test_what_remains_ends_with_the_next_change_and_several_scale_outs_have_a_mean() -> None:
    response_ms = np.full(SECONDS, 5.0)
    response_ms[70:75], response_ms[141:] = 50.0, 500.0
    calm = intervals_of(np.full(SECONDS, 1000.0), response_ms)
    of = measures([scale_out(20, 23, 25), scale_out(40, 50, 59), SHRINKS], calm)
    assert (of["scale_out_decision_s"], of["scale_out_s"], of["time_to_stability_s"]) == (20, 12, 75 - 59)
    assert of["excess_response_ms_s"] == pytest.approx(5 * 45, rel=1e-6)
    brief = measures([scale_out(40, 50, 120), SHRINKS], calm)
    assert "time_to_stability_s" not in brief, "20 s are too few for a level"


def test_a_closed_loop_is_compared_with_its_throughput_before() -> None:
    answered = np.full(SECONDS, 1000.0)
    answered[41:51], answered[55:] = 600.0, 1500.0
    response_ms = 5000 / answered
    of = measures([GROWS], intervals_of(answered, response_ms), CLOSED)
    assert of["lost_operations"] == pytest.approx(10 * 400), "what is gained later is no compensation"
    assert of["time_to_stability_s"] == 0
    assert "lost_operations" not in measures([], intervals_of(answered, response_ms), CLOSED)


def test_failures_and_what_was_never_sent_stay_lost() -> None:
    seconds = [interval(t_s, [bucket(2, 900)]) for t_s in range(60)]
    failed = [interval(t_s, [bucket(500, 100)], outcome="timeout") for t_s in range(20, 40)]
    assert measures([], [*seconds, *failed])["lost_operations"] == pytest.approx(2000, rel=0.02)
    trial = record()
    unsent = trial.model_copy(update={"responses": trial.responses.model_copy(update={"unsent": 7})})
    assert scaling_measures.scaling_measures(unsent, seconds)["lost_operations"] == pytest.approx(7 + 900 * 0.002)


def test_a_second_without_an_answer_is_out_of_the_band_and_counts_as_the_one_before() -> None:
    response_ms, answered = np.full(SECONDS, 5.0), np.full(SECONDS, 1000.0)
    response_ms[60:62], answered[62:64] = 105.0, 0
    of = measures([GROWS], intervals_of(answered, response_ms))
    assert of["time_to_stability_s"] == 64 - 59
    assert of["excess_response_ms_s"] == pytest.approx(4 * 100, rel=1e-6)


interval_parts = st.tuples(st.integers(0, 40), st.integers(1, 4000), st.integers(1, 5000))
parts = st.lists(interval_parts, min_size=1, max_size=8, unique_by=lambda part: part[0])
"""Second, operations and response time in ms of intervals."""


@given(parts, st.integers(1, 7))
def test_dividing_an_interval_changes_nothing_and_no_operation_is_lost_or_doubled(
    intervals: list[tuple[int, int, int]], among: int
) -> None:
    whole = [interval(t_s, [bucket(ms, among * n)]) for t_s, n, ms in intervals]
    divided = [
        interval(t_s + place / among, [bucket(ms, n)], seconds=1 / among)
        for t_s, n, ms in intervals
        for place in range(among)
    ]
    one, other = by_second(whole, BEGUN_S), by_second(divided, BEGUN_S)
    length = len(one.due)
    assert list(other.due)[:length] == pytest.approx(list(one.due), abs=1e-6)
    assert list(other.answered)[:length] == pytest.approx(list(one.answered), abs=1e-6)
    operations = among * sum(n for _, n, _ in intervals)
    assert math.fsum(one.due) == pytest.approx(operations)
    assert math.fsum(one.answered) == pytest.approx(operations)


@given(st.lists(st.integers(-50, 50), max_size=40))
def test_the_greatest_rise_is_that_between_any_two_times(differences: list[int]) -> None:
    ends = [0, *np.cumsum(differences)]
    expected = max((after - before for place, before in enumerate(ends) for after in ends[place:]), default=0)
    assert greatest_rise(differences) == expected


def with_noise(rng: np.random.Generator, trials: int, cv: float, correlation: float = 0.5) -> Series:
    """Factors of a response time, log-normal and of mean 1, with autocorrelation from second to second."""
    normal, sd = rng.standard_normal((trials, SECONDS)), math.sqrt(math.log(1 + cv**2))
    for second in range(1, SECONDS):
        normal[:, second] *= math.sqrt(1 - correlation**2)
        normal[:, second] += correlation * normal[:, second - 1]
    return np.exp(sd * normal - sd**2 / 2)


def stable(series: Series) -> tuple[float, float, float]:
    """Mean and standard deviation of the time to stability over trials, and the share of trials without one."""
    times = [time_to_stability_s(list(one), 40.0, 59.0) for one in series]
    known = [one for one in times if one is not None]
    return float(np.mean(known or [0])), float(np.std(known or [0])), 1 - len(known) / len(times)


@pytest.fixture(scope="module")
def simulated() -> Series:
    return queue(np.random.default_rng(1), trials=1000)


def test_the_planted_recovery_is_found_with_little_bias(simulated: Series) -> None:
    """A band of 2% of the excess is reached a little before the queue is empty."""
    mean, sd, none = stable(simulated[2])
    print(f"golden scenario: bias {mean - STABLE_S:+.2f} s, sd {sd:.2f} s, without one {none:.1%}")
    assert mean == pytest.approx(STABLE_S - 1.1, abs=0.3)
    assert sd < 1.2
    assert none == 0


@pytest.mark.parametrize(
    ("planted_s", "factor", "cv", "bias_s", "most_sd_s"),
    [(0, 1, 0.1, 0.8, 5), (0, 1, 0.3, 2.0, 8), (20, 2, 0.1, 0.5, 4), (20, 2, 0.3, -1.1, 9)],
)
def test_noise_moves_the_time_to_stability_little(
    planted_s: int, factor: float, cv: float, bias_s: float, most_sd_s: float
) -> None:
    series = 5 * with_noise(np.random.default_rng(2), 1000, cv)
    series[:, 40 : 59 + planted_s] *= factor
    mean, sd, none = stable(series)
    print(
        f"{planted_s} s at x {factor}, noise {cv:.0%}: bias {mean - planted_s:+.2f} s, sd {sd:.2f} s, none {none:.1%}"
    )
    assert mean - planted_s == pytest.approx(bias_s, abs=0.5)
    assert sd < most_sd_s
    assert none < 0.01


def test_a_response_time_that_still_rises_is_not_stable() -> None:
    rising = queue(np.random.default_rng(3), trials=100, carried=CARRIED[:1])[2]
    assert stable(rising)[2] == 1


def test_noise_of_arrivals_adds_up_to_no_lost_operations(simulated: Series) -> None:
    """Sums of positive differences of seconds count thousands where nothing is lost."""
    rng = np.random.default_rng(4)
    lost = [greatest_rise(due - done) for due, done in zip(simulated[0], simulated[1], strict=True)]
    print(f"golden scenario: bias {np.mean(lost) - LOST:+.0f} of {LOST:.0f}, sd {np.std(lost):.0f}")
    assert np.mean(lost) == pytest.approx(LOST, rel=0.01)
    assert np.std(lost) < 0.02 * LOST
    enough = queue(rng, trials=200, carried=((0, 4629.6),))
    nothing = [greatest_rise(due - done) for due, done in zip(enough[0], enough[1], strict=True)]
    print(f"nothing lost: {np.mean(nothing):.0f}")
    assert np.mean(nothing) < 40
    offered = np.where(np.arange(SECONDS) < 30, 2400, 4000)
    assert np.mean(np.maximum(offered - enough[1], 0).sum(1)) > 3000
    assert np.mean([greatest_rise(offered - done) for done in enough[1]]) > 700, "by the rates that were asked for"


def test_the_noise_of_a_closed_loop_adds_up_to_little() -> None:
    """Less than two seconds' worth of operations in 60 s, where nothing is lost and seconds vary by 5%."""
    throughput = 1000 * with_noise(np.random.default_rng(5), 1000, 0.05)
    lost = [greatest_rise(one[:40].mean() - one[40:100]) for one in throughput]
    print(f"closed loop, nothing lost: {np.mean(lost):.0f}, sd {np.std(lost):.0f}")
    assert np.mean(lost) < 800
