"""A study measured from Python: the how-to's snippets, a notebook's event loop, and a clean stop; without the command
line's code."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
import traceback
from pathlib import Path

import pytest

import steelyard
from steelyard import begin, measure, read
from steelyard.events.base import Event
from steelyard.events.kept import SessionFailed, SessionInterrupted, TrialSealed
from steelyard.events.shown import TrialBegan
from steelyard.lab.session import Session, SessionEnd
from steelyard.model.errors import NotQuiet, SteelyardError, StudyError
from steelyard.node.folders import state_folder
from steelyard.progress.session_state import command_of
from steelyard.progress.state import Live
from steelyard.store import Store
from tests.e2e.laboratory import BUSY_MACHINE, ROOT
from tests.e2e.test_busy_machine import every_core_busy

pytestmark = pytest.mark.agent

PAGE = ROOT / "docs" / "howto" / "measure-from-python.md"
SHIPPED = ROOT / "studies" / "simulated.toml"
BRIEFER = {
    "nodes = [1, 2, 3, 4, 6, 8]": "nodes = [1, 2]",
    "duration_s = 1.5": "duration_s = 0.5",
    "starts = 3": "starts = 1",
}
NO_COMMAND_LINE = """
import sys
assert not any(name.startswith("steelyard.cli") for name in sys.modules)
assert end.outcome.missing == 0 and not end.interrupted
assert read(end.folder).trials.height >= 2
"""

NOTEBOOK = """
import asyncio
from steelyard import measure
from steelyard.events.kept import TrialSealed

def progress(live, event):
    if isinstance(event, TrialSealed):
        print("sealed", flush=True)

async def cell():
    end = measure("study.toml", progress=progress)
    print(end.interrupted, flush=True)

"""


@pytest.fixture(autouse=True)
def _own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEELYARD_STATE", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    text = SHIPPED.read_text()
    for shipped, briefer in BRIEFER.items():
        assert shipped in text
        text = text.replace(shipped, briefer)
    (tmp_path / "study.toml").write_text(text + BUSY_MACHINE)


def test_the_snippets_of_the_page_run_without_the_command_line(tmp_path: Path) -> None:
    snippets = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(snippets) == 7
    script = tmp_path / "script.py"
    # Each in a store of its own: the second would find nothing to do in that of the first.
    own = [snippet.replace('store="store"', f'store="store{place}"') for place, snippet in enumerate(snippets)]
    script.write_text("\n".join([*own, NO_COMMAND_LINE]))
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=300, check=False, env=dict(os.environ)
    )
    assert done.returncode == 0, done.stderr
    assert "trial 1 of 2: valid" in done.stdout
    assert (tmp_path / "report.html").stat().st_size > 100_000


def test_a_notebook_has_an_event_loop_already_and_stops_by_its_callback() -> None:
    said: list[str] = []

    def progress(live: Live, event: Event) -> str | None:
        return "finish" if isinstance(event, TrialSealed) else None

    async def cell() -> SessionEnd:
        return measure("study.toml", progress=progress, say=said.append)

    end = asyncio.run(cell())
    assert (end.outcome.valid, end.outcome.missing, end.interrupted) == (1, 1, True)
    assert read(end.folder).trials.height == 1
    rest = measure("study.toml")
    assert (rest.outcome.valid, rest.outcome.missing, rest.interrupted) == (2, 0, False)


class StopsInTheTrial:
    """A view that stops a session when its first trial has begun."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def show(self, live: Live, event: Event) -> None:
        if isinstance(event, TrialBegan):
            self._session.stop()
            self._session.stop()


def test_stopping_loses_the_trial_in_flight_and_leaves_nothing_behind() -> None:
    async def main() -> SessionEnd:
        with begin("study.toml") as session:
            outcome = await session.run(StopsInTheTrial(session))
            assert outcome.valid == 0
        return session.end()

    end = asyncio.run(main())
    assert (end.outcome.missing, end.interrupted) == (2, True)
    journal = Store(end.folder).journal()
    assert any(isinstance(entry.event, SessionInterrupted) for entry in journal)
    assert command_of(journal) == ("steelyard", "run", "study.toml", "--store", "store"), "`status` prints it"
    assert not list((state_folder() / "leases").glob("*.json"))


