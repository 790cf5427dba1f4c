"""Jobs as operations: which orders are run, when jobs are due, what an event log says."""

from __future__ import annotations

import json
from typing import Any

import pytest

from steelyard.engine import job
from steelyard.engine._event_log import EventLog
from steelyard.model.errors import EngineError
from steelyard.wire.order import Jobs, Order
from steelyard.wire.schedule import Steady

ORDER: dict[str, Any] = {
    "contacts": ["10.0.0.1:7077"], "target": {"protocol": "spark", "files": "hdfs://10.0.0.1:9000"}, "action": "load",
    "work": {"kind": "jobs", "name": "wordcount",
             "input": {"path": "/inputs/a", "kind": "text", "bytes": 1_000_000, "seed": 1}, "expected": "counts"},
    "seed": 1, "schedule": {"kind": "closed", "threads": 1}, "stop": {"operations": 3}, "timeout_ms": 600_000,
    "interval_s": 1.0,
}  # fmt: skip
RATE = {"kind": "poisson", "rate_per_s": 0.1, "in_flight": 2}


def order(**changes: Any) -> Order:
    return Order.model_validate({**ORDER, **changes})


def test_jobs_in_a_closed_loop_or_at_a_rate_are_run() -> None:
    engine = job.JobEngine()
    engine.check(order(), 2)
    engine.check(order(schedule=RATE), 1)
    engine.check(order(action="populate", stop={}, timeout_ms=10_000), 9)


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"target": {"protocol": "http"}}, "workload 'jobs' over http"),
        (
            {"schedule": {"kind": "ramp", "from_per_s": 0, "to_per_s": 1, "ramp_s": 9, "in_flight": 1}},
            "schedule 'ramp'",
        ),
        ({"warm_up_s": 5.0}, "load.warm_up_s = 5"),
        ({"timeout_ms": 10_000}, "load.timeout_ms = 10000, the default"),
        ({"phases": [{"name": "a", "schedule": RATE, "duration_s": 5}]}, "several phases"),
        ({"schedule": RATE, "work": {**ORDER["work"], "idle_s": 20.0}}, "workload.idle_s = 20 where"),
        ({"tries": 3}, "tries = 3"),
    ],
)
def test_what_it_cannot_run_is_named_with_what_is_allowed(changes: dict[str, Any], what: str) -> None:
    with pytest.raises(EngineError) as refused:
        job.JobEngine().check(order(**changes), 1)
    assert what in refused.value.message
    assert refused.value.hint.startswith("allowed: ")


def test_a_load_node_without_a_job_is_refused() -> None:
    with pytest.raises(EngineError, match="3 jobs on 4 load nodes"):
        job.JobEngine().check(order(), 4)


def test_when_jobs_are_due_follows_from_the_seed() -> None:
    constant = Steady(kind="constant", rate_per_s=0.5, in_flight=1)
    assert list(job.due(constant, order(stop={"duration_s": 7.0}))) == [0.0, 2.0, 4.0, 6.0]
    assert list(job.due(constant, order())) == [0.0, 2.0, 4.0]
    poisson = Steady(kind="poisson", rate_per_s=10.0, in_flight=1)
    many = list(job.due(poisson, order(stop={"operations": 5000})))
    assert many == list(job.due(poisson, order(stop={"operations": 5000})))
    assert many != list(job.due(poisson, order(stop={"operations": 5000}, seed=2)))
    assert many[-1] == pytest.approx(500, rel=0.05)


def test_what_a_job_must_print() -> None:
    assert job.wanted_of(Jobs(name="a")) == {}
    assert job.wanted_of(Jobs(name="a", expected='{"n": 3}')) == {"n": 3}
    with pytest.raises(EngineError, match="'counts' with no input"):
        job.wanted_of(Jobs(name="a", expected="counts"))
    wanted = {"records": 3, "sorted": True}
    assert job.fault_of(wanted, b'{"records": 3, "sorted": true, "more": 1}') == ""
    assert job.fault_of(wanted, b'{"records": 4, "sorted": true}') == "records is 4, must be 3"
    assert "sorted is None, must be True" in job.fault_of(wanted, b'{"records": 3}')
    for line in (b"", b"done", b"[3]"):
        assert "its last line is no JSON object" in job.fault_of(wanted, line)
    assert job.fault_of({}, b"done") == ""


def lines(*events: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(event).encode() + b"\n" for event in events)


