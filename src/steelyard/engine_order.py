"""Compiler of a trial's complete settings into the engine's order. Pure except for the search for trace files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from steelyard.model.client import SECTION, Client
from steelyard.model.data_model import Schema
from steelyard.model.errors import StudyError
from steelyard.model.load import NEEDS, SEARCHES, Load, LoadPhase, Offered
from steelyard.plugins.find import Plugins
from steelyard.system.base import Endpoint
from steelyard.wire.order import TARGETS, CqlTarget, Order, OrderPhase, StopAt, Target, Tls, Ycsb
from steelyard.wire.program import Program
from steelyard.wire.schedule import Closed, Ramp, Schedule, Sine, Steady, Steps, Trace
from steelyard.workload.base import Workload

INTERVAL_S = 1.0
READ_AGAIN_S = 10.0
"""What members have kept for one that was away may take so long to reach it."""
POPULATE_SEED = 0
POPULATE_TIMEOUT_MS = 30_000
INDEX = "_indices"
"""Name of the sorted set of all keys in YCSB's own binding for Redis."""


def resolved(load: Load, capacity_per_s: float | None) -> Load:
    """The load with rates in place of fractions of the cluster's capacity."""

    def rate(offered: Offered) -> dict[str, Any]:
        if offered.capacity_fraction is None:
            return {}
        if capacity_per_s is None:
            raise ValueError("the capacity of the cluster was not measured")
        return {"capacity_fraction": None, "rate_per_s": offered.capacity_fraction * capacity_per_s}

    phases = tuple(phase.model_copy(update=rate(phase)) for phase in load.phases)
    return load.model_copy(update={**rate(load), "phases": phases})


def offered_rate_per_s(load: Load) -> float | None:
    """The mean rate of a resolved load over its open phases; None without any, or if it depends on the number of
    operations or on a trace file."""
    if load.rate_per_s is not None:
        return load.rate_per_s
    if load.schedule == "search":
        return None
    due, seconds = 0.0, 0.0
    for part in load.offered:
        length_s = part.duration_s if isinstance(part, LoadPhase) else load.duration_s
        if part.schedule == "closed":
            continue
        count = None if length_s is None else part.operations_within(length_s)
        if count is None or length_s is None:
            return None
        due, seconds = due + count, seconds + length_s
    return due / seconds if seconds else None


def _schedule(load: Load, offered: Offered, plugins: Plugins) -> Schedule:
    threads, kind = load.threads_of(offered), offered.schedule
    match kind:
        case "closed":
            return Closed(threads=threads)
        case "constant" | "poisson":
            return Steady(kind=kind, rate_per_s=offered.rate_per_s or 0.0, in_flight=threads)
        case "ramp" | "steps" | "sine":
            kinds: dict[str, type[Ramp | Steps | Sine]] = {"ramp": Ramp, "steps": Steps, "sine": Sine}
            needs = {name: getattr(offered, name) for name in NEEDS[kind]}
            return kinds[kind].model_validate({"in_flight": threads, "arrivals": offered.arrivals or "even", **needs})
        case "search":
            # That of the warm-up; the windows' are decided while the load runs.
            return search_schedule(load, load.first_rate_per_s)
        case "trace":
            path = plugins.file(str(offered.trace), "trace", "load.trace")
            return Trace(file=str(path.resolve()), speed=offered.speed or 1.0, in_flight=threads)


def search_schedule(load: Load, rate_per_s: float) -> Steady:
    """The schedule of a search's window."""
    kind: Literal["constant", "poisson"] = "poisson" if load.arrivals == "poisson" else "constant"
    return Steady(kind=kind, rate_per_s=rate_per_s, in_flight=load.threads)


def _target(endpoint: Endpoint, schema: Schema, load: Load) -> Target:
    kind = TARGETS.get(endpoint.protocol)
    if kind is None:
        raise StudyError(
            f"no order can be made for protocol {endpoint.protocol}",
            "see src/steelyard/wire/order.py",
            read=endpoint.protocol,
            allowed=tuple(TARGETS),
        )
    values = {
        **{name: getattr(load, name) for name in Client.model_fields},
        "compression": None if load.compression == "none" else load.compression,
        "keyspace": endpoint.keyspace,
        "table": endpoint.table,
        "key": schema.key,
        "index": INDEX,
        **{name: getattr(endpoint, name) for name in ("files", "submit", "program", "remove")},
    }
    return kind.model_validate({name: values[name] for name in kind.model_fields.keys() & values})


