"""Carry out one order with our agent on this machine, outside of a study: what every drop-in does underneath.

    outcome = await drive(order, on_interval=print_status)
    outcome.main.histogram("response", "read").quantile_ns(0.99)

Counts of an interval are merged by adding buckets, so every figure of the whole comes from all of its operations.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from steelyard.engine import agent as engine
from steelyard.engine.base import Record
from steelyard.model import histogram
from steelyard.model.errors import EngineError
from steelyard.model.histogram import Bucket
from steelyard.node import command, signals
from steelyard.node.base import Node
from steelyard.node.tasks import together
from steelyard.system.cassandra import _cql

ANSWERED = ("ok", "not-found")
"""Outcomes that are no errors; `not-applied` of a light-weight transaction is none either."""
NO_ERRORS = (*ANSWERED, "not-applied")
WARM_UP = "warm-up"
SILENCE_LIMIT_S = 300.0
"""Longest time without a record: connecting, preparing and sending a line each take far less."""
PLACES_PER_WORKER = 64
"""Operations in flight that one thread of the agent carries with ease; a second one costs a connection to each node."""
REACH_TIMEOUT_S = 2.0
"""How long a node that nobody named may take to accept a connection."""
RATE_PER_WORKER = 50_000
"""Operations per second that are due for each thread at most: a fraction of what one can send."""
USER_VARIABLE, PASSWORD_VARIABLE = "STEELYARD_CQL_USER", "STEELYARD_CQL_PASSWORD"

Cell = tuple[str, str, str]
"""Operation, outcome, measure."""


@dataclass(frozen=True)
class Histogram:
    """Occupied buckets in order of value. Times in nanoseconds; None where there is no value."""

    buckets: tuple[Bucket, ...] = ()

    @property
    def n(self) -> int:
        """Number of values."""
        return histogram.total(self.buckets)

    @property
    def mean_ns(self) -> float | None:
        """Mean by the middles of the buckets."""
        return histogram.mean_ns(self.buckets)

    @property
    def max_ns(self) -> int | None:
        """Upper bound of the highest bucket."""
        return self.buckets[-1][1] if self.buckets else None

    def quantile_ns(self, q: float) -> float | None:
        """The smallest value such that a share `q` (0 to 1) is not above it, by the middle of its bucket."""
        return histogram.quantile_ns(self.buckets, q)


@dataclass(frozen=True)
class Tables:
    """Histograms by operation, outcome and measure."""

    cells: Mapping[Cell, tuple[Bucket, ...]] = field(default_factory=dict)

    def operations(self, measure: str = "response") -> tuple[str, ...]:
        """Names of operations that occur with that measure, sorted."""
        return tuple(sorted({operation for operation, _, kept in self.cells if kept == measure}))

    def outcomes(self, operation: str, measure: str = "response") -> dict[str, int]:
        """How many operations had which outcome."""
        return {
            outcome: histogram.total(buckets)
            for (name, outcome, kept), buckets in self.cells.items()
            if name == operation and kept == measure
        }

    def histogram(
        self, measure: str, operation: str | None = None, outcomes: Sequence[str] | None = NO_ERRORS
    ) -> Histogram:
        """One measure (`response`, `service`, `lag`, `pacing`, `part`) of one operation, or of all; `outcomes` None:
        errors too."""
        return Histogram(
            tuple(
                histogram.merge(
                    buckets
                    for (name, outcome, kept), buckets in self.cells.items()
                    if kept == measure
                    and (operation is None or name == operation)
                    and (outcomes is None or outcome in outcomes)
                )
            )
        )

    def errors(self, operation: str) -> Histogram:
        """Response times of one operation's errors, whatever their kind."""
        kinds = [outcome for outcome in self.outcomes(operation) if outcome not in NO_ERRORS]
        return self.histogram("response", operation, kinds)


@dataclass(frozen=True)
class Interval:
    """One interval of one phase, all workers together."""

    phase: str
    t_s: float
    """Its beginning, seconds since the epoch."""
    seconds: float
    sent: int
    done: int
    errors: int
    backlog: int
    cpu_fraction: float
    tables: Tables
    rows: Mapping[str, int] = field(default_factory=dict)
    """Rows in answers, by operation; see `interval` in docs/reference/wire.md."""


@dataclass(frozen=True)
class Totals:
    """What the agent says at the end of a phase; see `done` in docs/reference/wire.md."""

    phase: str = ""
    first_sent_s: float = 0.0
    last_done_s: float = 0.0
    execution_ns: int = 0
    operations: int = 0
    errors: int = 0
    errors_by_kind: Mapping[str, int] = field(default_factory=dict)
    error_texts: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """What servers said of errors, by kind: the first few different texts."""
    not_found: int = 0
    rows: int = 0
    cpu_ns: int = 0
    busiest_thread_fraction: float = 0.0
    dropped: int = 0
    reconnections: int = 0

    @property
    def said(self) -> tuple[tuple[str, str], ...]:
        """Kinds of errors with what servers said of them."""
        return tuple((kind, text) for kind, texts in sorted(self.error_texts.items()) for text in texts)

    @property
    def execution_s(self) -> float:
        """From the first operation sent to the last answered."""
        return self.execution_ns / 1e9

    @property
    def rate_per_s(self) -> float:
        """Operations without error per second; 0 when nothing took time."""
        return self.operations / self.execution_s if self.execution_ns > 0 else 0.0


