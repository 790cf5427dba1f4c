"""Steelyard's load engine beside latte and cassandra-stress: the same rows, the same server, in one go.

What is compared is the client's processor time of one operation: user and system time of the whole tool in a long drive
less that in a short one, over the operations between, so that starting up is no part of it. Tools take turns, so that a
change of the machine meets all of them; of the repetitions the median is shown, with the least and the most.

A tool that is not installed is left out and named: `steelyard setup latte`, `steelyard setup cassandra-stress`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from steelyard.engine import _stress_tool as stress_tool
from steelyard.engine import latte as latte_engine
from steelyard.judging.trial_responses import merged
from steelyard.model import percentiles
from steelyard.model.errors import EngineError
from steelyard.node import agent
from steelyard.node.folders import cache_folder
from steelyard.node.processor import machine_time, most_resident_bytes
from steelyard.testing.cluster import RunningCluster, running
from steelyard.wire.record import Done, Interval, Record, parse

HERE = Path(__file__).resolve().parent
PARTS = ("null", "paced", "real")
NULL_ADDRESS = "127.113.9.2:19142"
ROWS = 100_000
COLUMNS = 10
COLUMN_BYTES = 100
IN_FLIGHT = 64
PACED_PER_S = 2_000.0
PACED_S = 15.0
SETTLE_S = 10.0
POLL_S = 0.02
IDLE_LOOK_S, IDLE_FRACTION, IDLE_TIMEOUT_S = 3.0, 0.05, 90.0

KEYSPACE = "CREATE KEYSPACE IF NOT EXISTS {} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
SCHEMA = (
    KEYSPACE.format("bench"),
    "CREATE TABLE IF NOT EXISTS bench.rows (id bigint PRIMARY KEY, "
    + ", ".join(f"f{number} blob" for number in range(COLUMNS))
    + ") WITH compression = {'enabled': 'false'}",
)


@dataclass(frozen=True)
class Used:
    """What a call of a tool has taken."""

    cpu_s: float
    wall_s: float
    rss_mb: float
    stdout: str


def call(argv: Sequence[str], pin: int | None = None) -> Used:
    """Carry a command out; its processor time and memory are those of the process and its children. Raises
    RuntimeError with the last lines of its output if it fails."""
    before_s = time.monotonic()
    with tempfile.TemporaryFile() as out:
        pinned = ["taskset", "-c", str(pin)] if pin is not None else []
        process = subprocess.Popen([*pinned, *argv], stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT)
        rss_mb = 0.0
        while True:
            rss_mb = max(rss_mb, most_resident_bytes(process.pid) / 2**20)
            ended, status, usage = os.wait4(process.pid, os.WNOHANG)
            if ended:
                break
            time.sleep(POLL_S)
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        text = out.read().decode(errors="replace")
    if process.returncode != 0:
        raise RuntimeError(f"{' '.join(argv[:4])} ... ended with {process.returncode}:\n{text[-2000:]}")
    return Used(usage.ru_utime + usage.ru_stime, time.monotonic() - before_s, rss_mb, text)


@dataclass(frozen=True)
class Tool:
    """A load generator: how it is told to carry out so many operations of a kind."""

    name: str
    argv: Callable[[str, str, int, int], list[str]]
    """(kind, contact, operations, places in flight) -> command line."""
    prepare: Callable[[str], None] = lambda contact: None
    """What its reads need on a server, beside the table of the comparison."""
    short: int = 1
    """Operations of the short drive, as a multiple of ours: a JVM must first have compiled its code."""
    paced: Callable[[str, str, int, int], list[str]] | None = None
    """The same at `PACED_PER_S`, where the tool can."""


@dataclass
class Figures:
    """Repetitions of one tool's measurement."""

    cpu_us: list[float] = field(default_factory=list)
    rate_per_s: list[float] = field(default_factory=list)
    rss_mb: list[float] = field(default_factory=list)
    one_s: list[float] = field(default_factory=list)


