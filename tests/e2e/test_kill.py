"""kill -9 in the middle of each phase; the same command again ends with a complete store and nothing left over."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path

import pytest

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
trials = 2
[factors]
nodes = [1, 2]
{BUSY_MACHINE}"""

DEADLINE_S = 60.0


def wait_for(laboratory: Laboratory, moment: str) -> None:
    """Until the journal or the folder shows that the study has come to `moment`."""
    folder = laboratory.store / "kill"
    state = laboratory.folder / "state"
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline:
        events = [json.loads(line) for line in _lines(folder / "events.jsonl")]
        reached = {
            "lease": bool(list(state.glob("leases/*.json"))),
            "deploy": bool(list(state.glob("nodes/*/*"))),
            "ready": any(event["event"] == "start-ready" for event in events),
            "draft": bool(list(folder.glob("trials/.*.partial"))),
            "sealed": any(event["event"] == "trial-sealed" for event in events),
            "second start": sum(event["event"] == "start-began" for event in events) > 1,
        }
        if reached[moment]:
            return
        time.sleep(0.002)
    pytest.fail(f"never came to {moment}: {(laboratory.folder / 'stderr.txt').read_text()}")


def _lines(path: Path) -> list[str]:
    return [line for line in path.read_text().splitlines() if line.endswith("}")] if path.is_file() else []


@pytest.mark.parametrize("moment", ["lease", "deploy", "ready", "draft", "sealed", "second start"])
def test_kill_then_the_same_command(laboratory: Laboratory, tmp_path: Path, moment: str) -> None:
    study = tmp_path / "kill.toml"
    study.write_text(STUDY)
    process = laboratory.start("run", study, "--store", laboratory.store, "--plain")
    wait_for(laboratory, moment)
    process.send_signal(signal.SIGKILL)
    process.wait()
    sealed = {record.id for record in Store(laboratory.store / "kill").trials()}
    again = laboratory.run(study)
    assert again.returncode == 0, again.stderr
    records = Store(laboratory.store / "kill").trials()
    assert len(records) == 4
    assert sealed <= {record.id for record in records}
    assert all(record.attempt == 1 for record in records)


def test_clean_takes_back_what_a_killed_study_left(laboratory: Laboratory, tmp_path: Path) -> None:
    study = tmp_path / "kill.toml"
    study.write_text(STUDY)
    process = laboratory.start("run", study, "--store", laboratory.store, "--plain")
    wait_for(laboratory, "draft")
    process.send_signal(signal.SIGKILL)
    process.wait()
    found = laboratory.call("clean", "--dry-run", "--json")
    assert [lease["outcome"] for lease in json.loads(found.stdout)["leases"]] == ["found"], found.stdout
    assert laboratory.call("clean").returncode == 0


def test_interrupt_releases_everything_and_says_how_to_go_on(laboratory: Laboratory, tmp_path: Path) -> None:
    study = tmp_path / "kill.toml"
    study.write_text(STUDY)
    process = laboratory.start("run", study, "--store", laboratory.store, "--plain")
    wait_for(laboratory, "sealed")
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130
    assert "run the same command again to resume" in (laboratory.folder / "stderr.txt").read_text()
    assert laboratory.run(study).returncode == 0
