"""Lines of events in a log."""

from __future__ import annotations

import pytest

from steelyard.events.base import Unknown
from steelyard.events.kept import ActivityBegan, ActivityEnded, LevelDerived
from steelyard.events.shown import Sized, Waiting
from steelyard.model.derived import Derived
from steelyard.model.estimate import Estimate
from steelyard.model.scaling import Desired
from steelyard.progress.event_words import event_line, size_parts
from steelyard.progress.session_state import journal_words
from steelyard.progress.state import beginning, fold

TRIAL = "a-s1-t1"
NODES = ("n4", "n5")


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (
            ActivityBegan(trial=TRIAL, kind="scale-out", nodes=NODES, cause="scheduled: 5 nodes at 40 s"),
            "  scale-out of n4 and n5 begins (scheduled: 5 nodes at 40 s)",
        ),
        (ActivityEnded(trial=TRIAL, kind="scale-out", nodes=NODES, outcome="done"), "  n4 and n5 joined"),
        (ActivityEnded(trial=TRIAL, kind="scale-in", nodes=("n3",), outcome="done"), "  n3 left"),
        (
            ActivityEnded(trial=TRIAL, kind="scale-out", nodes=("n4",), outcome="failed", error="no disk"),
            "  scale-out of n4 failed: no disk",
        ),
        (
            ActivityEnded(trial=TRIAL, kind="scale-in", nodes=("n3",), outcome="unfinished"),
            "  scale-in of n3 is unfinished: the load ended first",
        ),
    ],
)
def test_an_activity_has_a_line_when_it_begins_and_when_it_ends(
    event: ActivityBegan | ActivityEnded, line: str
) -> None:
    assert event_line(beginning(0.0), event) == line


def test_a_line_of_the_journal_has_the_words_of_an_activity_or_its_name() -> None:
    joins = ActivityBegan(trial=TRIAL, kind="scale-out", nodes=("n3",), cause="scheduled: 3 nodes at 30 s")
    assert journal_words(joins) == "scale-out of n3 begins (scheduled: 3 nodes at 30 s)"
    assert journal_words(Unknown("of-tomorrow", {})) == "of-tomorrow"
    assert journal_words(None) == "a line that cannot be read"


def test_a_threshold_says_where_it_is_from_and_how_often_it_would_have_acted() -> None:
    trials = tuple((f"a-s{number}-t1", 1) for number in (1, 2, 3))
    given = LevelDerived(
        start="b01-a", treatment={"nodes": 3}, fired=2, share=Estimate.of(2 / 3, (0.094, 0.992), "", 0.95, 3, "exact"),
        derived=Derived(level="phase-1", response="cpu_percent_mean", mean=73.25, add=-3.0, trials=trials),
    )  # fmt: skip
    said = (
        "phase-1, 3 nodes: threshold 70.25 % (mean 73.25 - 3, 3 trials without a policy); at it the policy would have "
        "acted in 2 of these 3 trials, 67% [9, 99]"
    )
    assert event_line(beginning(0.0), given) == f"  {said}"
    assert journal_words(given) == said


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (Sized(3, Desired(0.0, 3, "")), ("3 of 3 desired", "")),
        (Sized(3, Desired(9.0, 5, "at 9 s")), ("3 of 5 desired", "at 9 s")),
        (
            Sized(4, Desired(9.0, 5, "busy"), "cpu", 81.26, "threshold 80"),
            ("4 of 5 desired", "busy; now cpu 81.3, threshold 80"),
        ),
        (Sized(3, Desired(0.0, 3, ""), "cpu", 12.0), ("3 of 3 desired", "now cpu 12")),
        (Sized(3, Desired(0.0, 3, ""), "cpu", None, "threshold 80"), ("3 of 3 desired", "")),
    ],
)
def test_actual_and_desired_size_with_reason_and_metric(event: Sized, words: tuple[str, str]) -> None:
    assert size_parts(beginning(0.0)) == ("", "")
    assert size_parts(fold(beginning(0.0), event, 1.0)) == words


def test_the_end_of_an_activity_ends_what_was_awaited_of_its_nodes() -> None:
    live = fold(beginning(0.0), Waiting("n4 joining for 12 s: streaming"), 1.0)
    assert live.waiting
    assert not fold(live, ActivityEnded(trial=TRIAL, kind="scale-out", nodes=("n4",), outcome="done"), 2.0).waiting
