"""Engine `job`: submits jobs to a cluster, one operation each, follows their event logs and checks what comes out.

A job's response time is from its submission, or from when it was due, to the exit of its driver; its service time is
that of the Spark jobs alone, by the event log. Those of the group `check` are part of neither.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import random
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, Literal

from steelyard.engine._event_log import CHECK, EventLog
from steelyard.engine.base import Engine
from steelyard.format import count
from steelyard.model import job_inputs, percentiles
from steelyard.model.errors import CommandFailed, EngineError
from steelyard.model.load import MEASURE, POPULATE, Load
from steelyard.model.measure import JOB_SPAN
from steelyard.model.outcome import Outcome
from steelyard.node import files
from steelyard.node.base import Node
from steelyard.node.command import end, run, spawn
from steelyard.node.process_time import processes_time_s
from steelyard.node.tasks import in_a_thread, to_the_end, together
from steelyard.wire.order import Jobs, JobTarget, Order
from steelyard.wire.record import (
    FORMAT,
    Connected,
    Counts,
    Doing,
    Done,
    Hello,
    Interval,
    Record,
    Routed,
    SampleRecord,
    Summary,
    nothing_done,
)
from steelyard.wire.schedule import Closed, Steady, in_flight

LOOKED_AT = (
    "contacts", "action", "seed", "schedule", "stop", "timeout_ms", "interval_s", "drain_s", "phases", "warm_up_s",
    "discover", "protocol", "files", "submit", "program", "remove",
)  # fmt: skip
WITHOUT_MEANING = ("format", "backlog_limit")
"""Fields without effect: every job that is due is waited for."""
DEFAULT_TIMEOUT_MS: Final = Load.model_fields["timeout_ms"].default
MS_PER_S, NS_PER_S, NS_PER_MS = 1e3, 1e9, 1e6
REMOVE_TIMEOUT_S = 30.0
MOST_READ_BYTES = 64 << 20
"""More than a log grows between two looks."""
TEXT_CHARS, TEXTS = 300, 5
"""Length and number of the messages of failed jobs that are kept, per kind."""
LOG_CONF: Final = ("enabled=true", "rolling.enabled=false", "compress=false")
PID_FILE: Final = ".pid"
SAYS_ITS_ID: Final = 'echo $$ > "$0"; exec "$@"'
"""For `sh`: writes its process id into a file, and becomes the command."""
NEXT_S: Final = 1e-6
"""Seconds between the times of the stages of one job."""
LEAST_S: Final = 1e-6


def _refused(what: str, allowed: str) -> EngineError:
    return EngineError(f"engine job cannot run {what}", f"allowed: {allowed}")


def refuse(order: Order) -> None:
    """Raises EngineError for anything but jobs in a closed loop or at a constant or Poisson rate."""
    if not isinstance(order.target, JobTarget) or not isinstance(order.work, Jobs):
        raise _refused(
            f"workload {order.work.kind!r} over {order.target.protocol}", "jobs; choose load.engine = 'agent'"
        )
    if order.action == POPULATE:
        return
    if not isinstance(order.schedule, Closed | Steady):
        raise _refused(f"schedule {order.schedule.kind!r}", "closed, constant, poisson")
    if order.phases or order.words:
        raise _refused("several phases, or a search", "one, with load.operations or load.duration_s")
    if order.warm_up_s:
        raise _refused(
            f"load.warm_up_s = {order.warm_up_s:g}",
            "0; each job starts cold. analysis.warm_up_trials drops first trials",
        )
    if order.work.idle_s and not isinstance(order.schedule, Closed):
        raise _refused(f"workload.idle_s = {order.work.idle_s:g} where arrivals are scheduled", "0, or schedule closed")
    if order.timeout_ms == DEFAULT_TIMEOUT_MS:
        what = f"load.timeout_ms = {DEFAULT_TIMEOUT_MS}, the default for operations of a database: it ends a job"
        raise _refused(what, "the longest time that a job may take, such as 1800000")
    for name, value in order.said():
        if name not in (*LOOKED_AT, *WITHOUT_MEANING):
            raise _refused(f"{name} = {value!r}", "what leaves it out")


class JobEngine:
    """Submits each job with the system's own command on a load node. A node that joins is routed to when a job begins
    its first task there, as the event log says at the next look."""

    reports_routing = True
    stamped_here: Literal[True] = True
    """Times are taken here; of the event log, by the clock of the driver, only differences count."""

    def check(self, order: Order, load_nodes: int) -> None:
        """Raises EngineError for an order that `drive` would refuse."""
        refuse(order)
        if isinstance(order.work, Jobs):
            wanted_of(order.work)  # takes seconds the first time, which are no part of a load
        stop = order.stop.operations
        if stop is not None and order.action == "load" and stop < load_nodes:
            raise _refused(f"{count(stop, 'job')} on {load_nodes} load nodes", "at least one job for each")

    async def drive(
        self, order: Order, nodes: Sequence[Node], on_record: Callable[[str, Record], None], timeout_s: float
    ) -> None:
        """Run an order. Raises EngineError if it is refused, if no job can be submitted, or after the time limit."""
        refuse(order)
        if order.action == POPULATE:
            for node in nodes:
                on_record(node.name, Hello(format=FORMAT, agent="job", optimised=True, t_s=time.time()))
                on_record(node.name, nothing_done(POPULATE))
            return
        try:
            async with asyncio.timeout(timeout_s) as limit:
                await _drive(order, nodes, on_record)
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise EngineError(f"the jobs did not end within {timeout_s:g} s", "raise limits.trial_timeout_s") from error
        except CommandFailed as error:
            raise EngineError(error.message, error.hint) from error


async def _drive(order: Order, nodes: Sequence[Node], on_record: Callable[[str, Record], None]) -> None:
    work = order.work
    assert isinstance(work, Jobs)
    wanted = await in_a_thread(lambda: wanted_of(work))
    agent = await in_a_thread(lambda: _agent(order, work))
    commands = []
    for node in nodes:
        on_record(node.name, Hello(format=FORMAT, agent=agent, optimised=True, t_s=time.time()))
        commands.append(await _command(order, work, node))
        on_record(node.name, Connected(nodes=order.contacts, connections=0, server="unknown"))
    arrivals = Arrivals(order)
    senders = [
        _Sender(order, work, node, wanted, argv, arrivals if place == 0 else None, on_record)
        for place, (node, argv) in enumerate(zip(nodes, commands, strict=True))
    ]
    slots = max(in_flight(order.schedule), len(nodes))
    slotted = [senders[place % len(senders)].slot(arrivals) for place in range(slots)]
    ticking = asyncio.ensure_future(together(sender.tick() for sender in senders))
    try:
        await together(slotted)
    finally:
        ticking.cancel()
    for sender in senders:
        sender.finish()


def _agent(order: Order, work: Jobs) -> str:
    """The engine and the program that it submits, for the trial's versions."""
    assert isinstance(order.target, JobTarget)
    path = Path(work.program or order.target.program)
    if not path.is_file():
        what = f"{path} not found" if path.name else f"the system has no program for its own job {work.name!r}"
        raise EngineError(what, "set workload.program")
    return f"job, {path.name} sha256 {hashlib.sha256(path.read_bytes()).hexdigest()[:12]}"


