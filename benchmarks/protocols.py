"""Steelyard's load engine next to redis-benchmark, pgbench, wrk and httperf: one null server per protocol, in turns.

What is compared is the client's processor time of one operation, user and system time of the whole tool over the
operations that it did in a few seconds; starting up is part of it, some ten milliseconds. Of the repetitions the median
is shown, with the least and the most, and the median of the ratios of neighbours. A tool that is not installed is left
out and named. `floor.rs`, which `rustc` compiles, stands for the least that any client of one connection can do: its
processor time is the kernel's. `--calls` counts system calls in place of time, with strace, which slows every tool.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from steelyard.model.calibration import Kind
from steelyard.node import agent
from steelyard.selftest.bench import FIELD_CHARS, FIELDS, VALIDATED, order, serving
from steelyard.wire.order import Order, Ycsb
from steelyard.wire.schedule import Closed, Schedule, Steady

RATE_PER_S = 1_000
FLOOR = "floor"
LEAST_CALLS = 0.01
"""Of an operation: system calls below it belong to starting and ending."""
OURS = re.compile(r'"record":"done".*?"operations":(\d+)')


@dataclass(frozen=True)
class Rival:
    """A tool that does what our load does."""

    argv: Callable[[str, str, float], Sequence[str]]
    """(host, port, seconds) -> command line."""
    operations: re.Pattern[str]
    """Operations in what it prints."""


@dataclass(frozen=True)
class Row:
    """One comparison: what, over which protocol, at which schedule, with whom."""

    what: str
    protocol: str
    kind: Kind
    schedule: Schedule
    rivals: tuple[str, ...]
    connections: int = 1
    """Of RESP: ours, to the server."""
    validated: float = VALIDATED
    """The part of the answers that ours compares, over RESP and PostgreSQL's protocol."""


READ = ("HGETALL", "user0")
WRITE = ("HMSET", "user0", *(part for name in FIELDS for part in (name, "x" * FIELD_CHARS)))


def redis_benchmark(pipeline: int, connections: int = 1, command: Sequence[str] = READ) -> Rival:
    """redis-benchmark with a number of connections, and of commands in flight on each."""
    per_s = 250_000 if pipeline > 1 else 20_000 * min(connections, 4)
    words = ["redis-benchmark", "-c", str(connections), "-P", str(pipeline), "--csv"]
    program = 'n="$1"; shift; "$@" >/dev/null && echo "did $n"'

    def argv(host: str, port: str, seconds: float) -> Sequence[str]:
        count = str(int(seconds * per_s))
        return ["sh", "-c", program, "sh", count, *words, "-h", host, "-p", port, "-n", count, *command]

    return Rival(argv, re.compile(r"did (\d+)"))


def pgbench(pipeline: int) -> Rival:
    """pgbench with one connection, and a number of prepared statements in flight on it."""
    select = f"SELECT {', '.join(FIELDS)} FROM usertable WHERE y_id = 'user0';\n"
    script = f"\\startpipeline\n{select * pipeline}\\endpipeline\n" if pipeline > 1 else select
    program = (
        'n=$(printf %s "$1" | pgbench -n -M prepared -c 1 -T "$2" -f - -h "$3" -p "$4" -U steelyard steelyard'
        ' | sed -n "s/.*actually processed: \\([0-9]*\\).*/\\1/p"); echo "did $((n * $5))"'
    )

    def argv(host: str, port: str, seconds: float) -> Sequence[str]:
        return ["sh", "-c", program, "sh", script, f"{seconds:.0f}", host, port, str(pipeline)]

    return Rival(argv, re.compile(r"did ([1-9]\d*)"))


def floor(in_flight: int, protocol: str = "resp") -> Rival:
    """`floor.rs` with a number of commands in flight; `main` puts the program into the search path."""

    def argv(host: str, port: str, seconds: float) -> Sequence[str]:
        return [FLOOR, f"{host}:{port}", str(in_flight), f"{seconds:g}", protocol]

    return Rival(argv, re.compile(r"did (\d+)"))


