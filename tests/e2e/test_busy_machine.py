"""A busy machine: no trial begins, nothing is spoilt; and whoever only looks at a study does not disturb it."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from steelyard.events.base import Event
from steelyard.events.kept import QuietAwaited, QuietReached
from steelyard.events.shown import StillBusy
from steelyard.lab import quiet
from steelyard.lab.quiet import QuietGate, disturbed_since, look
from steelyard.lab.recorder import Recorder
from steelyard.model.study import Limits
from steelyard.store import Store, StoreWriter
from tests.e2e.laboratory import Laboratory

pytestmark = pytest.mark.agent

STUDY = """
[study]
name = "busy"
question = "who else is at work?"
[site]
name = "local"
[system]
name = "simulated"
[workload]
name = "ycsb-c"
records = 200
[load]
schedule = "constant"
rate_per_s = 100
threads = 16
duration_s = {duration_s}
[design]
starts = 1
trials = {trials}
[limits]
background_cpu_fraction = {limit}
steal_fraction = 1
lag_p99_ms = 1000
offered_rate_fraction = 0.1
[factors]
nodes = [1]
"""
LOOK_S = 5.0
RUN_TIMEOUT_S = 240.0


def study(folder: Path, *, limit: float, trials: int, duration_s: int) -> Path:
    path = folder / "busy.toml"
    path.write_text(STUDY.format(limit=limit, trials=trials, duration_s=duration_s))
    return path


LOOP = "import os; os.nice(19)\nwhile True: pass"
"""Other tests have work to do."""


@contextmanager
def every_core_busy() -> Iterator[list[subprocess.Popen[bytes]]]:
    loops = [subprocess.Popen([sys.executable, "-c", LOOP]) for _ in range(os.cpu_count() or 1)]
    try:
        yield loops
    finally:
        for process in loops:
            process.kill()
            process.wait()


def test_a_busy_machine_ends_with_3_spoils_nothing_and_the_same_command_goes_on(laboratory: Laboratory) -> None:
    path = study(laboratory.folder, limit=0.2, trials=1, duration_s=1)
    with every_core_busy():
        done = laboratory.run(path, "--quiet-wait", "0")
    assert done.returncode == 3, done.stderr
    words = " ".join(done.stderr.split())
    for phrase in ("not quiet", "limits.quiet_wait_s", "limits.background_cpu_fraction", "python", "to resume"):
        assert phrase in words, phrase
    store = Store(laboratory.store / "busy")
    assert store.trials() == ()
    assert [entry.event.name for entry in store.journal() if entry.event] == [
        "study-written",
        "session-began",
        "quiet-awaited",
        "session-failed",
    ]
    # Other tests run at the same time: a limit may change.
    again = laboratory.run(study(laboratory.folder, limit=1.0, trials=1, duration_s=1))
    assert again.returncode == 0, again.stderr
    (record,) = store.trials()
    assert (record.attempt, record.verdict.outcome) == (1, "valid")


@pytest.mark.quiet
def test_status_every_5_s_and_a_report_void_nothing(laboratory: Laboratory) -> None:
    before = look(laboratory.folder)
    time.sleep(1.0)
    alone = not disturbed_since(before, laboratory.folder, Limits(background_cpu_fraction=0.1, steal_fraction=1.0))
    # `report` alone would take half of two cores. Where others are at work too, only its being known is tested.
    path = study(laboratory.folder, limit=0.35 if alone else 1.0, trials=3, duration_s=5)
    running = laboratory.start("run", path, "--store", laboratory.store, "--plain")
    folder = laboratory.store / "busy"
    reported = None
    try:
        deadline_s = time.monotonic() + RUN_TIMEOUT_S
        while running.poll() is None:
            assert time.monotonic() < deadline_s
            looked_s = time.monotonic()
            if (folder / "study.json").is_file():
                laboratory.call("status", folder)
            if reported is None and any((folder / "trials").glob("[!.]*/trial.json")):
                reported = laboratory.call("report", folder)
            time.sleep(max(0.0, LOOK_S - (time.monotonic() - looked_s)))
    finally:
        running.kill()
        running.communicate()
    records = Store(folder).trials()
    assert [(record.attempt, record.verdict.outcome, record.verdict.reasons) for record in records] == [
        (1, "valid", ())
    ] * 3
    assert reported is not None
    assert reported.returncode in (0, 1), reported.stderr
    notes = [note for record in records for note in record.verdict.notes]
    assert any("reading commands of Steelyard" in note for note in notes), notes


@dataclass
class Heard:
    """A watcher that keeps what it was told."""

    events: list[Event] = field(default_factory=list)

    def tell(self, event: Event) -> None:
        """Take note."""
        self.events.append(event)


@pytest.mark.quiet
def test_a_real_busy_loop_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A real wait is half a minute and more.
    monkeypatch.setattr(quiet, "QUIET_S", 1.5)
    monkeypatch.setattr(quiet, "LOOK_S", 0.5)
    # What else this machine does is taken for the study's own: only the loops count.
    limits = Limits(background_cpu_fraction=0.1, steal_fraction=1.0, quiet_wait_s=60.0)
    gate, heard = QuietGate(lambda: look(tmp_path)), Heard()

    async def end_the_loops_when_it_waits(loops: list[subprocess.Popen[bytes]], writer: StoreWriter) -> None:
        pids = {process.pid for process in loops}
        waiting = asyncio.ensure_future(
            gate.wait(limits, lambda pid: pid not in pids, Recorder(writer, heard), lambda: False)
        )
        while not any(isinstance(event, StillBusy) for event in heard.events):
            assert not waiting.done(), f"it did not wait for them: {heard.events}"
            await asyncio.sleep(0.05)
        for process in loops:
            process.kill()
        await waiting

    with every_core_busy() as loops, StoreWriter(tmp_path / "store", "busy") as writer:
        time.sleep(1.0)
        asyncio.run(end_the_loops_when_it_waits(loops, writer))
    assert isinstance(heard.events[0], QuietAwaited)
    assert "python" in heard.events[0].reasons[0].detail
    assert isinstance(heard.events[-1], QuietReached)
