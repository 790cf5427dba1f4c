"""The verdict: each threshold crossed alone gives its own reason, with number and threshold."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from steelyard.judging.background_load import Machines, OwnTime
from steelyard.judging.verdict import Evidence, judge, over, used_ceiling_fraction
from steelyard.model.activity import Activity, Mark
from steelyard.model.calibration import Calibration, Ceiling, Slip
from steelyard.model.load import Load
from steelyard.model.moved_frames import MovedFrames
from steelyard.model.sample import Sample
from steelyard.model.study import Limits
from steelyard.model.verdict_reasons import ReasonKind
from steelyard.progress.reason_words import short
from tests.unit.lab.fakes import records_of
from tests.unit.wire import made
from tests.unit.wire.orders import order

ORDER = order(stop={"operations": 1000})


def evidence(**changes: Any) -> Evidence:
    _, interval, done = records_of(ORDER, milliseconds=5.0)
    done = replace(done, **changes.pop("done", {}))
    load = changes.pop("load", Load(operations=1000))
    base: dict[str, Any] = {"load": load, "intervals": [interval], "dones": [done], "optimised": True, "samples": {}}
    return Evidence(**{**base, **changes})


def moved(**changes: float) -> MovedFrames:
    """A link program in good order."""
    order = {"seconds": 10, "frames": 1000, "delivered": 1000, "dropped": 5, "lost": 5, "unread": 0, "cpu_s": 1}
    return MovedFrames.model_validate({**order, "late_ms_mean": 0.1, "late_ms_max": 20.0, "stalled_s": 0.1, **changes})


def kinds(found: Evidence) -> list[ReasonKind]:
    return [reason.kind for reason in judge(found, Limits()).reasons]


def test_a_clean_trial_is_valid() -> None:
    assert judge(evidence(), Limits()).outcome == "valid"


def test_a_link_program_that_keeps_up_is_no_reason() -> None:
    assert judge(evidence(moved_frames=moved()), Limits()).reasons == ()
    assert judge(evidence(moved_frames=moved(unread=1)), Limits()).reasons == (), "1 of 1001"
    assert judge(evidence(moved_frames=moved(frames=0, delivered=0, late_ms_mean=None)), Limits()).reasons == ()
    (reason,) = judge(evidence(moved_frames=moved(late_ms_mean=1.5)), Limits()).reasons
    assert short(reason) == (
        "the link program was late: 1.5 ms, limit 0.25 ms, limits.link_late_ms "
        "(the latest of 1,000 frames came 20 ms after its time)"
    )
    (reason,) = judge(evidence(moved_frames=moved(stalled_s=1.2345, late_ms_max=1500.0)), Limits()).reasons
    assert reason.detail == "the program stood still for 1.23 s of 10 s"


def test_no_end_of_the_phase_is_unknown() -> None:
    assert judge(evidence(dones=[]), Limits()).outcome == "unknown"


OPEN = Load(schedule="constant", rate_per_s=1000.0, operations=1000)


def test_what_was_due_and_not_sent_is_a_shortfall_and_no_error() -> None:
    short = {"operations": 700, "errors": 3, "errors_by_kind": {"timeout": 3}, "unsent": 297}
    verdict = judge(evidence(load=OPEN, intervals=[made.interval(sent=703)], done=short), Limits(error_fraction=0.005))
    assert [(one.kind, one.measured) for one in verdict.reasons] == [(ReasonKind.RATE, 0.703)]
    more = judge(evidence(load=OPEN, intervals=[made.interval(sent=703)], done=short), Limits(error_fraction=0.004))
    assert [one.kind for one in more.reasons] == [ReasonKind.RATE, ReasonKind.ERRORS], "3 of the 703 that were sent"


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"load": OPEN, "intervals": [made.interval(sent=900)]}, ReasonKind.RATE),
        ({"done": {"busiest_thread_fraction": 0.95}}, ReasonKind.GENERATOR_BUSY),
        ({"done": {"dropped": 1}}, ReasonKind.DROPPED),
        ({"optimised": False}, ReasonKind.DEBUG_ENGINE),
        ({"done": {"errors": 500, "operations": 500, "errors_by_kind": {"timeout": 500}}}, ReasonKind.ERRORS),
        ({"done": {"not_found": 1}}, ReasonKind.NOT_FOUND),
        ({"done": {"errors": 1, "errors_by_kind": {"invalid": 1}}}, ReasonKind.NOT_FOUND),
        ({"done": {"operations": 900}}, ReasonKind.INCOMPLETE),
        ({"heard": {("os", "n1"): [100.0]}, "done": {"last_done_s": 107.0}}, ReasonKind.PROBE_GAP),
        (
            {"samples": {"n1": [Sample(t, "n1", "machine_cpu_steal_fraction", 0.3) for t in (101, 103)]}},
            ReasonKind.STEAL,
        ),
        (
            {"samples": {"n1": [Sample(t, "n1", "machine_fault_throttled", float(t == 103)) for t in (101, 103)]}},
            ReasonKind.HARDWARE,
        ),
        ({"differing": {"n1": {"heap": ("1g", "2g")}}}, ReasonKind.SETTINGS),
        ({"moved_frames": moved(late_ms_mean=1.5)}, ReasonKind.LINK_LATE),
        ({"moved_frames": moved(stalled_s=0.8)}, ReasonKind.LINK_STALLED),
        ({"moved_frames": moved(unread=2)}, ReasonKind.LINK_UNREAD),
        ({"still_busy": {"compactions": 2.0}}, ReasonKind.STILL_BUSY),
    ],
)
def test_each_threshold_has_its_reason(changes: dict[str, Any], kind: ReasonKind) -> None:
    assert kinds(evidence(**changes)) == [kind]


def test_a_fault_of_the_hardware_voids_a_trial_and_says_where() -> None:
    def readings(values: dict[float, float]) -> dict[str, list[Sample]]:
        return {"n2": [Sample(t, "n2", "machine_fault_under_voltage", value) for t, value in values.items()]}

    verdict = judge(evidence(samples=readings({101.0: 0.0, 102.0: 1.0, 103.0: 1.0})), Limits())
    assert verdict.voided
    assert [(reason.detail, reason.measured) for reason in verdict.reasons] == [
        ("under voltage on n2, in 2 of 3 readings", 2.0)
    ]
    assert judge(evidence(samples=readings({50.0: 1.0, 101.0: 0.0, 1000.0: 1.0})), Limits()).outcome == "valid"


def test_errors_come_with_what_the_servers_said() -> None:
    done = {"errors": 500, "operations": 500, "errors_by_kind": {"server": 500}, "error_texts": {"server": ["b", "a"]}}
    (reason,) = judge(evidence(done=done), Limits()).reasons
    assert reason.detail == "500 server; servers said: a; b"


def test_a_late_generator_is_blamed_only_for_its_own_delay() -> None:
    load = Load(schedule="constant", rate_per_s=200.0, operations=1000)
    late = (20_000_000, 20_001_023, 1000)
    for measure, expected in (("pacing", [ReasonKind.LAG]), ("lag", [])):
        interval = made.interval(made.counts([late], measure=measure), sent=1000)
        assert kinds(evidence(load=load, intervals=[interval])) == expected


def test_a_silent_probe_is_not_hidden_by_another_on_the_same_node() -> None:
    heard = {("os", "n1"): [100.0 + second for second in range(9)], ("energy", "n1"): [100.0]}
    (reason,) = judge(evidence(heard=heard, done={"last_done_s": 108.0}), Limits()).reasons
    assert (reason.kind, reason.detail, reason.measured) == (ReasonKind.PROBE_GAP, "energy on n1", 8.0)


def test_instruments_of_a_joiner_are_judged_from_their_first_reading() -> None:
    begun_s, ended_s = 1000.0, 1060.0
    marks = (Mark(name="in-service", t_s=begun_s + 10, node="n2"),)
    joined = Activity(
        kind="scale-out",
        nodes=("n2",),
        cause="test",
        begun_s=begun_s,
        ended_s=begun_s + 10,
        outcome="done",
        marks=marks,
    )
    done = made.done(operations=1000, first_sent_s=begun_s, last_done_s=ended_s)

    def judged(*times_s: float) -> list[ReasonKind]:
        heard = {("jmx", "n2"): [begun_s + at_s for at_s in times_s]}
        return kinds(evidence(dones=(done,), heard=heard, activities=(joined,)))

    after = tuple(range(18, 61))
    assert judged(*after) == []
    assert judged(*(at_s for at_s in after if not 30 < at_s < 37)) == [ReasonKind.PROBE_GAP]
    assert judged() == [ReasonKind.PROBE_GAP]
    joined = joined.model_copy(
        update={"kind": "scale-in", "marks": (Mark(name="leaving", t_s=begun_s + 50, node="n2"),)}
    )
    assert judged(*range(51)) == []
    assert judged(*range(8, 51)) == [ReasonKind.PROBE_GAP], "a member that leaves was there from the beginning"


def test_a_change_of_size_that_failed_is_a_fault_of_the_system() -> None:
    failed = Activity(
        kind="scale-out", nodes=("n2",), cause="test", begun_s=0.0, ended_s=1.0, outcome="failed", error="disk full"
    )
    (reason,) = judge(evidence(activities=(failed,)), Limits()).reasons
    assert (reason.kind, reason.detail) == (ReasonKind.SYSTEM_FAULT, "scale-out of n2: disk full")
    assert judge(evidence(activities=(failed.model_copy(update={"outcome": "unfinished"}),)), Limits()).reasons == ()


def calibration(read_per_s: float = 1000.0, write_per_s: float = 500.0, **changes: Any) -> Calibration:
    ceilings = [
        Ceiling(
            kind=kind, in_flight=in_flight, measured_per_s=rate, busiest_thread_fraction=1.0, cpu_us_per_operation=1.0
        )
        for kind, rate, in_flight in (
            ("read", read_per_s, 64),
            ("read", 2 * read_per_s, 512),
            ("write", write_per_s, 64),
            ("write", 2 * write_per_s, 512),
        )
    ]  # fmt: skip
    base: dict[str, Any] = {
        "made_s": 0.0, "machine": {}, "agent": "0 x", "optimised": True, "ceilings": tuple(ceilings),
        "slip": Slip(rate_per_s=2000, operations=1, pacing_ms_p50=0.1, pacing_ms_p99=0.2), "memory_bytes": 1,
        "background_cpu_fraction": 0.0, "steal_fraction": 0.0,
    }  # fmt: skip
    return Calibration.model_validate({**base, **changes})


@pytest.mark.parametrize(
    ("read_per_s", "reasons"),
    [(1000.0, []), (401.0, []), (400.0, [ReasonKind.GENERATOR_BOUND]), (150.0, [ReasonKind.GENERATOR_BOUND])],
)
def test_a_trial_near_the_calibrated_ceiling_is_generator_bound(read_per_s: float, reasons: list[ReasonKind]) -> None:
    """The fake engine reads 200 a second."""
    verdict = judge(evidence(calibration=calibration(read_per_s)), Limits())
    assert [reason.kind for reason in verdict.reasons] == reasons
    assert verdict.notes == ()
    if reasons:
        assert verdict.reasons[0].measured == pytest.approx(200 / read_per_s)
        assert verdict.reasons[0].threshold == 0.5
        assert verdict.final, "the same again if it were repeated"


def test_a_bound_generator_is_told_once() -> None:
    found = evidence(calibration=calibration(300.0), done={"busiest_thread_fraction": 0.97})
    (reason,) = judge(found, Limits()).reasons
    assert reason.kind is ReasonKind.GENERATOR_BOUND
    assert "97% of a core" in reason.detail


def test_without_a_calibration_the_trial_is_valid_and_says_that_the_ceiling_is_unknown() -> None:
    verdict = judge(evidence(), Limits())
    assert verdict.outcome == "valid"
    assert "steelyard calibrate" in verdict.notes[0]


def test_the_ceiling_is_that_of_the_mix_and_of_what_is_in_flight() -> None:
    known = calibration(1000.0, 500.0)
    assert known.used_fraction({"read": 100.0, "update": 100.0}, 1) == pytest.approx(0.1 + 0.2)
    assert known.used_fraction({"read": 100.0, "update": 100.0}, 600) == pytest.approx(0.05 + 0.1)
    assert known.used_fraction({"read-modify-write": 100.0}, 64) == pytest.approx(0.1 + 0.2)
    assert known.used_fraction({"my own": 100.0}, 64) == pytest.approx(0.2), "unknown: as the dearer"
    reads = known.model_copy(update={"ceilings": tuple(one for one in known.ceilings if one.kind == "read")})
    assert reads.used_fraction({"my own": 100.0}, 64) == pytest.approx(0.1), "the dearer of those that there are"
    assert reads.used_fraction({"update": 100.0}, 64) is None
    assert known.used_fraction({"read": 100.0}, 64, keep_alive=False) is None
    dear = known.ceilings[0].model_copy(update={"kind": "connection", "measured_per_s": 200.0})
    both = known.model_copy(update={"ceilings": (*known.ceilings, dear)})
    assert both.used_fraction({"get": 100.0}, 64, keep_alive=False) == pytest.approx(0.5)
    assert both.used_fraction({"get": 100.0}, 64) == pytest.approx(0.2)
    half = Ceiling(kind="read", in_flight=64, measured_per_s=400, busiest_thread_fraction=0.5, cpu_us_per_operation=1)
    assert half.per_s == 800, "half busy: twice as much could be done"
    assert used_ceiling_fraction(evidence(calibration=calibration(ceilings=()))) is None


def seconds(node: str, values: dict[str, float], count: int = 6) -> list[Sample]:
    return [Sample(101.0 + s, node, metric, value) for s in range(count) for metric, value in values.items()]


MACHINE = {
    "machine_cpu_user_fraction": 0.5, "machine_cpu_system_fraction": 0.3, "machine_cpu_interrupt_fraction": 0.1,
    "machine_cpu_steal_fraction": 0.0,
}  # fmt: skip


def crowd(node_cores: float, load_s: float = 0.6, conductor_s: float = 0.6, **changes: Any) -> Evidence:
    """Two cores, of which 1.4 are busy without interrupts; the trial takes 6 s."""
    node = {**MACHINE, "node_cpu_user_cores": node_cores - 0.1, "node_cpu_system_cores": 0.1}
    samples = {"n1": seconds("n1", node), "l1": seconds("l1", MACHINE)}
    own = OwnTime(elapsed_s=6.0, conductor_s=conductor_s, load_s={"l1": load_s})
    machines = Machines(cores={"n1": 2, "l1": 2})
    done = {"first_sent_s": 100.0, "last_done_s": 106.5}
    return evidence(**{"samples": samples, "own": own, "machines": machines, "done": done, **changes})


def test_background_load_is_what_nobody_of_ours_accounts_for() -> None:
    quiet = judge(crowd(1.2), Limits())
    assert quiet.outcome == "valid"
    assert not any("background" in note for note in quiet.notes)
    (reason,) = judge(crowd(0.6), Limits()).reasons
    assert reason.kind is ReasonKind.STEAL
    # 1.4 cores busy - 0.6 node - 0.6 / 6.5 load - 0.1 conductor, of 2
    assert reason.measured == pytest.approx((1.4 - 0.6 - 0.6 / 6.5 - 0.1) / 2)
    assert "0.61 of 2 cores" in reason.detail
    named = OwnTime(elapsed_s=6.0, load_s={"l1": 0.6}, others=[("cargo", 0.5), ("sleep", 0.001)])
    (reason,) = judge(crowd(0.6, own=named), Limits()).reasons
    assert reason.detail.endswith("among them cargo 0.50")
    assert judge(crowd(0.6), Limits(background_cpu_fraction=0.5)).outcome == "valid"


def test_a_machine_with_a_node_that_does_not_say_its_own_use_is_left_out() -> None:
    """A member of a cluster that exists: its machine is unknown, the load node's is judged."""
    machines = Machines(cores={"n1": 2, "l1": 2}, kernels={"n1": "elsewhere"})
    samples = {"n1": seconds("n1", MACHINE), "l1": seconds("l1", MACHINE)}
    (reason,) = judge(crowd(0.0, samples=samples, machines=machines), Limits()).reasons
    assert (reason.kind, "this machine" in reason.detail) == (ReasonKind.STEAL, True)
    alone = judge(crowd(0.0, samples=samples), Limits())
    assert alone.outcome == "valid"
    assert any("background" in note for note in alone.notes), "nothing can be said of one machine for all"


