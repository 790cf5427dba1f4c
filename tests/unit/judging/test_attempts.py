"""Going on: what is missing, and which change of a study is refused."""

from __future__ import annotations

import pytest

from steelyard.judging.attempts import missing
from steelyard.model.errors import StudyError
from steelyard.model.plan import PlannedTrial
from steelyard.model.trial import TrialRecord
from steelyard.model.verdict_reasons import Reason, ReasonKind, Verdict
from steelyard.plan.changed_study import refuse_change
from tests.unit.lab.fakes import plan_of, study


def record(planned: PlannedTrial, outcome: str = "valid", kind: ReasonKind | None = None) -> TrialRecord:
    reasons = (Reason(kind=kind),) if kind else ()
    return TrialRecord.model_validate(
        {
            **planned.model_dump(exclude={"start"}),
            "study": "fake",
            "planned_start": planned.start,
            "start": planned.start,
            "order_in_start": 1,
            "begun_s": 1.0,
            "verdict": Verdict.model_validate({"outcome": outcome, "reasons": reasons}),
        }
    )


def test_valid_and_system_faults_are_settled_voided_ones_are_not() -> None:
    plan = plan_of(study())
    first, second, third, *_ = plan.trials
    records = [
        record(first),
        record(second, "invalid", ReasonKind.SYSTEM_FAULT),
        record(third, "invalid", ReasonKind.LAG),
    ]
    todo = missing(plan, records, limit=3)
    assert len(todo) == len(plan.trials) - 2
    assert todo[0] == third


def test_a_trial_is_given_up_after_so_many_attempts() -> None:
    plan = plan_of(study())
    tries = [record(plan.trials[0], "invalid", ReasonKind.LAG)] * 3
    assert plan.trials[0] not in missing(plan, tries, limit=3)


def test_a_wider_study_goes_on_and_a_changed_one_is_refused_with_the_difference() -> None:
    before = study()
    records = [record(trial) for trial in plan_of(before).trials]
    wider = study(design={"starts": 3, "trials": 4, "seed": 3}, factors={"nodes": [1, 3, 6]})
    refuse_change(before, wider, plan_of(wider), records)
    changed = study(load={"operations": 20})
    with pytest.raises(StudyError) as caught:
        refuse_change(before, changed, plan_of(changed), records)
    assert '"operations": 20' in caught.value.hint


def until(**changes: object) -> dict[str, object]:
    return {"starts": 8, "trials": 1, "seed": 3, "until": {"width_percent": 3, "least_starts": 6, **changes}}


def test_another_stopping_rule_is_refused_once_there_are_trials_its_budgets_are_not() -> None:
    before = study(design=until())
    plan = plan_of(before)
    records = [record(plan.trials[0])]
    for design in (until(hours=2), {**until(), "starts": 30}):
        refuse_change(before, study(design=design), plan, records)
    fixed = {"starts": 8, "trials": 1, "seed": 3}
    for after in (
        study(design=until(width_percent=5)),
        study(design=until(least_starts=7)),
        study(design=until(response="throughput_per_s")),
        study(design=until(), analysis={"confidence": 0.9}),
        study(design=fixed),
        study(design={**until(), "trials": 2}),
    ):
        refuse_change(before, after, plan, [])
        with pytest.raises(StudyError, match="stopping rule") as caught:
            refuse_change(before, after, plan, records)
        assert "---" in caught.value.hint, "the difference is shown"
    with pytest.raises(StudyError, match="stopping rule"):
        refuse_change(study(design=fixed), before, plan, records)


@pytest.mark.parametrize(
    ("before", "after", "key"),
    [
        ({}, {"analysis": {"looks": "several"}}, "analysis.looks"),
        ({"analysis": {"looks": "several"}}, {}, "analysis.looks"),
        (
            {"analysis": {"looks": "several"}},
            {"analysis": {"looks": "several", "confidence": 0.9}},
            "analysis.confidence",
        ),
        ({}, {"design": {"starts": 1, "trials": 3, "seed": 3}}, "design.starts"),
        ({}, {"design": {"starts": 2, "trials": 2, "seed": 3}}, "design.trials"),
    ],
)
def test_looks_and_the_end_of_the_plan_are_fixed_with_the_first_trial(
    before: dict[str, object], after: dict[str, object], key: str
) -> None:
    old = study(**({"design": {"starts": 2, "trials": 3, "seed": 3}} | before))
    new = study(**({"design": {"starts": 2, "trials": 3, "seed": 3}} | after))
    plan = plan_of(old)
    refuse_change(old, new, plan_of(new), [])
    with pytest.raises(StudyError, match=f"{key} is not what .* raises the error rate above the stated one") as caught:
        refuse_change(old, new, plan, [record(plan.trials[0])])
    assert caught.value.key == key


def test_another_confidence_of_one_look_is_allowed() -> None:
    old = study()
    sealed = [record(plan_of(old).trials[0])]
    refuse_change(old, study(analysis={"confidence": 0.9}), plan_of(old), sealed)
    with pytest.raises(StudyError) as caught:
        refuse_change(old, study(analysis={"confidence": 0.9, "looks": "several"}), plan_of(old), sealed)
    assert caught.value.key == "analysis.looks", "the confidence itself is not what is refused"
