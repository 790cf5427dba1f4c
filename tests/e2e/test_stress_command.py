"""cassandra-stress's command lines: every line of the studies on a simulated server, and a real node that the real tool
and ours write and read in turn."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from steelyard.engine import _stress_tool as tool
from steelyard.node import agent
from steelyard.node.folders import cache_folder
from steelyard.testing.cluster import RunningCluster
from tests.e2e.laboratory import STEELYARD

pytestmark = pytest.mark.usefixtures("brief_java")

TIMEOUT_S = 120.0
ROWS = 1000
STUDIES = (
    r"write n=1000000 -node IP",
    r"mixed ratio\(write=5,read=5\) duration=15m cl=ONE -pop dist=UNIFORM\(1..1000000\) -log file=~/logs5/3dummy.csv "
    r"-node IP -rate threads=609",
    r'write n=1000000 -schema keyspace="NewKeyspace" -node IP',
    r"mixed ratio\(write=5,read=5\) duration=15m cl=QUORUM -pop dist=UNIFORM\(1..1000000\) -log file=Quorum.csv "
    r"-node IP -rate threads=609",
    r"mixed ratio\(write=1,read=3\) duration=20m cl=ONE -pop dist=UNIFORM\(1..50000000\) -rate threads\=450 -node IP;",
    r"read duration=20m cl=ONE -pop dist=UNIFORM\(1..50000000\) -rate threads\=150 -node IP",
)
"""As they were typed; a test makes them shorter."""
SHORTER = (("n=1000000", "n=2000"), ("1..1000000", "1..2000"), ("1..50000000", "1..2000"))
MINUTES = ("duration=15m", "duration=20m")
BRIEF = "duration=1s no-warmup"
"""A warm-up without a number of operations is 50,000 of each kind; the last line keeps it."""


def stress(words: list[str], folder: Path, expected: int = 0) -> tuple[list[str], str]:
    """Our command, at home in `folder`; its lines, and what it said besides."""
    home = {**os.environ, "HOME": str(folder)}
    argv = [str(STEELYARD), "stress", *words]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=TIMEOUT_S, check=False, env=home, cwd=folder)
    assert done.returncode == expected, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout.splitlines(), done.stderr


def total(lines: list[str], label: str) -> int:
    """A whole number of the results."""
    line = next(one for one in lines if one.startswith(label))
    return int(line.partition(":")[2].split()[0].replace(",", ""))


@contextmanager
def simulated(port: int) -> Iterator[list[str]]:
    """A simulated server that keeps what is written; the words that name it."""
    argv = [str(agent.find()), "sim", "--listen", f"127.0.0.1:{port}", "--service-us", "20", "--remember"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            assert server.stdout.readline().startswith("listening")
            yield ["-port", f"native={port}"]
        finally:
            server.kill()


def shorter(typed: str, *, warm_up: bool) -> str:
    """A line of the studies on this machine, in seconds."""
    brief = BRIEF.removesuffix(" no-warmup") if warm_up else BRIEF
    for old, new in (*SHORTER, *((minutes, brief) for minutes in MINUTES), ("IP", "127.0.0.1")):
        typed = typed.replace(old, new)
    return typed


@pytest.mark.agent
def test_the_lines_of_the_studies(tmp_path: Path) -> None:
    """Every second line through a shell, the others as argv; a unit test shows that the settings are the same."""
    with simulated(24011) as port:
        for number, typed in enumerate(STUDIES):
            line = shorter(typed, warm_up=typed is STUDIES[-1])
            words = shlex.split(line.rstrip(";")) if number % 2 else line.split()
            # Before the rest, because a line may end with a semicolon.
            first = next(index for index, word in enumerate(words) if word.startswith("-"))
            lines, _ = stress([*words[:first], *port, *words[first:]], tmp_path)
            assert lines[-1] == "END", line
            assert total(lines, "Total errors") == 0, line
            assert total(lines, "Total partitions") >= 500, line
            rows = [one for one in lines if re.match(r"total,\s+\d", one)]
            assert sum(one.count(",") for one in rows) == 18 * len(rows) > 0, line
    assert (tmp_path / "logs5" / "3dummy.csv").read_text().splitlines()[-1] == "END"
    assert "Results:" in (tmp_path / "Quorum.csv").read_text()


@pytest.mark.agent
def test_counters_rates_and_what_fails(tmp_path: Path) -> None:
    with simulated(24013) as port:
        stress(["write", "n=300", "no-warmup", *port], tmp_path)
        lines, told = stress(
            ["read", "n=300", "-pop", "seq=1..300", "-rate", "threads=4", "throttle=600/s", *port], tmp_path
        )
        assert total(lines, "Total errors") == 0
        assert "From when it was due" in told
        lines, told = stress(["read", "n=300", "-pop", "seq=200..400", "-rate", "threads=4", *port], tmp_path, 1)
        assert lines[-1] == "FAILURE"
        assert "READ: not-found" in told
        lines, _ = stress(
            ["read", "n=201", "no-warmup", "-pop", "seq=200..400", "-rate", "threads=4", "-errors", "ignore", *port],
            tmp_path,
        )
        assert total(lines, "Total errors") == 100
        lines, _ = stress(
            ["read", "n=400", "no-warmup", "-pop", "seq=1..300", "-rate", "threads>=2", "threads<=8", *port], tmp_path
        )
        assert [one for one in lines if one.startswith("Running with")] == [
            f"Running with {threads} threadCount" for threads in (2, 4, 8)
        ]
        _, told = stress(["read", "n=1", "-rate", "threads=1", "-schema", "keyspace=nosuch", *port], tmp_path, 1)
        assert "nosuch" in told
        _, told = stress(["write", "n=1", "-sendto", "10.0.0.1"], tmp_path, 1)
        assert "-sendto" in told
    _, told = stress(["write", "n=1", *port], tmp_path, 1)
    assert "is the cluster running" in told


@pytest.mark.agent
def test_ctrl_c_prints_the_results_so_far(tmp_path: Path) -> None:
    with simulated(24014) as port:
        argv = [str(STEELYARD), "stress", "write", "duration=1h", "no-warmup", "-rate", "threads=2", *port]
        with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, cwd=tmp_path) as process:
            assert process.stdout is not None
            next(line for line in process.stdout if line.startswith("total,"))
            process.send_signal(signal.SIGINT)
            lines = process.stdout.read().splitlines()
            assert process.wait(TIMEOUT_S) == 130
    assert total(lines, "Total partitions") > 0


PROFILE = """
keyspace: profiled
keyspace_definition: |
  CREATE KEYSPACE profiled WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1};
