"""Compiler of a command into the agent's order. Pure.

YCSB's threads become the limit of operations in flight. With `target`, each YCSB thread waits for its next tick; here
operations are due evenly over all threads, and one that finds no free thread is sent late, never skipped.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_args

from pydantic import ValidationError

from steelyard import engine_order
from steelyard.dropin import agent_run
from steelyard.dropin.contacts import parsed
from steelyard.dropin.ycsb import property_support
from steelyard.dropin.ycsb.command import Command
from steelyard.dropin.ycsb.values import MOST, Values, wrong
from steelyard.model.client import Consistency
from steelyard.model.data_model import Schema
from steelyard.model.errors import StudyError
from steelyard.model.load import MOST_PER_S, Load
from steelyard.node.base import with_port
from steelyard.system.base import Endpoint
from steelyard.wire.order import CQL, Order, Tls
from steelyard.workload import ycsb

READ_TIMEOUT_MS = 12_000
"""Default request time-out of the binding's client library."""
MOST_THREADS = 100_000
PROPERTIES: Mapping[str, str] = {
    "records": "recordcount",
    "insert_start": "insertstart",
    "field_count": "fieldcount",
    "field_length": "fieldlength",
    "min_field_length": "minfieldlength",
    "field_length_distribution": "fieldlengthdistribution",
    "insert_order": "insertorder",
    "zero_padding": "zeropadding",
    "read_proportion": "readproportion",
    "update_proportion": "updateproportion",
    "insert_proportion": "insertproportion",
    "scan_proportion": "scanproportion",
    "read_modify_write_proportion": "readmodifywriteproportion",
    "request_distribution": "requestdistribution",
    "read_all_fields": "readallfields",
    "write_all_fields": "writeallfields",
    "min_scan_length": "minscanlength",
    "max_scan_length": "maxscanlength",
    "scan_length_distribution": "scanlengthdistribution",
    "hotspot_data_fraction": "hotspotdatafraction",
    "hotspot_operation_fraction": "hotspotopnfraction",
    "exponential_percentile": "exponential.percentile",
    "exponential_fraction": "exponential.frac",
}
"""Setting of our workload to YCSB property; the defaults are the same."""
TLS = ("ca", "certificate", "key", "verify", "name")
COMPUTED = ("records", "insert_start")


@dataclass(frozen=True)
class Target:
    """The target cluster of the load."""

    contacts: tuple[str, ...]
    schema: Schema
    user: str | None
    password: str | None
    tls: Tls | None = None
    """Encryption of connections; None: none."""

    def statements(self, replication_factor: int) -> tuple[str, ...]:
        """CQL that creates keyspace and table."""
        return (self.schema.create_keyspace(replication_factor), *self.schema.create_rest())


@dataclass(frozen=True)
class Compiled:
    """A compiled command. `operations` None: until the time is over."""

    order: Order
    target: Target
    threads: int
    workers: int
    operations: int | None
    crowded: bool
    """Whether there were more threads than operations; YCSB warns on standard output."""
    keeps_going: bool
    """Whether the load continues after a failed insertion."""


def compile_command(command: Command, seed: int) -> Compiled:
    """Compile a command; `seed` is used if the properties have none. Raises StudyError."""
    values = Values(command.properties)
    _same_classes(values)
    target = _target(values)
    operations = _operations(command, values)
    asked = values.integer("threadcount", 1, 1, MOST_THREADS)
    threads = min(asked, operations or asked)
    rate = values.number("target", 0.0, most=MOST_PER_S) or None
    duration_s = values.integer("maxexecutiontime", 0, 0, 10**8) or None
    if operations is None and duration_s is None:
        read = values.text("operationcount")
        raise wrong("operationcount", read, ("at least 1",), "and maxexecutiontime is not set")
    workload = ycsb.Core("ycsb", _settings(command, values, operations or 0), target.schema)
    load = Load(
        schedule="closed" if rate is None else "constant",
        threads=threads,
        rate_per_s=rate,
        operations=operations,
        duration_s=duration_s,
        timeout_ms=values.integer("cassandra.readtimeoutmillis", READ_TIMEOUT_MS, 1, 86_400_000),
        **{f"{kind}_consistency": _consistency(values, kind) for kind in ("read", "write")},
    )
    schema = target.schema
    endpoint = Endpoint(CQL, target.contacts, schema.keyspace, schema.table)
    order = engine_order.measure(load, endpoint, schema, workload, values.integer("steelyard.seed", seed, 0, 2**63 - 1))
    action = "populate" if command.action == "load" else "load"
    return Compiled(
        order=order.model_copy(update={"action": action, "tls": target.tls}),
        target=target,
        threads=threads,
        workers=values.integer("steelyard.workers", agent_run.workers_for(threads, rate), 1, 1024),
        operations=operations,
        crowded=asked > threads,
        keeps_going=values.boolean("core_workload_insertion_keep_going_on_error", False),
    )


