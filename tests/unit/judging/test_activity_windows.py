"""Windows around activities, and when a response time was back in the range of before."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.judging.activity_windows import Return, returned, windows
from steelyard.judging.membership import Span
from steelyard.model.activity import Activity, Mark
from steelyard.plan import expand
from steelyard.study.read import read_text
from tests.unit.report import growing

ZERO_S = growing.BEGUN_S
PLAIN = growing.record(expand(read_text(growing.STUDY)).trials[0], ZERO_S)
BEFORE, DURING, AFTER = Span(0.0, 20.0), Span(20.0, 40.0), Span(40.0, 80.0)


def left(begun_s: float) -> Activity:
    marks = [("leaving", 0.5), ("streaming", 1.0), ("streamed", 3.0), ("left", 4.0)]
    return Activity(
        kind="scale-in", nodes=("n5",), cause="scheduled", begun_s=begun_s, ended_s=begun_s + 4.0, outcome="done",
        marks=tuple(Mark(name=name, t_s=begun_s + at_s, node="n5") for name, at_s in marks),
    )  # fmt: skip


def spans(*activities: Activity) -> dict[tuple[int, str], list[tuple[float, float]]]:
    planned = expand(read_text(growing.STUDY)).trials[0]
    record = growing.record(planned, ZERO_S, *activities)
    return {
        (one.activity, one.name): [(pytest.approx(a, abs=1e-3), pytest.approx(b, abs=1e-3)) for a, b in one.spans]
        for one in windows(record)
    }


def test_windows_of_a_join_and_a_leave_follow_each_other() -> None:
    named = spans(growing.growth(ZERO_S + 20.0), left(ZERO_S + 50.0))
    assert [*named] == [
        (1, "before"), (1, "during"), (1, "streaming"), (1, "after"), (1, "from decision"),
        (2, "before"), (2, "during"), (2, "after"), (2, "from decision"),
    ]  # fmt: skip
    assert named[1, "before"] == [(0.0, 20.0)]
    assert named[1, "during"] == [(20.0, 40.2)], "to the arrival of the last node: the cleanup is after it"
    assert named[1, "streaming"] == [(25.7, 29.2), (35.8, 39.3)], "a span for each node"
    assert named[1, "after"] == named[2, "before"] == [(40.2, 50.0)]
    assert (named[1, "from decision"], named[2, "from decision"]) == ([(20.0, 50.0)], [(50.0, 60.0)])
    assert (named[2, "during"], named[2, "after"]) == ([(50.0, 54.0)], [(54.0, 60.0)])


def test_an_activity_whose_node_did_not_arrive_ends_when_it_ended() -> None:
    whole = growing.growth(ZERO_S + 20.0)
    marks = tuple(mark for mark in whole.marks if mark.node == "n4" or mark.name == "started")
    unfinished = whole.model_copy(update={"marks": marks, "ended_s": None, "outcome": "unfinished"})
    assert spans(unfinished)[1, "during"] == [(20.0, 60.0)]
    failed = unfinished.model_copy(update={"ended_s": ZERO_S + 33.0, "outcome": "failed"})
    assert spans(failed)[1, "during"] == [(20.0, 33.0)]
    assert spans(failed)[1, "streaming"] == [(25.7, 29.2)], "of the node that has both marks"


@given(st.lists(st.tuples(st.floats(0.1, 20), st.floats(0.05, 1)), min_size=1, max_size=5))
def test_before_during_and_after_cover_the_measured_phase(parts: list[tuple[float, float]]) -> None:
    """Each part: seconds until an activity begins, and how slow it is. What begins after the phase has no window."""
    activities, free_s = [], ZERO_S
    for wait_s, slower in parts:
        activities.append(growing.growth(free_s + wait_s, slower))
        free_s = activities[-1].ended_s or free_s
    named = windows(PLAIN.model_copy(update={"activities": tuple(activities)}))
    # The time after an activity is that before the next.
    covered = sorted({span for one in named if one.name not in ("streaming", "from decision") for span in one.spans})
    assert (covered[0].begun_s, covered[-1].ended_s) == (0, pytest.approx(growing.SECONDS))
    assert all(one.ended_s == other.begun_s for one, other in pairwise(covered))


def back(mean_ms: Callable[[int], float], before: Span = BEFORE) -> Return | None:
    """`mean_ms`: of each second; those of before differ by 10%."""
    means = [(float(s), mean_ms(s) * (1.05 if s % 2 else 0.95)) for s in range(80)]
    return returned(means, 1.0, before=before, during=DURING, after=AFTER)


def test_it_is_back_after_the_last_second_out_of_the_range_while_the_activity_lasted() -> None:
    assert back(lambda s: 50.0 if 25 <= s < 47 else 10.0) == Return(27.0, 50.0)
    assert back(lambda s: 50.0 if s in (21, 35) else 10.0) == Return(16.0, 50.0), "quiet seconds before the streaming"
    assert back(lambda s: math.inf if s == 30 else 10.0) == Return(11.0, 50.0), "a second without an answer is out"
    assert back(lambda s: 50.0 if 25 <= s < 40 or s == 45 else 10.0) == Return(26.0, 50.0), "ten seconds on end"


def test_what_never_left_is_back_at_once_and_what_did_not_return_is_censored() -> None:
    assert back(lambda _: 10.0) == Return(0.0, 50.0)
    assert back(lambda s: 10.0 if s < 25 else 50.0) == Return(None, 50.0)
    assert back(lambda s: 50.0 if 25 <= s < 71 else 10.0) == Return(None, 50.0), (
        "nine seconds are left, so it is known up to 10 s before the end"
    )


def test_a_before_of_less_than_ten_seconds_has_no_range() -> None:
    assert back(lambda s: 50.0 if 25 <= s < 47 else 10.0, before=Span(11.0, 20.0)) is None
    assert back(lambda s: 50.0 if 25 <= s < 47 else 10.0, before=Span(10.0, 20.0)) == Return(27.0, 50.0)
