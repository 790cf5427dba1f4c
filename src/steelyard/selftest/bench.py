"""Loopback test bench: a server in its own process that speaks one protocol, and the load engine against it.

`BENCHES` is what each protocol needs of its own. Each server listens on a port that the kernel chooses, so that ports
cannot collide. When the block ends, also by an interrupt, the server is resumed if it was suspended, and ended.
"""

from __future__ import annotations

import asyncio
import signal
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from steelyard.engine.agent import carry_out
from steelyard.model.calibration import Kind
from steelyard.model.errors import EngineError, StudyError
from steelyard.model.load import MEASURE
from steelyard.node import agent, process
from steelyard.node.base import Node
from steelyard.node.command import end, run, spawn
from steelyard.node.processor import most_resident_bytes, start_ticks
from steelyard.node.tasks import to_the_end
from steelyard.wire.order import (
    CQL,
    ETCD,
    HTTP,
    POSTGRESQL,
    RESP,
    CqlTarget,
    Document,
    EtcdTarget,
    HttpTarget,
    Order,
    PostgresqlTarget,
    Proportions,
    Requests,
    RespTarget,
    StopAt,
    Target,
    Work,
    Ycsb,
)
from steelyard.wire.record import Done, Hello, Interval, Record
from steelyard.wire.schedule import Schedule

ADDRESS = "127.0.0.1"
LISTEN_TIMEOUT_S = 10.0
SCHEMA_TIMEOUT_S = 30.0
FIELDS = tuple(f"field{number}" for number in range(10))
FIELD_CHARS = 100
VALIDATED = 0.1
"""Default of YCSB's workloads."""
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
async def serving(protocol: str, *options: str) -> AsyncIterator[BenchServer]:
    """Run `steelyard-agent sim` with these options, and what its load needs, until the block ends. Raises EngineError
    if it does not start, StudyError for a protocol without a bench."""
    bench = bench_of(protocol)
    with tempfile.TemporaryDirectory(prefix="steelyard-bench-") as folder:
        errors = Path(folder) / "sim.stderr"
        argv = [str(agent.find()), "sim", "--listen", f"{ADDRESS}:0", "--protocol", protocol, *options]
        started = await spawn(None, argv, stdout=asyncio.subprocess.PIPE, stderr=errors)
        ticks = start_ticks(started.pid)
        try:
            contact = await _contact(started, errors)
            if ticks is None:
                raise _silent(errors)
            await bench.prepare(contact)
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


async def _as_it_is(contact: str) -> None:
    """Nothing is needed."""


def _rows(kind: Kind) -> Ycsb:
    """YCSB's rows of 1 KB, writes of all fields, as many values compared as in studies. The record is the one that null
    servers have."""
    return Ycsb(
        fields=FIELDS,
        records=1,
        proportions=Proportions(**{"read" if kind == "read" else "update": 1.0}),
        request_distribution="uniform",
        field_length=FIELD_CHARS,
        field_length_distribution="constant",
        insert_order="hashed",
        read_all_fields=True,
        write_all_fields=True,
        max_scan_length=100,
        scan_length_distribution="uniform",
        validate_fraction=VALIDATED,
    )


@dataclass(frozen=True)
class ProtocolBench:
    """Load over one protocol, on a server that `sim` has started."""

    loads: Mapping[Kind, tuple[Target, Work]]
    """By the kinds of work whose cost differs."""
    prepare: Callable[[str], Awaitable[None]] = _as_it_is


def _reads_and_writes(target: Target) -> Mapping[Kind, tuple[Target, Work]]:
    return {"read": (target, _rows("read")), "write": (target, _rows("write"))}


DOCUMENT = Requests(documents=(Document(path="/1000.bin", bytes=1000),))
BENCHES: Mapping[str, ProtocolBench] = {
    CQL: ProtocolBench(
        _reads_and_writes(
            CqlTarget(
                keyspace="ycsb",
                table="usertable",
                key="y_id",
                read_consistency="ONE",
                write_consistency="ONE",
                routing="token",
            )
        ),
        _create_table,
    ),
    RESP: ProtocolBench(_reads_and_writes(RespTarget())),
    HTTP: ProtocolBench({"read": (HttpTarget(), DOCUMENT), "connection": (HttpTarget(keep_alive=False), DOCUMENT)}),
    ETCD: ProtocolBench(_reads_and_writes(EtcdTarget())),
    POSTGRESQL: ProtocolBench(_reads_and_writes(PostgresqlTarget(table="usertable", key="y_id"))),
}
"""By protocol: those whose load generator can be calibrated and proved."""


def bench_of(protocol: str) -> ProtocolBench:
    """Bench of a protocol. Raises StudyError for one without a bench."""
    if protocol not in BENCHES:
        allowed = tuple(BENCHES)
        message = f"--protocol {protocol}: there is no server to test the load engine against"
        raise StudyError(message, f"one of {', '.join(allowed)}", key="--protocol", read=protocol, allowed=allowed)
    return BENCHES[protocol]


def order(
    contact: str,
    protocol: str,
    kind: Kind,
    schedule: Schedule,
    *,
    duration_s: float,
    warm_up_s: float = 0.0,
    timeout_ms: int = TIMEOUT_MS,
) -> Order:
    """The order of a load of one kind of work."""
    target, work = bench_of(protocol).loads[kind]
    return Order(
        contacts=(contact,),
        target=target,
        action="load",
        work=work,
        seed=1,
        schedule=schedule,
        stop=StopAt(duration_s=duration_s),
        warm_up_s=warm_up_s,
        timeout_ms=timeout_ms,
        interval_s=1.0,
    )


@dataclass(frozen=True)
class Driven:
    """Records of the engine."""

    hello: Hello
    intervals: Sequence[Interval]
    """Intervals of the measured phase."""
    done: Done
    memory_bytes: int
    """Peak resident memory of the generator."""


async def drive(asked: Order, timeout_s: float, on_interval: Callable[[Interval], None] | None = None) -> Driven:
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
