"""How a cluster followed its policy, computed again: nodes from activities, activities from desired sizes."""

from __future__ import annotations

from typing import Any

import pytest

from steelyard.model.activity import Activity, Mark
from steelyard.model.scaling import Desired, Scaling, Supply
from steelyard.model.trial import Phase, PhaseTime, TrialRecord
from steelyard.verify import activities
from steelyard.verify.checklist import Book
from tests.unit.judging.test_attempts import record
from tests.unit.lab.fakes import plan_of, study

BEGUN_S = 1000.0
TIMES = tuple(float(t_s) for t_s in range(1, 61))
POLICY = {"name": "threshold", "threshold": 80.0, "min_nodes": 2, "max_nodes": 5}


def mark(name: str, node: str, t_s: float) -> Mark:
    return Mark(name=name, node=node, t_s=BEGUN_S + t_s)


GROWS = Activity(
    kind="scale-out", nodes=("n4", "n5"), cause="busy", begun_s=BEGUN_S + 10.1, ended_s=BEGUN_S + 30.0, outcome="done",
    marks=(
        mark("lent", "n4", 10.1), mark("in-service", "n4", 20.0), mark("lent", "n5", 20.2),
        mark("in-service", "n5", 29.9),
    ),
)  # fmt: skip
SHRINKS = Activity(
    kind="scale-in", nodes=("n5", "n4"), cause="idle", begun_s=BEGUN_S + 40.1, ended_s=BEGUN_S + 55.0, outcome="done",
    marks=(
        mark("leaving", "n5", 40.2), mark("left", "n5", 46.0), mark("leaving", "n4", 46.5), mark("left", "n4", 55.0),
    ),
)  # fmt: skip
SUPPLY = (
    Supply(1.0, 3), Supply(11.0, 3, 2), Supply(21.0, 4, 1), Supply(30.0, 5, ended_s=30.0), Supply(41.0, 4),
    Supply(47.0, 3), Supply(56.0, 3, ended_s=55.0),
)  # fmt: skip
DESIRED = (Desired(0.0, 3, ""), Desired(10.0, 5, "busy"), Desired(40.0, 3, "idle"))
SEALED = Scaling(begun_s=BEGUN_S, supply=SUPPLY, desired=DESIRED, asked=60)
FAILED = GROWS.model_copy(update={"outcome": "failed", "error": "disk full", "marks": GROWS.marks[:3]})


def findings(done: tuple[Activity, ...] = (GROWS, SHRINKS), **changes: Any) -> list[str]:
    """What differs, in words; every other check holds."""
    stored, book = SEALED.model_copy(update=changes), Book()
    of = study(policy=POLICY, site={"name": "fake", "nodes": 3}, factors={"load.threads": [8]})
    measured = PhaseTime(phase=Phase.MEASURE, entered_s=BEGUN_S, left_s=BEGUN_S + 61.0)
    trial: TrialRecord = record(plan_of(of).trials[0]).model_copy(update={"activities": done, "phases": (measured,)})
    assert (trial.settings.site.nodes, trial.settings.most_nodes) == (3, 5)
    activities.followed(trial, stored, "trial.json", book)
    activities.supply(trial, stored, TIMES, "trial.json", book)
    assert book.made["policy"] + book.not_checked[activities.LATE] >= len(TIMES)
    return [finding.what for finding in book.findings]


def shown(place: int, **changes: Any) -> tuple[Supply, ...]:
    return (*SUPPLY[:place], SUPPLY[place]._replace(**changes), *SUPPLY[place + 1 :])


def test_a_trial_as_it_was_done() -> None:
    assert findings() == []


@pytest.mark.parametrize("place", range(7))
@pytest.mark.parametrize("changes", [{"in_service": 9}, {"pending": 3}, {"prepared": 1}, {"ended_s": 7.0}], ids=str)
def test_another_supply(place: int, changes: dict[str, int]) -> None:
    assert findings(supply=shown(place, **changes))


@pytest.mark.parametrize("place", range(7))
def test_a_removed_supply(place: int) -> None:
    assert findings(supply=(*SUPPLY[:place], *SUPPLY[place + 1 :]))


def test_a_trial_of_which_the_ends_were_not_recorded() -> None:
    assert findings(supply=tuple(entry._replace(ended_s=None) for entry in SUPPLY)) == []


