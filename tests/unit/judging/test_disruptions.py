"""Disruptions: who is a target, which errors are their result, and measures of planted ones."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from steelyard.judging.disruptions import affected, disruption_measures, outside, read_back_measures, targets
from steelyard.judging.verdict import judge
from steelyard.model.activity import Activity, Disrupted, Mark
from steelyard.model.disruption import DisruptionChoice
from steelyard.model.study import Limits
from steelyard.model.trial import TrialRecord
from steelyard.model.verdict_reasons import ReasonKind
from steelyard.wire.record import Counts, Interval
from tests.unit.judging.test_attempts import record
from tests.unit.judging.test_verdict import evidence
from tests.unit.lab.fakes import plan_of, study
from tests.unit.wire import made

ZERO_S = 1000.0
LENGTH_S = 150
MS = 1_000_000
NODES = ("n1", "n2", "n3", "n4", "n5")


def answers(amount: float, ms: float = 5.0, outcome: str = "ok") -> Counts:
    return made.counts([(int(ms * MS), int(ms * MS) + 1023, round(amount))], outcome=outcome)


def course(of_second: Callable[[int], Sequence[Counts]]) -> list[Interval]:
    """An interval for each second; those without operations say nothing."""
    each = ((second, [one for one in of_second(second) if one.buckets[0][2]]) for second in range(LENGTH_S))
    return [made.interval(*tables, t_s=ZERO_S + second) for second, tables in each if tables]


def disrupted(begun_s: float = 60.0, healed_s: float = 80.0, recovered_s: float | None = 81.0) -> Disrupted:
    times = {"began": begun_s, "healed": healed_s} | ({} if recovered_s is None else {"recovered": recovered_s})
    marks = tuple(Mark(name=name, node="n1", t_s=ZERO_S + t_s) for name, t_s in times.items())
    outcome: Any = "failed" if recovered_s is None else "done"
    return Disrupted(nodes=("n1",), cause="kill", begun_s=ZERO_S + begun_s, marks=marks, outcome=outcome)


def trial(*disruptions: Disrupted, **load: Any) -> TrialRecord:
    offered = {"schedule": "constant", "rate_per_s": 900, "duration_s": LENGTH_S, **load}
    (planned, *_) = plan_of(study(load=offered, factors={"nodes": [3]})).trials
    return record(planned).model_copy(update={"disruptions": disruptions})


def test_targets_are_drawn_in_jepsens_words_or_named() -> None:
    def of(on: str, seed: int = 7, nodes: Sequence[str] = NODES) -> tuple[str, ...]:
        return targets(DisruptionChoice(name="kill", on=on), nodes, seed)

    amounts = {on: len(of(on)) for on in ("one", "minority", "majority", "all")}
    assert amounts == {"one": 1, "minority": 2, "majority": 3, "all": 5}
    assert len(of("minority", nodes=NODES[:4])) == 1, "three of four are left"
    assert of("n4,n2") == ("n2", "n4")
    assert of("one") == of("one")
    assert {of("one", seed) for seed in range(50)} == {(node,) for node in NODES}


def test_errors_until_recovery_and_the_time_out_are_the_result() -> None:
    spans = affected([disrupted()], timeout_ms=10_000)
    assert spans == [(ZERO_S + 60, ZERO_S + 91)]
    left = {round(one.t_s - ZERO_S) for one in outside(course(lambda _: [answers(1)]), spans)}
    assert left == {*range(60), *range(91, LENGTH_S)}
    (never,) = affected([disrupted(recovered_s=None)], timeout_ms=10_000)
    assert never.ended_s == float("inf")


@pytest.mark.parametrize(
    ("from_s", "to_s", "kinds"), [(60, 91, []), (60, 95, [ReasonKind.ERRORS]), (50, 55, [ReasonKind.ERRORS])]
)
def test_errors_outside_of_a_disruption_are_judged_as_ever(from_s: int, to_s: int, kinds: list[ReasonKind]) -> None:
    failing = course(lambda s: [answers(450), answers(450, outcome="timeout" if from_s <= s < to_s else "ok")])
    errors = 450 * (to_s - from_s)
    done = made.done(operations=900 * LENGTH_S - errors, errors=errors, errors_by_kind={"timeout": errors})
    found = evidence(intervals=failing, dones=[done], disruptions=[disrupted()])
    assert [one.kind for one in judge(found, Limits()).reasons] == kinds


def test_a_late_generator_is_judged_within_a_disruption_too() -> None:
    pacing = made.counts([(500 * MS, 501 * MS, 900)], measure="pacing")
    late = course(lambda s: [answers(900), *([pacing] if 60 <= s < 70 else [])])
    load = trial().settings.load
    found = evidence(load=load, intervals=late, disruptions=[disrupted()])
    assert ReasonKind.LAG in [one.kind for one in judge(found, Limits()).reasons]


def test_a_node_that_does_not_recover_is_a_result() -> None:
    lost = disrupted(recovered_s=None).model_copy(update={"error": "n1 did not recover within 60 s"})
    verdict = judge(evidence(intervals=course(lambda _: [answers(900)]), disruptions=[lost]), Limits())
    assert verdict.system_fault
    assert "did not recover" in verdict.reasons[0].detail


def test_a_planted_loss_is_found() -> None:
    """A third of the operations fails at once, for 20 s of 150."""
    failing = course(lambda s: [answers(600), answers(300, 0.1, "connection" if 60 <= s < 80 else "ok")])
    found = disruption_measures(trial(disrupted()), failing)
    assert found["availability_percent"] == pytest.approx(100 * (1 - 20 / LENGTH_S), abs=0.01)
    assert (found["detection_s"], found["recovery_s"], found["relapse_s"]) == (0, 0, 0)
    assert (found["outage_s"], found["degraded_s"]) == (20, 20)
    assert found["lost_operations"] == pytest.approx(20 * 300, rel=0.001)
    assert found["ambiguous_operations"] == 0


def test_time_outs_belong_to_the_seconds_in_which_they_were_due() -> None:
    """Noticed after the time-out, unavailable before."""
    failing = course(lambda s: [answers(600), answers(300, *((10_000, "timeout") if 70 <= s < 90 else (5, "ok")))])
    found = disruption_measures(trial(disrupted()), failing)
    assert found["availability_percent"] == pytest.approx(100 * (1 - 20 / LENGTH_S), abs=1)
    assert found["detection_s"] == pytest.approx(10, abs=1)
    assert found["ambiguous_operations"] == 6000


def test_a_slow_recovery_and_a_relapse_are_counted() -> None:
    def of_second(second: int) -> list[Counts]:
        slow = 60 <= second < 86 or 95 <= second < 98
        return [answers(900, 200.0 if slow else 5.0)]

    found = disruption_measures(trial(disrupted()), course(of_second))
    assert found["availability_percent"] == 100
    assert "detection_s" not in found, "nothing failed"
    assert (found["recovery_s"], found["relapse_s"], found["outage_s"], found["degraded_s"]) == (6, 3, 0, 26)
    assert found["excess_response_ms_s"] == pytest.approx(26 * 195, rel=0.01)


@pytest.mark.parametrize(("slow_ms", "degraded_s"), [(1.1, 0), (1.4, 20)])
def test_answers_that_are_slower_by_less_than_a_millisecond_are_as_good(slow_ms: float, degraded_s: float) -> None:
    slower = course(lambda s: [answers(900, slow_ms if 60 <= s < 80 else 0.2)])
    found = disruption_measures(trial(disrupted()), slower)
    assert (found["outage_s"], found["degraded_s"]) == (0, degraded_s)


@pytest.mark.parametrize(
    ("begun_s", "healed_s", "bad", "outage_s"),
    [
        (60, 80, range(60, 64), 4),  # others take over
        (60, 80, [*range(60, 64), 81, 82], 4),  # what goes wrong only after the end is in the recovery time
        (60, 80, [60, 61, 70, 71], 12),  # it flaps
        (60, 80, [58, 85], 0),
        (60.2, 60.7, [60], 0.8),
    ],
)
def test_service_is_back_after_the_last_bad_second_of_a_disruption(
    begun_s: float, healed_s: float, bad: Sequence[int], outage_s: float
) -> None:
    failing = course(lambda s: [answers(600), answers(300, 0.1, "connection" if s in bad else "ok")])
    found = disruption_measures(trial(disrupted(begun_s, healed_s)), failing)
    assert (found["outage_s"], found["degraded_s"]) == (pytest.approx(outage_s), pytest.approx(outage_s))


def test_operations_that_were_never_sent_were_due_last() -> None:
    """A generator that is late gives up what is left at the end."""
    planned = trial(disrupted())
    responses = planned.responses.model_copy(update={"unsent": 9000})
    fewer = course(lambda s: [answers(900 if s < 140 else 0)])
    found = disruption_measures(planned.model_copy(update={"responses": responses}), fewer)
    assert found["availability_percent"] == pytest.approx(100 * 140 / LENGTH_S, abs=1)
    backlog = course(lambda _: [answers(840)])
    late = disruption_measures(planned.model_copy(update={"responses": responses}), backlog)
    assert late["availability_percent"] == pytest.approx(100 * 140 / LENGTH_S, abs=1)
    assert disruption_measures(planned, backlog)["availability_percent"] == 100


def test_a_recovery_that_the_end_of_the_load_cuts_off_is_no_number() -> None:
    def recovers(at_s: int) -> dict[str, float]:
        return disruption_measures(trial(disrupted()), course(lambda s: [answers(0 if 60 <= s < at_s else 900)]))

    assert (recovers(145)["recovery_s"], recovers(145)["outage_s"]) == (65, 85)
    assert not {"recovery_s", "relapse_s", "outage_s", "degraded_s"} & recovers(147).keys()


def test_what_did_not_happen_has_no_value() -> None:
    never = disruption_measures(trial(disrupted()), course(lambda s: [answers(900)] if s < 60 else []))
    assert "recovery_s" not in never
    assert never["availability_percent"] == pytest.approx(40)
    control = disruption_measures(trial(), course(lambda _: [answers(900)]))
    assert control == {
        "availability_percent": 100, "ambiguous_operations": 0, "lost_operations": pytest.approx(0, abs=5)
    }  # fmt: skip
    assert disruption_measures(trial(disrupted()), []) == {}


def test_members_notice_when_the_last_of_them_does() -> None:
    held = disrupted()
    marks = (*held.marks, Mark(name="seen-down", node="n1", t_s=ZERO_S + 68.5))
    found = disruption_measures(trial(held.model_copy(update={"marks": marks})), course(lambda _: [answers(900)]))
    assert found["seen_down_s"] == 8.5
    assert "seen_down_s" not in disruption_measures(trial(held), course(lambda _: [answers(900)]))


def test_of_several_the_mean() -> None:
    second = disrupted(100.0, 110.0, 111.0)
    failing = course(lambda s: [answers(0 if 60 <= s < 82 or 100 <= s < 111 else 900)])
    found = disruption_measures(trial(disrupted(), second), failing)
    assert (found["recovery_s"], found["outage_s"]) == (pytest.approx(1.5), pytest.approx(16.5))
    assert found["availability_percent"] == pytest.approx(100 * (1 - 33 / LENGTH_S))


def test_in_undisturbed_trials_nothing_is_found() -> None:
    """Poisson arrivals at 900/s, response times that vary by a tenth from second to second."""
    for seed in range(200):
        drawn = random.Random(seed)
        noise = course(lambda _, drawn=drawn: [answers(drawn.gauss(900, 30), max(1.0, drawn.gauss(5, 0.5)))])
        found = disruption_measures(trial(disrupted()), noise)
        assert (found["availability_percent"], found["recovery_s"], found["relapse_s"]) == (100, 0, 0)
        assert (found["outage_s"], found["degraded_s"]) == (0, 0)
        assert "detection_s" not in found


def read_back(phase: str, **amounts: int) -> Interval:
    tables = [answers(amount, outcome=outcome.replace("_", "-")) for outcome, amount in amounts.items()]
    return dataclasses.replace(made.interval(*tables), phase=phase)


def test_values_read_back_are_wrong_at_first_or_lost() -> None:
    first = read_back("read-back", ok=90, invalid=6, not_found=3, timeout=1)
    again = read_back("read-again", ok=5, invalid=3, timeout=2)
    whole = {"values_read_back": 100.0, "stale_values": 9.0}
    assert read_back_measures([first, again]) == {**whole, "lost_writes": 3.0}
    assert read_back_measures([first]) == whole, "they were not read again"
    assert read_back_measures([read_back("read-back", ok=7)])["lost_writes"] == 0
    assert read_back_measures([again]) == {}


def test_a_join_that_fails_while_nodes_are_disrupted_is_a_result() -> None:
    def reasons(begun_s: float, ended_s: float) -> list[ReasonKind]:
        failed = Activity(
            kind="scale-out", nodes=("n4",), cause="", begun_s=ZERO_S + begun_s, ended_s=ZERO_S + ended_s,
            outcome="failed", error="it did not join",
        )  # fmt: skip
        judged = judge(evidence(activities=[failed], disruptions=[disrupted()]), Limits())
        return [reason.kind for reason in judged.reasons if "it did not join" in reason.detail]

    assert reasons(20, 59) == [ReasonKind.SYSTEM_FAULT]
    assert reasons(20, 61) == []
    assert reasons(70, 200) == []
    assert reasons(120, 200) == [ReasonKind.SYSTEM_FAULT], "every target has recovered, and nothing is in flight"