def order(kind: str, contact: str, schedule: Mapping[str, Any], stop: Mapping[str, Any]) -> dict[str, Any]:
    """An order for our agent on the table of the comparison."""
    key = {"type": "bigint", "make": {"kind": "key"}}
    size = {"name": "fixed", "value": COLUMN_BYTES}
    columns = [
        {"type": "blob", "make": {"kind": "random", "salt": number, "size": size, "versioned": True}}
        for number in range(COLUMNS)
    ]
    names = ", ".join(f"f{number}" for number in range(COLUMNS))
    marks = ", ".join("?" * (COLUMNS + 1))
    write = {
        "name": "write",
        "cql": f"INSERT INTO bench.rows (id, {names}) VALUES ({marks})",
        "values": [key, *columns],
        "partition_key": [0],
        "writes": True,
    }
    read = {
        "name": "read",
        "cql": f"SELECT {names} FROM bench.rows WHERE id = ?",
        "values": [key],
        "partition_key": [0],
        "writes": False,
        "wants_row": kind == "read",
    }
    operation = {
        "name": kind,
        "weight": 1.0,
        "keys": {"kind": "existing", "distribution": "uniform"},
        "steps": [{"kind": "execute", "statement": kind}],
    }
    return {
        "format": 1,
        "contacts": [contact],
        "target": {
            "protocol": "cql",
            "keyspace": "bench",
            "read_consistency": "ONE",
            "write_consistency": "ONE",
            "routing": "token",
        },
        "action": "load",
        "work": {
            "kind": "program",
            "records": ROWS,
            "statements": [write, read],
            "populate": [{"kind": "execute", "statement": "write"}],
            "operations": [operation],
        },
        "seed": 7,
        "schedule": dict(schedule),
        "stop": dict(stop),
        "timeout_ms": 10_000,
        "interval_s": 1.0,
    }


def ours(text: str) -> list[Record]:
    """Records of our agent. Raises RuntimeError if an operation failed: its cost would be another's."""
    records = [parse(line) for line in text.splitlines() if line.startswith("{")]
    done = [record for record in records if isinstance(record, Done)][-1]
    if done.errors or done.not_found:
        raise RuntimeError(f"{done.errors} errors {dict(done.errors_by_kind)}, {done.not_found} rows not found")
    return records


class Orders:
    """Files of orders, in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._count = 0

    def argv(self, order: Mapping[str, Any]) -> list[str]:
        """The agent's command line for an order."""
        self._count += 1
        path = self._folder / f"order-{self._count}.json"
        path.write_text(json.dumps(order))
        return [str(agent.find()), "load", "--order", str(path)]

    def closed(self, kind: str, contact: str, operations: int, in_flight: int) -> list[str]:
        """A closed loop of so many operations."""
        schedule = {"kind": "closed", "threads": in_flight}
        return self.argv(order(kind, contact, schedule, {"operations": operations}))

    def paced(self, kind: str, contact: str, operations: int, in_flight: int) -> list[str]:
        """An open loop of so many operations at `PACED_PER_S`."""
        schedule = {"kind": "constant", "rate_per_s": PACED_PER_S, "in_flight": in_flight}
        return self.argv(order(kind, contact, schedule, {"operations": operations}))

    def populate(self, contact: str) -> None:
        """Fill the table."""
        filling = order("write", contact, {"kind": "closed", "threads": IN_FLIGHT}, {})
        ours(call(self.argv({**filling, "action": "populate"})).stdout)


def latte(program: Path) -> Tool:
    """latte, one thread, the same table."""

    def argv(kind: str, contact: str, operations: int, in_flight: int) -> list[str]:
        return [
            *(
                str(program),
                "--log-dir",
                tempfile.gettempdir(),
                "run",
                str(HERE / "latte" / "rows.rn"),
                contact,
                "-f",
                kind,
                "-d",
                str(operations),
            ),
            *("-w", "1", "-t", "1", "-p", str(in_flight), "-q", "-P", f"rows={ROWS}", "--consistency", "ONE"),
            *("-s", "1s", "-o", os.devnull),
        ]

    def paced(*what: Any) -> list[str]:
        return [*argv(*what), "-r", f"{PACED_PER_S:g}"]

    return Tool("latte", argv, paced=paced)


def stress(argv0: Sequence[str]) -> Tool:
    """cassandra-stress with rows of the same size in its own table."""
    columns = f"n=FIXED({COLUMNS})", f"size=FIXED({COLUMN_BYTES})"

    def argv(kind: str, contact: str, operations: int, in_flight: int) -> list[str]:
        address, _, port = contact.partition(":")
        return [
            *(*argv0, kind, f"n={operations}", "no-warmup", "cl=ONE", "-col", *columns, "-pop"),
            *(f"dist=UNIFORM(1..{ROWS})", "-rate", f"threads={in_flight}", "-node", address, "-port", f"native={port}"),
        ]

    def prepare(contact: str) -> None:
        filling = argv("write", contact, ROWS, IN_FLIGHT)
        call([f"seq=1..{ROWS}" if word.startswith("dist=") else word for word in filling])

    return Tool("cassandra-stress", argv, prepare, short=4)


