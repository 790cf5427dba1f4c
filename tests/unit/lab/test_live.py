"""What a study in progress says of itself: once a second, never in the way, gone at the end."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from steelyard.lab import live as module
from steelyard.lab import progress
from steelyard.lab.conductor import Conductor
from steelyard.lab.live import Both, Live
from steelyard.lab.progress import Silent, TimeLeft
from steelyard.model.sample import Sample
from steelyard.model.secret import Concealer
from steelyard.model.trial import Phase
from steelyard.store import Store, StoreWriter, layout
from steelyard.wire.record import Interval
from tests.unit.lab.fakes import FakeParts, Script, plan_of, records_of, study, without_waiting
from tests.unit.wire import made


@pytest.fixture
def writer(tmp_path: Path) -> Any:
    with StoreWriter(tmp_path / "store", "fake", Concealer(["hunter22"])) as opened:
        opened.intend(study(), "", plan_of(study()))
        yield opened


def said(writer: StoreWriter) -> dict[str, Any]:
    found = Store(writer.folder).live()
    assert found is not None
    return found


def test_events_are_folded(writer: StoreWriter) -> None:
    live = Live(writer, lambda: 100.0)
    planned = plan_of(study()).trials[0]
    interval = next(
        one for one in records_of({"action": "load", "stop": {"operations": 7}}) if isinstance(one, Interval)
    )
    for event in (
        progress.StudyBegan("fake", 8, 8, 2, "folder"),
        TimeLeft(60.0, 30.0, 90.0),
        progress.StartBegan("b01-1", 1, 2, {"nodes": 1}, 2),
        progress.TrialBegan(planned, 2, 1, 8),
        progress.PhaseEntered(Phase.MEASURE, 10.0),
        progress.Waiting("the login with hunter22"),
        progress.Ticked("l1", interval),
        progress.Sampled([Sample(99.0, "n1", "node_cpu_user_cores", 0.5)]),
        progress.Trouble("it slipped", "again"),
    ):
        live.tell(event)
    live.beat()
    found = said(writer)
    assert (found["total"], found["block"], found["trial"]["id"], found["trial"]["attempt"]) == (8, 1, planned.id, 2)
    assert found["phase"] == {"name": "measure", "entered_s": 100.0, "timeout_s": 10.0}
    assert found["waiting"] == "the login with (redacted)"
    assert found["left"] == {"seconds": 60.0, "low_s": 30.0, "high_s": 90.0, "said_s": 100.0}
    assert found["nodes"] == {"n1": {"t_s": 99.0, "values": {"node_cpu_user_cores": 0.5}}}
    assert found["seconds"][0]["span_s"] == interval.seconds
    assert found["troubles"] == [{"t_s": 100.0, "message": "it slipped", "remedy": "again"}]


def test_the_lag_is_that_of_the_interval() -> None:
    interval = next(
        one for one in records_of({"action": "load", "stop": {"operations": 7}}) if isinstance(one, Interval)
    )
    lag = made.counts([(1_000_000, 3_000_000, 99)], measure="lag")
    assert module._second("l1", replace(interval, counts=(lag,)))["lag_ms_p99"] == 2.0
    assert module._second("l1", replace(interval, counts=()))["lag_ms_p99"] is None


def test_it_is_written_no_more_often_than_need_be_and_gone_at_the_end(writer: StoreWriter) -> None:
    now_s = [100.0]
    with Live(writer, lambda: now_s[0]) as live:
        live.beat()
        now_s[0] = 100.5
        live.beat()
        assert said(writer)["t_s"] == 100.0
        now_s[0] = 101.0
        live.beat()
        assert said(writer)["t_s"] == 101.0
        # The clock was set back.
        now_s[0] = 50.0
        live.beat()
        assert said(writer)["t_s"] == 50.0
    assert Store(writer.folder).live() is None
    assert not list(writer.folder.glob(".live*"))


def test_what_is_kept_has_an_end(writer: StoreWriter) -> None:
    live = Live(writer, lambda: 100.0)
    interval = next(
        one for one in records_of({"action": "load", "stop": {"operations": 7}}) if isinstance(one, Interval)
    )
    for _ in range(1000):
        live.tell(progress.Ticked("l1", interval))
        live.tell(progress.Trouble("a", "b"))
    live.beat()
    assert (len(said(writer)["seconds"]), len(said(writer)["troubles"])) == (module.LAST_SECONDS, module.LAST_TROUBLES)


def test_a_disk_that_takes_no_more_stops_nothing(writer: StoreWriter, monkeypatch: pytest.MonkeyPatch) -> None:
    tried = 0

    def full(*_: Any) -> None:
        nonlocal tried
        tried += 1
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(StoreWriter, "live", full)
    monkeypatch.setattr(StoreWriter, "live_ended", full)
    with Live(writer, lambda: 100.0) as live:
        live.beat()
    # The beat, and the end.
    assert tried == 2


def test_one_watcher_that_fails_takes_nothing_from_the_other() -> None:
    heard: list[progress.Event] = []

    class Gone:
        def tell(self, event: progress.Event) -> None:
            raise OSError("the terminal has gone")

    class Ear:
        def tell(self, event: progress.Event) -> None:
            heard.append(event)

    both = Both(progress.Guarded(Gone()), Ear())
    both.tell(progress.Waiting("a"))
    both.tell(progress.Waiting("b"))
    assert len(heard) == 2


def test_a_whole_study_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every event that a conductor tells can be told on, as JSON."""
    without_waiting(monkeypatch)
    script = Script(tmp_path)
    told: list[dict[str, Any]] = []
    monkeypatch.setattr(StoreWriter, "live", lambda self, words: told.append(json.loads(json.dumps(words))))
    chosen = study(data={"state": "continue"})
    with StoreWriter(tmp_path / "store", "fake") as writer:
        writer.intend(chosen, "", plan_of(chosen))
        live = Live(writer, lambda: float(len(told) * 10))

        class Beating(Silent):
            def tell(self, event: progress.Event) -> None:
                live.tell(event)
                live.beat()

        parts: Any = FakeParts(script)
        foresight = lambda todo, records: TimeLeft(0, 0, 0)  # noqa: E731 - as short as it gets
        asyncio.run(Conductor(chosen, plan_of(chosen), writer, parts, Beating(), foresight).run())
    assert {one["trial"]["id"] for one in told if one.get("trial")} == {trial.id for trial in plan_of(chosen).trials}
    assert {"measure", "settle", "lease", "release"} <= {one["phase"]["name"] for one in told if "phase" in one}
    assert not (tmp_path / "store" / "fake" / layout.LIVE).exists()
