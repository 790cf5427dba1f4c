"""A study measured from Python: the how-to's snippets, a notebook's event loop, and a clean stop; without the command
line's code."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from steelyard import begin, measure, read
from steelyard.events.base import Event
from steelyard.events.kept import SessionInterrupted, TrialSealed
from steelyard.events.shown import TrialBegan
from steelyard.lab.session import Session, SessionEnd
from steelyard.model.errors import StudyError
from steelyard.node.folders import state_folder
from steelyard.progress.state import Live
from steelyard.store import Store
from tests.e2e.laboratory import BUSY_MACHINE, ROOT

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
    assert len(snippets) == 5
    script = tmp_path / "script.py"
    # Each in a store of its own: the second would find nothing to do in that of the first.
    own = [snippet.replace('store="store"', f'store="store{place}"') for place, snippet in enumerate(snippets)]
    script.write_text("\n".join([*own, NO_COMMAND_LINE]))
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=300, check=False, env=dict(os.environ)
    )
    assert done.returncode == 0, done.stderr
    assert "trial 1 of 2: " in done.stdout


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
    assert any(isinstance(entry.event, SessionInterrupted) for entry in Store(end.folder).journal())
    assert not list((state_folder() / "leases").glob("*.json"))


def test_what_is_wrong_with_a_study_is_raised_before_anything_is_measured(tmp_path: Path) -> None:
    (tmp_path / "wrong.toml").write_text((tmp_path / "study.toml").read_text().replace("threads = 256", "thread = 256"))
    with pytest.raises(StudyError, match="no such key"):
        measure("wrong.toml")
    assert not (tmp_path / "store").exists()
