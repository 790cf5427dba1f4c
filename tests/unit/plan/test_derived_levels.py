"""Thresholds that trials of a plan give for others of it: order, refusals, and how often they act by chance."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from steelyard.model.errors import StudyError
from steelyard.model.study import Study
from steelyard.plan import derived_levels
from steelyard.plan.abilities import Abilities
from steelyard.plugins.find import Plugins
from steelyard.policy import threshold
from tests.unit.lab.fakes import plan_of, study

POLICY = {"max_nodes": 4, "threshold_of": "phase-1", "period_s": 60, "evaluation_periods": 5}
STUDY: dict[str, Any] = {
    "site": {"name": "local", "nodes": 3},
    "load": {"duration_s": 900},
    "factors": {"policy": ["none", "threshold"]},
    "policy": POLICY,
    "derived": {"phase-1": {"least": 3, "add": -2.5}},
    "design": {"starts": 3, "trials": 1, "seed": 3, "control": {"policy": "none"}},
    "probes": ["os"],
}


def refusals(tmp_path: Path, **changes: Any) -> list[StudyError]:
    a_study = study(**{**STUDY, **changes})
    return list(derived_levels.refusals(a_study, plan_of(a_study), abilities(tmp_path)))


def abilities(tmp_path: Path) -> Abilities:
    return Abilities(Plugins(), state_folder=tmp_path, cache_folder=tmp_path)


def test_trials_that_give_a_threshold_come_first_and_the_control_in_both_phases() -> None:
    plan = plan_of(study(**STUDY))
    phases = [(trial.settings.policy.name, trial.control) for trial in plan.trials]
    assert phases[:3] == [("none", False)] * 3
    assert sorted(phases[3:]) == [("none", True)] * 3 + [("threshold", False)] * 3
    assert phases[3:] != sorted(phases[3:], key=lambda phase: phase[1])  # in random order within the second phase
    assert [trial.position for trial in plan.trials] == list(range(9))
    assert len({trial.start for trial in plan.trials}) == 9
    assert [trial.block for trial in plan.trials[:3]] == [1, 2, 3]


def test_a_threshold_that_is_stated_changes_no_order() -> None:
    stated = {**STUDY, "policy": {"max_nodes": 4, "threshold": 70}, "derived": {}}
    plan = plan_of(study(**stated))
    assert [trial.block for trial in plan.trials] == sorted(trial.block for trial in plan.trials)


def test_ids_do_not_depend_on_the_rule() -> None:
    other = {**STUDY, "derived": {"phase-1": {"least": 2, "add": 1.0}}}
    assert [one.id for one in plan_of(study(**other)).trials] == [one.id for one in plan_of(study(**STUDY)).trials]


@pytest.mark.parametrize(
    ("changes", "key", "words"),
    [
        ({"derived": {}}, "policy.threshold_of", "no table [derived.phase-1]"),
        ({"derived": {"phase-1": {}}}, "derived.phase-1.least", "needs 5 valid trials, and the plan has 3"),
        (
            {"factors": {"policy": ["threshold"]}, "design": {"starts": 3, "trials": 1}},
            "policy.threshold_of",
            "no trial of the plan gives phase-1",
        ),
        (
            {"derived": {"phase-1": {"least": 3, "response": "response_ms_mean"}}},
            "derived.phase-1.response",
            "threshold follows cpu_percent_mean, and phase-1 is the mean of response_ms_mean",
        ),
        (
            {"design": {"starts": 10, "trials": 1, "until": {"width_percent": 5}}},
            "design.until",
            "a stopping rule judges whole blocks",
        ),
    ],
)
def test_what_cannot_give_a_threshold_is_refused(changes: dict[str, Any], key: str, words: str, tmp_path: Path) -> None:
    assert refusals(tmp_path) == []
    error = next(one for one in refusals(tmp_path, **changes) if one.key == key)
    assert words in error.message


def said(tmp_path: Path, a_study: Study) -> str:
    return "\n".join(derived_levels.notes(a_study, plan_of(a_study), abilities(tmp_path)))


def test_check_says_how_often_the_policy_acts_by_chance_and_what_the_order_confounds(tmp_path: Path) -> None:
    text = said(tmp_path, study(**STUDY))
    assert "threshold acts by chance in about 21% of trials" in text
    assert "phase-1 adds \u22122.500 to it, which changes that" in text
    assert "design.control" not in text
    without = study(**{**STUDY, "design": {"starts": 3, "trials": 1}})
    assert "design.control, a treatment without a policy, is measured in both" in said(tmp_path, without)
    unused = study(**{**STUDY, "policy": {"max_nodes": 4, "threshold": 70}})
    assert said(tmp_path, unused) == "[derived.phase-1] has no use: no policy names it in threshold_of"


@pytest.mark.parametrize(("alike", "low", "high"), [(0.0, 0.13, 0.24), (0.8, 0.49, 0.61)])
def test_chance_of_the_published_rule_is_that_of_other_simulations(alike: float, low: float, high: float) -> None:
    """5 of 5 minutes at or over the mean of five runs, 900 s: 18.3% of independent minutes, 54.9% of minutes with an
    autocorrelation of 0.8, in 4,000 simulated studies of another program."""
    a_study = study(**{**STUDY, "design": {"starts": 5, "trials": 1}})
    settings = next(one.settings for one in plan_of(a_study).trials if one.settings.policy.changes)
    assert low < derived_levels.by_chance(settings, threshold, 900.0, 5, alike) < high
