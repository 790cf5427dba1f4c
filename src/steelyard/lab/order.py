"""From a trial's complete settings to the engine's order. Pure."""

from __future__ import annotations

from typing import Any, Literal

from steelyard.model.schema import Schema
from steelyard.model.study import Load
from steelyard.system.base import Endpoint
from steelyard.workload.base import Workload

FORMAT = 1
INTERVAL_S = 1.0
POPULATE_SEED = 0
POPULATE_TIMEOUT_MS = 30_000


def _schedule(load: Load) -> dict[str, Any]:
    if load.schedule == "closed":
        return {"kind": "closed", "threads": load.threads}
    return {"kind": load.schedule, "rate_per_s": load.rate_per_s, "in_flight": load.threads}


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


def measure(load: Load, endpoint: Endpoint, schema: Schema, workload: Workload, seed: int) -> dict[str, Any]:
    """The order of a trial."""
    return {
        **_common("load", endpoint, schema, workload),
        "seed": seed,
        "schedule": _schedule(load),
        "stop": {"operations": load.operations, "duration_s": load.duration_s},
        "warm_up_s": load.warm_up_s,
        "read_consistency": load.read_consistency,
        "write_consistency": load.write_consistency,
        "timeout_ms": load.timeout_ms,
        "routing": load.routing,
    }


def populate(endpoint: Endpoint, schema: Schema, workload: Workload, threads: int) -> dict[str, Any]:
    """The order that fills the table. Not measured; always the same data, whatever the trial's seed.
    Written at ALL, so that no replica of the frozen copy lacks a row."""
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
