"""No trial begins on a busy machine; on a quiet one nothing waits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import pytest

from steelyard.events.base import Event, Silent
from steelyard.events.kept import QuietAwaited, QuietReached
from steelyard.events.shown import StillBusy, TimeLeft
from steelyard.lab import quiet
from steelyard.lab.conductor import Conductor, Outcome
from steelyard.lab.quiet import ProcessorReading, QuietGate, disturbed
from steelyard.lab.recorder import Recorder
from steelyard.model.errors import NotQuiet
from steelyard.model.study import Limits, Study
from steelyard.model.verdict_reasons import Reason, ReasonKind, Verdict
from steelyard.node.processor import MachineTime, RunningProgram
from steelyard.store import Store, StoreWriter, journal
from tests.unit.lab.fakes import FakeParts, FakeSite, Script, plan_of, study, without_waiting

CORES = 4
OTHER_PID, NODE_PID = 4_000_001, 4_000_002
LIMITS = Limits(quiet_wait_s=60.0)
DISTURBED = Verdict(
    outcome="invalid",
    reasons=(Reason(kind=ReasonKind.STEAL, measured=0.5, threshold=0.2, unit="of all CPU time", detail="java 2.00"),),
)
VALID = Verdict(outcome="valid")


@dataclass
class FakeMachine:
    """Four cores; `busy` says how many another program keeps busy in each second that passes."""

    busy: Iterator[float]
    node_cores: float = 0.0
    steal: float = 0.0
    now_s: float = 100.0
    slept_s: float = 0.0
    totals: dict[str, float] = field(default_factory=lambda: {"other": 0.0, "node": 0.0, "steal": 0.0})

    def pass_by(self, seconds: float) -> None:
        """Let time pass."""
        self.now_s += seconds
        self.totals["other"] += next(self.busy) * seconds
        self.totals["node"] += self.node_cores * seconds
        self.totals["steal"] += self.steal * CORES * seconds

    async def sleep(self, seconds: float) -> None:
        """As asyncio's."""
        self.slept_s += seconds
        self.pass_by(seconds)
        await asyncio.sleep(0)

    def look(self) -> ProcessorReading:
        """The processor now."""
        used_s = self.totals["other"] + self.totals["node"]
        return ProcessorReading(
            t_s=self.now_s,
            machine=MachineTime(used_s, self.totals["steal"], CORES * self.now_s),
            programs={
                (OTHER_PID, 1): RunningProgram("cargo", self.totals["other"]),
                (NODE_PID, 1): RunningProgram("java", self.totals["node"]),
            },
        )

    def gate(self) -> QuietGate:
        """A gate on this machine; a second has passed since the session began."""
        gate = QuietGate(self.look, sleep=self.sleep)
        self.pass_by(1.0)
        return gate


def machine(*busy: float, then: float = 0.0, **more: float) -> FakeMachine:
    """A machine on which another program is so busy in the first seconds."""
    return FakeMachine(chain(busy, repeat(then)), **more)


@dataclass
class Heard:
    """A watcher that keeps what it was told."""

    events: list[Event] = field(default_factory=list)

    def tell(self, event: Event) -> None:
        """Take note."""
        self.events.append(event)


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[StoreWriter]:
    with StoreWriter(tmp_path / "store", "fake") as writer:
        writer.intend(study(), "", plan_of(study()))
        yield writer


def waited(
    gate: QuietGate, writer: StoreWriter, limits: Limits = LIMITS, stop: Callable[[], bool] = lambda: False
) -> list[Event]:
    heard = Heard()
    asyncio.run(gate.wait(limits, lambda pid: pid == NODE_PID, Recorder(writer, heard), stop))
    return heard.events


def journalled(writer: StoreWriter) -> list[Any]:
    events_of_gate = (QuietAwaited, QuietReached)
    return [entry.event for entry in Store(writer.folder).journal() if isinstance(entry.event, events_of_gate)]


def test_on_a_quiet_machine_nothing_waits(writer: StoreWriter) -> None:
    quiet_machine = machine(then=0.5)
    gate = quiet_machine.gate()
    assert waited(gate, writer) == []
    gate.attempted(VALID)
    quiet_machine.pass_by(5.0)
    assert waited(gate, writer) == []
    assert (quiet_machine.slept_s, journalled(writer)) == (0.0, [])