def test_reading_commands_are_the_laboratorys_own_and_noted() -> None:
    """0.6 of 1.4 cores busy were `report`'s: what is left is within the limit."""
    own = OwnTime(elapsed_s=6.0, conductor_s=0.6, load_s={"l1": 0.6}, reading_s=3.6)
    verdict = judge(crowd(0.6, own=own), Limits())
    assert (verdict.outcome, verdict.reasons) == ("valid", ())
    assert "reading commands of Steelyard kept 0.60 cores busy, at idle priority" in verdict.notes
    (reason,) = judge(crowd(0.6, own=own), Limits(background_cpu_fraction=0.0)).reasons
    assert reason.detail.endswith("; in addition, reading commands of Steelyard 0.60")


def test_a_load_node_with_readings_of_its_own_is_not_counted_twice() -> None:
    load = {**MACHINE, "node_cpu_user_cores": 0.4, "node_cpu_system_cores": 0.1}
    node = {**MACHINE, "node_cpu_user_cores": 0.6, "node_cpu_system_cores": 0.1}
    found = crowd(0.0, load_s=60.0, samples={"n1": seconds("n1", node), "l1": seconds("l1", load)})
    assert judge(found, Limits()).outcome == "valid"
    (reason,) = judge(found, Limits(background_cpu_fraction=0.01)).reasons
    assert reason.measured == pytest.approx((1.4 - 0.7 - 0.5 - 0.1) / 2)


