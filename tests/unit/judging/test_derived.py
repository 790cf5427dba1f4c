"""Thresholds that trials without a policy give for trials with one."""

from __future__ import annotations

from typing import Any

import pytest

from steelyard.analysis.analyse import analyse
from steelyard.judging.derived import derived, mean_over_starts, not_run, sources
from steelyard.model.derived import Derived
from steelyard.model.plan import Plan
from steelyard.model.trial import TrialRecord
from steelyard.model.verdict_reasons import Reason, ReasonKind, Verdict
from tests.unit.lab.fakes import plan_of, study
from tests.unit.plan.test_derived_levels import STUDY

VALID = Verdict(outcome="valid")
SYSTEM_FAULT = Verdict(outcome="invalid", reasons=(Reason(kind=ReasonKind.SYSTEM_FAULT, detail="it died"),))


def records(plan: Plan, values: list[float], verdict: Verdict = VALID) -> list[TrialRecord]:
    """The first trials of a plan as if they had been measured, with these values of the response."""
    return [
        TrialRecord(
            **planned.model_dump(exclude={"start"}), study="fake", planned_start=planned.start, start=f"start {place}",
            order_in_start=1, begun_s=1e9 + place, verdict=verdict, measures={"cpu_percent_mean": value},
        )
        for place, (planned, value) in enumerate(zip(plan.trials, values, strict=False))
    ]  # fmt: skip


def test_the_mean_over_starts_of_the_trials_without_a_policy_is_the_threshold() -> None:
    a_study = study(**STUDY)
    plan = plan_of(a_study)
    done = records(plan, [70.0, 73.0, 76.0])
    for trial in plan.trials[3:]:
        value = derived(a_study.derived, trial.settings, done)
        if trial.control:
            assert value is None
            continue
        assert isinstance(value, Derived)
        assert value.mean == pytest.approx(73.0, abs=1e-12)
        assert value.value == pytest.approx(70.5, abs=1e-12)
        assert value.trials == tuple(record.key for record in done)


def test_two_trials_of_a_start_count_as_one() -> None:
    done = records(plan_of(study(**STUDY)), [70.0, 73.0, 76.0])
    same = [done[0], done[1].model_copy(update={"start": done[0].start}), done[2]]
    assert mean_over_starts(same, "cpu_percent_mean") == pytest.approx((71.5 + 76) / 2, abs=1e-12)
    assert mean_over_starts([], "cpu_percent_mean") is None
    assert mean_over_starts(same, "response_ms_p99") is None


def test_extra_trials_of_the_control_and_invalid_ones_give_none() -> None:
    a_study = study(**STUDY)
    plan = plan_of(a_study)
    done = records(plan, [70.0, 73.0, 76.0])
    extra = records(plan, [90.0] * len(plan.trials))
    settings = next(trial.settings for trial in plan.trials if trial.settings.policy.changes)
    assert sources(settings, [*done, *(record for record in extra if record.control)]) == done
    lost = [*done[:2], done[2].model_copy(update={"verdict": SYSTEM_FAULT})]
    assert sources(settings, lost) == lost[:2]
    assert (
        derived(a_study.derived, settings, lost)
        == "phase-1 needs 3 valid trials without a policy; valid: 2 (design.starts adds some)"
    )


@pytest.mark.parametrize(("verdicts", "never"), [((VALID, VALID), False), ((VALID, SYSTEM_FAULT), True)])
def test_what_cannot_have_a_threshold_any_more_is_not_run(verdicts: tuple[Verdict, Verdict], never: bool) -> None:
    """One of three trials is open in the first case: it may still be valid."""
    a_study = study(**STUDY)
    plan = plan_of(a_study)
    done = records(plan, [70.0, 73.0, 76.0])
    known = [done[0], done[1].model_copy(update={"verdict": verdicts[1]})]
    assert not_run(a_study, plan, known) == {}
    known.append(done[2].model_copy(update={"verdict": verdicts[1]}))
    reasons = not_run(a_study, plan, known)
    needing = {trial.id for trial in plan.trials if trial.settings.policy.changes}
    controls = {trial.id for trial in plan.trials if trial.control}
    assert set(reasons) == (needing | controls if never else set())
    assert all("phase-1 needs 3 valid trials" in why for why in reasons.values())
    words = f"{len(reasons)} planned trials not run: phase-1 needs 3 valid trials without a policy; valid: 1 (design."
    assert (words in " ".join(analyse(known, a_study, seed=1, plan=plan).caveats)) is never


def test_a_value_that_is_no_number_is_not_taken() -> None:
    a_study = study(**STUDY)
    plan = plan_of(a_study)
    without: list[Any] = [one.model_copy(update={"measures": {}}) for one in records(plan, [70.0, 73.0, 76.0])]
    settings = next(trial.settings for trial in plan.trials if trial.settings.policy.changes)
    assert derived(a_study.derived, settings, without) == "phase-1: a trial without a policy has no cpu_percent_mean"