@dataclass(frozen=True)
class PhaseOutcome:
    """A phase that has ended."""

    totals: Totals
    tables: Tables

    def histogram(
        self, measure: str, operation: str | None = None, outcomes: Sequence[str] | None = NO_ERRORS
    ) -> Histogram:
        """As `Tables.histogram`."""
        return self.tables.histogram(measure, operation, outcomes)


@dataclass(frozen=True)
class Outcome:
    """What an order came to."""

    connected: Record
    """Nodes, connections and version of the server."""
    phases: Mapping[str, PhaseOutcome]
    """By name, in order: `populate`, or `warm-up` and `measure`."""
    interrupted: bool
    """Whether it was ended early: by a signal, or by `stop`."""

    @property
    def main(self) -> PhaseOutcome:
        """The last phase that is no warm-up; empty when it never began."""
        kept = [phase for name, phase in self.phases.items() if name != WARM_UP]
        return kept[-1] if kept else PhaseOutcome(Totals(), Tables())


class Sums:
    """Adds up intervals of one phase."""

    def __init__(self) -> None:
        self._counts: dict[Cell, dict[tuple[int, int], int]] = {}

    def add(self, interval: Interval) -> None:
        """Adds an interval's counts."""
        for cell, buckets in interval.tables.cells.items():
            sums = self._counts.setdefault(cell, {})
            for low, high, count in buckets:
                sums[low, high] = sums.get((low, high), 0) + count

    def take(self) -> Tables:
        """What was added since the last time; begins anew."""
        counts, self._counts = self._counts, {}
        return Tables(
            {
                cell: tuple((low, high, count) for (low, high), count in sorted(sums.items()))
                for cell, sums in counts.items()
            }
        )


def interval_of(record: Record) -> Interval:
    """An `interval` record as a value."""
    cells: dict[Cell, tuple[Bucket, ...]] = {}
    for counts in record["counts"]:
        buckets = tuple((low, high, count) for low, high, count in counts["buckets"])
        cells[counts["operation"], counts["outcome"], counts["measure"]] = buckets
    plain = {one.name: record[one.name] for one in fields(Interval) if one.name not in ("tables", "rows")}
    return Interval(**plain, tables=Tables(cells), rows=record.get("rows", {}))


def totals_of(record: Record) -> Totals:
    """A `done` record as a value."""
    return Totals(**{one.name: record[one.name] for one in fields(Totals) if one.name in record})


