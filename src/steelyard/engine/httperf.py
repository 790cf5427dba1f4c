"""Engine `httperf`: a third-party load generator that opens a connection for each request, so that the load generator
can be a factor of a study.

httperf reports only at its end, so its whole load is one interval. Its histogram of connections has steps of 1 ms.
"""

from __future__ import annotations

import asyncio
import re
import shutil
import time
from collections.abc import Callable, Sequence
from typing import Literal

from steelyard.engine.base import Engine
from steelyard.model import percentiles
from steelyard.model.errors import CommandFailed, EngineError
from steelyard.model.histogram import Bucket
from steelyard.model.load import MEASURE, POPULATE
from steelyard.model.outcome import Outcome
from steelyard.node.base import Node
from steelyard.node.command import run
from steelyard.node.tasks import together
from steelyard.wire.order import HttpTarget, Order, Requests
from steelyard.wire.record import FORMAT, Connected, Counts, Done, Hello, Interval, Record, Summary, nothing_done
from steelyard.wire.schedule import Steady

PACKAGE = "httperf"
OPERATION = "get"
STEP_NS = 1_000_000
MS_PER_S, NS_PER_S = 1e3, 1e9
LOOKED_AT = ("contacts", "action", "schedule", "stop", "keep_alive", "timeout_ms", "warm_up_s", "phases")
WITHOUT_MEANING = ("format", "protocol", "seed", "share", "backlog_limit", "drain_s", "interval_s")
"""Fields without effect for one document at a constant rate."""
TOTAL = re.compile(r"^Total: connections \d+ requests \d+ replies (\d+) test-duration ([\d.]+) s", re.MULTILINE)
STATUS = re.compile(r"^Reply status: 1xx=\d+ 2xx=(\d+) 3xx=(\d+) 4xx=(\d+) 5xx=(\d+)", re.MULTILINE)
SIZE = re.compile(r"^Reply size \[B\]: header [\d.]+ content ([\d.]+)", re.MULTILINE)
CPU = re.compile(r"^CPU time \[s\]: user ([\d.]+) system ([\d.]+)", re.MULTILINE)
ERROR = re.compile(r"(client-timo|socket-timo|connrefused|connreset|fd-unavail|addrunavail|ftab-full|other) (\d+)")
LIFETIME = re.compile(r"^ +(\d+)\.5 (\d+)$", re.MULTILINE)
UNSENT = ("fd-unavail", "addrunavail", "ftab-full")
"""Connections that the client could not open for limits of its own: descriptors, ports, the kernel's table of files."""
KINDS = {
    "client-timo": Outcome.TIMEOUT, "socket-timo": Outcome.TIMEOUT, "connrefused": Outcome.CONNECTION,
    "connreset": Outcome.CONNECTION,
}  # fmt: skip
"""Its errors that are the system's, and their kinds. Others, and connections without a reply, are `connection`."""


def _refused(what: str, allowed: str) -> EngineError:
    hint = f"httperf can: {allowed}. Choose load.engine = 'agent', or another load"
    return EngineError(f"engine httperf cannot run {what}", hint)


def asked(order: Order) -> tuple[str, int, Steady]:
    """Path and length of the document, and the rate. Raises EngineError for anything that httperf does not support."""
    if not isinstance(order.target, HttpTarget) or not isinstance(order.work, Requests):
        raise _refused(f"workload {order.work.kind!r} over {order.target.protocol}", "requests over http")
    if order.target.keep_alive:
        raise _refused("a load over connections that stay open", "load.keep_alive = false")
    if len(order.work.documents) > 1:
        raise _refused(f"requests for {len(order.work.documents)} documents", "one document")
    if order.work.validate_fraction:
        raise _refused(f"validate_fraction = {order.work.validate_fraction:g}", "validate_fraction = 0")
    if len(order.contacts) > 1:
        raise _refused(f"a load on {len(order.contacts)} servers", "one server")
    if order.contacts[0].startswith("["):
        raise _refused(f"a load on {order.contacts[0]}", "addresses of version 4")
    if not isinstance(order.schedule, Steady) or order.schedule.kind != "constant":
        raise _refused(f"schedule {order.schedule.kind!r}", "constant")
    if order.phases:
        raise _refused("several phases", "one, with load.operations or load.duration_s")
    if order.warm_up_s:
        raise _refused(f"load.warm_up_s = {order.warm_up_s:g}", "load.warm_up_s = 0")
    for name, value in order.said():
        if name not in (*LOOKED_AT, *WITHOUT_MEANING):
            raise _refused(f"{name} = {value!r}", "what leaves it out")
    document = order.work.documents[0]
    return document.path, document.bytes, order.schedule


