"""Times of jobs: planted ones are recovered, and the engine adds next to nothing to them."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from steelyard.model.measure import JOB_SPAN
from steelyard.wire.record import Done, SampleRecord
from steelyard.workload import job as workloads
from tests.fixtures.jobs import planted, submit
from tests.fixtures.jobs.driven import driven, nothing_is_left, of, times_s

pytestmark = pytest.mark.quiet

STAGES = [
    {"tasks": 8, "task_s": 0.2, "straggler": 5.0, "failed": 1, "shuffle_bytes": 8_000_000},
    {"tasks": 4, "task_s": 0.25},
]


def test_planted_times_are_recovered(tmp_path: Path) -> None:
    heard = driven(tmp_path, {"stages": STAGES, "start_s": 0.5}, {"operations": 2})
    (done,) = of(heard, Done)
    assert (done.operations, done.errors) == (2, 0), done.error_texts
    # 8 tasks and half of one, on two slots, the last of 1 s; then 4 tasks of 0.25 s.
    samples = [record for record in of(heard, SampleRecord) if "job_stage" not in record.values]
    stages = [record.values for record in of(heard, SampleRecord) if "job_stage" in record.values]
    assert [values["job_stage"] for values in stages] == [0, 1, 0, 1]
    assert [values["job_number"] for values in stages] == [1, 1, 2, 2]
    planted_s = [max(end for _, end, *_ in submit.attempts(stage)) for stage in STAGES]
    for values, lasts_s in zip(stages, planted_s * 2, strict=True):
        assert values["job_stage_s"] == pytest.approx(lasts_s, rel=0.01)
    assert [values["job_tasks_failed"] for values in stages] == [1, 0, 1, 0]
    assert [values["job_tasks_repeated"] for values in stages] == [1, 0, 1, 0]
    assert stages[0]["job_task_s_max"] / stages[0]["job_task_s_p50"] == pytest.approx(5.0, rel=0.01)
    assert stages[0]["job_shuffle_bytes"] == 8_000_000
    assert [values["job_stage_tasks"] for values in stages] == [8, 4, 8, 4]
    work_s = sum(planted_s)
    assert times_s(heard, "service") == pytest.approx([work_s] * 2, rel=0.01)
    # The work of a job is its response time, and ends before the check.
    spans_s = [record.values[JOB_SPAN] for record in samples]
    assert spans_s == pytest.approx(times_s(heard, "response"))
    assert done.last_done_s - samples[1].t_s == pytest.approx(times_s(heard, "part")[1], abs=1e-3)
    for response_s in times_s(heard, "response"):
        # The start of two processes comes on top; the check of the output does not.
        assert work_s + 0.5 < response_s < work_s + 0.5 + 0.4
    assert nothing_is_left(tmp_path)


def test_it_adds_less_than_half_a_second_to_a_job(tmp_path: Path) -> None:
    """Against the command line by hand."""
    planting = {"stages": [{"tasks": 2, "task_s": 0.5}]}
    workload = workloads.create(workloads.Settings(input_mb=1), "wordcount")
    heard = driven(tmp_path, planting, {"operations": 3}, expected="")
    endpoint = planted.endpoint(tmp_path, planting)
    alone_s = []
    for place in range(3):
        (log := tmp_path / f"log{place}").mkdir()
        source = endpoint.files + workload.schema().inputs[0][0]
        argv = [*endpoint.submit, "--conf", f"spark.eventLog.dir=file://{log}", endpoint.program, "wordcount", source]
        begun = time.monotonic()
        subprocess.run([*argv, f"{endpoint.files}/by-hand-{place}"], check=True, capture_output=True)
        events = [json.loads(line) for line in (log / "app-1").read_text().splitlines()]
        checks = [event for event in events if event.get("Job ID") == 1]
        check_s = (checks[1]["Completion Time"] - checks[0]["Submission Time"]) / 1000
        alone_s.append(time.monotonic() - begun - check_s)
    added_s = min(times_s(heard, "response")) - min(alone_s)
    print(f"the engine adds {added_s:.3f} s to a job of {min(alone_s):.3f} s", file=sys.stderr)
    assert added_s < 0.1