@pytest.mark.parametrize(
    ("loop", "exit_code"),
    [("asyncio.new_event_loop().run_until_complete(cell())", 0), ("asyncio.run(cell())", -signal.SIGINT)],
    ids=["notebook", "asyncio.run"],
)
def test_ctrl_c_stops_what_blocks_an_event_loop(loop: str, exit_code: int, tmp_path: Path) -> None:
    study = tmp_path / "study.toml"
    study.write_text(study.read_text().replace("starts = 1", "starts = 6"))
    argv = [sys.executable, "-c", NOTEBOOK + loop]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as cell:
        try:
            assert cell.stdout is not None
            assert cell.stdout.readline() == "sealed\n"
            cell.send_signal(signal.SIGINT)
            out, err = cell.communicate(timeout=30)
        finally:
            cell.kill()
    assert out.endswith("True\n"), err
    assert cell.returncode == exit_code
    store = Store(tmp_path / "store" / "simulated")
    assert len(store.trials()) < 12
    assert any(isinstance(entry.event, SessionInterrupted) for entry in store.journal())
    assert not list((state_folder() / "leases").glob("*.json"))


@pytest.mark.parametrize("error", [ZeroDivisionError("mine"), SystemExit(7), FileNotFoundError(2, "mine")])
def test_what_progress_raises_ends_the_session_and_is_raised(error: BaseException, tmp_path: Path) -> None:
    calls: list[Event] = []

    def progress(live: Live, event: Event) -> None:
        calls.append(event)
        if isinstance(event, TrialBegan):
            raise error

    with pytest.raises(type(error)) as raised:
        measure("study.toml", progress=progress)
    assert raised.value is error
    assert isinstance(calls[-1], TrialBegan), "it is not called again"
    store = Store(tmp_path / "store" / "simulated")
    assert store.trials() == ()
    failed = [entry.event for entry in store.journal() if isinstance(entry.event, SessionFailed)]
    assert [event.message for event in failed] == [f"progress raised {type(error).__name__}: {error}"]
    assert not list((state_folder() / "leases").glob("*.json"))


def test_a_word_that_progress_may_not_return_ends_the_session() -> None:
    async def main() -> None:
        with begin("study.toml") as session:
            await session.run(progress=lambda live, event: "halt")  # type: ignore[arg-type,return-value]

    with pytest.raises(SteelyardError, match="progress returned 'halt'") as raised:
        asyncio.run(main())
    assert raised.value.hint == 'return None, "finish" or "stop"'


def test_a_wait_for_a_quiet_machine_is_said(tmp_path: Path) -> None:
    study = tmp_path / "study.toml"
    study.write_text(study.read_text().replace("background_cpu_fraction = 1", "background_cpu_fraction = 1e-9"))
    said: list[str] = []
    with every_core_busy(), pytest.raises(NotQuiet) as raised:
        measure("study.toml", quiet_wait_s=1, say=said.append)
    assert any(line.startswith("waiting for a quiet machine, at most 1 s") for line in said), said
    assert raised.value.hint in "".join(traceback.format_exception(raised.value))


def test_the_package_lists_what_a_callback_needs() -> None:
    for name in ("NotQuiet", "SteelyardError", "TrialBegan", "TrialSealed", "measure"):
        assert name in dir(steelyard)
        assert getattr(steelyard, name).__name__ == name


def test_a_session_whose_store_is_no_longer_locked_measures_nothing() -> None:
    with begin("study.toml") as session:
        pass
    with pytest.raises(SteelyardError, match="the session has ended"):
        asyncio.run(session.run())


def test_what_is_wrong_with_a_study_is_raised_before_anything_is_measured(tmp_path: Path) -> None:
    (tmp_path / "wrong.toml").write_text((tmp_path / "study.toml").read_text().replace("threads = 256", "thread = 256"))
    with pytest.raises(StudyError, match="no such key"):
        measure("wrong.toml")
    assert not (tmp_path / "store").exists()
