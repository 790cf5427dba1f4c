"""The engine for jobs keeps the contract of an engine, and counts jobs that fail, hang or have a wrong output as that.
Planted times: `tests/e2e/test_job_times.py`."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import pytest

from steelyard import engine_order
from steelyard.engine.job import JobEngine
from steelyard.model.errors import EngineError
from steelyard.model.load import Load
from steelyard.testing.engine import NO_SERVER, EngineContract
from steelyard.wire.order import Order
from steelyard.wire.record import Doing, Done, Interval, Routed
from steelyard.workload import job as workloads
from tests.fixtures.jobs import planted
from tests.fixtures.jobs.driven import TIMEOUT_MS, driven, node, nothing_is_left, of, times_s

QUICK = {"stages": [{"tasks": 2, "task_s": 0.05}]}
STAGES = [
    {"tasks": 8, "task_s": 0.2, "straggler": 5.0, "failed": 1, "shuffle_bytes": 8_000_000},
    {"tasks": 4, "task_s": 0.25},
]


class TestJob(EngineContract):
    module = "job"
    operations = 6
    workload = "wordcount"
    workload_settings: ClassVar = {"input_mb": 0, "expected": ""}
    folder: Path

    @pytest.fixture(autouse=True)
    def _in_a_folder(self, tmp_path: Path) -> None:
        self.folder = tmp_path

    @asynccontextmanager
    async def contacts(self, tmp_path: Path) -> AsyncIterator[tuple[str, ...]]:
        (self.folder / "files").mkdir(exist_ok=True)
        yield ("127.0.0.1:7077",)

    def order(self, contacts: Sequence[str], load: Load) -> Order:
        """An order of jobs; where no server is, there is no command that submits them either."""
        endpoint = planted.endpoint(self.folder, QUICK)
        if contacts == (NO_SERVER,):
            endpoint = replace(endpoint, submit=("/no/such/spark-submit",))
        workload = workloads.create(workloads.Settings(program=str(planted.HERE / "nothing.py")))
        load = load.model_copy(update={"timeout_ms": TIMEOUT_MS})
        return engine_order.measure(load, endpoint, workload.schema(), workload, 1)


def test_its_progress_is_said_by_stage(tmp_path: Path) -> None:
    heard = driven(tmp_path, {"stages": STAGES, "start_s": 1.2}, {"operations": 1}, idle_s=0.2)
    said = [record.what for record in of(heard, Doing)]
    assert said[0] == "idle for 0.2 s before job 1"
    assert said[1] == "wordcount, job 1 of 1: submitted 0 s ago"
    assert any("stage 1 of 2" in what and "of 8 tasks done" in what for what in said), said


@pytest.mark.parametrize("away", [False, True])
def test_processor_time_is_known_while_the_job_runs_wherever_that_is(tmp_path: Path, *, away: bool) -> None:
    heard = driven(tmp_path, {**QUICK, "busy_s": 2.5}, {"operations": 1}, away=away)
    (done,) = of(heard, Done)
    assert (done.operations, done.error_texts) == (1, {})
    assert 1.2 < done.cpu_ns / 1e9 < 3.5
    busy_s = [one.cpu_fraction * one.seconds for one in of(heard, Interval)]
    assert sum(busy_s) == pytest.approx(done.cpu_ns / 1e9, abs=0.01)
    assert max(busy_s) < 0.75 * sum(busy_s), "not all of it in the interval in which the job ended"
    assert nothing_is_left(tmp_path)


def test_the_first_task_on_a_node_that_joined_is_said_once(tmp_path: Path) -> None:
    stages = [{"tasks": 1, "task_s": 0.1}, {"tasks": 1, "task_s": 0.1, "host": "10.0.0.9"}]
    heard = driven(tmp_path, {"stages": stages}, {"operations": 2})
    assert [record.contact for record in of(heard, Routed)] == ["10.0.0.9:7077"]


def test_a_wrong_output_is_invalid_and_no_fast_job(tmp_path: Path) -> None:
    heard = driven(tmp_path, {**QUICK, "wrong": True}, {"operations": 2})
    (done,) = of(heard, Done)
    assert (done.operations, done.errors_by_kind) == (0, {"invalid": 2})
    assert "records is" in done.error_texts["invalid"][0]
    assert times_s(heard, "response") == []
    assert nothing_is_left(tmp_path)


def test_a_sorted_output_is_right(tmp_path: Path) -> None:
    for name, kind in (("sort", "text"), ("terasort", "tera")):
        heard = driven(tmp_path, QUICK, {"operations": 1}, name, expected="order", input_kind=kind)
        (done,) = of(heard, Done)
        assert (done.operations, done.error_texts) == (1, {})


def test_a_job_that_fails_is_a_result(tmp_path: Path) -> None:
    heard = driven(tmp_path, {**QUICK, "exit_code": 7}, {"operations": 2, "threads": 2})
    (done,) = of(heard, Done)
    assert done.errors_by_kind == {"server": 2}
    assert "exit code 7: planted: the job fails" in done.error_texts["server"][0]
    assert nothing_is_left(tmp_path)


def test_a_job_that_never_ends_has_a_limit_with_a_name(tmp_path: Path) -> None:
    heard = driven(tmp_path, {**QUICK, "hang": True}, {"operations": 1, "timeout_ms": 1500})
    (done,) = of(heard, Done)
    assert done.errors_by_kind == {"timeout": 1}
    assert "load.timeout_ms = 1500" in done.error_texts["timeout"][0]
    assert nothing_is_left(tmp_path)


def test_arrivals_are_scheduled_and_counted_from_when_they_are_due(tmp_path: Path) -> None:
    load = {"operations": 4, "schedule": "constant", "rate_per_s": 4.0, "threads": 1}
    heard = driven(tmp_path, {"stages": [{"tasks": 1, "task_s": 0.4}]}, load, input_mb=0, expected="",
                   program=str(planted.HERE / "nothing.py"))  # fmt: skip
    (done,) = of(heard, Done)
    assert (done.operations, done.unsent) == (4, 0), done.error_texts
    responses, lags = times_s(heard, "response"), times_s(heard, "lag")
    assert responses == sorted(responses), "one place, and jobs are due faster than they end"
    assert lags[-1] > lags[0] + 0.3
    assert max(times_s(heard, "pacing")) < 0.3


def test_a_program_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match=r"gone\.jar not found"):
        driven(tmp_path, QUICK, {"operations": 1}, program=str(tmp_path / "gone.jar"))


def test_a_log_that_is_none_of_spark_is_said(tmp_path: Path) -> None:
    workload = workloads.create(workloads.Settings(input_mb=0), "wordcount")
    writes = "import sys; folder = [w for w in sys.argv if 'dir=' in w][0].partition('file://')[2]; " \
             "open(folder + '/app-1', 'w').write('no event\\n')"  # fmt: skip
    endpoint = replace(planted.endpoint(tmp_path, QUICK), submit=(sys.executable, "-c", writes))
    load = Load(operations=1, timeout_ms=TIMEOUT_MS)
    order = engine_order.measure(load, endpoint, workload.schema(), workload, 1)
    with pytest.raises(EngineError, match="l1: app-1 is no event log of Spark"):
        asyncio.run(JobEngine().drive(order, (node(tmp_path),), lambda name, record: None, 30.0))


def test_a_killed_load_leaves_nothing(tmp_path: Path) -> None:
    """Cancelled while its driver runs, as an interrupted study does."""
    workload = workloads.create(workloads.Settings(input_mb=0), "wordcount")
    endpoint = planted.endpoint(tmp_path, {**QUICK, "hang": True})
    load = Load(operations=3, threads=2, timeout_ms=TIMEOUT_MS)
    order = engine_order.measure(load, endpoint, workload.schema(), workload, 1)

    async def body() -> None:
        driving = asyncio.ensure_future(JobEngine().drive(order, (node(tmp_path),), lambda name, record: None, 30.0))
        while len(list((tmp_path / "apps").glob("*"))) < 2:  # noqa: ASYNC110 - a process has no event
            await asyncio.sleep(0.05)
        driving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await driving

    asyncio.run(body())
    assert nothing_is_left(tmp_path)
