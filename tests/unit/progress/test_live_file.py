"""What a study in progress says of itself: once a second, never in the way, gone at the end."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from steelyard.events.base import Event
from steelyard.events.kept import SessionBegan, StartBegan
from steelyard.events.shown import PhaseEntered, Sampled, Ticked, TimeLeft, TrialBegan, Trouble, Waiting
from steelyard.lab.conductor import Conductor
from steelyard.model.sample import Sample
from steelyard.model.secret import Concealer
from steelyard.model.trial import Phase
from steelyard.progress import live_file
from steelyard.progress.live_file import LiveFile
from steelyard.progress.publisher import Publisher
from steelyard.progress.state import (
    LAST_SECONDS,
    LAST_TROUBLES,
    Left,
    Live,
    NodeReadings,
    PhaseUnderWay,
    TroubleNoted,
    beginning,
    second_of,
)
from steelyard.store import StoreWriter, layout
from steelyard.wire.record import Interval
from tests.unit.lab.fakes import FakeParts, Script, plan_of, records_of, study, without_waiting
from tests.unit.wire.orders import order

TROUBLE = Trouble("a", "b")


@pytest.fixture
def writer(tmp_path: Path) -> Any:
    with StoreWriter(tmp_path / "store", "fake", Concealer(["hunter22"])) as opened:
        opened.intend(study(), "", plan_of(study()))
        yield opened


def said(writer: StoreWriter) -> Live:
    live = live_file.read(writer.folder)
    assert live is not None
    return live


def told_to(writer: StoreWriter, *events: Event) -> LiveFile:
    """The file of these events, written once."""
    file = LiveFile(writer.folder, writer.conceal, lambda: 100.0)
    publisher = Publisher(lambda: 100.0, file)
    for event in events:
        publisher.tell(event)
    file.beat()
    return file


def an_interval() -> Interval:
    records = records_of(order(stop={"operations": 7}))
    return next(record for record in records if isinstance(record, Interval))


def test_what_is_written_is_read(writer: StoreWriter) -> None:
    planned = plan_of(study()).trials[0]
    interval = an_interval()
    told_to(
        writer,
        SessionBegan(study="fake", total=8, todo=8, blocks=2, store="folder"),
        TimeLeft(60.0, 30.0, 90.0),
        StartBegan(start="b01-1", block=1, blocks=2, treatment={"nodes": 1}, trials=2),
        TrialBegan(planned, 2, 1, 8),
        PhaseEntered(Phase.MEASURE, 10.0),
        Waiting("the login with hunter22"),
        Ticked("l1", interval),
        Sampled([Sample(99.0, "n1", "node_cpu_user_cores", 0.5)]),
        Trouble("it slipped", "again"),
    )
    found = said(writer)
    assert found.trial is not None
    assert (found.total, found.block, found.trial.id, found.trial.attempt) == (8, 1, planned.id, 2)
    assert found.phase == PhaseUnderWay(name="measure", entered_s=100.0, timeout_s=10.0)
    assert found.waiting == "the login with (redacted)"
    assert found.left == Left(seconds=60.0, low_s=30.0, high_s=90.0, said_s=100.0)
    assert found.nodes == {"n1": NodeReadings(t_s=99.0, values={"node_cpu_user_cores": 0.5})}
    assert found.current_seconds == (second_of("l1", interval),)
    assert found.troubles == (TroubleNoted(t_s=100.0, message="it slipped", hint="again"),)


OLD = {
    "format": 1, "t_s": 5.0, "begun_s": 1.0, "study": "fake", "total": 8, "todo": 8, "blocks": 2, "block": 1,
    "start": {"start": "b01-1", "treatment": {"nodes": 1}, "trials": 2},
    "trial": {"id": "a-s1-t1", "treatment": {"nodes": 1}, "control": False, "attempt": 2, "number": 1, "begun_s": 2.0},
    "phase": {"name": "measure", "entered_s": 3.0, "timeout_s": 10.0}, "waiting": "",
    "size": {"in_service": 3, "desired": 5, "reason": "a", "metric": "cpu", "value": 1.0, "limit": "threshold 2"},
    "left": {"seconds": 60.0, "low_s": 30.0, "high_s": 90.0, "said_s": 4.0},
    "seconds": [
        {"t_s": 4.0, "node": "l1", "phase": "measure", "span_s": 1.0, "rate_per_s": 9.0, "response_ms_p50": 1.0,
         "response_ms_p99": 2.0, "service_ms_p99": 2.0, "lag_ms_p99": None, "pacing_ms_p99": 0.1, "errors": 0,
         "backlog": 0, "cpu_fraction": 0.1},
    ],
    "nodes": {"n1": {"values": {"node_cpu_user_cores": 0.5}, "t_s": 4.0}},
    "troubles": [{"t_s": 4.0, "message": "a", "hint": "b"}],
}  # fmt: skip
"""As the version before this one wrote it."""


def test_the_file_of_an_earlier_version_is_read(tmp_path: Path) -> None:
    (tmp_path / layout.LIVE).write_text(json.dumps(OLD))
    live = live_file.read(tmp_path)
    assert live is not None
    assert live.trial is not None
    assert (live.t_s, live.trial.attempt, live.treatment, len(live.seconds)) == (5.0, 2, {"nodes": 1}, 1)
    assert live.seconds[0].rate_per_s == 9.0
    assert live.nodes["n1"].values == {"node_cpu_user_cores": 0.5}


@pytest.mark.parametrize("text", ["", "[]", "3", '{"format": 2, "t_s": 1.0}', '{"format": 1}', "[" * 100_000])
def test_a_file_that_says_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / layout.LIVE).write_text(text)
    assert live_file.read(tmp_path) is None


@pytest.mark.parametrize("name", sorted(OLD.keys() - {"format", "t_s"}))
@pytest.mark.parametrize("value", [None, 7, -1.5, "?", [], {}, [[]], [None, {}], {"n1": 3}, 10**400, [1, OLD]])
def test_a_part_that_is_not_what_it_should_be_is_left_out(tmp_path: Path, name: str, value: Any) -> None:
    (tmp_path / layout.LIVE).write_text(json.dumps({**OLD, name: value, "of a later version": value}))
    live = live_file.read(tmp_path)
    assert live is not None
    assert live.t_s == 5.0
    kept = Live.model_validate({key: part for key, part in OLD.items() if key not in (name, "format")})
    others = set(Live.model_fields) - {name}
    assert live.model_dump(include=others) == kept.model_dump(include=others)


def test_it_is_written_no_more_often_than_need_be_and_gone_at_the_end(writer: StoreWriter) -> None:
    now_s = [100.0]
    with LiveFile(writer.folder, writer.conceal, lambda: now_s[0]) as file:
        file.beat()
        now_s[0] = 100.5
        file.beat()
        assert said(writer).t_s == 100.0
        now_s[0] = 101.0
        file.beat()
        assert said(writer).t_s == 101.0
        # The clock was set back.
        now_s[0] = 50.0
        file.beat()
        assert said(writer).t_s == 50.0
    assert live_file.read(writer.folder) is None
    assert not list(writer.folder.glob(".live*"))


def test_it_is_replaced_and_goes(writer: StoreWriter) -> None:
    assert live_file.read(writer.folder) is None
    for t_s in (1.0, 2.0):
        live_file.write(writer.folder, beginning(t_s), writer.conceal)
    assert said(writer).t_s == 2.0
    live_file.remove(writer.folder)
    live_file.remove(writer.folder)
    assert live_file.read(writer.folder) is None


def test_what_is_kept_has_an_end(writer: StoreWriter) -> None:
    interval = an_interval()
    told_to(writer, *[event for _ in range(1000) for event in (Ticked("l1", interval), TROUBLE)])
    assert (len(said(writer).seconds), len(said(writer).troubles)) == (LAST_SECONDS, LAST_TROUBLES)


def test_a_disk_that_takes_no_more_stops_nothing(writer: StoreWriter, tmp_path: Path) -> None:
    folder, now_s = tmp_path / "other", [100.0]
    folder.touch()
    with LiveFile(folder, writer.conceal, lambda: now_s[0]) as file:
        file.beat()
        folder.unlink()
        folder.mkdir()
        now_s[0] += 60.0
        file.beat()
        assert live_file.read(folder) is not None, "it is tried again"
        shutil.rmtree(folder)
        folder.touch()


def test_one_view_that_fails_takes_nothing_from_the_other() -> None:
    heard: list[tuple[str, Event]] = []
    tried: list[Event] = []

    class Gone:
        def show(self, live: Live, event: Event) -> None:
            tried.append(event)
            raise OSError("the terminal has gone")

    class Ear:
        def show(self, live: Live, event: Event) -> None:
            heard.append((live.waiting, event))

    publisher = Publisher(lambda: 1.0, Gone(), Ear())
    publisher.tell(Waiting("a"))
    publisher.tell(Waiting("b"))
    assert heard == [("a", Waiting("a")), ("b", Waiting("b"))]
    assert tried == [Waiting("a")], "it is asked no more"


def test_a_whole_study_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every event that a conductor tells can be told on, as JSON."""
    without_waiting(monkeypatch)
    script = Script(tmp_path)
    told: list[Live] = []
    chosen = study(data={"state": "continue"})
    with StoreWriter(tmp_path / "store", "fake") as writer:
        writer.intend(chosen, "", plan_of(chosen))

        class Reader:
            """Writes each state and reads it."""

            def show(self, live: Live, event: Event) -> None:
                live_file.write(writer.folder, live, writer.conceal)
                again = live_file.read(writer.folder)
                assert again is not None
                # Nothing that the fold made is left out by a reader.
                assert again.model_dump() == live.model_dump() | {"folder": "", "cells": (), "decision": None}
                told.append(live)

        parts: Any = FakeParts(script)
        foresight = lambda todo, records: TimeLeft(0, 0, 0)  # noqa: E731 - as short as it gets
        publisher = Publisher(lambda: 10.0 * len(told), Reader())
        asyncio.run(Conductor(chosen, plan_of(chosen), writer, parts, publisher, foresight).run())
    assert {live.trial.id for live in told if live.trial} == {trial.id for trial in plan_of(chosen).trials}
    assert {"measure", "settle", "lease", "release"} <= {live.phase.name for live in told if live.phase}
    assert told[-1].number == len(plan_of(chosen).trials)
    assert [(cell.treatment["nodes"], cell.invalid) for cell in sorted(told[-1].cells, key=str)] == [(1, 0), (3, 0)]
