"""Compiler of a trial's complete settings into the engine's order. Pure except for the search for trace files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from steelyard.model.data_model import Schema
from steelyard.model.load import BACKLOG_LIMIT, SEARCHES, Load, LoadPhase, Offered
from steelyard.plugins.find import Plugins
from steelyard.system.base import Endpoint
from steelyard.wire.record import FORMAT
from steelyard.workload.base import Workload

INTERVAL_S = 1.0
POPULATE_SEED = 0
POPULATE_TIMEOUT_MS = 30_000


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


def _schedule(load: Load, offered: Offered, plugins: Plugins) -> dict[str, Any]:
    threads = load.threads_of(offered)
    kind, arrivals = offered.schedule, {"arrivals": offered.arrivals or "even"}
    given: dict[str, Any] = {"kind": kind, "in_flight": threads}
    match kind:
        case "closed":
            return {"kind": "closed", "threads": threads}
        case "constant" | "poisson":
            return given | {"rate_per_s": offered.rate_per_s}
        case "ramp":
            names = ("from_per_s", "to_per_s", "ramp_s")
        case "steps":
            rates = list(offered.rates_per_s or ())
            return given | {"rates_per_s": rates, "step_s": offered.step_s} | arrivals
        case "sine":
            names = ("mean_per_s", "amplitude_per_s", "period_s")
        case "search":
            # That of the warm-up; the windows' are decided while the load runs.
            return dict(search_schedule(load, load.first_rate_per_s))
        case "trace":
            path = plugins.file(str(offered.trace), "trace", "load.trace")
            return given | {"file": str(path.resolve()), "speed": offered.speed or 1.0}
    return given | {name: getattr(offered, name) for name in names} | arrivals


def search_schedule(load: Load, rate_per_s: float) -> Mapping[str, Any]:
    """The schedule of a search's window."""
    kind = "poisson" if load.arrivals == "poisson" else "constant"
    return {"kind": kind, "rate_per_s": rate_per_s, "in_flight": load.threads}


def _common(
    action: Literal["populate", "load"], endpoint: Endpoint, schema: Schema, workload: Workload
) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "protocol": endpoint.protocol,
        "contacts": list(endpoint.contacts),
        "keyspace": endpoint.keyspace,
        "table": endpoint.table,
        "key": schema.key,
        "fields": list(schema.fields),
        "action": action,
        "workload": workload.order(),
        "interval_s": INTERVAL_S,
    }


def measure(
    load: Load,
    endpoint: Endpoint,
    schema: Schema,
    workload: Workload,
    seed: int,
    plugins: Plugins | None = None,
    *,
    discover: bool = False,
) -> dict[str, Any]:
    """The order of a trial; fractions of the cluster's capacity must be resolved before. `plugins` find the trace
    files. `discover`: nodes come and go, and the engine learns of it from the cluster."""
    plugins = plugins or Plugins()
    driving = {
        **_common("load", endpoint, schema, workload),
        "seed": seed,
        "schedule": _schedule(load, load.offered[0], plugins),
        "stop": {"operations": load.operations, "duration_s": load.duration_s},
        "warm_up_s": load.warm_up_s,
        "read_consistency": load.read_consistency,
        "write_consistency": load.write_consistency,
        "timeout_ms": load.timeout_ms,
        "routing": load.routing,
    }
    driving |= connections(load, endpoint)
    if load.backlog_limit != BACKLOG_LIMIT:
        driving["backlog_limit"] = load.backlog_limit
    if load.schedule == "search":
        driving["words"] = True
    if discover:
        driving["discover"] = True
    if load.phases:
        driving["phases"] = [
            {"name": phase.name, "schedule": _schedule(load, phase, plugins), "duration_s": phase.duration_s}
            for phase in load.phases
        ]
    return driving


def connections(load: Load, endpoint: Endpoint) -> dict[str, Any]:
    """Connection options that differ from the agent's defaults."""
    fields: dict[str, Any] = {}
    if load.connections_per_node != 1:
        fields["connections_per_node"] = load.connections_per_node
    if load.compression != "none":
        fields["compression"] = load.compression
    if load.tls:
        fields["tls"] = {
            "ca": load.tls_ca or endpoint.tls_ca,
            "certificate": load.tls_certificate,
            "key": load.tls_key,
            "verify": load.tls_verify,
            "name": load.tls_name,
        }
    return fields


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


def capacity(load: Load, endpoint: Endpoint, schema: Schema, workload: Workload, seed: int) -> dict[str, Any]:
    """The order that measures the cluster's capacity: a closed loop of `capacity_threads`, for `capacity_s`."""
    closed = closed_loop(load, load.capacity_threads, load.capacity_s)
    return measure(closed, endpoint, schema, workload, seed)


def filling_operations(workload: Workload) -> int:
    """Operations that fill the tables: one per record, or per several records if the workload says so."""
    stride = int(workload.order().get("populate_stride", 1))
    return -(-int(workload.data().get("records", 0)) // stride)


def populate(endpoint: Endpoint, schema: Schema, workload: Workload, threads: int) -> dict[str, Any]:
    """The order that fills the table. Not measured; the data do not depend on the trial's seed. Written at ALL, so that
    no replica of the snapshot lacks a row."""
    return {
        **_common("populate", endpoint, schema, workload),
        "seed": POPULATE_SEED,
        "schedule": {"kind": "closed", "threads": threads},
        "stop": {"operations": None, "duration_s": None},
        "warm_up_s": 0.0,
        "read_consistency": "ONE",
        "write_consistency": "ALL",
        "timeout_ms": POPULATE_TIMEOUT_MS,
        "routing": "token",
    }