def tools(orders: Orders) -> tuple[list[Tool], list[str]]:
    """Tools that are installed, and the names of those that are not."""
    found, missing = [Tool("steelyard", orders.closed, paced=orders.paced)], []
    try:
        found.append(latte(latte_engine.find()))
    except EngineError:
        missing.append("latte")
    try:
        found.append(stress(asyncio.run(stress_tool.find(cache_folder())).argv(())))
    except EngineError:
        missing.append("cassandra-stress")
    return found, missing


@contextmanager
def null_server(pin: int | None) -> Iterator[str]:
    """Our null server on loopback, on a processor of its own where there are two."""
    pinned = ["taskset", "-c", str(pin)] if pin is not None else []
    argv = [*pinned, str(agent.find()), "sim", "--listen", NULL_ADDRESS, "--null"]
    process = subprocess.Popen(argv, stdout=subprocess.DEVNULL)
    try:
        create(NULL_ADDRESS)
        yield NULL_ADDRESS
    finally:
        process.terminate()
        process.wait(SETTLE_S)


def create(contact: str) -> None:
    """Create the table of the comparison, waiting for the server to listen."""
    argv = [str(agent.find()), "cql", "--contact", contact, *SCHEMA]
    deadline_s = time.monotonic() + SETTLE_S
    while subprocess.run(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode:
        if time.monotonic() > deadline_s:
            raise RuntimeError(f"{contact} did not take the schema within {SETTLE_S:g} s")
        time.sleep(0.1)


def measure(
    present: Sequence[Tool], kind: str, contact: str, operations: int, repeats: int, pin: int | None = None
) -> dict[str, Figures]:
    """Processor time and rate of each tool, in turns."""
    figures = {tool.name: Figures() for tool in present}
    for turn in range(repeats):
        for tool in present:
            short = operations * tool.short
            say(f"{kind} on {contact}: {tool.name}, turn {turn + 1} of {repeats}")
            brief = call(tool.argv(kind, contact, short, IN_FLIGHT), pin)
            full = call(tool.argv(kind, contact, short + 4 * operations, IN_FLIGHT), pin)
            between = 4 * operations
            figures[tool.name].cpu_us.append((full.cpu_s - brief.cpu_s) * 1e6 / between)
            figures[tool.name].rate_per_s.append(between / (full.wall_s - brief.wall_s))
            figures[tool.name].rss_mb.append(full.rss_mb)
            figures[tool.name].one_s.append(call(tool.argv(kind, contact, 1, 1), pin).wall_s)
    return figures


def until_idle(timeout_s: float) -> float:
    """Wait until this machine does nothing else, `timeout_s` at most; the busy fraction that was seen last."""
    deadline_s = time.monotonic() + timeout_s
    while True:
        before = machine_time()
        time.sleep(IDLE_LOOK_S)
        passed = machine_time().since(before)
        busy = passed.busy_s / passed.total_s
        if busy < IDLE_FRACTION or time.monotonic() > deadline_s:
            return busy


def paced(orders: Orders, contact: str, seconds: float) -> dict[str, float]:
    """Our open loop on an idle node: how late it sends, and what that adds to response times, in microseconds."""
    schedule = {"kind": "constant", "rate_per_s": PACED_PER_S, "in_flight": IN_FLIGHT}
    asked = {**order("read", contact, schedule, {"duration_s": seconds}), "warm_up_s": seconds}
    records = ours(call(orders.argv(asked)).stdout)
    intervals = [record for record in records if isinstance(record, Interval) and record.phase == "measure"]
    figures = {}
    for measure_name in ("response", "service", "lag"):
        for quantile, label in ((0.5, "p50"), (0.99, "p99")):
            value = percentiles.quantile_ns(merged(intervals, measure_name), quantile)
            figures[f"{measure_name} {label}"] = round((value or 0) / 1e3, 1)
    return figures


def first_operation_ms(orders: Orders, contact: str, repeats: int) -> float:
    """From starting our agent to its first operation, the median."""
    taken = []
    for _ in range(repeats):
        argv = orders.closed("read", contact, 1, 1)
        started_s = time.time()
        (done,) = [record for record in ours(call(argv).stdout) if isinstance(record, Done)]
        taken.append((done.first_sent_s - started_s) * 1e3)
    return float(round(statistics.median(taken), 1))


def say(what: str) -> None:
    """Progress, on standard error."""
    print(what, file=sys.stderr, flush=True)


def rows(what: str, figures: Mapping[str, Figures]) -> list[dict[str, Any]]:
    """One row for each tool: medians, with least and most of the processor time."""
    base = statistics.median(figures["steelyard"].cpu_us)
    return [
        {
            "what": what,
            "tool": name,
            "client cpu us/op": round(statistics.median(found.cpu_us), 2),
            "least": round(min(found.cpu_us), 2),
            "most": round(max(found.cpu_us), 2),
            "times ours": round(statistics.median(found.cpu_us) / base, 1),
            "op/s a core of the client's": round(1e6 / statistics.median(found.cpu_us)),
            "op/s": round(statistics.median(found.rate_per_s)),
            "RSS MB": round(statistics.median(found.rss_mb), 1),
            "one operation, exec to exit, s": round(statistics.median(found.one_s), 3),
        }
        for name, found in figures.items()
    ]


async def on_a_real_node(orders: Orders, present: Sequence[Tool], size: Mapping[str, Any], parts: Sequence[str]) -> Any:
    """Everything that needs a Cassandra."""
    with tempfile.TemporaryDirectory() as state:
        async with running(Path(state), system_settings={"heap_mb": 1024}) as cluster:
            return await asyncio.to_thread(_with_node, orders, present, cluster, size, parts)


def _with_node(
    orders: Orders, present: Sequence[Tool], cluster: RunningCluster, size: Mapping[str, Any], parts: Sequence[str]
) -> dict[str, Any]:
    (contact,) = cluster.contacts
    found: dict[str, Any] = {"server": f"Cassandra {cluster.system.version}"}
    create(contact)
    say("filling the table")
    orders.populate(contact)
    if "paced" in parts:
        say("waiting until the node has settled")
        found["busy before pacing"] = round(until_idle(size["idle_s"]), 3)
        found["first operation ms"] = first_operation_ms(orders, contact, 5)
        found["paced"] = paced(orders, contact, size["paced_s"])
    if "real" in parts:
        for tool in present:
            tool.prepare(contact)
        found["table"] = [
            row
            for kind in ("read", "write")
            for row in rows(f"{kind}, real node", measure(present, kind, contact, size["real"], size["repeats"]))
        ]
    return found


def on_the_null_server(orders: Orders, present: Sequence[Tool], size: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Each tool on one core, the server on another if there is one. cassandra-stress needs a server's metadata that the
    null server does not have."""
    apart = len(os.sched_getaffinity(0)) > 1
    lean = [tool for tool in present if tool.name != "cassandra-stress"]
    pacing = [replace(tool, argv=tool.paced) for tool in lean if tool.paced is not None]
    drives = (
        ("read", lean, "read", size["null"]),
        ("write", lean, "write", size["null"]),
        (f"{PACED_PER_S:g} reads a second", pacing, "read", size["paced"]),
    )
    with null_server(1 if apart else None) as contact:
        return [
            row
            for what, tools, kind, operations in drives
            for row in rows(
                f"{what}, null server, tool on one core",
                measure(tools, kind, contact, operations, size["repeats"], 0 if apart else None),
            )
        ]


def main() -> None:
    """Measure and print JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tiny", action="store_true", help="sizes for a test of this program, not for figures")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS, help="what to measure")
    options = parser.parse_args()
    size: dict[str, Any] = {
        "null": 500_000,
        "paced": 4_000,
        "real": 50_000,
        "repeats": 3,
        "paced_s": PACED_S,
        "idle_s": IDLE_TIMEOUT_S,
    }
    if options.tiny:
        size = {"null": 2_000, "paced": 200, "real": 500, "repeats": 1, "paced_s": 1.0, "idle_s": 0.0}
    cores = len(os.sched_getaffinity(0))
    found: dict[str, Any] = {"machine": f"{cores} cores, {platform.release()}, load {os.getloadavg()[0]:.2f}"}
    with tempfile.TemporaryDirectory() as folder:
        orders = Orders(Path(folder))
        present, found["not installed"] = tools(orders)
        if "null" in options.parts:
            found["null server"] = on_the_null_server(orders, present, size)
        if {"paced", "real"} & set(options.parts):
            found["real node"] = asyncio.run(on_a_real_node(orders, present, size, options.parts))
    json.dump(found, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
