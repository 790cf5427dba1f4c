"""YCSB's command line: its six workloads on a simulated server; its data and ours on a real one, read by the other."""

from __future__ import annotations

import asyncio
import re
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from steelyard.dropin import agent_run
from steelyard.model.errors import SteelyardError
from steelyard.node import agent, fetch, java
from steelyard.node.command import run
from steelyard.node.folders import cache_folder
from steelyard.testing.cluster import RunningCluster
from tests.e2e.laboratory import ROOT, STEELYARD

FIXTURES = ROOT / "tests" / "fixtures" / "ycsb"
RECORDS = 1000
TIMEOUT_S = 120.0
MAIN = "site.ycsb.Client"
pytestmark = pytest.mark.usefixtures("brief_java")


def ycsb(action: str, contact: str, *options: str, expected: int = 0) -> dict[str, dict[str, float]]:
    """Our command; its final block as metric to measurement to value."""
    address, _, port = contact.rpartition(":")
    argv = [str(STEELYARD), "ycsb", action, "cassandra-cql", "-p", f"hosts={address}", "-p", f"port={port}", *options]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert done.returncode == expected, done.stderr
    return block(done.stdout)


def block(text: str) -> dict[str, dict[str, float]]:
    """Lines of YCSB's final block."""
    found: dict[str, dict[str, float]] = {}
    for metric, measurement, value in re.findall(r"^\[([^\]]+)\], ([^,]+), (.+)$", text, re.MULTILINE):
        found.setdefault(metric, {})[measurement] = float(value)
    return found


def workload(letter: str) -> tuple[str, ...]:
    return ("-P", str(FIXTURES / "workloads" / f"workload{letter}"))