class Httperf:
    """Compiles an order to a command line, and parses httperf's report into records."""

    name = "httperf"
    version = "of Debian's package"
    stamped_here: Literal[True] = True
    """httperf prints no time of day."""
    falls_silent: Literal[True] = True
    """It reports at its end."""

    async def prepare(self) -> None:
        """Find the program. Raises EngineError that names the package."""
        _find()

    def check(self, order: Order, load_nodes: int) -> None:
        """Raises EngineError for anything that httperf does not support, or if it is not installed."""
        _check(order)
        if order.action == "load" and load_nodes > requests(order, asked(order)[2].rate_per_s, 0, 1):
            raise _refused(f"fewer requests than {load_nodes} load nodes", "at least one request for each")
        _find()

    async def drive(
        self,
        order: Order,
        nodes: Sequence[Node],
        on_record: Callable[[str, Record], None],
        timeout_s: float,
    ) -> None:
        """Run an order. Raises EngineError if httperf does not support it, fails, or takes too long."""
        _check(order)
        try:
            async with asyncio.timeout(timeout_s) as limit:
                await together(
                    _drive_one(order, node, index, len(nodes), on_record) for index, node in enumerate(nodes)
                )
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise EngineError(f"httperf did not end within {timeout_s:g} s", "raise limits.trial_timeout_s") from error


def _check(order: Order) -> None:
    # The system has the documents from the start.
    if not (order.action == "populate" and isinstance(order.work, Requests)):
        asked(order)


def _find() -> None:
    if shutil.which(PACKAGE) is None:
        hint = f"steelyard setup httperf, or as root: apt-get install {PACKAGE}; on each load node"
        raise EngineError("httperf is not installed", hint)


async def _drive_one(order: Order, node: Node, index: int, of: int, on_record: Callable[[str, Record], None]) -> None:
    on_record(node.name, Hello(format=FORMAT, agent="httperf", optimised=True, t_s=time.time()))
    if order.action == "populate":
        on_record(node.name, nothing_done(POPULATE))
        return
    path, size, schedule = asked(order)
    (contact,) = order.contacts
    # One connection alone: a server that is not there is an error of the load, not one for each request.
    first = await _report(node, [*_server(contact, path, order.timeout_ms), "--num-conns", "1"])
    if "connrefused 1" in first:
        raise EngineError(f"{node.name}: {contact} refuses connections")
    on_record(node.name, Connected(nodes=order.contacts, connections=0, server="unknown"))
    due = requests(order, schedule.rate_per_s, index, of)
    argv = [
        *_server(contact, path, order.timeout_ms), "--verbose", "--verbose", "--client", f"{index}/{of}",
        "--rate", f"{schedule.rate_per_s / of:g}", "--num-conns", str(due), "--num-calls", "1",
    ]  # fmt: skip
    began_s = time.time()
    for record in records(await _report(node, argv), due, size, order.timeout_ms, began_s):
        on_record(node.name, record)


def _server(contact: str, path: str, timeout_ms: int) -> list[str]:
    host, _, port = contact.rpartition(":")
    server = ("--server", host.strip("[]"), "--port", port, "--uri", path)
    return ["httperf", "--hog", *server, "--timeout", f"{timeout_ms / MS_PER_S:g}"]


async def _report(node: Node, argv: Sequence[str]) -> str:
    try:
        # The time limit is that of `drive`.
        return (await run(node, argv, timeout_s=float("inf"))).stdout.decode(errors="replace")
    except CommandFailed as error:
        raise EngineError(f"{node.name}: {error.message}", error.hint) from error


def requests(order: Order, rate_per_s: float, index: int, of: int) -> int:
    """Requests of one of several load nodes. Pure."""
    lasting = order.stop.duration_s
    limits = (order.stop.operations, None if lasting is None else round(lasting * rate_per_s))
    whole = min(limit for limit in limits if limit is not None)
    return whole // of + (index < whole % of)


