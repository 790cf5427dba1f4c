"""The conductor: what is missing is done, faults are told apart, nothing is left lent."""

from __future__ import annotations

import asyncio
import errno
from pathlib import Path
from typing import Any, ClassVar

import pytest

from steelyard.events.base import Event, Kept, Silent, Watcher
from steelyard.events.kept import LaboratoryFailed, LinksMeasured, NodesGauged, StoppingJudged, TrialSealed
from steelyard.events.shown import TimeLeft
from steelyard.judging.covariates import with_links_after
from steelyard.lab.conductor import Conductor, Outcome
from steelyard.model.errors import EngineError, LastingSiteError, SiteError, SteelyardError, SystemFault
from steelyard.model.moved_frames import MovedFrames
from steelyard.model.node_limits import NodeLimits
from steelyard.model.study import Study
from steelyard.node import gauge
from steelyard.node.base import Node
from steelyard.progress.state import beginning, expected_finish, fold
from steelyard.store import Store, StoreWriter
from tests.unit.lab.fakes import FakeParts, FakeSite, FakeSystem, Script, plan_of, study, without_waiting
from tests.unit.plan.test_derived_levels import STUDY


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Script:
    without_waiting(monkeypatch)
    return Script(tmp_path)


class RevivedSystem(FakeSystem):
    """A system that is healthy whenever a start makes it anew."""

    def __init__(self, script: Script) -> None:
        super().__init__(script)
        script.healthy = True