def workers_for(places: int, rate_per_s: float | None = None) -> int:
    """Threads of the agent for so many operations in flight (and operations per second, if they are scheduled): as few
    as carry them with ease, at most one a processor of ours."""
    processors = len(os.sched_getaffinity(0))
    by_places = -(-places // PLACES_PER_WORKER)
    by_rate = 1 if rate_per_s is None else int(rate_per_s // RATE_PER_WORKER) + 1
    wanted = by_places if rate_per_s is None else min(by_places, by_rate)
    return max(1, min(wanted, processors, places))


def credentials(user: str | None, password: str | None) -> dict[str, str]:
    """The environment variables in which the agent takes user and password; they never stand in an order or an argv."""
    return {} if user is None else {USER_VARIABLE: user, PASSWORD_VARIABLE: password or ""}


async def drive(
    order: Mapping[str, Any],
    *,
    workers: int = 1,
    variables: Mapping[str, str] | None = None,
    on_connected: Callable[[Record], None] | None = None,
    on_interval: Callable[[Interval], None] | None = None,
    on_phase: Callable[[str, PhaseOutcome], None] | None = None,
    stop: asyncio.Event | None = None,
) -> Outcome:
    """Carry out an order (a dict as the agent reads it, see schema/order.example.json) with `steelyard-agent load`.

    `variables`: environment variables of the agent, such as `credentials()`. The first SIGINT or SIGTERM, or setting
    `stop`, ends the load early; the outcome holds what was done by then. A second signal ends it at once, as
    KeyboardInterrupt. Raises EngineError when the agent cannot be found, cannot connect, or fails."""
    sums, phases, connected = Sums(), dict[str, PhaseOutcome](), dict[str, Any]()
    asked = stop if stop is not None else asyncio.Event()
    loop = asyncio.get_running_loop()

    def take(_node: str, record: Record) -> None:
        limit.reschedule(loop.time() + silence_s)
        match record["record"]:
            case "connected":
                connected.update(record)
                if on_connected is not None:
                    on_connected(record)
            case "interval":
                interval = interval_of(record)
                sums.add(interval)
                if on_interval is not None:
                    on_interval(interval)
            case "done":
                name = str(record["phase"])
                phases[name] = PhaseOutcome(totals_of(record), sums.take())
                if on_phase is not None:
                    on_phase(name, phases[name])

    silence_s = SILENCE_LIMIT_S + float(order.get("interval_s", 0.0))
    with tempfile.TemporaryDirectory(prefix="steelyard-load-") as folder, _signals(asked) as twice:
        node = Node("load", "load", "127.0.0.1", (), Path(folder), environment=dict(variables or {}))
        try:
            async with asyncio.timeout(silence_s) as limit:
                await _until_the_end(order, node, take, workers, asked)
        except asyncio.CancelledError:
            if twice.is_set():
                raise KeyboardInterrupt from None
            raise
        except TimeoutError as error:
            if not limit.expired():
                raise
            message = f"the load generator said nothing for {silence_s:g} s"
            raise EngineError(message, "is this machine, or are all nodes, suspended?") from error
    return Outcome(connected, phases, asked.is_set())


async def _until_the_end(
    order: Mapping[str, Any],
    node: Node,
    take: Callable[[str, Record], None],
    workers: int,
    asked: asyncio.Event,
) -> None:
    """The agent's whole life; `asked` tells it to come to an end."""
    watchers: list[asyncio.Task[None]] = []

    async def watch(process: asyncio.subprocess.Process) -> None:
        await asked.wait()
        command.send(process, signal.SIGTERM)

    def started(process: asyncio.subprocess.Process) -> None:
        watchers.append(asyncio.ensure_future(watch(process)))

    try:
        await engine.carry_out(order, node, take, workers=workers, on_start=started)
    finally:
        for watcher in watchers:
            watcher.cancel()


@contextlib.contextmanager
def _signals(asked: asyncio.Event) -> Iterator[asyncio.Event]:
    """While inside, the first SIGINT or SIGTERM sets `asked`, the second sets what this yields and cancels the task
    that entered."""
    task = asyncio.current_task()
    once, twice = asyncio.Event(), asyncio.Event()

    def hear() -> None:
        # A third must not cut short the ending of the agent.
        if once.is_set() and not twice.is_set() and task is not None:
            twice.set()
            task.cancel()
        once.set()
        asked.set()

    with signals.heard({signal.SIGINT: hear, signal.SIGTERM: hear}):
        yield twice


async def cql(
    contacts: Iterable[str],
    statements: Sequence[str],
    *,
    variables: Mapping[str, str] | None = None,
    tls: Mapping[str, str | None] | None = None,
    timeout_s: float = _cql.TIMEOUT_S,
) -> tuple[tuple[dict[str, Any], ...], ...]:
    """Rows of each statement, carried out one after another by the first contact (`address:port`) that answers.
    `tls`: as in an order, None for connections that are not encrypted.

    Raises SystemFault when the server refuses a statement or does not answer in time, NotAnswering when no contact can
    be reached."""
    last: _cql.NotAnswering | None = None
    for contact in contacts:
        address, _, port = contact.rpartition(":")
        node = Node(contact, "database", address, (), Path(), environment=dict(variables or {}))
        try:
            return await _cql.ask(node, int(port), statements, timeout_s=timeout_s, options=_options(tls))
        except _cql.NotAnswering as fault:
            last = fault
    if last is None:
        raise EngineError("no node is named", "give the address of one")
    raise last


def _options(tls: Mapping[str, str | None] | None) -> list[str]:
    """The agent's options for an order's `tls`."""
    if tls is None:
        return []
    return ["--tls", *(word for name, value in tls.items() if value is not None for word in (f"--tls-{name}", value))]


async def discover(
    contacts: Sequence[str], *, variables: Mapping[str, str] | None = None, tls: Mapping[str, str] | None = None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """All nodes of the datacenter of the first contact that answers, those of `contacts` first, as client libraries
    find them; and those that were found but cannot be reached from here. Raises as `cql`."""
    local, peers = await cql(
        contacts,
        ["SELECT data_center FROM system.local", "SELECT peer, rpc_address, data_center FROM system.peers"],
        variables=variables,
        tls=tls,
    )
    port = int(contacts[0].rpartition(":")[2])
    known = await _addresses(contacts)
    found = []
    for peer in peers:
        address = peer["rpc_address"] if peer["rpc_address"] not in (None, "0.0.0.0", "::") else peer["peer"]
        if peer["data_center"] == local[0]["data_center"] and address not in known:
            found.append(f"[{address}]:{port}" if ":" in address else f"{address}:{port}")
    answers = await together(_answers(contact) for contact in found)
    reached = [contact for contact, answer in zip(found, answers, strict=True) if answer]
    return (*contacts, *reached), tuple(contact for contact in found if contact not in reached)


async def _addresses(contacts: Iterable[str]) -> set[str]:
    """IP addresses of the contacts; of names, all that they stand for."""
    loop = asyncio.get_running_loop()
    found = set()
    for contact in contacts:
        name, _, port = contact.rpartition(":")
        with contextlib.suppress(OSError):
            found |= {str(entry[4][0]) for entry in await loop.getaddrinfo(name.strip("[]"), int(port))}
    return found


async def _answers(contact: str) -> bool:
    name, _, port = contact.rpartition(":")
    try:
        _, writer = await asyncio.wait_for(asyncio.open_connection(name.strip("[]"), int(port)), REACH_TIMEOUT_S)
    except (OSError, TimeoutError):
        return False
    writer.close()
    return True