def over_http(*words: str, operations: str) -> Rival:
    """A tool with words for host, port, seconds, and the connections of so many seconds at `RATE_PER_S`."""

    def argv(host: str, port: str, seconds: float) -> Sequence[str]:
        known = {"host": host, "port": port, "seconds": f"{seconds:g}", "connections": str(int(seconds * RATE_PER_S))}
        return [word.format(**known) for word in words]

    return Rival(argv, re.compile(operations))


URL = "http://{host}:{port}/1000.bin"
RIVALS = {
    "redis-benchmark -P 64": redis_benchmark(64),
    "redis-benchmark -P 256": redis_benchmark(256),
    "redis-benchmark -P 64, HMSET": redis_benchmark(64, command=WRITE),
    "redis-benchmark -P 1": redis_benchmark(1),
    "redis-benchmark -c 64": redis_benchmark(1, connections=64),
    "pgbench, 64": pgbench(64),
    "pgbench, 1": pgbench(1),
    "floor, 64": floor(64),
    "floor, 1": floor(1),
    "floor, PostgreSQL, 64": floor(64, "postgresql"),
    "floor, PostgreSQL, 1": floor(1, "postgresql"),
    "wrk -t1 -c32": over_http("wrk", "-t1", "-c32", "-d{seconds}s", URL, operations=r"(\d+) requests in"),
    "wrk, Connection: close": over_http(
        "wrk", "-t1", "-c32", "-d{seconds}s", "-H", "Connection: close", URL, operations=r"(\d+) requests in"
    ),
    "httperf": over_http(
        "httperf", "--hog", "--server={host}", "--port={port}", "--uri=/1000.bin", f"--rate={RATE_PER_S}",
        "--num-conns={connections}", "--num-calls=1", operations=r"replies (\d+)",
    ),
}  # fmt: skip
PACED = Steady(kind="constant", rate_per_s=RATE_PER_S, in_flight=64)
ROWS = (
    Row("RESP, 1 connection, 64 in flight", "resp", "read", Closed(threads=64), ("redis-benchmark -P 64", "floor, 64")),
    Row(
        "RESP, the same, nothing compared", "resp", "read", Closed(threads=64), ("redis-benchmark -P 64",), validated=0
    ),
    Row("RESP, 1 connection, 256 in flight", "resp", "read", Closed(threads=256), ("redis-benchmark -P 256",)),
    Row("RESP, 1 connection, 1 in flight", "resp", "read", Closed(threads=1), ("redis-benchmark -P 1", "floor, 1")),
    Row("RESP, 64 connections, 64 in flight", "resp", "read", Closed(threads=64), ("redis-benchmark -c 64",), 64),
    Row(
        "RESP, 1 connection, 64 writes in flight",
        "resp",
        "write",
        Closed(threads=64),
        ("redis-benchmark -P 64, HMSET",),
    ),
    Row(
        "PostgreSQL, 1 connection, 64 in flight",
        "postgresql",
        "read",
        Closed(threads=64),
        ("pgbench, 64", "floor, PostgreSQL, 64"),
    ),
    Row(
        "PostgreSQL, the same, nothing compared",
        "postgresql",
        "read",
        Closed(threads=64),
        ("pgbench, 64",),
        validated=0,
    ),
    Row(
        "PostgreSQL, 1 connection, 1 in flight",
        "postgresql",
        "read",
        Closed(threads=1),
        ("pgbench, 1", "floor, PostgreSQL, 1"),
    ),
    Row("HTTP, 32 kept connections", "http", "read", Closed(threads=32), ("wrk -t1 -c32",)),
    Row(
        "HTTP, a connection per request, 32 in flight",
        "http",
        "connection",
        Closed(threads=32),
        ("wrk, Connection: close",),
    ),
    Row(f"HTTP, a connection per request, {RATE_PER_S}/s", "http", "connection", PACED, ("httperf",)),
)


def carried_out(argv: Sequence[str], operations: re.Pattern[str]) -> tuple[float, int]:
    """Processor time, microseconds, and operations. Raises RuntimeError if the tool fails."""
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        text = out.read().decode(errors="replace")
    did = operations.findall(text)
    if process.returncode != 0 or not did:
        raise RuntimeError(f"{' '.join(argv[:4])} ... ended with {process.returncode}:\n{text[-1000:]}")
    return 1e6 * (usage.ru_utime + usage.ru_stime), int(did[-1])