def on(node: Node, words: Sequence[str]) -> list[str]:
    """The words of a target's command, as they are on a load node. Pure."""
    return [word.replace("{folder}", str(node.folder)) for word in words]


async def _command(order: Order, work: Jobs, node: Node) -> Callable[[Path, str], list[str]]:
    """argv of a job on a node, from the folder of its event log and the URL of its output."""
    target = order.target
    assert isinstance(target, JobTarget)
    program = await files.bring(node, Path(work.program or target.program))
    url = "" if work.input is None else target.files + work.input.path
    classes = ("--class", work.main_class) if work.main_class else ()

    def argv(log: Path, output: str) -> list[str]:
        own = [one.replace("{input}", url).replace("{output}", output) for one in work.arguments]
        conf = [f"spark.eventLog.{setting}" for setting in (*LOG_CONF, f"dir=file://{log}")]
        confs = [word for setting in conf for word in ("--conf", setting)]
        words = own if work.program else [work.name, url, output]
        return [*on(node, target.submit), *confs, *classes, str(program), *words]

    return argv


def wanted_of(work: Jobs) -> dict[str, Any]:
    """Keys and values that the last line of a job must hold. Raises EngineError if the order does not say so."""
    if not work.expected:
        return {}
    of = work.input
    try:
        if of is not None and work.expected in job_inputs.CHECKS:
            return dict(job_inputs.expected(of.kind, of.bytes, of.seed)[work.expected])
        return dict(json.loads(work.expected))
    except (TypeError, ValueError) as error:
        what = f"workload.expected = {work.expected!r} with {'an' if work.input else 'no'} input"
        raise _refused(what, "a JSON object; counts or order for an input") from error