def test_machines_apart_are_judged_apart() -> None:
    busy = {**MACHINE, "node_cpu_user_cores": 0.2, "node_cpu_system_cores": 0.0}
    fine = {**MACHINE, "node_cpu_user_cores": 1.3, "node_cpu_system_cores": 0.1}
    samples = {"n1": seconds("n1", fine), "n2": seconds("n2", busy)}
    machines = Machines(cores={"n1": 2, "n2": 2}, kernels={"n1": "n1", "n2": "n2"})
    (reason,) = judge(crowd(0.0, samples=samples, machines=machines, own=OwnTime()), Limits()).reasons
    assert "on n2" in reason.detail
    assert reason.measured == pytest.approx(0.6)


def test_nodes_of_one_kernel_are_one_machine_and_the_conductor_is_only_on_its_own() -> None:
    """Two nodes share a machine of which 1.4 cores are busy; the third is beside the conductor, with the load."""
    node = {**MACHINE, "node_cpu_user_cores": 0.3, "node_cpu_system_cores": 0.1}
    samples = {name: seconds(name, node) for name in ("n1", "n2", "n3")}
    machines = Machines(cores={"n1": 2, "n2": 2, "n3": 2}, kernels={"n1": "box", "n2": "box", "n3": "", "l1": ""})
    own = OwnTime(elapsed_s=6.0, conductor_s=0.6, load_s={"l1": 0.65}, helpers_s={"box": 1.2, "": 0.6})
    limits = Limits(background_cpu_fraction=0.0)
    here, there = judge(crowd(0.0, samples=samples, machines=machines, own=own), limits).reasons
    assert there.measured == pytest.approx((1.4 - 2 * 0.4 - 0.2) / 2)
    assert there.detail == (
        "other programs on box (n1, n2) kept 0.40 of 2 cores busy; in addition, helpers of Steelyard 0.20"
    )
    assert here.measured == pytest.approx((1.4 - 0.4 - 0.65 / 6.5 - 0.1 - 0.1) / 2)
    assert here.detail.startswith("other programs on this machine kept 0.70 of 2 cores")


