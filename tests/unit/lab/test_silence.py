"""A load generator or a probe that falls silent is noticed, ended, and blamed on the laboratory."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from steelyard import engine_order
from steelyard.engine import agent as agent_engine
from steelyard.engine.base import FallsSilent
from steelyard.events.base import Silent
from steelyard.events.shown import TimeLeft
from steelyard.lab import probe_processes, silence
from steelyard.lab.conductor import Conductor
from steelyard.lab.node_death import while_alive
from steelyard.lab.probe_processes import Readings, watching
from steelyard.lab.silence import FIRST_S, LOOK_S, SILENCE_S, Listening
from steelyard.model.errors import EngineError, ProbeError
from steelyard.model.load import Load
from steelyard.model.verdict_reasons import ReasonKind
from steelyard.node.base import Node
from steelyard.plugins import find
from steelyard.plugins.find import Plugins
from steelyard.plugins.parts import Parts
from steelyard.store import Store, StoreWriter
from steelyard.system.base import Endpoint
from steelyard.testing.cluster import running
from steelyard.wire.order import Order, OrderPhase
from steelyard.wire.record import Connected, Interval, Record
from steelyard.workload import ycsb
from tests.unit.lab import fakes
from tests.unit.lab.test_probe_processes import Meter
from tests.unit.wire import made
from tests.unit.workload.reference import EXAMPLE

NODES = [Node(name, "load", "127.0.0.1", (), Path("/nowhere")) for name in ("l1", "l2")]
ORDER = Order.model_validate({**EXAMPLE, "interval_s": 1.0, "timeout_ms": 2000})
LIMIT_S = SILENCE_S + 1 + 2
MARK = "STEELYARD_TEST_OF_SILENCE"
CONNECTED = Connected(nodes=(), connections=1, server="")


class Course:
    """A listening at a clock of the test's own, which looks once a second as the laboratory does."""

    def __init__(self, engine: str = "agent", **order: Any) -> None:
        self.now_s = 0.0
        asked = ORDER.model_copy(update=order)
        self.listening = Listening(Parts(Plugins()).engine_named(engine), asked, NODES, lambda: self.now_s)
        self.take = self.listening.to(lambda node, record: None)

    def both(self, record: Record) -> None:
        self.take("l1", record)
        self.take("l2", record)

    def passes(self, seconds: float) -> None:
        for _ in range(int(seconds)):
            self.now_s += 1
            self.listening.check()


def test_silence_under_load_is_noticed_within_its_limit() -> None:
    course = Course()
    course.both(made.interval())
    course.passes(LIMIT_S)
    course.take("l1", made.interval())
    with pytest.raises(EngineError, match=r"l2: the load generator has said nothing for 34 s under load, limit 33 s"):
        course.passes(1)


def test_programs_may_take_long_to_start_and_to_connect_and_are_not_waited_for_for_ever() -> None:
    course = Course()
    course.passes(FIRST_S)
    course.both(made.HELLO)
    course.passes(FIRST_S)
    course.both(CONNECTED)
    course.passes(FIRST_S)
    with pytest.raises(EngineError, match="before its first interval, or between phases, limit 180 s"):
        course.passes(1)


def test_who_has_finished_need_say_nothing_while_others_go_on() -> None:
    course = Course()
    course.both(made.done(phase="warm-up"))
    course.both(made.interval())
    course.take("l2", made.done(phase="measure"))
    for _ in range(20):
        course.take("l1", made.interval())
        course.passes(LIMIT_S)
    with pytest.raises(EngineError) as caught:
        course.passes(1)
    assert "l1" in str(caught.value), "who still loads must go on speaking"
    assert "l2" not in str(caught.value)


def test_phases_follow_each_other_and_those_of_words_may_be_waited_for() -> None:
    course = Course(
        phases=tuple(OrderPhase(name=name, schedule=ORDER.schedule, duration_s=1.0) for name in ("low", "high"))
    )
    course.both(made.done(phase="low"))
    course.passes(FIRST_S)
    course.both(made.done(phase="high"))
    course.passes(10 * FIRST_S)
    searching = Course(words=True)
    searching.both(made.done(phase="measure"))
    with pytest.raises(EngineError, match="between phases"):
        searching.passes(FIRST_S + 1)


def test_silence_does_not_count_while_the_conductor_itself_stood_still() -> None:
    course = Course()
    course.both(made.interval())
    course.now_s += 3600
    course.passes(LIMIT_S - LOOK_S)
    course.now_s += LOOK_S + 1
    course.listening.check()


def test_what_is_heard_during_a_pause_does_not_lengthen_the_limit() -> None:
    course = Course()
    course.both(made.interval())
    course.now_s += 1800
    course.both(made.interval())
    course.now_s += 1800
    course.passes(LIMIT_S)
    with pytest.raises(EngineError, match="under load"):
        course.passes(1 + LOOK_S)


