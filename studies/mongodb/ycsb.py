"""Engine: YCSB 0.17 with its binding for MongoDB, on one load node. Not tested against a real MongoDB.

For another binding change `BINDING` and `connection`. At its end YCSB prints the histogram of each operation, in
microseconds (`measurement.histogram.verbose`); the whole load is one interval. Its HDR logs would be one a second, but
the version of their library needs Java 8, and writes an old format.
"""

from __future__ import annotations

import asyncio
import math
import os
import re
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

from steelyard.dropin.ycsb.order import PROPERTIES
from steelyard.engine._stress_output import connected, summary
from steelyard.model.errors import EngineError
from steelyard.model.histogram import Bucket, total
from steelyard.model.load import MEASURE, POPULATE
from steelyard.node.base import Node
from steelyard.node.command import end, spawn
from steelyard.node.files import put
from steelyard.wire.order import YCSB_BINDING, Order, Ycsb
from steelyard.wire.record import FORMAT, Counts, Done, Hello, Interval, Record
from steelyard.wire.schedule import Closed, Steady, in_flight

BINDING = "mongodb"
HOME, INSTALLED = "YCSB_HOME", "/opt/ycsb-0.17.0"
"""YCSB's folder on the load node, without blanks, at which ycsb.sh would cut it: the variable with it, and without."""
LOOKED_AT = ("contacts", "action", "schedule", "stop", "timeout_ms")
WITHOUT_MEANING = ("format", "protocol", "seed", "interval_s", "backlog_limit", "drain_s")
FIXED = {
    "workload": "site.ycsb.workloads.CoreWorkload", "measurementtype": "hdrhistogram", "measurement.interval": "both",
    "measurement.histogram.verbose": "true",
}  # fmt: skip
RUNTIME = re.compile(r"^\[OVERALL\], RunTime\(ms\), (\d+)", re.MULTILINE)
COUNT = re.compile(r"^\[(Intended-)?(READ|UPDATE|INSERT|SCAN)(-FAILED)?\], (\d+), ([\d.]+)$", re.MULTILINE)
EXACT_BITS = 11
"""Values of so many bits have a bucket each; of those above, the histogram keeps the first 11 bits."""
ENDLESS = 2**31 - 1
TAIL_CHARS, GRACE_S = 1000, 15.0


def connection(order: Order) -> dict[str, str]:
    """Properties of the binding. Inserts replace, as rows of earlier trials are still there."""
    options = f"w=majority&readPreference=primary&maxPoolSize={in_flight(order.schedule)}"
    url = f"mongodb://{','.join(order.contacts)}/steelyard?{options}&socketTimeoutMS={order.timeout_ms}"
    return {"mongodb.url": url, "mongodb.upsert": "true"}


def asked(order: Order) -> Ycsb:
    """The order's work. Raises EngineError for what YCSB cannot do, or this engine does not record."""
    work, schedule = order.work, order.schedule
    if not isinstance(work, Ycsb) or order.target.protocol != YCSB_BINDING:
        raise _refused(f"a workload of kind {work.kind!r} over {order.target.protocol}", "YCSB's, over ycsb-binding")
    for name, value in order.said():
        if name not in (*LOOKED_AT, *WITHOUT_MEANING):
            raise _refused(f"{name} = {value!r}", "no value: leave it out")
    if not isinstance(schedule, Closed | Steady) or schedule.kind == "poisson":
        raise _refused(f"schedule {schedule.kind!r}", "closed or constant")
    if isinstance(schedule, Steady) and schedule.rate_per_s % 1:
        raise _refused(f"load.rate_per_s = {schedule.rate_per_s:g}", "a whole number")
    if work.proportions.read_modify_write:
        raise _refused("reads followed by updates, which YCSB counts three times", "other proportions")
    if work.request_distribution == "zipfian" and work.proportions.insert and operations(order) == ENDLESS:
        raise _refused("zipfian with inserts for a time, of which YCSB would expect too many", "load.operations")
    if work.expected_new_keys is not None or work.insert_lag is not None:
        raise _refused("expected_new_keys or insert_lag", "YCSB's own")
    return work


def properties(order: Order) -> dict[str, str]:
    """The property file: the order's work and its end."""
    work, lasting_s = asked(order), order.stop.duration_s
    values = {**dict(work), **{f"{name}_proportion": share for name, share in work.proportions}}
    values |= {"field_count": len(work.fields), "records": work.insert_start + work.records}
    named = {name: values[ours] for ours, name in PROPERTIES.items()}
    named |= {"insertcount": work.records, "operationcount": operations(order)}
    if lasting_s:
        named["maxexecutiontime"] = math.ceil(lasting_s)
    return FIXED | {name: str(value).lower() for name, value in named.items()}


