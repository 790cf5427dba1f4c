"""Thresholds that other trials gave are computed again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import pytest

from steelyard.judging.derived import derived
from steelyard.model.derived import Derived
from steelyard.model.trial import TrialRecord
from steelyard.store.read import Store
from steelyard.verify.checklist import Book
from steelyard.verify.scaling import thresholds
from tests.unit.judging.test_derived import records
from tests.unit.lab.fakes import plan_of, study
from tests.unit.plan.test_derived_levels import STUDY


def measured() -> list[TrialRecord]:
    """All trials of a study, those under a policy with their threshold."""
    a_study = study(**STUDY)
    every = records(plan_of(a_study), [70.0, 73.0, 76.0, *[60.0] * 6])
    given = [derived(a_study.derived, one.settings, every[:3]) for one in every]
    return [
        one.model_copy(update={"derived": value if isinstance(value, Derived) else None})
        for one, value in zip(every, given, strict=True)
    ]


def findings(every: Sequence[TrialRecord]) -> set[str]:
    book = Book()
    thresholds(cast(Store, None), {one.key: (one, one.id) for one in every}, book)
    return {finding.what for finding in book.findings}


def changed(changes: dict[str, object]) -> set[str]:
    """What is found if the first threshold is another."""
    every = measured()
    place = next(place for place, one in enumerate(every) if one.derived)
    given = every[place].derived
    assert given is not None
    every[place] = every[place].model_copy(update={"derived": given.model_copy(update=changes)})
    return findings(every)


def test_thresholds_that_follow_from_the_trials_differ_in_nothing() -> None:
    assert findings(measured()) == set()


@pytest.mark.parametrize(
    ("changes", "what"),
    [({"mean": 73.1}, "mean that gave phase-1"), ({"trials": ()}, "trials that gave phase-1")],
)
def test_another_mean_and_other_trials_are_found(changes: dict[str, object], what: str) -> None:
    assert changed(changes) == {what}


def test_a_trial_that_was_left_out_and_a_missing_threshold_are_found() -> None:
    every = measured()
    fewer = [one for one in every if one is not every[1]]
    assert findings(fewer) == {"trials that gave phase-1"}
    without = [one.model_copy(update={"derived": None}) for one in every]
    assert findings(without) == {"threshold that other trials gave"}
