"""kill -9 in the middle of each phase, one after the other; the same command again ends with a complete store and
nothing left over."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path

import pytest
from tools.campaigns.__main__ import SEED
from tools.campaigns.kills import CAMPAIGN
from tools.campaigns.leftovers import left_behind

from steelyard.store import Store
from tests.e2e.laboratory import BUSY_MACHINE, Laboratory

pytestmark = pytest.mark.agent

STUDY = f"""
[study]
name = "kill"
question = "what does kill -9 cost?"
[site]
name = "local"
[system]
name = "simulated"
service_us = 200
[workload]
name = "ycsb-a"
records = 200
[load]
operations = 400
[design]
starts = 1
trials = 3
[factors]
nodes = [1, 2]
{BUSY_MACHINE}"""

DEADLINE_S = 60.0
MOMENTS = ("lease", "deploy", "ready", "draft", "second start", "sealed")
"""In an order in which a study that was killed at one has the next still before it."""


class Watch:
    """What a session of the study adds to the journal and the folders, seen from the moment before it starts."""

    def __init__(self, laboratory: Laboratory) -> None:
        self.laboratory = laboratory
        self.folder = laboratory.store / "kill"
        self.state = laboratory.folder / "state"
        self._entries = len(self._journal())
        self._left = self._paths()

    def wait_for(self, moment: str) -> None:
        """Until the session has come to `moment`."""
        deadline = time.monotonic() + DEADLINE_S
        while time.monotonic() < deadline:
            if self._reached(moment):
                return
            time.sleep(0.002)
        pytest.fail(f"never came to {moment}: {(self.laboratory.folder / 'stderr.txt').read_text()}")

    def _reached(self, moment: str) -> bool:
        if moment in ("lease", "deploy", "draft"):
            return any(kind == moment for kind, _ in self._paths() - self._left)
        events = [json.loads(line)["event"] for line in self._journal()[self._entries :]]
        return {
            "ready": "start-ready" in events,
            "sealed": "trial-sealed" in events,
            "second start": events.count("start-began") > 1,
        }[moment]

    def _paths(self) -> set[tuple[str, Path]]:
        patterns = {
            "lease": self.state.glob("leases/*.json"),
            "deploy": self.state.glob("nodes/*/*"),
            "draft": self.folder.glob("trials/.*.partial"),
        }
        return {(kind, path) for kind, paths in patterns.items() for path in paths}

    def _journal(self) -> list[str]:
        path = self.folder / "events.jsonl"
        return [line for line in path.read_text().splitlines() if line.endswith("}")] if path.is_file() else []


def killed(laboratory: Laboratory, study: Path, moment: str, number: signal.Signals = signal.SIGKILL) -> int:
    """Start the study and send it a signal at a moment; its exit code."""
    watch = Watch(laboratory)
    process = laboratory.start("run", study, "--store", laboratory.store, "--plain")
    watch.wait_for(moment)
    process.send_signal(number)
    return process.wait(DEADLINE_S)


def test_killed_at_every_moment_then_interrupted_then_the_same_command(laboratory: Laboratory, tmp_path: Path) -> None:
    """Each command takes back what the killed one before it has left, and goes on where that was; an interrupt leaves
    nothing and says how to go on."""
    study = tmp_path / "kill.toml"
    study.write_text(STUDY)
    sealed: set[str] = set()
    for moment in MOMENTS:
        assert killed(laboratory, study, moment) == -signal.SIGKILL, moment
        folder = laboratory.store / "kill"
        found = {record.id for record in Store(folder).trials()}
        assert sealed <= found, moment
        sealed = found
        assert len(list((laboratory.folder / "state").glob("leases/*.json"))) <= 1, moment
    assert killed(laboratory, study, "sealed", signal.SIGINT) == 130
    assert left_behind(laboratory.folder / "state") == [], "an interrupt releases everything"
    assert "run the same command again to resume" in (laboratory.folder / "stderr.txt").read_text()
    again = laboratory.run(study)
    assert again.returncode == 0, again.stderr
    records = Store(laboratory.store / "kill").trials()
    assert len(records) == 6
    assert sealed
    assert sealed <= {record.id for record in records}
    assert all(record.attempt == 1 for record in records)


def test_clean_takes_back_what_a_killed_study_left(laboratory: Laboratory, tmp_path: Path) -> None:
    study = tmp_path / "kill.toml"
    study.write_text(STUDY)
    killed(laboratory, study, "draft")
    found = laboratory.call("clean", "--dry-run", "--json")
    assert [lease["outcome"] for lease in json.loads(found.stdout)["leases"]] == ["found"], found.stdout
    assert laboratory.call("clean").returncode == 0


@pytest.mark.root
@pytest.mark.parametrize(
    "name", ["linked-09-conductor-collect", "linked-12-conductor-release", "linked-14-link-measure"]
)
def test_a_kill_over_the_link_program_leaves_nothing(tmp_path: Path, name: str) -> None:
    """Three cases of the campaign of kills: nothing is left, and a trial that lost its link is void and repeated."""
    (case,) = (case for case in CAMPAIGN.cases(SEED) if case.name == name)
    outcome = CAMPAIGN.run(None, case, tmp_path)
    assert list(outcome.findings) == []
    assert outcome.facts["killed"] == [f"killed: {case.values['target']}"]


@pytest.mark.root
def test_a_killed_load_generator_is_repeated_and_leaves_nothing(tmp_path: Path) -> None:
    """One case of the campaign of kills."""
    kills = CAMPAIGN.cases(SEED)
    case = next(case for case in kills if case.name.startswith("simulated") and case.name.endswith("agent-measure"))
    outcome = CAMPAIGN.run(None, case, tmp_path)
    assert list(outcome.findings) == []
    assert outcome.facts["killed"] == ["killed: agent"]
