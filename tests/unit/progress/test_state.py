"""Events folded into the state that terminal, live file and browser draw."""

from __future__ import annotations

from dataclasses import replace

from steelyard.events.base import Event
from steelyard.events.kept import QuietAwaited, QuietReached, StartBegan, TrialSealed
from steelyard.events.shown import PhaseEntered, Sized, StillBusy, Ticked, TimeLeft, TrialBegan, Waiting
from steelyard.model.scaling import Desired
from steelyard.model.trial import Phase
from steelyard.model.verdict_reasons import Reason, ReasonKind
from steelyard.progress.state import (
    CellSoFar,
    Live,
    SizeUnderWay,
    beginning,
    fold,
    second_of,
    slowest,
    throughput,
    with_trial,
)
from steelyard.wire.record import Interval
from tests.unit.judging.test_attempts import record
from tests.unit.lab.fakes import plan_of, records_of, study
from tests.unit.wire import made
from tests.unit.wire.orders import order

PLAN = plan_of(study())
INTERVAL = next(record for record in records_of(order(stop={"operations": 100})) if isinstance(record, Interval))


def folded(*told: Event) -> Live:
    live = beginning(1.0)
    for place, event in enumerate(told):
        live = fold(live, event, 2.0 + place)
    return live


def test_the_treatment_is_that_of_the_trial_or_else_of_the_start() -> None:
    planned = PLAN.trials[0]
    start = StartBegan(start="b01-1", block=1, blocks=2, treatment={"nodes": 3}, trials=4)
    assert folded().treatment == {}
    assert folded(start).treatment == {"nodes": 3}
    assert folded(start, TrialBegan(planned, 1, 1, 8)).treatment == planned.treatment
    sealed = folded(start, TrialBegan(planned, 1, 1, 8), TrialSealed.of_record(record(planned), "", 1, 8))
    assert (sealed.trial, sealed.number, sealed.treatment) == (None, 1, {"nodes": 3})


def test_seconds_of_the_trial_before_are_kept_but_are_not_under_way() -> None:
    tick, planned = Ticked("l1", INTERVAL), PLAN.trials[0]
    live = folded(tick, tick, TrialBegan(planned, 1, 1, 8), tick)
    assert (len(live.seconds), len(live.current_seconds)) == (3, 1)
    live = fold(live, TrialSealed.of_record(record(planned), "", 1, 8), 9.0)
    assert (len(live.seconds), live.current_seconds) == (3, ())


def test_a_phase_ends_what_was_waited_for() -> None:
    live = folded(Waiting("quiet"), PhaseEntered(Phase.MEASURE, 60.0))
    assert (live.waiting, live.phase.name if live.phase else "", live.t_s) == ("", "measure", 3.0)


def test_the_size_of_a_cluster_is_known_while_a_trial_under_a_policy_is_in_progress() -> None:
    planned = PLAN.trials[0]
    sized = Sized(3, Desired(40.0, 5, "cpu >= 80"), "cpu", 83.0, "threshold 80")
    live = folded(TrialBegan(planned, 1, 1, 8), sized)
    assert live.size == SizeUnderWay(
        in_service=3, desired=5, reason="cpu >= 80", metric="cpu", value=83.0, limit="threshold 80"
    )
    unread = fold(live, replace(sized, value=float("nan")), 9.0).size
    assert unread is not None
    assert unread.value is None
    assert fold(live, TrialSealed.of_record(record(planned), "", 1, 8), 9.0).size is None


def test_a_wait_for_a_quiet_machine_lasts_until_it_is_quiet() -> None:
    reason = Reason(kind=ReasonKind.STEAL, measured=0.8, threshold=0.2, unit="of all CPU time")
    live = folded(QuietAwaited(reasons=(reason,), wait_s=60.0), StillBusy([reason], 1.0, 60.0))
    assert live.quiet is not None
    assert (live.quiet.since_s, live.quiet.limit_s, live.quiet.reasons) == (2.0, 60.0, (reason,))
    assert fold(live, QuietReached(waited_s=4.0), 6.0).quiet is None


def test_a_time_left_that_is_no_number_is_not_told() -> None:
    assert folded(TimeLeft(60.0, 50.0, float("inf"))).left is None
    left = folded(TimeLeft(60.0, 50.0, 70.0)).left
    assert left is not None
    assert (left.seconds, left.said_s) == (60.0, 2.0)


def test_cells_count_voided_and_infeasible_trials_and_no_valid_ones() -> None:
    planned = PLAN.trials[0]
    other = next(trial for trial in PLAN.trials if trial.treatment != planned.treatment)
    fault = record(planned, "invalid", ReasonKind.SYSTEM_FAULT)
    cells: tuple[CellSoFar, ...] = ()
    for sealed in (record(planned), record(planned, "invalid"), record(other), fault):
        cells = with_trial(cells, sealed)
    assert [(cell.treatment, cell.invalid) for cell in cells] == [
        (planned.treatment, 1),
        (other.treatment, 0),
    ]
    assert cells[0].infeasible == fault.verdict.reasons[0].detail


def test_the_lag_is_that_of_the_interval() -> None:
    lag = made.counts([(1_000_000, 3_000_000, 99)], measure="lag")
    assert second_of("l1", replace(INTERVAL, counts=(lag,))).lag_ms_p99 == 2.0
    assert second_of("l1", replace(INTERVAL, counts=())).lag_ms_p99 is None


def test_rates_are_added_up_over_load_nodes_and_times_are_of_the_slowest() -> None:
    seconds = [
        second_of(node, replace(INTERVAL, t_s=10.0 + t + shift, summary=replace(INTERVAL.summary, **summary)))
        for t in range(3)
        for node, shift, summary in (
            ("l1", 0.1, {"rate_per_s": 100.0, "response_ms_p99": 5.0}),
            ("l2", 0.4, {"rate_per_s": 50.0, "response_ms_p99": 9.0}),
        )
    ]
    assert throughput(seconds) == {10: 150.0, 11: 150.0, 12: 150.0}
    assert slowest(seconds, "response_ms_p99") == {10: 9.0, 11: 9.0, 12: 9.0}
    assert throughput(seconds[:-1])[12] == 150.0, "a node that is late counts with the second before"
