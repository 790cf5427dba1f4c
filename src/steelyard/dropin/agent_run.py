"""Run one order with our agent on this machine, outside a study; every drop-in uses it.

    outcome = await drive(order, on_interval=print_status)
    outcome.main.histogram("response", "read").quantile_ns(0.99)

Intervals are merged by adding histogram buckets, so every figure of the whole run is computed from all operations.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steelyard.dropin.shortfall import DRAIN_S
from steelyard.engine import agent as engine
from steelyard.model.errors import EngineError
from steelyard.model.load import WARM_UP
from steelyard.model.outcome import ANSWERED
from steelyard.node import command, signals
from steelyard.node.base import Node
from steelyard.node.secrets import CQL_PASSWORD, CQL_USER
from steelyard.node.tasks import together
from steelyard.system.cassandra import _cql
from steelyard.wire.order import Order, Tls
from steelyard.wire.record import Connected, Done, Interval, Record, nothing_done
from steelyard.wire.tables import Histogram, Sums, Tables

SILENCE_LIMIT_S = 300.0
"""Longest time without a record; connecting and preparing statements take much less."""
PLACES_PER_WORKER = 64
"""Operations in flight that one agent thread handles easily; a second thread costs one more connection per node."""
REACH_TIMEOUT_S = 2.0
"""Connect time-out for a discovered node, one that the user did not name."""
RATE_PER_WORKER = 50_000
"""Most scheduled operations per second per thread: a fraction of what one thread can send."""
USER_VARIABLE, PASSWORD_VARIABLE = CQL_USER, CQL_PASSWORD


@dataclass(frozen=True)
class PhaseOutcome:
    """A phase that has ended."""

    totals: Done
    tables: Tables

    def histogram(
        self, measure: str, operation: str | None = None, outcomes: Collection[str] | None = ANSWERED
    ) -> Histogram:
        """Like `Tables.histogram`."""
        return self.tables.histogram(measure, operation, outcomes)


@dataclass(frozen=True)
class LoadResult:
    """The result of an order."""

    connected: Connected | None
    """Nodes, connections and server version; None if the load ended before they were known."""
    phases: Mapping[str, PhaseOutcome]
    """Phases by name, in order: `populate`, or `warm-up` and `measure`."""
    interrupted: bool
    """Whether the load was ended early, by a signal or by `stop`."""

    @property
    def main(self) -> PhaseOutcome:
        """The last phase that is not the warm-up; empty if it never began."""
        kept = [phase for name, phase in self.phases.items() if name != WARM_UP]
        return kept[-1] if kept else PhaseOutcome(nothing_done(""), Tables())


def workers_for(places: int, rate_per_s: float | None = None, processors: int = 0) -> int:
    """Number of agent threads for `places` operations in flight and, for an open loop, `rate_per_s`: the fewest that
    can handle the load, at most one per available processor."""
    processors = processors or len(os.sched_getaffinity(0))
    by_places = -(-places // PLACES_PER_WORKER)
    by_rate = 1 if rate_per_s is None else int(rate_per_s // RATE_PER_WORKER) + 1
    wanted = by_places if rate_per_s is None else min(by_places, by_rate)
    return max(1, min(wanted, processors, places))


def credentials(user: str | None, password: str | None) -> dict[str, str]:
    """The environment variables that pass user and password to the agent; neither is ever in an order or an argv."""
    return {} if user is None else {USER_VARIABLE: user, PASSWORD_VARIABLE: password or ""}


async def drive(
    order: Order,
    *,
    workers: int = 1,
    variables: Mapping[str, str] | None = None,
    on_connected: Callable[[Connected], None] | None = None,
    on_interval: Callable[[Interval], None] | None = None,
    on_phase: Callable[[str, PhaseOutcome], None] | None = None,
    stop: asyncio.Event | None = None,
    silence_limit_s: float = SILENCE_LIMIT_S,
) -> LoadResult:
    """Run an order with `steelyard-agent load`.

    It continues without contacts that do not answer, as long as one does (`Connected.absent`), and ends `DRAIN_S` and
    the answers to what is in flight after a time limit, unless the order says otherwise.

    `variables`: environment variables of the agent, such as `credentials()`. The first SIGINT or SIGTERM, or setting
    `stop`, ends the load early; the outcome holds what was done by then. A second signal ends it at once, as
    KeyboardInterrupt. Raises EngineError when the agent cannot be found, cannot connect, or fails."""
    sums = Sums()
    phases: dict[str, PhaseOutcome] = {}
    connected: Connected | None = None
    asked = stop if stop is not None else asyncio.Event()
    loop = asyncio.get_running_loop()

    def take(_node: str, record: Record) -> None:
        nonlocal connected
        limit.reschedule(loop.time() + silence_s)
        match record:
            case Connected():
                connected = record
                if on_connected is not None:
                    on_connected(record)
            case Interval():
                sums.add(record.tables)
                if on_interval is not None:
                    on_interval(record)
            case Done():
                phases[record.phase] = PhaseOutcome(record, sums.take())
                if on_phase is not None:
                    on_phase(record.phase, phases[record.phase])

    silence_s = silence_limit_s + order.interval_s
    outside = {"some_contacts": True, "drain_s": DRAIN_S}
    unsaid = {name: value for name, value in outside.items() if name not in order.model_fields_set}
    with tempfile.TemporaryDirectory(prefix="steelyard-load-") as folder, _signals(asked) as twice:
        node = Node("load", "load", "127.0.0.1", (), Path(folder), environment=dict(variables or {}))
        try:
            async with asyncio.timeout(silence_s) as limit:
                await _until_the_end(order.model_copy(update=unsaid), node, take, workers, asked)
        except asyncio.CancelledError:
            if twice.is_set():
                raise KeyboardInterrupt from None
            raise
        except TimeoutError as error:
            if not limit.expired():
                raise
            message = f"the load generator printed nothing for {silence_s:g} s"
            raise EngineError(message, "is this machine, or are all nodes, suspended?") from error
    return LoadResult(connected, phases, asked.is_set())


async def _until_the_end(
    order: Order,
    node: Node,
    take: Callable[[str, Record], None],
    workers: int,
    asked: asyncio.Event,
) -> None:
    """Run the agent until it ends; setting `asked` makes it end early."""
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
    """While inside, the first SIGINT or SIGTERM sets `asked`; the second sets the yielded event and cancels the task
    that entered."""
    task = asyncio.current_task()
    once, twice = asyncio.Event(), asyncio.Event()

    def hear() -> None:
        # A third signal must not interrupt the agent's shutdown.
        if once.is_set() and not twice.is_set() and task is not None:
            twice.set()
            task.cancel()
        once.set()
        asked.set()

    with signals.heard({signal.SIGINT: hear, signal.SIGTERM: hear}):
        yield twice


async def cql(
    contacts: Sequence[str],
    statements: Sequence[str],
    *,
    variables: Mapping[str, str] | None = None,
    tls: Tls | None = None,
    timeout_s: float = _cql.TIMEOUT_S,
) -> tuple[tuple[dict[str, Any], ...], ...]:
    """The rows of each statement, executed in order on the first contact (`address:port`) that is not away.
    `tls`: as in an order; None for unencrypted connections.

    Raises SystemFault when the server refuses a statement or does not answer in time, NotAnswering when no contact can
    be reached."""
    first, *others = contacts or ("",)
    if not first:
        raise EngineError("no node is named", "give the address of one")
    address, _, port = first.rpartition(":")
    name = "the cluster" if others else first
    node = Node(name, "database", address.strip("[]"), (), Path(), environment=dict(variables or {}))
    options = [*_options(tls), *(word for contact in others for word in ("--contact", contact))]
    return await _cql.ask(node, int(port), statements, timeout_s=timeout_s, options=options)


def _options(tls: Tls | None) -> list[str]:
    """The agent's options for an order's `tls`."""
    if tls is None:
        return []
    return ["--tls", *(word for name, value in tls.model_dump().items() for word in (f"--tls-{name}", value))]


async def discover(
    contacts: Sequence[str], *, variables: Mapping[str, str] | None = None, tls: Tls | None = None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """All nodes in the data centre of the first contact that answers, `contacts` first, as client libraries find them;
    and the discovered nodes that cannot be reached from here. Raises the same errors as `cql`."""
    local, peers = await cql(
        contacts,
        ["SELECT data_center FROM system.local", "SELECT peer, rpc_address, data_center FROM system.peers"],
        variables=variables,
        tls=tls,
    )
    port = int(contacts[0].rpartition(":")[2])
    known = await _addresses(contacts)
    candidates = []
    for peer in peers:
        address = peer["rpc_address"] if peer["rpc_address"] not in (None, "0.0.0.0", "::") else peer["peer"]
        if peer["data_center"] == local[0]["data_center"] and address not in known:
            candidates.append(f"[{address}]:{port}" if ":" in address else f"{address}:{port}")
    answers = await together(_answers(contact) for contact in candidates)
    reached = [contact for contact, answer in zip(candidates, answers, strict=True) if answer]
    return (*contacts, *reached), tuple(contact for contact in candidates if contact not in reached)


async def _addresses(contacts: Iterable[str]) -> set[str]:
    """IP addresses of the contacts; a host name gives all of its addresses."""
    loop = asyncio.get_running_loop()
    addresses = set()
    for contact in contacts:
        name, _, port = contact.rpartition(":")
        with contextlib.suppress(OSError):
            addresses |= {str(entry[4][0]) for entry in await loop.getaddrinfo(name.strip("[]"), int(port))}
    return addresses


async def _answers(contact: str) -> bool:
    name, _, port = contact.rpartition(":")
    try:
        _, writer = await asyncio.wait_for(asyncio.open_connection(name.strip("[]"), int(port)), REACH_TIMEOUT_S)
    except (OSError, TimeoutError):
        return False
    writer.close()
    return True