def operations(order: Order) -> int:
    """The most operations of a load: without a number YCSB does none."""
    stop, schedule = order.stop, order.schedule
    due = math.ceil(schedule.rate_per_s * (stop.duration_s or 0)) if isinstance(schedule, Steady) else 0
    return stop.operations or due or ENDLESS


def argv(order: Order, folder: Path) -> list[str]:
    """YCSB's command line, with the property file in `folder`."""
    action = "load" if order.action == "populate" else "run"
    program = Path(os.environ.get(HOME, INSTALLED), "bin", "ycsb.sh")
    words = [str(program), action, BINDING, "-P", str(folder / "ycsb.properties")]
    words += [word for name, value in connection(order).items() for word in ("-p", f"{name}={value}")]
    words += ["-threads", str(in_flight(order.schedule))]
    return words + (["-target", f"{order.schedule.rate_per_s:g}"] if isinstance(order.schedule, Steady) else [])


def records(told: str, phase: str, ended_s: float) -> tuple[Interval, Done]:
    """The whole load and its end, from YCSB's output. Raises EngineError if it does not say what was done."""
    runtime, tables = RUNTIME.search(told), dict[tuple[str, str, str], list[Bucket]]()
    for intended, name, failed, value, count in COUNT.findall(told):
        high, key = int(value), (name.lower(), "server" if failed else "ok", "response" if intended else "service")
        low = high >> (spare := max(0, high.bit_length() - EXACT_BITS)) << spare
        tables.setdefault(key, []).append((low * 1000, high * 1000 + 999, int(float(count))))
    if runtime is None or not tables:
        raise EngineError(f"YCSB did nothing: {told[-TAIL_CHARS:].strip()}")
    counts = tuple(Counts(operation=name, outcome=how, measure=measure, buckets=tuple(tables[name, how, measure]))
                   for name, how, measure in tables)  # fmt: skip
    done = sum(total(one.buckets) for one in counts if one.measure == "service")
    errors = sum(total(one.buckets) for one in counts if one.measure == "service" and one.outcome == "server")
    seconds = int(runtime[1]) / 1e3
    whole = Interval(
        phase=phase, t_s=ended_s - seconds, seconds=seconds, sent=done, done=done, errors=errors, backlog=0,
        cpu_fraction=0.0, summary=summary(counts, done, seconds), counts=counts,
    )  # fmt: skip
    return whole, Done(
        phase=phase, first_sent_s=whole.t_s, last_done_s=ended_s, execution_ns=round(seconds * 1e9),
        operations=done - errors, errors=errors, errors_by_kind={"server": errors} if errors else {}, not_found=0,
        rows=0, cpu_ns=0, busiest_thread_fraction=0.0, dropped=0, reconnections=0,
    )  # fmt: skip


def _refused(what: str, allowed: str) -> EngineError:
    return EngineError(f"engine ycsb cannot run {what}", f"allowed: {allowed}")


class YcsbEngine:
    """See `steelyard.engine.base.Engine`, and the abilities `Selective`, `FallsSilent` and `StampedHere`."""

    falls_silent: Literal[True] = True
    stamped_here: Literal[True] = True

    def check(self, order: Order, load_nodes: int) -> None:
        """Refuse what YCSB cannot do before anything starts."""
        asked(order)
        if load_nodes > 1:
            raise _refused(f"a load from {load_nodes} load nodes", "site.load_nodes = 1")

    async def drive(
        self, order: Order, nodes: Sequence[Node], on_record: Callable[[str, Record], None], timeout_s: float
    ) -> None:
        """Run YCSB to its end."""
        self.check(order, len(nodes))
        (node,) = nodes
        text = "".join(f"{name}={value}\n" for name, value in properties(order).items())
        await put(node, node.folder / "ycsb.properties", text.encode())
        on_record(node.name, Hello(format=FORMAT, agent="ycsb 0.17", optimised=True, t_s=time.time()))
        on_record(node.name, connected(order.contacts, in_flight(order.schedule)))
        with tempfile.NamedTemporaryFile(prefix="steelyard-ycsb-") as output:
            said = Path(output.name)
            process = await spawn(node, argv(order, node.folder), stdout=said, stderr=said)
            try:
                code, ended_s = await asyncio.wait_for(process.wait(), timeout_s), time.time()
            except TimeoutError as error:
                what = f"YCSB did not end within {timeout_s:g} s"
                raise EngineError(what, "raise limits.trial_timeout_s") from error
            finally:
                await end(process, GRACE_S)
            told = said.read_text(errors="replace")
        if code:
            raise EngineError(f"{node.name}: YCSB exited with code {code}: {told[-TAIL_CHARS:].strip()}")
        for record in records(told, POPULATE if order.action == "populate" else MEASURE, ended_s):
            on_record(node.name, record)


def create() -> YcsbEngine:
    """Make the engine."""
    return YcsbEngine()
