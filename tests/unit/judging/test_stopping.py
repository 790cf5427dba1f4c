"""The stopping rule: a pure function of the plan and the sealed trials, that uses what the analysis uses."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.analysis.analyse import analyse
from steelyard.analysis.statistics import stopping
from steelyard.analysis.statistics.summary import Summary
from steelyard.judging.stopping import (
    SIMULATED_COVERAGE_PERCENT,
    Decision,
    Rule,
    coverage_percent,
    decide,
    needed_trials,
    not_needed,
    plus_minus,
    rule_of,
)
from steelyard.model.plan import Plan, PlannedTrial
from steelyard.model.study import Study
from steelyard.model.trial import Phase, PhaseTime, Responses, TrialRecord
from steelyard.model.verdict_reasons import Reason, ReasonKind, Verdict
from steelyard.plan import expand as expand_anew
from tests.unit.lab.fakes import study as fake_study

VALID = Verdict(outcome="valid")
FAULT = Verdict(outcome="invalid", reasons=(Reason(kind=ReasonKind.SYSTEM_FAULT, detail="killed for memory"),))
VOIDED = Verdict(outcome="invalid", reasons=(Reason(kind=ReasonKind.LAG),))
TRIAL_S = 36.0
"""A trial; a start takes as long besides."""


def study(*, starts: int = 12, trials: int = 1, until: Mapping[str, Any] | None = None, **changes: Any) -> Study:
    rule = {"width_percent": 5, "least_starts": 6, **(until or {})}
    design = {"starts": starts, "trials": trials, "seed": 3, "until": rule, **changes.pop("design", {})}
    return fake_study(design=design, **changes)


_PLANS: dict[str, Plan] = {}


def expand(a_study: Study) -> Plan:
    """The plan of a study, which does not depend on its rule: made once for all that differ in that only."""
    plain = a_study.model_copy(update={"design": a_study.design.model_copy(update={"until": None})})
    key = plain.model_dump_json()
    if key not in _PLANS:
        _PLANS[key] = expand_anew(plain)
    return _PLANS[key]


def record(planned: PlannedTrial, value: float, verdict: Verdict = VALID, **changes: Any) -> TrialRecord:
    begun_s = 1000.0 + 2 * TRIAL_S * planned.position
    phases = (PhaseTime(phase=Phase.DEPLOY, entered_s=begun_s - TRIAL_S, left_s=begun_s),)
    return TrialRecord.model_validate(
        {
            **planned.model_dump(exclude={"start"}),
            "study": "fake",
            "planned_start": planned.start,
            "start": planned.start,
            "order_in_start": planned.position % 7 + 1,
            "begun_s": begun_s,
            "ended_s": begun_s + TRIAL_S,
            "phases": phases,
            "verdict": verdict,
            "responses": Responses(execution_time_ms=value, operations=10) if verdict == VALID else Responses(),
            **changes,
        }
    )


def spread(width: float) -> Callable[[PlannedTrial], float]:
    """Values around 1000 that differ by about this share, the same for the same trial."""
    return lambda trial: 1000.0 * (1 + width * (random.Random(trial.id).random() - 0.5))


def sealed(plan: Plan, value: Callable[[PlannedTrial], float], blocks: int = 1000) -> list[TrialRecord]:
    return [record(trial, value(trial)) for trial in plan.trials if trial.block <= blocks]


def rule(a_study: Study) -> Rule:
    found = rule_of(a_study)
    assert found is not None
    return found


def judged(a_study: Study, records: Sequence[TrialRecord]) -> Decision:
    return decide(expand(a_study), records, rule(a_study))


def test_without_a_rule_there_is_none_and_the_plan_is_the_same_with_one() -> None:
    assert rule_of(fake_study()) is None
    asked = study()
    assert expand_anew(asked) == expand(asked), "ids, seeds and orders do not depend on the rule"


def test_narrow_intervals_end_the_study_at_the_floor_and_the_rest_is_not_needed() -> None:
    asked = study()
    plan = expand(asked)
    found = judged(asked, sealed(plan, spread(0.02), blocks=6))
    assert (found.go_on, found.why, found.blocks, found.needed) == (False, "narrow", 6, 6)
    assert {cell.state for cell in found.cells} == {"narrow enough"}
    assert [cell.treatment["nodes"] for cell in found.cells] == [1, 3]
    spared = not_needed(plan, sealed(plan, spread(0.02), blocks=6), found)
    assert len(spared) == 12
    assert {trial.block for trial in spared} == set(range(7, 13))
    assert {trial.block for trial in needed_trials(plan, found)} == set(range(1, 7))


@pytest.mark.parametrize("blocks", range(6))
def test_nothing_is_judged_before_the_floor_however_narrow(blocks: int) -> None:
    asked = study()
    found = judged(asked, sealed(expand(asked), lambda trial: 1000.0, blocks))
    assert (found.go_on, found.why, found.blocks, found.needed) == (True, "least-starts", blocks, 6)


def test_wide_intervals_go_on_to_the_cap_and_are_called_too_wide() -> None:
    asked = study()
    plan = expand(asked)
    going = judged(asked, sealed(plan, spread(2.0), blocks=7))
    assert (going.go_on, going.why, going.needed) == (True, "width", 8)
    assert "narrowing" in {cell.state for cell in going.cells}
    ended = judged(asked, sealed(plan, spread(2.0)))
    assert (ended.go_on, ended.why, ended.blocks) == (False, "cap", 12)
    assert "too wide" in {cell.state for cell in ended.cells}
    assert "stopped after all 12 planned blocks" in ended.sentence


def test_hours_end_it_before_a_block_that_would_exceed_them_also_below_the_floor() -> None:
    block_h = 2 * 2 * TRIAL_S / 3600
    asked = study(until={"hours": 3.5 * block_h})
    plan = expand(asked)
    assert judged(asked, sealed(plan, spread(2.0), blocks=2)).go_on
    found = judged(asked, sealed(plan, spread(2.0), blocks=3))
    assert (found.go_on, found.why, found.blocks) == (False, "hours", 3)
    assert found.hours == pytest.approx(3 * block_h), "a start counts from its first phase to its last trial"
    assert "2 of 2 not judged, of fewer than 6 starts" in found.sentence
    assert "wider" not in found.sentence
    told = list(stopping.caveats(found))
    assert told[1].startswith("Not as was asked (±5%, from 6 starts): 1 node ±")
    assert "of 3 starts" in told[1]
    more = study(until={"hours": 8.5 * block_h})
    assert judged(more, sealed(plan, spread(2.0), blocks=3)).go_on, "a budget may be raised, and the study goes on"


values = st.lists(st.floats(0.5, 1.5), min_size=24, max_size=24)


def by_position(given_values: Sequence[float]) -> Callable[[PlannedTrial], float]:
    return lambda trial: given_values[trial.position]


@settings(max_examples=40, deadline=None)
@given(values=values, width=st.floats(1, 60), blocks=st.integers(0, 12), seed=st.integers())
def test_properties(values: list[float], width: float, blocks: int, seed: int) -> None:
    asked = study(until={"width_percent": width})
    plan = expand(asked)
    records = sealed(plan, by_position(values), blocks)
    found = judged(asked, records)
    shuffled = list(records)
    random.Random(seed).shuffle(shuffled)
    assert judged(asked, shuffled) == found, "the order of the records does not matter"
    assert found.go_on or found.why == "cap" or found.blocks >= 6
    assert found.blocks <= found.needed <= 12
    if not found.go_on:
        assert judged(asked, sealed(plan, by_position(values), found.blocks)) == found, "what came later moves nothing"
        longer = judged(study(starts=20, until={"width_percent": width}), records)
        if found.why == "narrow":
            assert (longer.why, longer.blocks, longer.cells) == ("narrow", found.blocks, found.cells)
        else:
            assert longer.go_on, "a higher cap never ends it earlier"
    wider = judged(study(until={"width_percent": 100}), records)
    assert wider.blocks <= found.blocks, "who asks for less is done no later"


def test_a_block_is_whole_only_when_every_trial_is_settled() -> None:
    asked = study()
    plan = expand(asked)
    records = sealed(plan, spread(0.02), blocks=6)
    assert judged(asked, records[:-1]).blocks == 5
    last = plan.trials[len(records) - 1]
    voided = [record(last, 1.0, VOIDED, attempt=attempt) for attempt in (1, 2)]
    assert judged(asked, [*records[:-1], *voided]).go_on, "a voided attempt is repeated first"
    given_up = [*voided, record(last, 1.0, VOIDED, attempt=3)]
    found = judged(asked, [*records[:-1], *given_up])
    assert (found.blocks, found.why) == (6, "least-starts"), "given up: one start fewer, so one more is needed"


def test_an_infeasible_treatment_holds_nothing_up_and_one_that_fails_now_and_then_does() -> None:
    asked = study()
    plan = expand(asked)

    def failing(often: Callable[[int], bool]) -> list[TrialRecord]:
        return [
            record(trial, 1000.0, FAULT if trial.treatment["nodes"] == 3 and often(trial.block) else VALID)
            for trial in plan.trials
        ]

    never = judged(asked, failing(lambda block: True))
    assert (never.why, never.blocks) == ("narrow", 6)
    assert [cell.state for cell in never.cells] == ["narrow enough", "not waited for"]
    assert never.cells[1].faults == 6
    sometimes = judged(asked, failing(lambda block: block in (2, 4)))
    assert (sometimes.why, sometimes.blocks) == ("narrow", 8), "until six of its starts gave a value"
    all_failed = [record(trial, 1.0, FAULT) for trial in plan.trials]
    assert "no treatment is left to wait for" in judged(asked, all_failed).sentence


def test_it_rests_on_what_the_analysis_rests_on() -> None:
    """Warm-up trials, control trials, voided attempts, a start that was interrupted: the same mean and interval."""
    asked = study(trials=3, analysis={"warm_up_trials": 1}, design={"control": {"nodes": 1}})
    plan = expand(asked)
    records = []
    for trial in plan.trials:
        again = 1
        if trial.position % 5 == 0:
            records.append(record(trial, 1.0, VOIDED))
            again = 2
        changes: dict[str, Any] = {"attempt": again}
        if trial.block == 2 and trial.replicate % 2:
            changes["start"] = f"{trial.start}-again"
        records.append(record(trial, 10.0 if trial.control else spread(0.5)(trial), **changes))
    found = judged(asked, records)
    results = analyse(records, asked, seed=1, plan=plan)
    assert results.stopping == found
    assert found.blocks == 12
    assert [one.treatment for one in results.main(Summary)] == [cell.treatment for cell in found.cells]
    for summary, cell in zip(results.main(Summary), found.cells, strict=True):
        mean = summary.mean_of_starts
        assert mean is not None
        assert mean.high is not None
        assert (cell.n, cell.mean) == (mean.n, pytest.approx(mean.value))
        assert cell.half_width_percent == pytest.approx(100 * (mean.high - mean.value) / mean.value)


def test_a_percentile_that_the_count_does_not_support_is_no_value() -> None:
    asked = study(until={"response": "response_ms_p99"})
    records = [
        record(trial, 1.0, responses=Responses(response_ms_p99=5.0, operations=100)) for trial in expand(asked).trials
    ]
    assert {cell.n for cell in judged(asked, records).cells} == {0}


def test_records_of_another_plan_count_for_nothing() -> None:
    asked = study()
    other = sealed(expand(study(load={"operations": 77})), spread(0.02))
    assert judged(asked, other) == judged(asked, [])


def test_words() -> None:
    assert [plus_minus(one) for one in (1.934, 14.24, 212.3)] == ["±1.93%", "±14.2%", "±212%"]
    assert coverage_percent(6) == coverage_percent(9) == SIMULATED_COVERAGE_PERCENT[6]
    assert coverage_percent(500) == SIMULATED_COVERAGE_PERCENT[20]
    budget = rule(study(until={"hours": 3}))
    assert budget.same_question(rule(study(starts=40)))
    assert not budget.same_question(rule(study(until={"width_percent": 6})))
    assert not budget.same_question(None)