table: readings
table_definition: |
  CREATE TABLE readings (
    sensor text, at timestamp, place int, value double, note text, tags set<text>, raw blob, flags list<boolean>,
    PRIMARY KEY (sensor, at, place)
  )
columnspec:
  - name: sensor
    size: fixed(12)
    population: uniform(1..1M)
  - name: at
    cluster: fixed(5)
  - name: note
    size: gaussian(10..50)
insert:
  batchtype: UNLOGGED
queries:
  one:
    cql: select value, note from readings where sensor = ? and at = ? and place = ?
    fields: samerow
  range:
    cql: select * from readings where sensor = ? and at >= ? limit 10
    fields: multirow
"""


COLUMNS = (
    (),
    pytest.param(("-col", "n=FIXED(12)", "size=UNIFORM(5..60)"), marks=pytest.mark.by_hand),
    pytest.param(("-col", "names=b,a", "size=EXP(1..90)"), marks=pytest.mark.by_hand),
)
"""Each takes two commands of the tool, which start a Java; other columns: `test_stress_tool.py`."""


@pytest.mark.agent
@pytest.mark.cassandra
@pytest.mark.parametrize("columns", COLUMNS, ids=len)
def test_the_real_tool_and_ours_on_a_real_node(
    real_node: RunningCluster, tmp_path: Path, columns: tuple[str, ...]
) -> None:
    real = asyncio.run(tool.ensure(cache_folder(), print))
    end = [*of(real_node), "-schema", f"keyspace=K{len(str(columns))}", *columns]
    ours, theirs = _in_turn(real, tmp_path, end)
    # Lines that both print are the same, figures aside.
    assert _without_figures(ours) == _without_figures(theirs)


def of(cluster: RunningCluster) -> list[str]:
    """The words that name a real node."""
    return ["-node", cluster.nodes[0].address, "-port", f"native={cluster.port}"]


def _in_turn(real: tool.Tool, folder: Path, end: list[str]) -> tuple[list[str], list[str]]:
    """Ours writes the lower half, the tool the upper half; each reads and validates both. What both then print."""
    half = ROWS // 2
    stress(["write", f"n={half}", f"keysize={14}", *end], folder)
    upper = ["mixed", "ratio(write=1)", f"n={half}", "no-warmup", "-pop", f"seq={half + 1}..{ROWS}"]
    rate = ["-rate", "threads=4"]
    keysize = ["keysize=14"]
    by_the_tool(real, [*upper[:4], *keysize, *upper[4:], *rate, *end])
    read = ["read", f"n={ROWS}", "no-warmup", *keysize, "-pop", f"seq=1..{ROWS}", *rate, *end]
    lines, _ = stress(read, folder)
    assert (total(lines, "Total partitions"), total(lines, "Total errors")) == (ROWS, 0)
    theirs = by_the_tool(real, read)
    assert (total(theirs, "Total partitions"), total(theirs, "Total errors")) == (ROWS, 0)
    return lines, theirs


def _without_figures(lines: list[str]) -> list[list[str]]:
    """Words of the results, with a mark for each number."""
    return [re.sub(r"[\d,.]+|NaN", "#", line).split() for line in lines[lines.index("Results:") :]]


def by_the_tool(real: tool.Tool, words: list[str]) -> list[str]:
    """The tool's own command; its lines."""
    done = subprocess.run(real.argv(tuple(words)), capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout.splitlines()


@pytest.mark.agent
@pytest.mark.cassandra
def test_a_profile_on_a_real_node(real_node: RunningCluster, tmp_path: Path) -> None:
    contact, path = real_node.contacts[0], tmp_path / "profile.yaml"
    path.write_text(PROFILE)
    rate = ["-rate", "threads=4", *of(real_node)]
    lines, _ = stress(["user", f"profile={path}", "ops(insert=1)", "n=200", "no-warmup", *rate], tmp_path)
    assert total(lines, "Total errors") == 0
    counted = subprocess.run(
        [str(agent.find()), "cql", "--contact", contact, "SELECT count(*) FROM profiled.readings"],
        capture_output=True, text=True, timeout=TIMEOUT_S, check=True,
    )  # fmt: skip
    # Five rows in each of 200 partitions, but for sensors that are drawn twice of a million.
    assert re.search(r'"count":(1000|99\d|98\d)\b', counted.stdout), counted.stdout
    queries = ["user", f"profile={path}", "ops(insert=1,one=3,range=3)", "n=700", "no-warmup", "-pop", "seq=1..200"]
    lines, _ = stress([*queries, *rate], tmp_path)
    assert total(lines, "Total errors") == 0
    found = re.search(r"Total partitions .*\[insert: (\d+), one: (\d+), range: (\d+)\]", "\n".join(lines))
    assert found is not None
    # Every query finds what the inserts have written.
    assert sum(map(int, found.groups())) == 700
    rates = re.search(r"Row rate .*one: ([\d,]+) row/s, range: ([\d,]+) row/s", "\n".join(lines))
    partitions = re.search(r"Partition rate .*one: ([\d,]+) pk/s, range: ([\d,]+) pk/s", "\n".join(lines))
    assert rates is not None
    assert partitions is not None
    one, several = (int(text.replace(",", "")) for text in rates.groups())
    # A row each, and on average the upper half of five.
    assert one == int(partitions[1].replace(",", ""))
    assert 2 < several / int(partitions[2].replace(",", "")) < 4