def fault_of(wanted: dict[str, Any], last: bytes) -> str:
    """Difference between what a job printed and what it must hold; empty if there is none. Pure."""
    if not wanted:
        return ""
    try:
        printed = json.loads(last)
        wrong = {name: printed.get(name) for name, value in wanted.items() if printed.get(name) != value}
    except (ValueError, AttributeError):
        return f"its last line is no JSON object: {last[:TEXT_CHARS].decode(errors='replace')!r}"
    return "; ".join(f"{name} is {value!r}, must be {wanted[name]!r}" for name, value in wrong.items())


class Arrivals:
    """Which job is next, and when it is due; over all load nodes."""

    def __init__(self, order: Order) -> None:
        self.begun = time.monotonic()
        self._stop, self._next, self._closed = order.stop, 0, isinstance(order.schedule, Closed)
        self._due = list(due(order.schedule, order)) if isinstance(order.schedule, Steady) else []
        lasts_s = order.stop.duration_s or (self._due[-1] if self._due else 0.0)
        drain_s = max(lasts_s, order.timeout_ms / MS_PER_S) if order.drain_s is None else order.drain_s
        self._last_start = self.begun + lasts_s + drain_s

    def next(self) -> tuple[int, float | None] | None:
        """Number and time of the next job, whose time is None in a closed loop; None if there is no further one."""
        now, number, stop = time.monotonic(), self._next, self._stop
        if not self._closed:
            over = number >= len(self._due) or now > self._last_start
        else:
            over = number >= (stop.operations or number + 1) or now - self.begun >= (stop.duration_s or float("inf"))
        if over:
            return None
        self._next += 1
        return number, None if self._closed else self.begun + self._due[number]

    @property
    def backlog(self) -> int:
        """Jobs that are due and have no place yet."""
        since = time.monotonic() - self.begun
        return sum(at_s <= since for at_s in self._due[self._next :])

    @property
    def unsent(self) -> int:
        """Jobs that were never submitted; to be asked at the end."""
        return len(self._due) - self._next if not self._closed else 0


def due(schedule: Steady, order: Order) -> Iterator[float]:
    """Seconds from the beginning at which jobs are due, until the order's stop. Pure: from the seed alone."""
    drawn, at_s, number = random.Random(order.seed), 0.0, 0
    lasts_s, most = order.stop.duration_s or float("inf"), order.stop.operations or float("inf")
    while True:
        number += 1
        if schedule.kind == "constant":
            at_s = (number - 1) / schedule.rate_per_s
        else:
            at_s += drawn.expovariate(schedule.rate_per_s)
        if at_s >= lasts_s or number > most:
            return
        yield at_s