def started(number: int, stages: list[int], at_ms: int, group: str | None = None) -> dict[str, Any]:
    properties = {"spark.jobGroup.id": group} if group else None
    return {"Event": "SparkListenerJobStart", "Job ID": number, "Submission Time": at_ms, "Stage IDs": stages,
            "Properties": properties}  # fmt: skip


def stage(kind: str, number: int, at_ms: int, attempt: int = 0, tasks: int = 2) -> dict[str, Any]:
    about = {"Stage ID": number, "Stage Attempt ID": attempt, "Number of Tasks": tasks, "Submission Time": at_ms}
    return {"Event": f"SparkListenerStage{kind}", "Stage Info": {**about, "Completion Time": at_ms}}


def task(number: int, reason: str, attempt: int = 0, of_stage: int = 0, speculative: bool = False) -> dict[str, Any]:
    return {
        "Event": "SparkListenerTaskEnd", "Stage ID": number, "Stage Attempt ID": of_stage,
        "Task End Reason": {"Reason": reason},
        "Task Info": {"Launch Time": 1000, "Finish Time": 1500, "Attempt": attempt, "Speculative": speculative},
        "Task Metrics": {"Shuffle Write Metrics": {"Shuffle Bytes Written": 100}},
    }  # fmt: skip


def ended(number: int, at_ms: int, result: str = "JobSucceeded") -> dict[str, Any]:
    about = {"Result": result} | ({} if result == "JobSucceeded" else {"Exception": {"Message": "aborted\n at X"}})
    return {"Event": "SparkListenerJobEnd", "Job ID": number, "Completion Time": at_ms, "Job Result": about}


def test_a_log_that_grows_in_pieces() -> None:
    text = lines(
        {"Event": "SparkListenerApplicationStart"}, started(0, [0, 1], 1000), stage("Submitted", 0, 1000),
        task(0, "Success"), task(0, "ExecutorLostFailure"), task(0, "Success", attempt=1),
        stage("Completed", 0, 3000), stage("Submitted", 1, 3000, tasks=4), task(1, "Success"),
    )  # fmt: skip
    log = EventLog()
    for place in range(0, len(text), 37):
        log.feed(text[place : place + 37])
    assert log.bytes == len(text)
    assert log.words == "stage 2 of 2, 1 of 4 tasks done"
    assert (log.work_s, log.check_s) == (None, 0.0)
    first, second = log.stages
    assert (first.failed, first.repeated, first.shuffle_bytes, first.task_s) == (1, 1, 200, [0.5, 0.5])
    assert first.values()["job_stage_s"] == 2.0
    assert second.ended_s is None


def test_a_stage_that_is_run_again_is_one_stage() -> None:
    log = EventLog()
    log.feed(lines(
        started(0, [0], 1000), stage("Submitted", 0, 1000), task(0, "FetchFailed"), stage("Completed", 0, 2000),
        stage("Submitted", 0, 2500, attempt=1, tasks=1), task(0, "Success", of_stage=1),
        task(0, "TaskKilled", speculative=True), stage("Completed", 0, 4000, attempt=1), ended(0, 4100),
    ))  # fmt: skip
    (one,) = log.stages
    assert (one.failed, one.repeated, one.tasks, one.values()["job_stage_s"]) == (1, 2, 2, 3.0)
    assert log.work_s == pytest.approx(3.1)
    assert log.words == "1 of 1 stages done"


def test_the_check_of_an_output_is_no_part_of_the_work() -> None:
    log = EventLog()
    log.feed(lines(
        started(0, [0], 1000), stage("Submitted", 0, 1000), stage("Completed", 0, 2000), ended(0, 2000),
        started(1, [1, 2], 5000, "check"), stage("Submitted", 1, 5000), stage("Completed", 1, 6000), ended(1, 7000),
    ))  # fmt: skip
    assert (log.work_s, log.check_s, [one.number for one in log.stages]) == (1.0, 2.0, [0])
    assert log.words == "its output is checked"


def test_a_spark_job_that_failed_says_why() -> None:
    log = EventLog()
    assert log.words == ""
    log.feed(lines(started(0, [0], 1000), ended(0, 2000, "JobFailed")))
    assert log.failure == "aborted"


@pytest.mark.parametrize("text", [b"no event\n", b"[]\n", b'{"Event": "SparkListenerTaskEnd", "Stage ID": 7}\n'])
def test_what_is_no_log_is_refused(text: bytes) -> None:
    with pytest.raises((ValueError, LookupError, TypeError)):
        EventLog().feed(text)