def records(report: str, due: int, size: int, timeout_ms: int, began_s: float) -> list[Record]:
    """One interval and the end, from httperf's report on `due` requests for a document of `size` bytes. Raises
    EngineError if it is not one."""
    total, status, length, cpu = (pattern.search(report) for pattern in (TOTAL, STATUS, SIZE, CPU))
    if not (total and status and length and cpu):
        raise EngineError(f"not a report of httperf: {report[-500:]!r}")
    errors = {name: int(count) for name, count in ERROR.findall(report)}
    unsent = sum(errors[name] for name in UNSENT)
    answered, (good, *others) = int(total[1]), map(int, status.groups())
    kinds = {Outcome.SERVER.value: sum(others)}
    if not any(others) and answered and abs(float(length[1]) - size) >= 0.1:
        kinds[Outcome.INVALID.value], good = good, 0
    for name, kind in KINDS.items():
        kinds[kind.value] = kinds.get(kind.value, 0) + errors[name]
    rest = due - unsent - good - sum(kinds.values())
    kinds[Outcome.CONNECTION.value] += max(0, rest)
    seconds, cpu_s = float(total[2]), sum(map(float, cpu.groups()))
    kinds = {kind: count for kind, count in kinds.items() if count}
    counts = _counts(report, good, kinds, timeout_ms)
    failed = sum(kinds.values())
    return [
        Interval(
            phase=MEASURE, t_s=began_s, seconds=seconds, sent=good + failed, done=good + failed, errors=failed,
            unsent=unsent, backlog=0, cpu_fraction=cpu_s / seconds if seconds else 0.0,
            summary=_summary(counts, good, seconds), counts=counts,
        ),
        Done(
            phase=MEASURE, first_sent_s=began_s, last_done_s=began_s + seconds,
            execution_ns=round(seconds * NS_PER_S), operations=good, errors=failed, errors_by_kind=kinds,
            unsent=unsent, not_found=0, rows=0, cpu_ns=round(cpu_s * NS_PER_S),
            # It asks the kernel again and again, and never sleeps: its CPU time says nothing of what it could carry.
            busiest_thread_fraction=0.0, dropped=0, reconnections=0,
        ),
    ]  # fmt: skip


def _counts(report: str, good: int, kinds: dict[str, int], timeout_ms: int) -> tuple[Counts, ...]:
    """Times of all requests. Those of replies are lifetimes of connections; where some replies failed, they took as
    long as the others. Of those without a reply, only the time-out is known."""
    steps = [(int(ms), int(count)) for ms, count in LIFETIME.findall(report)]
    limit_ns = timeout_ms * STEP_NS
    unknown = {Outcome.TIMEOUT.value: (limit_ns, limit_ns), Outcome.CONNECTION.value: (0, limit_ns)}
    counts = []
    for outcome, count in {Outcome.OK.value: good, **kinds}.items():
        bounds = unknown.get(outcome)
        buckets = _shared(steps, count) if bounds is None else [(*bounds, count)]
        for measure in ("response", "service"):
            counts.append(Counts(operation=OPERATION, outcome=outcome, measure=measure, buckets=tuple(buckets)))
    return tuple(one for one in counts if one.buckets)


def _shared(steps: Sequence[tuple[int, int]], count: int) -> list[Bucket]:
    """`count` values that are spread as the steps are."""
    whole = sum(there for _, there in steps)
    buckets, before, taken = list[Bucket](), 0, 0
    for ms, there in steps:
        before += there
        share = round(before * count / whole) - taken
        taken += share
        if share:
            buckets.append((ms * STEP_NS, (ms + 1) * STEP_NS - 1, share))
    return buckets


def _summary(counts: Sequence[Counts], good: int, seconds: float) -> Summary:
    answered = next((one.buckets for one in counts if one.outcome == Outcome.OK.value), ())
    middle, high = ((percentiles.quantile_ns(answered, q) or 0.0) / STEP_NS for q in (0.5, 0.99))
    rate = good / seconds if seconds else 0.0
    return Summary(
        rate_per_s=rate, response_ms_p50=middle, response_ms_p99=high, service_ms_p50=middle, service_ms_p99=high,
        pacing_ms_p99=0.0,
    )  # fmt: skip


async def missing_packages() -> tuple[str, ...]:
    """Debian packages that `prepare` needs."""
    return () if shutil.which(PACKAGE) else (PACKAGE,)


def create() -> Engine:
    """The engine."""
    return Httperf()