@pytest.mark.parametrize("engine", ["cassandra-stress", "latte"])
def test_tools_that_say_nothing_for_long_are_left_alone(engine: str) -> None:
    """latte reports at its end; cassandra-stress prints nothing while no operation ends."""
    course = Course(engine)
    course.both(made.HELLO)
    course.both(CONNECTED)
    course.passes(10 * FIRST_S)
    course.both(made.interval())
    course.passes(10 * LIMIT_S)
    assert course.now_s >= 10 * (FIRST_S + LIMIT_S)


def test_every_engine_that_is_shipped_is_judged_as_it_speaks() -> None:
    """A new one is entered here on purpose."""
    silent = {name for name in find.names("engine") if isinstance(Parts(Plugins()).engine_named(name), FallsSilent)}
    assert silent == {"cassandra-stress", "httperf", "latte"}


@contextmanager
def hurried(monkeypatch: pytest.MonkeyPatch, first_s: float = FIRST_S) -> Iterator[None]:
    """Limits that would take minutes: the conductor hands none of them to a study."""
    with monkeypatch.context() as patch:
        patch.setattr(silence, "SILENCE_S", 0.5)
        patch.setattr(silence, "FIRST_S", first_s)
        patch.setattr(probe_processes, "SILENCE_S", 0.5)
        patch.setattr(agent_engine, "DRAIN_GRACE_S", 0.5)
        yield


def marked(mark: str) -> list[int]:
    """Living processes with the mark."""
    pids = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and f"{MARK}={mark}".encode() in (entry / "environ").read_bytes():
                pids.append(int(entry.name))
        except OSError:
            continue
    return pids


def test_a_stopped_agent_is_noticed_and_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A real one, under a load of two minutes that nobody waits for."""
    mark = str(tmp_path)
    node = Node("l1", "load", "127.0.0.1", (), tmp_path, environment={MARK: mark})
    workload = ycsb.create(ycsb.Settings(records=100, update_proportion=0))

    async def body() -> float:
        settings = {"port": 19183, "service_us": 100.0, "servers": 8}
        async with running(tmp_path / "state", system="simulated", system_settings=settings) as cluster:
            schema = workload.schema()
            await cluster.system.create_schema(cluster.nodes, schema)
            contacts = tuple(f"{one.address}:19183" for one in cluster.nodes)
            endpoint = Endpoint("cql", contacts, schema.keyspace, schema.table)
            load = Load(schedule="constant", rate_per_s=100, duration_s=120, threads=2, timeout_ms=500)
            order = engine_order.measure(load, endpoint, schema, workload, 1, Plugins())
            stopped_s: list[float] = []

            def stop(_: str, record: Record) -> None:
                if isinstance(record, Interval) and not stopped_s:
                    stopped_s.append(time.monotonic())
                    for pid in marked(mark):
                        os.kill(pid, signal.SIGSTOP)

            listening = Listening(agent_engine.create(), order, [node])
            driving = agent_engine.create().drive(order, [node], listening.to(stop), 300.0)
            with pytest.raises(EngineError, match="l1: the load generator has said nothing for"):
                await while_alive(driving, cluster.system, lambda: cluster.nodes, (listening.check,))
            return time.monotonic() - stopped_s[0]

    with hurried(monkeypatch):
        took_s = asyncio.run(body())
    assert took_s < 20
    assert marked(mark) == []


def test_a_study_goes_on_after_a_silent_generator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fakes.without_waiting(monkeypatch)
    study = fakes.study(
        design={"starts": 1, "trials": 1, "seed": 3}, factors={"nodes": [1]}, data={"state": "continue"}
    )
    plan = fakes.plan_of(study)
    with hurried(monkeypatch, first_s=0.5), StoreWriter(tmp_path / "store", "fake") as writer:
        writer.intend(study, "", plan)
        parts: Any = fakes.FakeParts(fakes.Script(tmp_path, hang_at_drive=1))
        asyncio.run(Conductor(study, plan, writer, parts, Silent(), lambda todo, records: TimeLeft(0, 0, 0)).run())
    first, second = Store(tmp_path / "store" / "fake").trials()
    assert [reason.kind for reason in first.verdict.reasons] == [ReasonKind.LAB_FAULT]
    assert "l1: the load generator has said nothing for" in first.verdict.reasons[0].detail
    assert first.verdict.voided
    assert second.verdict.outcome == "valid"


TICK = "import sys, time\nfor second in range(600):\n    print(float(second), 5, flush=True)\n    time.sleep(0.05)"


async def looked_at(readings: Readings) -> None:
    """Look for ten seconds."""
    for _ in range(200):
        readings.check()
        await asyncio.sleep(0.05)


def test_a_stopped_probe_is_noticed_ended_and_not_measured_with_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async def body() -> list[int]:
        async with watching([Meter(TICK, speaks_of=("n1",))], [], Silent()) as readings:
            for _ in range(10):
                readings.check()
                await asyncio.sleep(0.1)
            os.kill(readings.process_ids[0], signal.SIGSTOP)
            with pytest.raises(ProbeError, match=r"no reading for 1\.5 s under load: meter of n1"):
                await looked_at(readings)
            assert readings.failure is not None, "the next trial begins on a start of its own"
            return readings.process_ids

    with hurried(monkeypatch):
        (pid,) = asyncio.run(body())
    assert not Path(f"/proc/{pid}").exists()
