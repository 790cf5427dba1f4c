"""Whoever reads the trials, and in whichever order they are done: checklists and pages are the same to the last bit."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

import pytest

from steelyard.model.errors import StoreError, StudyError
from steelyard.reading.parallel import mapped, readers
from steelyard.reading.reading import read
from steelyard.report import page
from steelyard.store.modelled import open_store
from steelyard.verify.store import verification
from tests.unit.verify import made

TRIALS = 60
SAMPLES = {1: 0.5, 2: 0.9, 3: 1.0}
TEXT = (
    made.STUDY.replace("starts = 3", "starts = 10\n").replace("trials = 1", "trials = 2").replace("[1, 2]", "[1, 2, 3]")
)


class LastFirst(Executor):
    """Completes what it was given in the reverse order, when the first result is asked for."""

    def __init__(self) -> None:
        self.waiting: list[Callable[[], None]] = []

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        executor = self

        class Asked(Future[Any]):
            def result(self, timeout: float | None = None) -> Any:
                while executor.waiting:
                    executor.waiting.pop()()
                return super().result(timeout)

        future = Asked()
        self.waiting.append(lambda: future.set_result(function(*arguments, **named)))
        return future


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = made.store(tmp_path_factory.mktemp("sixty"), text=TEXT, samples=SAMPLES)
    trials = sorted((folder / "trials").iterdir())
    assert len(trials) == TRIALS
    # Damage that every reader must meet: a changed table, a missing one, a torn record.
    table = trials[7] / "intervals" / "l1.parquet"
    table.write_bytes(table.read_bytes()[:-4] + b"torn")
    (trials[20] / "samples" / "n1.parquet").unlink()
    (trials[33] / "trial.json").write_text("{")
    return folder


def read_by(executor: Executor | None, store: Path) -> tuple[str, str, str]:
    """Checklist, page and comparison, as commands write them."""
    checked = verification(open_store(store), (), executor)
    reading = read(store, executor)
    compared = reading.compare(a={"nodes": 1}, b={"nodes": 3}, response="response_ms_p95")
    return json.dumps(checked.model_dump(mode="json")), page.build(reading.report_input()), repr(compared.contrasts)


@pytest.fixture(scope="module")
def alone(store: Path) -> tuple[str, str, str]:
    return read_by(None, store)


def test_an_executor_that_completes_in_reverse_changes_nothing(store: Path, alone: tuple[str, str, str]) -> None:
    assert '"kind": "checksum"' in alone[0]
    assert read_by(LastFirst(), store) == alone


def test_two_processes_change_nothing(store: Path, alone: tuple[str, str, str]) -> None:
    with readers(workers=2) as executor:
        assert read_by(executor, store) == alone


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    from distributed import LocalCluster

    folder = str(tmp_path_factory.mktemp("dask"))
    with LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", local_directory=folder
    ) as cluster:
        yield cluster.scheduler_address


def test_two_workers_of_dask_change_nothing(store: Path, alone: tuple[str, str, str], cluster: str) -> None:
    with readers(cluster=cluster) as executor:
        assert read_by(executor, store) == alone


def test_one_says_who_reads(cluster: str) -> None:
    with pytest.raises(StudyError, match="--workers and --cluster"), readers(2, cluster):
        pass


def test_a_worker_that_does_not_see_the_store_finds_no_damage_in_it(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="does not see"):
        list(mapped(lambda folder, task: task, tmp_path / "elsewhere", [1], LastFirst()))