def test_the_first_look_is_long_enough_to_see_something(writer: StoreWriter) -> None:
    busy = machine(then=4.0)
    at_once = QuietGate(busy.look, sleep=busy.sleep)
    with pytest.raises(NotQuiet, match="cargo"):
        waited(at_once, writer, Limits(background_cpu_fraction=0.2, quiet_wait_s=0.0))
    assert busy.slept_s == quiet.LEAST_SPAN_S + quiet.LOOK_S


def test_a_busy_machine_is_waited_for_until_it_was_quiet_for_a_while(writer: StoreWriter) -> None:
    busy = machine(3.0, 2.0, 2.0, 0.0, 2.0)
    told = waited(busy.gate(), writer)
    assert busy.slept_s == 4 + quiet.QUIET_S, "a second of quiet between busy ones is not enough"
    awaited = [event for event in told if isinstance(event, QuietAwaited)]
    assert [event.wait_s for event in awaited] == [60.0]
    still = [event for event in told if isinstance(event, StillBusy)]
    assert [(event.waited_s, event.limit_s) for event in still] == [(1.0, 60.0), (2.0, 60.0), (4.0, 60.0)]
    assert (awaited[0].reasons[0].measured, awaited[0].reasons[0].threshold) == (pytest.approx(0.75), 0.2)
    assert awaited[0].reasons[0].detail == (
        "other programs on this machine kept 3.00 of 4 cores busy, among them cargo 3.00"
    )
    assert told[-1] == QuietReached(waited_s=7.0)
    first, last = journalled(writer)
    assert (first.name, first.wait_s, first.reasons) == ("quiet-awaited", 60.0, tuple(awaited[0].reasons))
    assert last == QuietReached(waited_s=7.0)


def test_after_the_deadline_the_error_names_who_is_busy_the_limits_and_their_options(writer: StoreWriter) -> None:
    with pytest.raises(NotQuiet) as caught:
        waited(machine(then=3.0).gate(), writer)
    for words in (
        "not quiet within 60 s", "limits.quiet_wait_s", "cargo 3.00", "75% of all CPU time, limit 20%",
        "limits.background_cpu_fraction",
    ):  # fmt: skip
        assert words in caught.value.message + caught.value.hint, words
    assert "run the same command to resume" in caught.value.hint
    assert [event.name for event in journalled(writer)] == ["quiet-awaited"]


def test_with_no_time_to_wait_a_busy_machine_ends_it_at_once(writer: StoreWriter) -> None:
    busy = machine(then=3.0)
    with pytest.raises(NotQuiet):
        waited(busy.gate(), writer, Limits(quiet_wait_s=0.0))
    assert busy.slept_s == 1.0, "one reading confirms it"


def test_an_attempt_that_others_disturbed_is_not_repeated_before_it_is_quiet(writer: StoreWriter) -> None:
    calm = machine(then=0.0)
    gate = calm.gate()
    gate.attempted(DISTURBED)
    told = waited(gate, writer)
    assert calm.slept_s == quiet.QUIET_S
    assert [type(event) for event in told] == [QuietAwaited, QuietReached]
    assert waited(gate, writer) == [], "once"


def test_steal_is_waited_for_too(writer: StoreWriter) -> None:
    with pytest.raises(NotQuiet, match=r"steal: 30% of all CPU time, limit 10%, limits\.steal_fraction"):
        waited(machine(steal=0.3).gate(), writer)


def test_lifted_limits_wait_for_nothing(writer: StoreWriter) -> None:
    lifted = Limits(background_cpu_fraction=1.0, steal_fraction=1.0)
    assert waited(machine(then=4.0, steal=0.5).gate(), writer, lifted) == []


def test_the_cluster_is_no_background_load(writer: StoreWriter) -> None:
    assert waited(machine(then=0.1, node_cores=3.5).gate(), writer) == []


def test_while_clusters_come_and_go_only_named_programs_count(writer: StoreWriter) -> None:
    """A short-lived process of a starting cluster is nobody's afterwards."""
    before = machine().look()
    after = ProcessorReading(t_s=101.0, machine=MachineTime(3.0, 0.0, CORES * 101.0))
    assert disturbed(before, after, lambda pid: False, LIMITS)
    assert disturbed(before, after, lambda pid: False, LIMITS, named_only=True) == []


def test_too_short_a_span_says_nothing() -> None:
    before = machine().look()
    after = ProcessorReading(t_s=100.1, machine=MachineTime(0.4, 0.0, CORES * 100.1))
    assert disturbed(before, after, lambda pid: False, LIMITS) == []


