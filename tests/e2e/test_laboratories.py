"""Laboratories as a user starts them: a Dask scheduler, workers with the resource `lab`, and one that is killed."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tools.campaigns.leftovers import left_behind

from steelyard.reading.parallel import readers
from steelyard.reading.reading import read
from steelyard.report import page
from steelyard.store import Store
from steelyard.store.modelled import open_store
from steelyard.verify.store import verification
from tests.e2e.laboratory import BUSY_MACHINE, COLD, ROOT, Laboratory

pytestmark = [pytest.mark.agent, pytest.mark.root]

STUDY = f"""
probes = []
[study]
name = "divided"
question = "do two nodes serve more than one?"
[site]
name = "local"
mode = "namespaces"
[system]
name = "simulated"
service_us = 500
[workload]
name = "ycsb-c"
records = 200
[load]
operations = 400
threads = 4
[data]
state = "continue"
[design]
starts = 4
trials = 1
[factors]
nodes = [1, 2]
{BUSY_MACHINE}{COLD}"""
DEADLINE_S = 60.0


def come(what: Callable[[], object], process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not what():
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.02)


@contextmanager
def dask(laboratory: Laboratory, *words: str, machine: str = "") -> Iterator[subprocess.Popen[bytes]]:
    environment = {**laboratory.environment, "STEELYARD_MACHINE": machine}
    with (laboratory.folder / f"dask{machine}.txt").open("ab") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "dask", *words], env=environment, cwd=ROOT, stdout=output, stderr=output
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@contextmanager
def scheduler(laboratory: Laboratory) -> Iterator[str]:
    said = laboratory.folder / "scheduler.json"
    words = ("--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(said))
    with dask(laboratory, "scheduler", *words) as process:
        come(lambda: said.is_file() and said.read_text(), process)
        yield json.loads(said.read_text())["address"]


def worker(laboratory: Laboratory, address: str, machine: str) -> object:
    one = ("--resources", "lab=1", "--nworkers", "1", "--nthreads", "1", "--no-nanny", "--no-dashboard")
    own = Laboratory(laboratory.folder, laboratory.folder / machine)
    return dask(own, "worker", address, *one, "--local-directory", str(laboratory.folder / machine), machine=machine)


def test_two_laboratories_of_which_one_is_killed_measure_a_study_in_whole_blocks(tmp_path: Path) -> None:
    laboratory, study = Laboratory(tmp_path), tmp_path / "divided.toml"
    study.write_text(STUDY)
    said = tmp_path / "stderr.txt"
    with scheduler(laboratory) as address, worker(laboratory, address, "lab-a"):
        with worker(laboratory, address, "lab-b") as killed:
            client = laboratory.start("run", study, "--store", laboratory.store, "--plain", "--labs", address)
            come(lambda: "machine lab-b" in said.read_text(), client)
            (other,) = re.findall(r"laboratory (\S+): machine lab-b", said.read_text())
            come(lambda: said.read_text().count(f"to laboratory {other}") == 2, client)
            come(lambda: list((tmp_path / "lab-b").glob("laboratory/store/divided/trials/.*")), client)
            killed.send_signal(signal.SIGKILL)
            assert client.wait(timeout=120) == 0, said.read_text()
        alone = page.build(read(laboratory.store / "divided").report_input())
        with readers(cluster=address) as executor:
            assert page.build(read(laboratory.store / "divided", executor).report_input()) == alone
    assert f"laboratory {other} has gone" in said.read_text()
    records = Store(laboratory.store / "divided").trials()
    assert sorted(record.block for record in records if record.verdict.outcome == "valid") == [1, 1, 2, 2, 3, 3, 4, 4]
    machines = {block: {one.machine_id for one in records if one.block == block} for block in range(1, 5)}
    assert sorted(map(sorted, machines.values())) == [["lab-a"], ["lab-a"], ["lab-a"], ["lab-b"]]
    verified = verification(open_store(laboratory.store / "divided"))
    assert (verified.findings, verified.made["machine"]) == ((), 4)
    assert "lab-a (blocks" in alone
    assert "lab-b (block" in alone
    assert not list(laboratory.store.glob(".divided.*"))
    assert Laboratory(tmp_path, tmp_path / "lab-b").call("clean").returncode == 0
    assert [left_behind(tmp_path / machine) for machine in ("lab-a", "lab-b")] == [[], []]


def test_a_client_that_is_interrupted_stops_its_own_study_only(tmp_path: Path) -> None:
    """Both use one laboratory; the second one's block waits for it, or is in flight."""
    first, second = Laboratory(tmp_path, tmp_path / "lab"), Laboratory(tmp_path / "second")
    second.folder.mkdir()
    for laboratory in (first, second):
        (laboratory.folder / "divided.toml").write_text(STUDY.replace("starts = 4", "starts = 2"))
    with scheduler(first) as address, worker(first, address, "lab-a"):
        clients = [
            one.start("run", one.folder / "divided.toml", "--store", one.store, "--plain", "--labs", address)
            for one in (first, second)
        ]
        said = [one.folder / "stderr.txt" for one in (first, second)]
        for client, lines in zip(clients, said, strict=True):
            come(lambda lines=lines: "block 1: to laboratory" in lines.read_text(), client)
        clients[1].send_signal(signal.SIGINT)
        assert clients[1].wait(60) != 0
        assert "1 block in flight: lost" in said[1].read_text()
        assert clients[0].wait(120) == 0, said[0].read_text()
    assert "gave up" not in said[0].read_text()
    assert len(Store(first.store / "divided").trials()) == 4
    assert Store(second.store / "divided").trials() == ()