def measure(
    load: Load,
    endpoint: Endpoint,
    schema: Schema,
    workload: Workload,
    seed: int,
    plugins: Plugins | None = None,
    *,
    discover: bool = False,
    read_back: bool = False,
) -> Order:
    """The order of a trial; fractions of the cluster's capacity must be resolved before. `plugins` find the trace
    files. `discover`: nodes come and go, and the engine learns of it from the cluster. `read_back`: rows that were
    written are read back, if the workload and the system allow it."""
    plugins = plugins or Plugins()
    work = workload.order()
    if not endpoint.compared and isinstance(work, Ycsb):
        work = work.model_copy(update={"validate_fraction": 0.0})
    reads_back = read_back and isinstance(work, Ycsb) and endpoint.compared and load.schedule != "search"
    return Order(
        contacts=endpoint.contacts,
        target=_target(endpoint, schema, load),
        action="load",
        work=work,
        seed=seed,
        schedule=_schedule(load, load.offered[0], plugins),
        stop=StopAt(operations=load.operations, duration_s=load.duration_s),
        phases=tuple(
            OrderPhase(name=phase.name, schedule=_schedule(load, phase, plugins), duration_s=phase.duration_s)
            for phase in load.phases
        ),
        words=load.schedule == "search",
        discover=discover,
        read_again_s=READ_AGAIN_S if reads_back else None,
        backlog_limit=load.backlog_limit,
        warm_up_s=load.warm_up_s,
        timeout_ms=load.timeout_ms,
        connections_per_node=load.connections_per_node,
        tls=_tls(load, endpoint),
        interval_s=INTERVAL_S,
    )


def _tls(load: Load, endpoint: Endpoint) -> Tls | None:
    if not load.tls:
        return None
    return Tls(
        ca=load.tls_ca or endpoint.tls_ca,
        certificate=load.tls_certificate,
        key=load.tls_key,
        verify=load.tls_verify,
        name=load.tls_name,
    )


def closed_loop(load: Load, threads: int, seconds: float) -> Load:
    """A closed loop of so many threads for so many seconds, that asks as `load` does: consistency, routing, TLS,
    warm-up."""
    unused: dict[str, Any] = {name: None for name in Offered.model_fields if name != "schedule"}
    unused |= {name: Load.model_fields[name].default for name in SEARCHES}
    closed = {
        **unused,
        "schedule": "closed",
        "phases": (),
        "threads": threads,
        "operations": None,
        "duration_s": seconds,
    }
    return load.model_copy(update=closed)


def briefly(load: Load, seconds: float) -> Load:
    """The load for so many seconds without its own warm-up, for the server warm-up: the first phase of several,
    one operation in flight where the rate is not constant."""
    first = load.offered[0]
    threads = load.threads_of(first)
    if load.schedule == "search":
        return closed_loop(load, threads, seconds).model_copy(update={"warm_up_s": 0.0})
    if first.rate_per_s is not None:
        steady = {"schedule": first.schedule, "rate_per_s": first.rate_per_s}
        return closed_loop(load, threads, seconds).model_copy(update={**steady, "warm_up_s": 0.0})
    alone = closed_loop(load, 1 if first.is_open else threads, seconds)
    return alone.model_copy(update={"warm_up_s": 0.0})


def capacity(load: Load, endpoint: Endpoint, schema: Schema, workload: Workload, seed: int) -> Order:
    """The order that measures the cluster's capacity: a closed loop of `capacity_threads`, for `capacity_s`."""
    closed = closed_loop(load, load.capacity_threads, load.capacity_s)
    return measure(closed, endpoint, schema, workload, seed)


def filling_operations(workload: Workload) -> int:
    """Operations that fill the tables: one per record, or per several records if the workload says so."""
    work = workload.order()
    stride = work.populate_stride if isinstance(work, Program) else 1
    return -(-int(workload.data().get("records", 0)) // stride)


def populate(
    endpoint: Endpoint, schema: Schema, workload: Workload, threads: int, connected_as: Load | None = None
) -> Order:
    """The order that fills the table, over connections as a load's if one is given. Not measured; the data do not
    depend on the trial's seed. Written at ALL, so that no replica of the snapshot lacks a row."""
    names = Client.model_fields.keys() - {"read_consistency", "write_consistency", "routing"}
    own = {} if connected_as is None else {name: getattr(connected_as, name) for name in names}
    filling = Load(threads=threads, operations=1, timeout_ms=POPULATE_TIMEOUT_MS, **own)
    order = measure(filling, endpoint, schema, workload, POPULATE_SEED)
    target = order.target
    if isinstance(target, CqlTarget):
        target = target.model_copy(update={"write_consistency": "ALL"})
    return order.model_copy(update={"action": "populate", "target": target, "stop": StopAt()})


def without_meaning(client: Client, system: str, protocol: str) -> Iterator[StudyError]:
    """Errors for settings that the protocol of a system does not have. One that has its default says nothing."""
    own = TARGETS[protocol].client if protocol in TARGETS else ()
    for name, field in Client.model_fields.items():
        value = getattr(client, name)
        if name not in own and value != field.default:
            having = " and ".join(other for other, kind in TARGETS.items() if name in kind.client)
            message = f"{SECTION}{name} = {value!r}: a setting of {having}, but {system} speaks {protocol}"
            hint = f"leave it out; {protocol} has {', '.join(own) or 'no settings of its client'}"
            yield StudyError(message, hint, key=f"load.{name}", read=value, allowed=own)