def test_a_mark_of_a_log_may_be_known_later_and_not_sooner() -> None:
    later = shown(3, t_s=32.0)
    assert findings(supply=later)[0] == "nodes in service and joining at 31 s", "the activity had ended"
    assert findings(supply=shown(2, t_s=20.0)) == []
    assert "nodes in service and joining at 16 s" in findings(supply=shown(2, t_s=16.0))
    slow = tuple(each if each.node != "n5" or each.name != "lent" else mark("lent", "n5", 24.0) for each in GROWS.marks)
    known_later = (GROWS.model_copy(update={"marks": slow}), SHRINKS)
    assert findings(known_later, supply=(*SUPPLY[:2], Supply(23.0, 3, 1), Supply(25.0, 4, 1), *SUPPLY[3:])) == []


def test_a_question_that_was_late_may_have_been_shown_a_later_state() -> None:
    early = shown(3, t_s=26.0)
    assert findings(supply=early, late=1) == []
    assert findings(supply=early) == ["nodes in service and joining at 26 s"]


def test_a_time_at_which_nothing_was_asked() -> None:
    assert findings(supply=shown(3, t_s=30.5))[0] == "time of a supply"


def test_a_removed_activity() -> None:
    assert "activity after 5 nodes were desired at 10 s" in findings((SHRINKS,))
    assert "activity after 3 nodes were desired at 40 s" in findings((GROWS,))


def test_an_activity_without_a_desired_size() -> None:
    assert "desired size of an activity" in findings(desired=DESIRED[:2])
    assert "desired size of an activity" in findings((GROWS, SHRINKS, SHRINKS))


@pytest.mark.parametrize(
    "changes",
    [
        {"cause": "for fun"},
        {"kind": "scale-in"},
        {"nodes": ("n4",)},
        {"begun_s": BEGUN_S + 9.0},
    ],
    ids=str,
)
def test_another_activity(changes: dict[str, Any]) -> None:
    found = findings((GROWS.model_copy(update=changes), SHRINKS))
    assert "activity after 5 nodes were desired at 10 s" in found


def test_no_activity_where_the_cluster_has_the_size_already() -> None:
    back = (*DESIRED, Desired(41.0, 4, "more"), Desired(52.0, 3, "less"))
    assert findings(desired=back) == [], "replaced while the nodes left, and then the size was there"


def test_no_activity_where_the_trial_ended() -> None:
    assert findings(desired=(*DESIRED, Desired(59.0, 4, "more"))) == []
    assert findings(desired=(*DESIRED, Desired(56.0, 4, "more"))) == ["activity after 4 nodes were desired at 56 s"]


def test_no_activity_where_an_unfinished_one_was_in_progress() -> None:
    grows = GROWS.model_copy(update={"outcome": "unfinished", "ended_s": BEGUN_S + 61.0, "marks": GROWS.marks[:3]})
    assert findings((grows,), supply=SUPPLY[:3]) == []


def test_after_a_failure_there_are_only_the_spares_that_are_left() -> None:
    desired = (DESIRED[0], DESIRED[1], Desired(40.0, 6, "more"))
    assert findings((FAILED,), supply=(*SUPPLY[:3], Supply(30.0, 4)), desired=desired) == []
    first = FAILED.model_copy(update={"marks": GROWS.marks[:1]})
    again = Activity(kind="scale-out", nodes=("n5",), cause="more", begun_s=BEGUN_S + 40.1)
    shown_again = (*SUPPLY[:2], Supply(30.0, 3), Supply(41.0, 3, 1))
    assert findings((first, again), supply=shown_again, desired=desired) == []


def test_a_node_that_arrived_and_failed_may_serve_or_not() -> None:
    failed = GROWS.model_copy(update={"outcome": "failed"})
    for nodes in (4, 5):
        assert findings((failed,), supply=(*SUPPLY[:3], Supply(31.0, nodes)), desired=DESIRED[:2]) == []


def test_lacking_spares() -> None:
    lacking = (DESIRED[0], DESIRED[1], Desired(35.0, 7, "more"))
    assert findings((GROWS,), supply=SUPPLY[:4], desired=lacking) == ["activity after 7 nodes were desired at 35 s"]
    assert findings((GROWS,), supply=SUPPLY[:4], desired=lacking, lacking="7 nodes were desired and 5 lent") == []


def test_a_policy_that_never_scaled_is_followed_too() -> None:
    assert findings((), desired=DESIRED[:1], supply=SUPPLY[:1]) == []