@pytest.fixture
def gauged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits of nodes are measured without nodes."""

    async def numbers(node: Node, limits: NodeLimits) -> tuple[dict[str, float], dict[str, float]]:
        return {"memory_mb": float(limits.memory_mb or 0)}, {"memory_mb": 60.0, "work_per_cpu_s": 1.0}

    monkeypatch.setattr(gauge, "gauge", numbers)


def conduct(
    script: Script,
    a_study: Study | None = None,
    watcher: Watcher | None = None,
    parts: FakeParts | None = None,
    writes: type[StoreWriter] = StoreWriter,
) -> Outcome:
    chosen = a_study or study(data={"state": "continue"})
    plan = plan_of(chosen)
    with writes(script.folder / "store", "fake") as writer:
        writer.intend(chosen, "", plan)
        made: Any = parts or FakeParts(script)
        conductor = Conductor(chosen, plan, writer, made, watcher or Silent(), lambda todo, records: TimeLeft(0, 0, 0))
        return asyncio.run(conductor.run())


def stored(script: Script) -> Store:
    return Store(script.folder / "store" / "fake")


def test_a_whole_study_is_done_and_everything_given_back(script: Script) -> None:
    assert conduct(script) == Outcome(planned=8, valid=8, invalid=0, missing=0)
    assert script.leases == script.released
    assert len(script.leases) == 4
    records = stored(script).trials()
    assert {record.order_in_start for record in records} == {1, 2}
    assert all(record.responses.execution_time_ms == pytest.approx(50.0) for record in records)
    assert all(record.checksums for record in records)


def test_the_same_command_again_does_nothing(script: Script) -> None:
    conduct(script)
    leases = len(script.leases)
    assert conduct(script).valid == 8
    assert len(script.leases) == leases


def test_a_fault_of_the_laboratory_voids_the_attempt_and_is_repeated(script: Script) -> None:
    def fail_once(count: int, order: Any) -> None:
        if count == 2:
            raise EngineError("the generator tripped")

    script.on_drive = fail_once
    assert conduct(script).valid == 8
    attempts = [record for record in stored(script).trials() if record.attempt == 2 or not record.responses.operations]
    assert [record.verdict.outcome for record in attempts] == ["invalid", "valid"]
    assert attempts[0].verdict.reasons[0].kind.name == "LAB_FAULT"


def test_a_link_that_breaks_is_the_laboratory_s_fault_and_ends_the_start(script: Script) -> None:
    """The system cannot be reached then, but it is not to blame."""

    def cut(count: int, order: Any) -> None:
        if count == 2:
            script.broken_links.add(script.leases[-1])
            raise EngineError("connection refused")

    script.on_drive = cut
    assert (
        conduct(script, study(data={"state": "continue"}, factors={"nodes": [1], "link": ["ethernet-100"]})).valid == 4
    )
    (voided,) = [record for record in stored(script).trials() if record.verdict.outcome == "invalid"]
    (reason,) = voided.verdict.reasons
    assert (reason.kind.name, reason.detail) == ("LAB_FAULT", "the link program exited with code -9")
    assert len({record.start for record in stored(script).trials()}) == 3, "its start ended, and was done again"
    assert script.leases == script.released
    assert {link.rate_mbit for link in script.links} == {100.0}


def test_a_trial_over_a_link_program_that_fell_behind_is_repeated(script: Script) -> None:
    in_time = MovedFrames(
        seconds=5.0, frames=500, delivered=500, dropped=0, lost=0, unread=0, late_ms_mean=0.1, late_ms_max=2.0,
        stalled_s=0.05, cpu_s=0.1,
    )  # fmt: skip
    script.moved = [in_time, in_time.model_copy(update={"late_ms_mean": 7.0}), in_time]
    asked = study(data={"state": "continue"}, factors={"nodes": [1], "link": ["ethernet-100"]})
    assert conduct(script, asked).valid == 4
    voided = next(record for record in stored(script).trials() if record.verdict.voided)
    assert [reason.kind.name for reason in voided.verdict.reasons] == ["LINK_LATE"]
    counted = [record.moved_frames and record.moved_frames.late_ms_mean for record in stored(script).trials()]
    assert sorted(mean for mean in counted if mean is not None) == [0.1, 0.1, 7.0]
    assert counted.count(None) == 2, "the kernel does not count"


@pytest.mark.parametrize(("dies", "kinds"), [(False, ["LINK_STALLED", "LAB_FAULT"]), (True, ["SYSTEM_FAULT"])])
def test_nodes_that_lose_each_other_over_a_link_that_stood_still_may_be_well(
    script: Script, *, dies: bool, kinds: list[str]
) -> None:
    still = MovedFrames(
        seconds=5.0, frames=0, delivered=0, dropped=0, lost=0, unread=0, late_ms_max=0.0, stalled_s=5.0, cpu_s=0.0
    )
    dead: list[SystemFault] = []

    class MortalSystem(FakeSystem):
        async def death(self, node: Node) -> SystemFault | None:
            return dead[0] if dead else None

    def lost(count: int, order: Any) -> None:
        dead.clear()
        if count == 2:
            dead.extend([SystemFault("n1: killed for memory", system="fake")] if dies else [])
            script.moved = [still]
            raise SystemFault("n1: sees no other", system="fake")

    script.on_drive = lost
    asked = study(data={"state": "continue"}, factors={"nodes": [1], "link": ["ethernet-100"]})
    conduct(script, asked, parts=FakeParts(script, system_of=MortalSystem))
    failed = next(record for record in stored(script).trials() if record.verdict.outcome == "invalid")
    assert [reason.kind.name for reason in failed.verdict.reasons] == kinds
    assert failed.moved_frames == still
    assert failed.verdict.voided is not dies


def test_a_link_program_whose_end_is_seen_late_is_named_all_the_same(script: Script) -> None:
    """Its interfaces go first: the load fails before the program is known to have ended. What it counted no more is
    not another reason."""
    lost: list[str] = []

    class SilentSite(FakeSite):
        async def moved_frames(self, lease: Any, begun_s: float, ended_s: float) -> MovedFrames | None:
            still = MovedFrames(
                seconds=5.0, frames=0, delivered=0, dropped=0, lost=0, unread=0, late_ms_max=0.0, stalled_s=5.0,
                cpu_s=0.0,
            )  # fmt: skip
            return still if lease.id in script.broken_links else None

    def cut(count: int, order: Any) -> None:
        if count == 2:
            lost.append(script.leases[-1])
            raise EngineError("network is unreachable")

    def ready(node: Any) -> bool:
        script.broken_links.update(lost)
        return True

    script.on_drive, script.on_ready = cut, ready
    asked = study(data={"state": "continue"}, factors={"nodes": [1], "link": ["ethernet-100"]})
    assert conduct(script, asked, parts=FakeParts(script, site_of=SilentSite)).valid == 4
    (voided,) = [record for record in stored(script).trials() if record.verdict.outcome == "invalid"]
    assert [reason.detail for reason in voided.verdict.reasons] == ["the link program exited with code -9"]


def test_a_start_that_fails_because_its_link_broke_is_not_infeasible(script: Script) -> None:
    def cut(node: Any) -> bool:
        if len(script.leases) == 1:
            script.broken_links.add(script.leases[-1])
            raise SystemFault("n1: sees no other")
        return True

    script.on_ready = cut
    assert (
        conduct(script, study(data={"state": "continue"}, factors={"nodes": [3], "link": ["ethernet-100"]})).valid == 4
    )
    failures = [one.event for one in stored(script).journal() if isinstance(one.event, LaboratoryFailed)]
    assert [event.message for event in failures] == ["the link program exited with code -9"]


def test_links_are_measured_before_and_after_and_told_where_they_differ(script: Script) -> None:
    conduct(script, study(data={"state": "continue"}, factors={"nodes": [1, 3], "link": ["ethernet-100"]}))
    store = stored(script)
    after = [one.event for one in store.journal() if isinstance(one.event, LinksMeasured)]
    assert sorted(len(event.links) for event in after) == [1, 1, 6, 6]
    assert {record.covariates["link_mbit_per_s"] for record in store.trials()} == {50.0}
    assert {"link_mbit_per_s_after"} <= set(with_links_after(store.trials(), store.links_after)[0].covariates)


def test_a_fault_of_the_system_is_a_result_and_the_rest_goes_on(script: Script) -> None:
    def die(count: int, order: Any) -> None:
        if count == 2:
            script.healthy = False
            raise EngineError("connection refused")
        script.healthy = True

    script.on_drive = die
    script.on_ready = lambda node: True
    assert conduct(script, parts=FakeParts(script, system_of=RevivedSystem)) == Outcome(
        planned=8, valid=7, invalid=1, missing=0
    )
    (failed,) = [record for record in stored(script).trials() if record.verdict.outcome == "invalid"]
    assert failed.verdict.system_fault
    assert failed.attempt == 1
    assert script.leases == script.released


def test_a_cluster_that_never_starts_is_infeasible_and_the_others_go_on(script: Script) -> None:
    def three_nodes_die(node: Any) -> bool:
        if node.name == "n3":
            raise SystemFault("n3: killed for memory")
        return True

    script.on_ready = three_nodes_die
    outcome = conduct(script)
    assert outcome == Outcome(planned=8, valid=4, invalid=4, missing=0)
    failed = [record for record in stored(script).trials() if record.verdict.outcome == "invalid"]
    assert all("killed for memory" in record.verdict.reasons[0].detail for record in failed)
    assert script.leases == script.released


def test_without_a_threshold_from_other_trials_what_needs_it_is_not_run(script: Script) -> None:
    def dies(node: Any) -> bool:
        raise SystemFault("killed for memory")

    script.on_ready = dies
    derived = study(
        **{
            **STUDY, "load": {"duration_s": 1}, "derived": {"phase-1": {"least": 2}}, "site": {"name": "local"},
            "probes": [],
        }
    )  # fmt: skip
    outcome = conduct(script, derived)
    why = "phase-1 needs 2 valid trials without a policy; valid: 0 (design.starts adds some)"
    assert outcome == Outcome(planned=9, valid=0, invalid=3, missing=0, not_run=6, why_not_run=(why,))
    assert all(not record.settings.policy.changes for record in stored(script).trials())


def test_an_interrupted_study_loses_the_trial_in_flight_only(script: Script) -> None:
    chosen = study(data={"state": "continue"})
    plan = plan_of(chosen)
    script.hang_at_drive = 2

    async def interrupt(conductor: Conductor) -> None:
        task = asyncio.ensure_future(conductor.run())
        while len(script.driven) < 3:  # noqa: ASYNC110 - the fake engine has no event to wait for
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with StoreWriter(script.folder / "store", "fake") as writer:
        writer.intend(chosen, "", plan)
        parts: Any = FakeParts(script)
        asyncio.run(interrupt(Conductor(chosen, plan, writer, parts, Silent(), lambda t, r: TimeLeft(0, 0, 0))))
    assert len(stored(script).trials()) == 1
    assert not list((script.folder / "store" / "fake" / "trials").glob(".*"))
    assert script.leases == script.released
    assert conduct(script).valid == 8
    starts = {(record.planned_start, record.start) for record in stored(script).trials()}
    assert len(starts) == 5, "the trials after the interruption ran on a start of their own, and say so"


def test_too_many_failures_of_the_laboratory_end_the_study(script: Script) -> None:
    def always(count: int, order: Any) -> None:
        raise EngineError("no agent")

    script.on_drive = always
    with pytest.raises(EngineError):
        conduct(script)
    assert script.leases == script.released


def test_the_line_about_the_last_trial_knows_that_none_is_left(script: Script) -> None:
    class Noting(Silent):
        lines: ClassVar[list[tuple[int | None, str]]] = []
        live = beginning(0.0)

        def tell(self, event: Event) -> None:
            self.live = fold(self.live, event, 0.0)
            if isinstance(event, TrialSealed) and self.live.left is not None:
                self.lines.append((self.live.left.trials, expected_finish(self.live, 0.0)))

    conduct(script, watcher=Noting())
    assert [left for left, _ in Noting.lines] == [7, 6, 5, 4, 3, 2, 1, 0]
    assert {end for _, end in Noting.lines[:-1]} == {""}
    assert Noting.lines[-1][1] == "once the cluster is stopped and its nodes are given back"


def test_a_site_that_refuses_for_good_is_asked_once(script: Script) -> None:
    asked: list[Any] = []

    class RefusingSite(FakeSite):
        async def lease(self, request: Any, until: Any) -> Any:
            asked.append(request)
            raise LastingSiteError("the image is not here", "docker load")

    with pytest.raises(LastingSiteError, match="the image is not here"):
        conduct(script, parts=FakeParts(script, site_of=RefusingSite))
    assert len(asked) == 1
    assert stored(script).trials() == ()
    assert conduct(script).valid == 8, "fixed, the same command does everything"


def test_a_missing_program_is_no_result_about_the_system(script: Script) -> None:
    class SystemWithoutJava(FakeSystem):
        async def prepare(self) -> None:
            raise SystemFault("no Java 17", "apt-get install openjdk-17-jre-headless")

    with pytest.raises(SiteError, match="no Java 17"):
        conduct(script, parts=FakeParts(script, system_of=SystemWithoutJava))
    assert stored(script).trials() == ()
    assert conduct(script).valid == 8, "fixed, the same command does everything"


def test_a_broken_laboratory_ends_the_study_and_burns_no_trial(script: Script) -> None:
    def broken(count: int, order: Any) -> None:
        if order.action == "load":
            raise EngineError("no agent")

    script.on_drive = broken
    with pytest.raises(SteelyardError, match="3 times in a row"):
        conduct(script)
    assert script.leases == script.released
    script.on_drive = lambda count, order: None
    assert conduct(script).valid == 8


def test_an_error_while_cleaning_up_neither_hides_the_first_nor_stops_an_interrupt(script: Script) -> None:
    class StuckSite(FakeSite):
        async def release(self, lease: Any) -> None:
            raise SiteError("the bridge is busy")

    script.hang_at_drive = 1
    chosen = study(data={"state": "continue"})
    plan = plan_of(chosen)

    async def interrupt(conductor: Conductor) -> None:
        task = asyncio.ensure_future(conductor.run())
        while len(script.driven) < 2:  # noqa: ASYNC110 - the fake engine has no event to wait for
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError) as caught:
            await task
        assert "the bridge is busy" in str(getattr(caught.value, "__notes__", ""))

    with StoreWriter(script.folder / "store", "fake") as writer:
        writer.intend(chosen, "", plan)
        parts: Any = FakeParts(script, site_of=StuckSite)
        asyncio.run(interrupt(Conductor(chosen, plan, writer, parts, Silent(), lambda t, r: TimeLeft(0, 0, 0))))


def test_a_node_that_dies_under_load_is_a_result_although_the_engine_was_content(script: Script) -> None:
    def die(count: int, order: Any) -> None:
        script.healthy = count != 2

    script.on_drive = die
    assert conduct(script, parts=FakeParts(script, system_of=RevivedSystem)) == Outcome(
        planned=8, valid=7, invalid=1, missing=0
    )


def test_a_view_that_cannot_write_stops_nothing(script: Script) -> None:
    class Closed:
        def tell(self, event: Any) -> None:
            raise OSError("the terminal is gone")

    chosen = study(data={"state": "continue"})
    plan = plan_of(chosen)
    with StoreWriter(script.folder / "store", "fake") as writer:
        writer.intend(chosen, "", plan)
        parts: Any = FakeParts(script)
        conductor = Conductor(chosen, plan, writer, parts, Closed(), lambda t, r: TimeLeft(0, 0, 0))
        assert asyncio.run(conductor.run()).valid == 8
    assert script.leases == script.released


UNTIL = {"starts": 9, "trials": 1, "seed": 3, "until": {"width_percent": 3, "least_starts": 6}}


def test_a_study_with_a_stopping_rule_ends_there_and_stays_ended(script: Script) -> None:
    chosen = study(data={"state": "continue"}, design=UNTIL)
    assert conduct(script, chosen) == Outcome(planned=18, valid=12, invalid=0, missing=0, not_needed=6)
    assert {record.block for record in stored(script).trials()} == set(range(1, 7))
    judged = [entry.event for entry in stored(script).journal() if isinstance(entry.event, StoppingJudged)]
    told = [(event.decision.blocks, event.decision.why) for event in judged]
    assert told == [*((n, "least-starts") for n in range(1, 6)), (6, "narrow")]
    leases = len(script.leases)
    assert conduct(script, chosen).not_needed == 6
    assert len(script.leases) == leases


def test_a_stopping_rule_that_is_killed_at_any_trial_ends_the_same(script: Script) -> None:
    chosen = study(data={"state": "continue"}, design=UNTIL, factors={"nodes": [1]})
    plan = plan_of(chosen)

    async def interrupt(conductor: Conductor, trials: int) -> None:
        task = asyncio.ensure_future(conductor.run())
        while len(stored(script).trials()) < trials:  # noqa: ASYNC110 - the fake engine has no event to wait for
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    for trials in (1, 2, 4, 5):
        with StoreWriter(script.folder / "store", "fake") as writer:
            writer.intend(chosen, "", plan)
            parts: Any = FakeParts(script)
            conductor = Conductor(chosen, plan, writer, parts, Silent(), lambda t, r: TimeLeft(0, 0, 0))
            asyncio.run(interrupt(conductor, trials))
            assert conductor.outcome().not_needed == 0
    assert conduct(script, chosen) == Outcome(planned=9, valid=6, invalid=0, missing=0, not_needed=3)
    assert script.leases == script.released


def test_a_treatment_that_never_starts_does_not_hold_a_stopping_rule_up(script: Script) -> None:
    def three_nodes_die(node: Any) -> bool:
        if node.name == "n3":
            raise SystemFault("n3: killed for memory")
        return True

    script.on_ready = three_nodes_die
    outcome = conduct(script, study(data={"state": "continue"}, design=UNTIL))
    assert outcome == Outcome(planned=18, valid=6, invalid=6, missing=0, not_needed=6)


@pytest.mark.usefixtures("gauged")
@pytest.mark.parametrize(("node", "measured"), [({}, []), ({"memory_mb": 64}, ["before", "after"])])
def test_limits_are_measured_before_and_after_a_start_that_has_any(
    script: Script, node: dict[str, int], measured: list[str]
) -> None:
    conduct(script, study(data={"state": "continue"}, node=node, factors={"nodes": [2]}, design={"starts": 1}))
    events = [entry.event for entry in stored(script).journal()]
    found = [event.gauged for event in events if isinstance(event, NodesGauged)]
    assert [one.moment for one in found] == measured
    assert all(set(one.measured) == {"n1", "n2"} and one.asked == {"memory_mb": 64.0} for one in found)
    assert script.leases == script.released


@pytest.mark.usefixtures("gauged")
def test_nodes_are_given_back_where_the_last_measurement_cannot_be_written(script: Script) -> None:
    class FullWriter(StoreWriter):
        def event(self, event: Kept) -> None:
            if isinstance(event, NodesGauged) and event.gauged.moment == "after":
                raise OSError(errno.ENOSPC, "No space left on device", "events.jsonl")
            super().event(event)

    asked = study(data={"state": "continue"}, node={"memory_mb": 64}, factors={"nodes": [2]})
    with pytest.raises(OSError, match="No space left"):
        conduct(script, asked, writes=FullWriter)
    assert script.leases == script.released
