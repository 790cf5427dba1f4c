"""Loopback test bench: a simulated server in its own process, and the load engine against it.

Each server listens on a port that the kernel chooses, so that ports cannot collide. When the block ends, also by an
interrupt, the server is resumed if it was suspended, and ended.
"""

from __future__ import annotations

import asyncio
import signal
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steelyard.engine.agent import carry_out
from steelyard.model.errors import EngineError
from steelyard.model.load import MEASURE
from steelyard.node import agent, process
from steelyard.node.base import Node
from steelyard.node.command import end, run, spawn
from steelyard.node.processor import most_resident_bytes, start_ticks
from steelyard.node.tasks import to_the_end
from steelyard.wire.record import FORMAT, Done, Hello, Interval, Record

ADDRESS = "127.0.0.1"
LISTEN_TIMEOUT_S = 10.0
SCHEMA_TIMEOUT_S = 30.0
RECORDS = 100_000
FIELDS = tuple(f"field{number}" for number in range(10))
FIELD_CHARS = 100
TIMEOUT_MS = 10_000


@dataclass(frozen=True)
class BenchServer:
    """A simulated node that listens."""

    contact: str
    """`address:port`."""
    server: process.KnownProcess

    def stop(self) -> None:
        """Suspend it with SIGSTOP."""
        self.server.signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Resume it with SIGCONT; without effect if it runs."""
        self.server.signal(signal.SIGCONT)


@asynccontextmanager
async def serving(*options: str) -> AsyncIterator[BenchServer]:
    """Run `steelyard-agent sim` with these options and YCSB's table until the block ends. Raises EngineError if it does
    not start."""
    with tempfile.TemporaryDirectory(prefix="steelyard-bench-") as folder:
        errors = Path(folder) / "sim.stderr"
        argv = [str(agent.find()), "sim", "--listen", f"{ADDRESS}:0", *options]
        started = await spawn(None, argv, stdout=asyncio.subprocess.PIPE, stderr=errors)
        ticks = start_ticks(started.pid)
        try:
            contact = await _contact(started, errors)
            if ticks is None:
                raise _silent(errors)
            await _create_table(contact)
            yield BenchServer(contact, process.KnownProcess(started.pid, ticks))
        finally:
            if ticks is not None:
                process.KnownProcess(started.pid, ticks).signal(signal.SIGCONT)
            await to_the_end(end(started))


async def _contact(started: asyncio.subprocess.Process, errors: Path) -> str:
    assert started.stdout is not None
    try:
        line = await asyncio.wait_for(started.stdout.readline(), LISTEN_TIMEOUT_S)
    except TimeoutError:
        raise _silent(errors) from None
    word, _, contact = line.decode(errors="replace").strip().partition(" ")
    if word != "listening" or not contact:
        raise _silent(errors)
    return contact


def _silent(errors: Path) -> EngineError:
    text = errors.read_text(encoding="utf-8", errors="replace").strip()[-500:]
    message = f"the simulated server on this machine's loopback did not start within {LISTEN_TIMEOUT_S:g} s"
    return EngineError(
        f"{message}: {text}" if text else message, "run `steelyard doctor` to see whether the agent has this version"
    )


async def _create_table(contact: str) -> None:
    columns = ", ".join(f"{name} text" for name in FIELDS)
    replication = "{'class': 'SimpleStrategy', 'replication_factor': 1}"
    statements = (
        f"CREATE KEYSPACE IF NOT EXISTS ycsb WITH replication = {replication}",
        f"CREATE TABLE IF NOT EXISTS ycsb.usertable (y_id text PRIMARY KEY, {columns})",
    )
    argv = [str(agent.find()), "cql", "--contact", contact, *statements]
    await run(None, argv, timeout_s=SCHEMA_TIMEOUT_S)


def order(
    contact: str,
    proportions: Mapping[str, float],
    schedule: Mapping[str, Any],
    *,
    duration_s: float,
    warm_up_s: float = 0.0,
    seed: int = 1,
) -> dict[str, Any]:
    """The order of a load: YCSB's rows of 1 KB, uniform keys, writes of all fields, consistency ONE."""
    shares = dict.fromkeys(("read", "update", "insert", "scan", "read_modify_write"), 0.0)
    return {
        "format": FORMAT,
        "protocol": "cql",
        "contacts": [contact],
        "keyspace": "ycsb",
        "table": "usertable",
        "key": "y_id",
        "fields": list(FIELDS),
        "action": "load",
        "workload": {
            "kind": "ycsb",
            "records": RECORDS,
            "proportions": {**shares, **proportions},
            "request_distribution": "uniform",
            "field_length": FIELD_CHARS,
            "field_length_distribution": "constant",
            "insert_order": "hashed",
            "read_all_fields": True,
            "write_all_fields": True,
            "max_scan_length": 100,
            "scan_length_distribution": "uniform",
        },
        "seed": seed,
        "schedule": dict(schedule),
        "stop": {"operations": None, "duration_s": duration_s},
        "warm_up_s": warm_up_s,
        "read_consistency": "ONE",
        "write_consistency": "ONE",
        "timeout_ms": TIMEOUT_MS,
        "routing": "token",
        "interval_s": 1.0,
    }


@dataclass(frozen=True)
class Driven:
    """Records of the engine."""

    hello: Hello
    intervals: Sequence[Interval]
    """Intervals of the measured phase."""
    done: Done
    memory_bytes: int
    """Peak resident memory of the generator."""


async def drive(
    asked: Mapping[str, Any], timeout_s: float, on_interval: Callable[[Interval], None] | None = None
) -> Driven:
    """Run an order with one worker. Raises EngineError if the generator fails or does not end in time."""
    hello: Hello | None = None
    intervals: list[Interval] = []
    dones: list[Done] = []
    memory_bytes, pid = 0, 0

    def take(_node: str, record: Record) -> None:
        nonlocal hello, memory_bytes
        memory_bytes = max(memory_bytes, most_resident_bytes(pid) if pid else 0)
        match record:
            case Hello():
                hello = record
            case Interval(phase=phase) if phase == MEASURE:
                intervals.append(record)
                if on_interval is not None:
                    on_interval(record)
            case Done(phase=phase) if phase == MEASURE:
                dones.append(record)

    def started(agent_process: asyncio.subprocess.Process) -> None:
        nonlocal pid
        pid = agent_process.pid

    with tempfile.TemporaryDirectory(prefix="steelyard-load-") as folder:
        node = Node("load", "load", ADDRESS, (), Path(folder))
        try:
            async with asyncio.timeout(timeout_s) as limit:
                await carry_out(asked, node, take, on_start=started)
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise EngineError(f"the load generator did not end within {timeout_s:g} s") from error
    if hello is None or not dones:
        raise EngineError(
            "the load generator ended without a measured phase", "check whether something sent it SIGTERM"
        )
    return Driven(hello, intervals, dones[0], memory_bytes)