def _same_classes(values: Values) -> None:
    if "workload" not in values:
        allowed = property_support.WORKLOADS[:1]
        raise StudyError("Missing property: workload", f"allowed: {allowed[0]}", key="workload", allowed=allowed)
    values.choice("workload", "", property_support.WORKLOADS)
    values.choice("db", property_support.DATABASES[0], property_support.DATABASES)


def _target(values: Values) -> Target:
    hosts = values.listed("hosts")
    if not hosts:
        message = 'Required property "hosts" missing for CassandraCQLClient'
        raise StudyError(message, "-p hosts=ADDRESS,...: addresses of the cluster's nodes", key="hosts")
    port = values.integer("port", 9042, 1, 65535)
    user = values.text("cassandra.username") or None
    prefix = values.text("fieldnameprefix", "field")
    count = values.integer("fieldcount", 10, 1, 1000)
    schema = Schema(
        keyspace=values.text("cassandra.keyspace", ycsb.KEYSPACE),
        table=values.text("table", ycsb.TABLE),
        key=ycsb.KEY,
        fields=tuple(f"{prefix}{number}" for number in range(count)),
    )
    try:
        contacts = tuple(with_port(*parsed(host, port)) for host in hosts)
    except ValueError as error:
        raise StudyError(f"the property hosts: {error}", "write addresses separated by commas", key="hosts") from None
    return Target(contacts, schema, user, values.text("cassandra.password") if user else None, _tls(values))


def _tls(values: Values) -> Tls | None:
    """Encryption options. Java reads certificates from JVM options; here they are properties."""
    given = {name: values.text(f"steelyard.tls.{name}") for name in TLS if f"steelyard.tls.{name}" in values}
    if not values.boolean("cassandra.useSSL", False):
        if given:
            raise wrong("cassandra.useSSL", "false", ("true",), "steelyard.tls.* say how connections are encrypted")
        return None
    if "verify" in given:
        given["verify"] = values.choice("steelyard.tls.verify", "full", ("full", "chain", "none"))
    return Tls.model_validate(given)


def _consistency(values: Values, kind: str) -> str:
    return values.choice(f"cassandra.{kind}consistencylevel", "ONE", get_args(Consistency))


def _operations(command: Command, values: Values) -> int | None:
    """The number of operations that YCSB's threads would do together; None if unlimited."""
    if command.action == "load":
        name = "insertcount" if "insertcount" in values else "recordcount"
        operations = values.integer(name, 0)
        if operations == 0:
            raise wrong(name, values.text(name), ("at least 1",), "there is nothing to load")
        return operations
    return values.integer("operationcount", 0) or None


def _span(command: Command, values: Values) -> tuple[int, int]:
    """First key and number of keys that exist before a run, or that a load writes."""
    start = values.integer("insertstart", 0)
    records = values.integer("recordcount", 0)
    if command.action == "load":
        count = _operations(command, values) or 0
        if "insertcount" in values and 0 < records < start + count:
            raise _beyond(start, count, records)
        return start, count
    if records == 0:
        raise wrong("recordcount", values.text("recordcount"), ("at least 1",), "how many records were loaded?")
    count = values.integer("insertcount", records - start, -MOST)
    if count < 1 or start + count > records:
        raise _beyond(start, count, records)
    if start + count < records and (
        values.number("insertproportion", 0.0) > 0 or values.text("requestdistribution") in ("latest", "exponential")
    ):
        raise StudyError(
            f"insertstart {start} + insertcount {count} is below recordcount {records}, and the load inserts, or asks "
            "for the latest records: the agent would take the keys between for its own",
            "set insertcount so that the sum is recordcount, or leave insertion, latest and exponential out",
            key="insertcount",
        )
    return start, count


def _beyond(start: int, count: int, records: int) -> StudyError:
    return StudyError(
        "Invalid combination of insertstart, insertcount and recordcount.",
        f"insertstart {start} + insertcount {count} must be at most recordcount {records}, and insertcount above 0",
        key="insertcount",
    )


def _settings(command: Command, values: Values, operations: int) -> ycsb.Settings:
    """The workload settings. Our workload's model checks every bound; errors use YCSB's names."""
    start, count = _span(command, values)
    given: dict[str, Any] = {"insert_start": start, "records": count, "validate_fraction": 0.0}
    for ours, name in PROPERTIES.items():
        if ours not in COMPUTED and name in values:
            given[ours] = values.boolean(name, False) if name.endswith("allfields") else values.text(name)
    if command.action == "run":
        # As in YCSB, not divided by the sum of the proportions.
        inserts = values.number("insertproportion", 0.0)
        given["expected_new_keys"] = int(operations * inserts * 2.0)
    try:
        return ycsb.Settings.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        name = PROPERTIES.get(str(first["loc"][0]), "") if first["loc"] else ""
        why = first["msg"].removeprefix("Value error, ")
        for ours, theirs in PROPERTIES.items():
            if ours not in COMPUTED:
                why = re.sub(rf"\b{ours}\b", theirs, why)
        message = f"the property {name}: read {values.text(name)!r}: {why}" if name else why
        raise StudyError(message, "see docs/howto/switch-from-ycsb.md", key=name, read=values.text(name)) from error