@contextmanager
def simulated(port: int) -> Iterator[str]:
    """A simulated server that keeps what is written."""
    contact = f"127.0.0.1:{port}"
    argv = [str(agent.find()), "sim", "--listen", contact, "--service-us", "20", "--remember"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            assert server.stdout.readline().startswith("listening")
            yield contact
        finally:
            server.kill()


@pytest.mark.agent
def test_the_six_core_workloads() -> None:
    with simulated(25011) as contact:
        ycsb("load", contact, *workload("a"), expected=3)
        loaded = ycsb("load", contact, *workload("a"), "-threads", "8", "--create-table")
        assert (loaded["INSERT"]["Operations"], loaded["INSERT"]["Return=OK"]) == (RECORDS, RECORDS)
        names = {
            "a": {"READ", "UPDATE"},
            "b": {"READ", "UPDATE"},
            "c": {"READ"},
            "d": {"READ", "INSERT"},
            "e": {"SCAN", "INSERT"},
            "f": {"READ", "UPDATE", "READ-MODIFY-WRITE"},
        }
        for letter, wanted in names.items():
            found = ycsb("run", contact, *workload(letter), "-threads", "4", "-p", "steelyard.seed=1")
            kinds = set(found) - {"OVERALL", "TOTAL_GCs", "TOTAL_GC_TIME", "TOTAL_GC_TIME_%", "CLEANUP"}
            assert kinds == wanted, letter
            whole = found["READ"]["Operations"] if letter == "f" else sum(found[kind]["Operations"] for kind in kinds)
            assert whole == 1000
            for kind in kinds - {"READ-MODIFY-WRITE"}:
                assert found[kind]["Return=OK"] == found[kind]["Operations"], (letter, kind)
            assert found["OVERALL"]["Throughput(ops/sec)"] > 0
            if letter == "f":
                assert found["UPDATE"]["Operations"] == found["READ-MODIFY-WRITE"]["Operations"]


@pytest.mark.agent
def test_a_target_and_an_interrupt() -> None:
    with simulated(25012) as contact:
        address, _, port = contact.rpartition(":")
        ycsb("load", contact, *workload("a"), "--create-table", "-target", "5000")
        given = ["-p", f"hosts={address}", "-p", f"port={port}", "-p", "operationcount=100000", "-target", "500"]
        argv = [str(STEELYARD), "ycsb", "run", "cassandra-cql", *workload("c"), *given, "-s", "-p", "status.interval=1"]
        with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            assert process.stderr is not None
            assert process.stdout is not None
            status = next(line for line in process.stderr if " 1 sec: " in line)
            process.send_signal(signal.SIGINT)
            found = block(process.stdout.read())
            assert process.wait(TIMEOUT_S) == 130
        assert "[READ: Count=" in status
        assert "est completion in 3 minutes" in status
        assert 300 <= found["READ"]["Operations"] <= 100_000
        assert found["READ"]["Return=OK"] == found["READ"]["Operations"]


async def real_ycsb(classes: Path) -> list[str]:
    """The argv of the real YCSB on Java: its jars are fetched once, our binding is compiled into `classes`."""
    folder = cache_folder() / "ycsb-0.17.0"
    looked = await java.look(java.candidates(), 17)
    assert looked.java is not None, f"Java 17 is not here: {looked.seen}"
    program = str(looked.java.path)
    async with fetch.locked(folder, SteelyardError):
        library = folder / "lib"
        if not (folder / "complete").is_file():
            shutil.rmtree(library, ignore_errors=True)
            library.mkdir()
            wish = fetch.Maven("YCSB", "about 30 jars", "there is no other way", SteelyardError)
            await wish.copy((FIXTURES / "binding" / "pom.xml").read_bytes(), [], library, looked.java.home, print)
            (folder / "complete").touch()
    # javac as a module, since a machine may have no program of that name; it does not expand a star.
    jars = ":".join(str(path) for path in sorted(library.glob("*.jar")))
    compiler = ["--module", "jdk.compiler/com.sun.tools.javac.Main", "-cp", jars, "-d", str(classes)]
    await run(None, [program, *compiler, str(FIXTURES / "binding" / "CqlBinding.java")], timeout_s=TIMEOUT_S)
    return [program, "-Xmx256m", "-cp", f"{classes}:{jars}", MAIN, "-db", "CqlBinding"]


@pytest.mark.agent
@pytest.mark.cassandra
def test_each_reads_what_the_other_has_loaded(real_node: RunningCluster, tmp_path: Path) -> None:
    (tmp_path / "classes").mkdir()
    program = asyncio.run(real_ycsb(tmp_path / "classes"))
    (contact,) = real_node.contacts
    address, _, port = contact.rpartition(":")

    def theirs(*options: str) -> dict[str, dict[str, float]]:
        argv = [*program, "-p", f"hosts={address}", "-p", f"port={port}", "-threads", "4", *options]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        assert done.returncode == 0, done.stderr
        return block(done.stdout)

    _exchange(contact, theirs)


def _exchange(contact: str, theirs: Callable[..., dict[str, dict[str, float]]]) -> None:
    """Every key is read once, in order, so that none can hide."""
    every = (*workload("c"), "-p", "requestdistribution=sequential")
    keyspace = (
        "CREATE KEYSPACE ycsb WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        f"CREATE TABLE ycsb.usertable (y_id text PRIMARY KEY, {', '.join(f'field{n} text' for n in range(10))})",
    )
    asyncio.run(agent_run.cql([contact], keyspace))
    assert theirs("-load", *workload("a"))["INSERT"]["Return=OK"] == RECORDS
    found = ycsb("run", contact, *every, "-threads", "8")["READ"]
    assert (found["Operations"], found["Return=OK"]) == (RECORDS, RECORDS)

    asyncio.run(agent_run.cql([contact], ["TRUNCATE ycsb.usertable"]))
    # What is not there is told as such.
    found = ycsb("run", contact, *every)["READ"]
    assert (found["Operations"], found["Return=NOT_FOUND"]) == (0, RECORDS)
    assert ycsb("load", contact, *workload("a"), "-threads", "8")["INSERT"]["Return=OK"] == RECORDS
    found = theirs("-t", *every)["READ"]
    assert (found["Operations"], found["Return=OK"]) == (RECORDS, RECORDS)

    # Keys that a load inserts begin where YCSB's begin.
    inserted = int(ycsb("run", contact, *workload("d"), "-threads", "4")["INSERT"]["Return=OK"])
    assert inserted > 0
    more = ("-p", f"recordcount={RECORDS + inserted}", "-p", f"operationcount={RECORDS + inserted}")
    assert theirs("-t", *every, *more)["READ"]["Return=OK"] == RECORDS + inserted
    # Other ways to name keys.
    named = ("-p", "insertorder=ordered", "-p", "zeropadding=8", "-p", "recordcount=50", "-p", "operationcount=50")
    assert theirs("-load", *workload("a"), *named)["INSERT"]["Return=OK"] == 50
    assert ycsb("run", contact, *every, *named)["READ"]["Return=OK"] == 50
