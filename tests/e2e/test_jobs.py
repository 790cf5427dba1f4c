"""Jobs as trials, by the command line: a study of jobs on a system whose stages are planted."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.laboratory import BUSY_MACHINE, COLD, Laboratory, loopback_addresses
from tests.fixtures.jobs import planted
from tests.fixtures.jobs.driven import running_applications

pytestmark = pytest.mark.agent

STUDY = f"""
[study]
name = "jobs"
question = "how long does a WordCount take?"
[site]
name = "local"
mode = "loopback"
[system]
name = "{planted.HERE / "planted.py"}"
planted = '{{}}'
[workload]
name = "wordcount"
[load]
engine = "job"
operations = 2
timeout_ms = 60000
[design]
starts = 1
trials = 1
[factors]
workload.input_mb = [1, 2]
[analysis]
response = "response_ms_mean"
responses = [
    "service_ms_mean", "job_shuffle_mb", "job_tasks_failed", "job_tasks_repeated", "job_machine_cpu_percent_mean",
]
{COLD}{BUSY_MACHINE}"""


def written(tmp_path: Path, planting: dict[str, Any], text: str = STUDY) -> Path:
    """The study's file."""
    study = tmp_path / "jobs.toml"
    study.write_text(text.replace("'{}'", f"'{json.dumps(planting)}'"))
    return study


def test_a_study_of_jobs(laboratory: Laboratory, tmp_path: Path) -> None:
    stages = [{"tasks": 4, "task_s": 0.3, "failed": 1, "shuffle_bytes": 4 << 20}, {"tasks": 2, "task_s": 0.2}]
    with loopback_addresses():
        done = laboratory.run(written(tmp_path, {"stages": stages}), "--trust")
    assert done.returncode == 0, done.stderr
    verified = laboratory.call("verify", laboratory.store / "jobs")
    assert verified.returncode == 0, verified.stdout
    tables = laboratory.tables("jobs")
    rows = [dict(zip(tables["job_stage"]["columns"], row, strict=True)) for row in tables["job_stage"]["rows"]]
    assert [(row["workload.input_mb"], row["stage"], row["jobs"]) for row in rows] == [
        (1, 0, 2), (1, 1, 2), (2, 0, 2), (2, 1, 2)
    ]  # fmt: skip
    for row, lasts_s in zip(rows, (0.75, 0.2) * 2, strict=True):
        assert row["seconds"] == pytest.approx(lasts_s, abs=0.1)
    assert [(row["failed"], row["repeated"], row["shuffle_mb"]) for row in rows] == [(2, 2, 4.0), (0, 0, 0.0)] * 2
    for trial in (laboratory.store / "jobs" / "trials").iterdir():
        record = json.loads((trial / "trial.json").read_text())
        assert record["measures"]["job_shuffle_mb"] == 4.0
        assert record["measures"]["job_tasks_failed"] == record["measures"]["job_tasks_repeated"] == 2
        assert 0 < record["measures"]["job_machine_cpu_percent_mean"] <= 100
        assert record["versions"]["agent"].startswith("job, program.py sha256 ")


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('engine = "job"\n', "", ["jobs.toml:13", "engine agent submits no jobs", "load.engine = 'job'"]),
        ('name = "wordcount"', 'name = "job"\nprogram = "gone.jar"',
         ["jobs.toml:13", "program of the job gone.jar not found", "looked at /"]),
        ('name = "wordcount"', 'name = "job"', ["workload job has no program", "wordcount, sort or terasort"]),
    ],
)  # fmt: skip
def test_what_cannot_be_is_said_by_check(
    old: str, new: str, says: list[str], laboratory: Laboratory, tmp_path: Path
) -> None:
    done = laboratory.call("check", written(tmp_path, {}, STUDY.replace(old, new)), "--trust")
    assert done.returncode == 2, done.stdout
    for text in says:
        assert text in done.stderr, done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_killed_study_leaves_no_job(number: signal.Signals, laboratory: Laboratory, tmp_path: Path) -> None:
    """By ctrl-C at once; after a kill by the next command."""
    study = written(tmp_path, {"stages": [{"tasks": 200, "task_s": 0.5}], "apps": str(tmp_path / "apps")})
    live, shown, deadline = laboratory.store / "jobs" / ".live.json", "", time.monotonic() + 60
    with loopback_addresses():
        running = laboratory.start("run", study, "--store", laboratory.store, "--plain", "--trust")
        try:
            while "wordcount, job 1 of 2: stage 1 of 1" not in shown and time.monotonic() < deadline:
                time.sleep(0.1)
                shown = json.loads(live.read_text())["waiting"] if live.is_file() else ""
        finally:
            os.kill(running.pid, number)
            running.wait(60)
            if number == signal.SIGKILL:
                laboratory.call("clean")
        assert "wordcount, job 1 of 2: stage 1 of 1" in shown
        assert running_applications(tmp_path / "apps") == []
    assert not list((laboratory.store / "jobs" / "trials").glob("[!.]*"))
