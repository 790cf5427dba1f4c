"""Engine `latte`: a third-party load generator, so that the load generator can be a factor of a study.

latte reports only at its end, so its intervals arrive late. Its response time begins when a cycle begins. With a rate,
this leaves out how late the cycle began (coordinated omission), so open schedules are refused.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from steelyard.engine import _latte_script as latte_script
from steelyard.engine._histograms import decoded
from steelyard.engine.base import Engine
from steelyard.model import percentiles
from steelyard.model.errors import EngineError
from steelyard.model.load import MEASURE, POPULATE
from steelyard.model.outcome import Outcome
from steelyard.node import fetch
from steelyard.node.base import Node
from steelyard.node.command import end, spawn
from steelyard.node.files import put
from steelyard.node.folders import cache_folder
from steelyard.node.tasks import together
from steelyard.wire.order import Order
from steelyard.wire.record import FORMAT, Connected, Counts, Done, Hello, Interval, Record, Summary
from steelyard.wire.schedule import Closed, in_flight

VERSION = "0.29.0"
VARIABLE = "STEELYARD_LATTE"
BUILD_TIMEOUT_S = 3600.0
"""About 400 crates, optimised: minutes on a fast machine."""
DRAIN_GRACE_S = 15.0
LOOKED_AT = (
    *("contacts", "keyspace", "action", "schedule", "stop", "warm_up_s", "interval_s", "seed"),
    *("read_consistency", "write_consistency", "timeout_ms", "routing", "phases"),
)
WITHOUT_MEANING = ("format", "protocol", "table", "key", "share", "backlog_limit", "discover")
"""Fields without effect for a closed loop of these statements."""
APART = 10**12
"""Offset between the load nodes' cycle counters; each node's keys are functions of its counter."""

log = logging.getLogger(__name__)


def find() -> Path:
    """Path of the program: `$STEELYARD_LATTE`, otherwise the one installed by `steelyard setup latte`. Raises
    EngineError."""
    named = os.environ.get(VARIABLE)
    path = Path(named) if named else _program()
    if not path.is_file():
        raise EngineError(f"latte is not installed: no {path}", "run `steelyard setup latte`")
    return path


def _program() -> Path:
    return cache_folder() / "latte" / "bin" / "latte"


async def _build() -> None:
    """Build the program, if it is missing: by cargo from the package registry's sources, with its locked versions.
    Raises EngineError that names what is missing."""
    path = _program()
    if path.is_file():
        return
    cargo = shutil.which("cargo")
    if cargo is None:
        raise EngineError(f"no cargo to build latte {VERSION} with", "install Rust, as `make setup` needs it too")
    root = path.parent.parent
    async with fetch.locked(root, EngineError):
        # Another process may have built it while this one waited.
        if not path.is_file():
            log.info(f"building latte {VERSION} with {cargo}: about 400 crates")
            argv = [cargo, "install", "latte-cli", "--version", VERSION, "--locked", "--root", str(root)]
            code, tail = await fetch.followed(
                argv, log.info, {}, measure=lambda line: "Compiling" in line, unit="crates", timeout_s=BUILD_TIMEOUT_S
            )
            if code != 0:
                errors = [line for line in tail if line.lstrip().startswith("error")] or tail
                raise EngineError(f"cargo could not build latte {VERSION}: {' | '.join(errors[:3])}")


class LatteEngine:
    """Compiles an order to a latte script, and parses latte's report into records."""

    name = "latte"
    version = VERSION
    falls_silent: Literal[True] = True
    """It reports at its end."""

    async def prepare(self) -> None:
        """Build latte. Slow only the first time. Raises EngineError."""
        await _build()

    def check(self, order: Order, load_nodes: int) -> None:
        """Raises EngineError for anything that latte does not support, or if it is not installed."""
        _, target = latte_script.asked(order)
        if not isinstance(order.schedule, Closed):
            raise latte_script.refused(
                f"schedule {order.schedule.kind!r}: it has no times at which operations are due", "closed"
            )
        if order.phases:
            raise latte_script.refused("several phases", "one, with load.operations or load.duration_s")
        if target.routing != "token":
            raise latte_script.refused(f"load.routing = {target.routing!r}", "token")
        for name, value in order.said():
            if name not in (*LOOKED_AT, *WITHOUT_MEANING):
                raise latte_script.refused(f"{name} = {value!r}", "one plain connection to each node")
        latte_script.script(order)
        find()

    async def drive(
        self,
        order: Order,
        nodes: Sequence[Node],
        on_record: Callable[[str, Record], None],
        timeout_s: float,
    ) -> None:
        """Run an order. Raises EngineError if latte does not support it, fails, or takes too long."""
        self.check(order, len(nodes))
        text = latte_script.script(order)
        try:
            async with asyncio.timeout(timeout_s) as limit:
                await together(
                    self._drive_one(order, text, node, index, len(nodes), on_record) for index, node in enumerate(nodes)
                )
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise EngineError(f"latte did not end within {timeout_s:g} s", "raise limits.trial_timeout_s") from error

    async def _drive_one(
        self,
        order: Order,
        text: str,
        node: Node,
        index: int,
        of: int,
        on_record: Callable[[str, Record], None],
    ) -> None:
        program, script, report = find(), node.folder / "workload.rn", node.folder / "latte.json"
        log = node.folder / "latte.log"
        await put(node, script, text.encode())
        on_record(node.name, Hello(format=FORMAT, agent="latte", optimised=True, t_s=time.time()))
        contacts = order.contacts
        on_record(node.name, Connected(nodes=contacts, connections=len(contacts), server="unknown"))
        argv = _argv(order, program, script, report, index, of)
        began_s = time.time()
        process = await spawn(node, argv, stdout=node.folder / "latte.out", stderr=log)
        try:
            code = await process.wait()
        finally:
            await end(process, DRAIN_GRACE_S)
        if code != 0:
            tail = log.read_text(errors="replace")[-500:].strip()
            raise EngineError(f"{node.name}: latte exited with code {code}: {tail}")
        if order.action == "populate":
            on_record(node.name, populated(order, began_s, time.time()))
            return
        for record in records(json.loads(report.read_text()), order):
            on_record(node.name, record)