@pytest.mark.parametrize(
    "samples",
    [
        {"n1": seconds("n1", {**MACHINE, "node_cpu_user_cores": 0.1, "node_cpu_system_cores": 0.1}, count=2)},
        {"n1": seconds("n1", MACHINE)},
    ],
    ids=["two seconds", "a node of which nobody knows"],
)
def test_what_cannot_be_told_is_a_note(samples: dict[str, list[Sample]]) -> None:
    verdict = judge(crowd(0.0, samples=samples), Limits())
    assert verdict.outcome == "valid"
    assert any("background load is unknown" in note for note in verdict.notes)


@pytest.mark.parametrize(
    ("kind", "measured", "speaks"),
    [
        (ReasonKind.LAG, 10.0, False),
        (ReasonKind.LAG, 10.1, True),
        (ReasonKind.GENERATOR_BOUND, 10.0, True),
        (ReasonKind.RATE, 10.0, False),
        (ReasonKind.RATE, 9.9, True),
        (ReasonKind.LAG, None, False),
    ],
)
def test_a_reason_speaks_on_its_side_of_the_limit(kind: ReasonKind, measured: float | None, speaks: bool) -> None:
    found = over(kind, measured, 10.0, "ms", "why")
    assert [(one.measured, one.threshold, one.unit, one.detail) for one in found] == (
        [(measured, 10.0, "ms", "why")] if speaks else []
    )