class _Sender:
    """Jobs on one load node. `counted`: where it counts the jobs that are due and not submitted by any node."""

    def __init__(
        self, order: Order, work: Jobs, node: Node, wanted: dict[str, Any], argv: Callable[[Path, str], list[str]],
        counted: Arrivals | None, on_record: Callable[[str, Record], None],
    ) -> None:  # fmt: skip
        assert isinstance(order.target, JobTarget)
        self._order, self._work, self._node, self._wanted, self._argv = order, work, node, wanted, argv
        self._target, self._counted = order.target, counted
        self._contacts = set(order.contacts)
        """Nodes to which tasks went, or that were there from the beginning."""
        self._port = order.contacts[-1].rpartition(":")[2]
        self._say: Callable[[Record], None] = lambda record: on_record(node.name, record)
        self._sent, self._kinds, self._all_kinds = 0, list[str](), list[str]()
        self._times: dict[tuple[str, str, str], list[int]] = {}
        """Operation, outcome, measure: nanoseconds, of the jobs that have ended since the last interval."""
        self._texts: dict[str, list[str]] = {}
        self._first: float | None = None
        self._last = self._tick = time.monotonic()
        self._to_wall_s = time.time() - self._tick
        self._cpu_s = self._cpu_before_s = self._stamp_s = 0.0
        self._said = ""

    async def slot(self, arrivals: Arrivals) -> None:
        """One place: job after job until there is none."""
        while (job := arrivals.next()) is not None:
            number, due_at = job
            free = time.monotonic()
            if due_at is not None:
                await asyncio.sleep(max(0.0, due_at - free))
            elif self._work.idle_s:
                self._doing(f"idle for {self._work.idle_s:g} s before job {number + 1}")
                await asyncio.sleep(self._work.idle_s)
            folder = self._node.folder / "jobs" / f"{number}"
            output = f"{self._target.files}/outputs/{self._work.name}-{uuid.uuid4().hex[:12]}"
            await files.make_folders(self._node, folder)
            try:
                await self._job(number, due_at, free, folder, output)
            except BaseException:
                with contextlib.suppress(CommandFailed):
                    await to_the_end(self._clean_up(folder, output))
                raise
            await to_the_end(self._clean_up(folder, output))

    async def _job(self, number: int, due_at: float | None, free: float, folder: Path, output: str) -> None:
        """Submit a job, follow it to its end, and count it."""
        argv, log, cpu_s, pids = self._argv(folder, output), EventLog(), 0.0, tuple[int, ...]()
        if self._node.processes == "through":
            argv = ["sh", "-c", SAYS_ITS_ID, str(folder / PID_FILE), *argv]
        with tempfile.NamedTemporaryFile(prefix="steelyard-job-") as errors:
            sent = time.monotonic()
            self._first, self._sent = self._first or sent, self._sent + 1
            process = await spawn(self._node, argv, stdout=asyncio.subprocess.PIPE, stderr=Path(errors.name))
            ending = asyncio.ensure_future(_ended(process))
            limit = sent + self._order.timeout_ms / MS_PER_S
            try:
                while not ending.done() and (left_s := limit - time.monotonic()) > 0:
                    await self._look(log, folder, number, sent)
                    pids = pids or await self._process_ids(process, folder / PID_FILE)
                    grown_s = max(0.0, await processes_time_s(self._node, pids) - cpu_s)
                    cpu_s, self._cpu_s = cpu_s + grown_s, self._cpu_s + grown_s
                    await asyncio.wait({ending}, timeout=min(self._order.interval_s, left_s))
            finally:
                late = not ending.done()
                await to_the_end(end(process))
            at, last, code = await ending
            await self._look(log, folder, number, sent)
            messages = [line.strip() for line in errors.read().decode(errors="replace").splitlines() if line.strip()]
        fault = "" if late or code else fault_of(self._wanted, last)
        outcome = Outcome.TIMEOUT if late else Outcome.SERVER if code else Outcome.INVALID if fault else Outcome.OK
        if outcome is not Outcome.OK:
            limited = f"not done after load.timeout_ms = {self._order.timeout_ms}"
            why = limited if late else fault or ": ".join([f"exit code {code}", log.failure or " ".join(messages[-1:])])
            self._texts.setdefault(outcome.value, []).append(f"job {number + 1}: {why}"[:TEXT_CHARS])
        response_s = at - (sent if due_at is None else due_at) - log.check_s
        name = self._work.name
        times_s = {(name, "response"): response_s, (name, "service"): log.work_s or response_s}
        if due_at is not None:
            times_s |= {(name, "lag"): sent - due_at, (name, "pacing"): sent - max(due_at, free)}
        if log.check_s:
            times_s[CHECK, "part"] = log.check_s
        for (of, measure), seconds in times_s.items():
            self._times.setdefault((of, outcome.value, measure), []).append(max(0, round(seconds * NS_PER_S)))
        self._kinds.append(outcome.value)
        self._last = at
        work_s = max(0.0, at - sent - log.check_s)
        self._say(SampleRecord(t_s=sent + work_s + self._to_wall_s, values={JOB_SPAN: work_s}))
        for stage in log.stages:
            # Its rows have a time of their own, by which they belong together.
            self._stamp_s = max(time.time(), self._stamp_s + NEXT_S)
            self._say(SampleRecord(t_s=self._stamp_s, values={"job_number": number + 1.0, **stage.values()}))

    async def _process_ids(self, process: asyncio.subprocess.Process, file: Path) -> tuple[int, ...]:
        """The process of a job's command as the node numbers it; empty until that is known."""
        if self._node.processes == "same":
            return (process.pid,)
        text = (await files.texts(self._node, file)).get(file, "").strip()
        return (int(text),) if text.isdigit() else ()

    async def _look(self, log: EventLog, folder: Path, number: int, sent: float) -> None:
        """Read on in a job's event log. Raises EngineError if it is none."""
        names = [name for name in await files.sizes(self._node, folder) if not name.startswith(".")]
        for name in names[:1]:  # of a program with several applications the first
            text = await files.read(self._node, folder / name, log.bytes, MOST_READ_BYTES)
            try:
                log.feed(text)
            except (ValueError, LookupError, TypeError) as error:
                raise EngineError(f"{self._node.name}: {name} is no event log of Spark: {error!r}") from error
        if self._order.discover:
            for contact in sorted({f"{host}:{self._port}" for host in log.hosts} - self._contacts):
                self._contacts.add(contact)
                self._say(Routed(t_s=time.time(), contact=contact))
        most = self._order.stop.operations
        of = f"job {number + 1}" + (f" of {most}" if most else "")
        self._doing(f"{self._work.name}, {of}: {log.words or f'submitted {time.monotonic() - sent:.0f} s ago'}")

    async def _clean_up(self, folder: Path, output: str) -> None:
        await files.remove(self._node, folder, below=self._node.folder)
        if self._target.remove:
            await run(self._node, [*on(self._node, self._target.remove), output], timeout_s=REMOVE_TIMEOUT_S)

    def _doing(self, what: str) -> None:
        if what != self._said:
            self._said = what
            self._say(Doing(what=what))

    async def tick(self) -> None:
        """Say an interval each `interval_s`, without end."""
        while True:
            await asyncio.sleep(self._order.interval_s)
            self._interval()

    def _interval(self) -> None:
        begun, self._tick = self._tick, time.monotonic()
        seconds, cpu_s, done = max(self._tick - begun, LEAST_S), self._cpu_s - self._cpu_before_s, len(self._kinds)
        errors = sum(kind != Outcome.OK for kind in self._kinds)
        counts = tuple(
            Counts(operation=of, outcome=outcome, measure=measure,
                   buckets=tuple((ns, ns, times.count(ns)) for ns in sorted(set(times))))
            for (of, outcome, measure), times in self._times.items()
        )  # fmt: skip
        middle = {
            one.measure: (percentiles.quantile_ns(one.buckets, 0.5) or 0.0) / NS_PER_MS
            for one in counts if one.outcome == Outcome.OK
        }  # fmt: skip
        response, service = middle.get("response", 0.0), middle.get("service", 0.0)
        self._say(
            Interval(
                phase=MEASURE, t_s=begun + self._to_wall_s, seconds=seconds, sent=self._sent, done=done, errors=errors,
                backlog=self._counted.backlog if self._counted else 0, cpu_fraction=cpu_s / seconds, counts=counts,
                summary=Summary(
                    rate_per_s=(done - errors) / seconds, response_ms_p50=response, response_ms_p99=response,
                    service_ms_p50=service, service_ms_p99=service, pacing_ms_p99=0.0,
                ),
            )
        )  # fmt: skip
        self._all_kinds += self._kinds
        self._sent, self._kinds, self._times, self._cpu_before_s = 0, [], {}, self._cpu_s

    def finish(self) -> None:
        """Say the last interval and the end."""
        self._interval()
        kinds = self._all_kinds
        failed = {kind: kinds.count(kind) for kind in sorted(set(kinds) - {Outcome.OK.value})}
        first, errors = self._first or self._last, sum(failed.values())
        self._say(
            Done(
                phase=MEASURE, first_sent_s=first + self._to_wall_s, last_done_s=self._last + self._to_wall_s,
                execution_ns=round((self._last - first) * NS_PER_S), operations=len(kinds) - errors, errors=errors,
                errors_by_kind=failed, error_texts={kind: tuple(texts[:TEXTS]) for kind, texts in self._texts.items()},
                unsent=self._counted.unsent if self._counted else 0, not_found=0, rows=0,
                cpu_ns=round(self._cpu_s * NS_PER_S), busiest_thread_fraction=0.0, dropped=0, reconnections=0,
            )
        )  # fmt: skip


async def _ended(process: asyncio.subprocess.Process) -> tuple[float, bytes, int]:
    """When a process has ended, its last line, its exit code."""
    assert process.stdout is not None
    last = b""
    async for line in process.stdout:
        last = line.strip() or last
    code = await process.wait()
    return time.monotonic(), last, code


def create() -> Engine:
    """The engine."""
    return JobEngine()