def cpu_us(argv: Sequence[str], operations: re.Pattern[str]) -> float:
    """Processor time of one operation, microseconds."""
    used_us, did = carried_out(argv, operations)
    return used_us / did


def calls(argv: Sequence[str], operations: re.Pattern[str]) -> Mapping[str, float]:
    """System calls of one operation, by name, the most frequent first, and all of them."""
    with tempfile.NamedTemporaryFile("r", prefix="steelyard-calls-") as table:
        _, did = carried_out(["strace", "-f", "-c", "-U", "calls,name", "-o", table.name, *argv], operations)
        counted = re.findall(r"^\s*(\d+)\s+(\w+)$", table.read(), re.MULTILINE)
    each = {name: round(int(count) / did, 3) for count, name in counted if int(count) / did >= LEAST_CALLS}
    return dict(sorted(each.items(), key=lambda item: -item[1]))


def order_of(row: Row, contact: str, seconds: float) -> Order:
    """What our load is to do."""
    asked = order(contact, row.protocol, row.kind, row.schedule, duration_s=seconds)
    if not isinstance(asked.work, Ycsb):
        return asked
    work = asked.work.model_copy(update={"validate_fraction": row.validated})
    return asked.model_copy(update={"work": work, "connections_per_node": row.connections})


async def compared(row: Row, seconds: float, turns: int, count_calls: bool) -> list[dict[str, object]]:
    """A row with each of its rivals, in turns."""
    found: list[dict[str, object]] = []
    async with serving(row.protocol, "--null") as server:
        host, _, port = server.contact.rpartition(":")
        with tempfile.TemporaryDirectory(prefix="steelyard-protocols-") as folder:
            path = Path(folder) / "order.json"
            path.write_text(order_of(row, server.contact, seconds).text)
            ours = [str(agent.find()), "load", "--order", str(path)]
            for name in row.rivals:
                rival = RIVALS[name]
                if shutil.which(re.split(r"[ ,]", name)[0]) is None:
                    print(f"{re.split(r'[ ,]', name)[0]} is not installed: left out", file=sys.stderr)
                    continue
                theirs = rival.argv(host, port, seconds)
                if count_calls:
                    found.append({
                        "what": row.what, "rival": name,
                        "ours_calls": await asyncio.to_thread(calls, ours, OURS),
                        "theirs_calls": await asyncio.to_thread(calls, theirs, rival.operations),
                    })  # fmt: skip
                    continue
                pairs = []
                for _ in range(turns):
                    own = await asyncio.to_thread(cpu_us, ours, OURS)
                    other = await asyncio.to_thread(cpu_us, theirs, rival.operations)
                    pairs.append((own, other))
                found.append({
                    "what": row.what, "rival": name,
                    "ours_us": spread([own for own, _ in pairs]), "theirs_us": spread([other for _, other in pairs]),
                    "ratio": spread([own / other for own, other in pairs]),
                })  # fmt: skip
    return found


def spread(values: Sequence[float]) -> list[float]:
    """Median, least and most, rounded."""
    return [round(value, 3) for value in (statistics.median(values), min(values), max(values))]


def with_floor(folder: Path) -> None:
    """Compiles `floor.rs` into a folder of the search path; without `rustc` it is left out as a tool is."""
    source = Path(__file__).with_name(f"{FLOOR}.rs")
    if shutil.which("rustc") is not None:
        argv = ["rustc", "--edition", "2024", "-O", "-o", str(folder / FLOOR), str(source)]
        subprocess.run(argv, check=True)
    os.environ["PATH"] += f"{os.pathsep}{folder}"


async def main() -> None:
    """Print every row as a line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--only", default="", help="rows that begin with this")
    parser.add_argument("--calls", action="store_true", help="count system calls, with strace")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="steelyard-floor-") as folder:
        with_floor(Path(folder))
        for row in ROWS:
            if row.what.startswith(asked.only):
                for line in await compared(row, asked.seconds, asked.turns, asked.calls):
                    print(json.dumps(line), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