def _argv(order: Order, program: Path, script: Path, report: Path, index: int, of: int) -> list[str]:
    _, target = latte_script.asked(order)
    places = max(1, in_flight(order.schedule) // of)
    consistency = target.write_consistency
    if order.action == "populate":
        words = ["load", str(script), *order.contacts, "-q", "--concurrency", str(places)]
        return [str(program), "--log-dir", str(report.parent), *words, "--consistency", consistency]
    stop = order.stop
    if stop.operations and stop.duration_s:
        raise latte_script.refused("both load.operations and load.duration_s", "one of them")
    length = f"{stop.duration_s:g}s" if stop.duration_s else str(-(-(stop.operations or 0) // of))
    return [
        *(str(program), "--log-dir", str(report.parent), "run", str(script), *order.contacts),
        *("-q", "-t", "1", "-p", str(places)),
        *("-f", latte_script.weights(order), "-d", length, "-w", f"{order.warm_up_s:g}s" if order.warm_up_s else "1"),
        *("-s", f"{order.interval_s:g}s", "-o", str(report), "--consistency", target.read_consistency),
        *("--start-cycle", str(index * APART), "--request-timeout", f"{order.timeout_ms}ms", "--retries", "0"),
    ]


def populated(order: Order, began_s: float, ended_s: float) -> Done:
    """The end record of a fill: latte reports only that it succeeded."""
    return _done(POPULATE, began_s, ended_s, order.work.records, 0, 0.0)


def records(report: Mapping[str, Any], order: Order) -> list[Record]:
    """Records from latte's report: an interval for each sample, and the end."""
    result = report["result"]
    names = latte_script.names(order)
    began_s = datetime.fromisoformat(result["start_time"]).timestamp()
    intervals: list[Interval] = []
    at_s = 0.0
    for sample in result["log"]:
        intervals.append(_interval(sample, names, began_s + at_s))
        at_s += float(sample["duration_s"])
    errors = int(result["error_count"])
    operations = sum(interval.done - interval.errors for interval in intervals)
    end = _done(MEASURE, began_s, began_s + at_s, operations, errors, float(result["cpu_time_s"]))
    return [*intervals, end]


def _interval(sample: Mapping[str, Any], names: Mapping[str, str], t_s: float) -> Interval:
    counts = []
    for function, times in sample["cycle_latency_by_fn"].items():
        operation, buckets = names.get(function, function), tuple(decoded(times["histogram"]))
        for measure in ("response", "service"):
            counts.append(Counts(operation=operation, outcome=Outcome.OK.value, measure=measure, buckets=buckets))
    latencies = sample["cycle_latency"]
    seconds = float(sample["duration_s"])
    total, errors = int(sample["cycle_count"]), int(sample["cycle_error_count"])
    whole = decoded(latencies["histogram"])
    middle, high = ((percentiles.quantile_ns(whole, q) or 0.0) / 1e6 for q in (0.5, 0.99))
    return Interval(
        phase=MEASURE,
        t_s=t_s,
        seconds=seconds,
        sent=total,
        done=total,
        errors=errors,
        backlog=0,
        cpu_fraction=0.0,
        summary=Summary(
            rate_per_s=total / seconds if seconds else 0.0,
            response_ms_p50=middle,
            response_ms_p99=high,
            service_ms_p50=middle,
            service_ms_p99=high,
            pacing_ms_p99=0.0,
        ),
        counts=tuple(counts),
    )


def _done(phase: str, began_s: float, ended_s: float, operations: int, errors: int, cpu_s: float) -> Done:
    return Done(
        phase=phase,
        first_sent_s=began_s,
        last_done_s=ended_s,
        execution_ns=round((ended_s - began_s) * 1e9),
        operations=operations,
        errors=errors,
        errors_by_kind={Outcome.SERVER.value: errors} if errors else {},
        not_found=0,
        rows=0,
        cpu_ns=round(cpu_s * 1e9),
        busiest_thread_fraction=min(1.0, cpu_s / max(ended_s - began_s, 1e-9)),
        dropped=0,
        reconnections=0,
    )


def create() -> Engine:
    """The engine."""
    return LatteEngine()