def test_reading_commands_are_the_laboratorys_own() -> None:
    before = ProcessorReading(t_s=0.0, machine=MachineTime(0.0, 0.0, 0.0), reading_s={"7.1.report": 1.0})
    after = ProcessorReading(
        t_s=10.0, machine=MachineTime(9.0, 0.0, 40.0), reading_s={"7.1.report": 9.0, "8.2.status": 0.5},
        programs={(7, 1): RunningProgram("steelyard", 9.0)}, readers=frozenset({7}),
    )  # fmt: skip
    strict = Limits(background_cpu_fraction=0.01)
    (reason,) = disturbed(before, after, lambda pid: False, strict)
    assert reason.measured == pytest.approx((9.0 - 8.5) / 40.0)
    assert reason.detail.endswith("; in addition, reading commands of Steelyard 0.85")


def test_it_stops_waiting_when_asked(writer: StoreWriter) -> None:
    asked = iter([False, False, True])
    busy = machine(then=3.0)
    waited(busy.gate(), writer, stop=lambda: next(asked))
    assert busy.slept_s == 2.0
    assert isinstance(journal.read(writer.folder / "events.jsonl")[-1].event, QuietAwaited)


# --- in a study -----------------------------------------------------------------------------------------------------


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Script:
    without_waiting(monkeypatch)
    return Script(tmp_path)


def conductor(
    script: Script, writer: StoreWriter, gate: QuietGate | None, site_of: type[FakeSite] = FakeSite
) -> Conductor:
    chosen: Study = study(data={"state": "continue"}, limits={"quiet_wait_s": 10.0})
    plan = plan_of(chosen)
    writer.intend(chosen, "", plan)
    parts: Any = FakeParts(script, site_of=site_of)
    return Conductor(chosen, plan, writer, parts, Silent(), lambda todo, records: TimeLeft(0, 0, 0), gate)


def conduct(script: Script, gate: QuietGate | None, site_of: type[FakeSite] = FakeSite) -> Outcome:
    with StoreWriter(script.folder / "store", "fake") as writer:
        return asyncio.run(conductor(script, writer, gate, site_of).run())


def test_a_machine_that_stays_busy_spoils_nothing_and_the_same_command_goes_on(script: Script) -> None:
    with pytest.raises(NotQuiet):
        conduct(script, machine(then=3.0).gate())
    assert script.leases == []
    assert Store(script.folder / "store" / "fake").trials() == ()
    assert conduct(script, machine().gate()) == Outcome(planned=8, valid=8, invalid=0, missing=0)
    assert all(record.attempt == 1 for record in Store(script.folder / "store" / "fake").trials())


def test_a_machine_that_gets_busy_between_trials_voids_none(script: Script) -> None:
    busy = machine()
    gate = busy.gate()

    def disturb(count: int, order: Any) -> None:
        if count == 1:
            gate.attempted = lambda verdict: QuietGate.attempted(gate, DISTURBED)  # type: ignore[method-assign]
            busy.busy = repeat(3.0)

    script.on_drive = disturb
    with pytest.raises(NotQuiet):
        conduct(script, gate)
    records = Store(script.folder / "store" / "fake").trials()
    assert len(records) == 1
    assert script.leases == script.released
    script.on_drive = lambda count, order: None
    assert conduct(script, machine().gate()).valid == 8


def test_an_interrupt_while_it_waits_releases_everything(script: Script) -> None:
    async def interrupt(writer: StoreWriter) -> None:
        busy = machine()
        gate = busy.gate()
        gate.attempted = lambda verdict: QuietGate.attempted(gate, DISTURBED)  # type: ignore[method-assign]
        script.on_drive = lambda count, order: setattr(busy, "busy", repeat(3.0))
        task = asyncio.ensure_future(conductor(script, writer, gate).run())
        while busy.slept_s < 2:  # noqa: ASYNC110 - the fake machine has no event to wait for
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with StoreWriter(script.folder / "store", "fake") as writer:
        asyncio.run(interrupt(writer))
    assert script.leases
    assert script.leases == script.released


def test_nodes_on_other_machines_are_not_judged_by_this_one(script: Script) -> None:
    class FarSite(FakeSite):
        shares = frozenset()

    busy = machine(then=4.0)
    assert conduct(script, busy.gate(), FarSite).valid == 8
    assert busy.slept_s == 0.0
