"""Looks: which part of the error each spends, and when verdicts are final."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from steelyard.judging.looks import later, look_of
from steelyard.model.look import Look
from steelyard.model.plan import Plan, PlannedTrial
from steelyard.model.trial import TrialRecord
from tests.unit.analysis.made import VOIDED, cell, record, study

SEVERAL = study(analysis={"looks": "several"})


def plan(records: Sequence[TrialRecord]) -> Plan:
    """The plan of which these would be all trials."""
    trials = (
        PlannedTrial(
            id=one.id, position=place, block=one.block, start=one.planned_start, start_replicate=one.start_replicate,
            replicate=one.replicate, treatment=one.treatment, hard=one.hard, settings=one.settings, seed=one.seed,
        )
        for place, one in enumerate(sorted(records, key=lambda one: one.block))
    )  # fmt: skip
    return Plan(study="made", seed=1, factors={"nodes": (1, 3)}, hard=("nodes",), trials=tuple(trials))


FOUR = [*cell([[100.0, 101.0]] * 4), *cell([[110.0, 111.0]] * 4, nodes=3)]


def test_each_look_spends_half_of_the_error_that_is_left() -> None:
    spent = [1 - later(SEVERAL, look).analysis.confidence for look in range(1, 40)]
    assert spent[:3] == pytest.approx([0.025, 0.0125, 0.00625])
    assert 0.05 - 1e-9 < sum(spent) <= 0.05 + 1e-12
    assert later(later(SEVERAL, 3), -2).analysis.confidence == pytest.approx(0.975)


def test_the_only_look_has_the_whole_error() -> None:
    assert later(study(), 1).analysis.confidence == later(study(), 2).analysis.confidence == 0.95


def test_an_unfinished_study_says_how_many_of_its_blocks_are_whole() -> None:
    done = [one for one in FOUR if one.id != "A-3-s4-t2"]
    look = look_of(plan(FOUR), done, study())
    assert (look.done, look.planned, look.missing, look.final) == (3, 4, 1, False)
    assert look.sentence == "unfinished: 3 of 4 blocks; no verdict is final"
    assert look_of(plan(FOUR), FOUR, study()) == Look(done=4, planned=4)


def test_a_trial_that_the_laboratory_spoilt_is_still_missing() -> None:
    spoilt = [*(one for one in FOUR if one.id != "A-3-s4-t2"),
              record(None, nodes=3, start=4, replicate=2, order=2, verdict=VOIDED)]  # fmt: skip
    assert look_of(plan(FOUR), spoilt, study()).missing == 1


def test_the_only_look_of_a_finished_study_needs_no_word() -> None:
    look = look_of(plan(FOUR), FOUR, study())
    assert look.final
    assert look.sentence == ""


def test_without_a_plan_nothing_is_said_of_it() -> None:
    assert look_of(None, FOUR, study()) == Look()


def test_a_further_look_of_a_study_with_one_is_not_final() -> None:
    look = look_of(plan(FOUR), FOUR, study(), 2)
    assert not look.final
    assert look.sentence.startswith(
        'look 2 of a study with one look (analysis.looks = "one"), which has spent its error'
    )


def test_a_further_look_of_a_study_that_said_so_is_final_at_its_own_confidence() -> None:
    look = look_of(plan(FOUR), FOUR, later(SEVERAL, 2), 2)
    assert look.final
    assert look.sentence == "look 2, at 98.75%"
    assert look.next_confidence == pytest.approx(0.99375)
    assert look.planning_confidence(0.9875) == pytest.approx(0.99375)
    unfinished = look_of(plan(FOUR), FOUR[:-1], later(SEVERAL, 2), 2)
    assert unfinished.planning_confidence(0.9875) == 0.9875, "the rest of its plan is this look"


def test_blocks_beyond_the_plan_are_a_further_look() -> None:
    look = Look(done=4, planned=10, missing=12)
    assert [look.beyond(more) for more in (1, 6, 7)] == [False, False, True]
