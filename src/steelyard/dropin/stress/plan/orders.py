"""Compiler of settings into a workload (crates/steelyard-wire/src/program.rs) and orders for the agent.

Statements and marker values are those of cassandra-stress, so each tool can read what the other has written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from steelyard.dropin.stress.parse.distributions import Distribution, fixed
from steelyard.dropin.stress.parse.settings import Settings
from steelyard.dropin.stress.plan.schema import quoted
from steelyard.dropin.stress.run.interval_stats import Counting
from steelyard.wire.order import CqlTarget, Order, StopAt, Tls
from steelyard.wire.program import Program
from steelyard.wire.schedule import Closed, Steady

VALUE_SEED = 0
"""Constant, so that a later load finds the values written by an earlier one."""
TIMEOUT_MS = 12_000
"""Request time-out of cassandra-stress's client library."""
WARM_UP_OPERATIONS = 50_000
WARM_UP_SHARE = 0.25
WARM_UP_THREADS = 100


@dataclass(frozen=True)
class Plan:
    """A workload and how its operations are counted. `counted`: by operation; `shared`: common parts of the program."""

    keyspace: str
    statements: tuple[Mapping[str, Any], ...]
    operations: tuple[Mapping[str, Any], ...]
    counted: Mapping[str, Counting]
    clustering: Distribution | None
    validated: bool

    def program(self, only: str | None = None, records: int = 1) -> Program:
        """The work of an order; only the operation `only`, if given."""
        kept = self._kept(only)
        if self.takes_several(only):
            kept = [{**one, "keys": {**one["keys"], "each": True}} for one in kept]
        clustering = self.clustering.wire() if self.clustering is not None and len(kept) > 1 else None
        return Program.model_validate(
            {
                "kind": "program",
                "records": records,
                "statements": self.statements,
                "populate": (),
                "operations": kept,
                "clustering": clustering,
                "validate_fraction": 1.0 if self.validated else 0.0,
                "value_seed": VALUE_SEED,
            }
        )

    def _kept(self, only: str | None) -> list[Mapping[str, Any]]:
        return [one for one in self.operations if only in (None, one["name"])]

    def takes_several(self, only: str | None = None) -> bool:
        """Whether an operation takes several partitions."""
        return self.partitions(only) > 1

    def partitions(self, only: str | None = None) -> float:
        """Mean number of partitions of an operation. cassandra-stress counts them against `n=` and the rates."""
        kept = self._kept(only)
        weighted = sum(one["weight"] * max(1.0, self.counted[one["name"]].partitions or 1.0) for one in kept)
        return float(weighted / sum(one["weight"] for one in kept))


def keys(settings: Settings) -> dict[str, Any]:
    """The key distribution. Seeds of cassandra-stress begin with 1, keys of the agent with 0."""
    population = settings.population
    if population.sequence is not None:
        low, high = population.sequence
        numbers = fixed(low) if low == high else Distribution("sequence", low, high)
    else:
        assert population.drawn is not None
        numbers = population.drawn
    return {"kind": "drawn", "number": numbers.shifted(-1).wire()}


def records(settings: Settings) -> int:
    """Number of possible keys."""
    population = settings.population
    if population.sequence is not None:
        return population.sequence[1]
    assert population.drawn is not None
    return population.drawn.high


def predefined(settings: Settings) -> Plan:
    """The plan of every command except `user`."""
    makers = {"read": _read, "write": _write, "counter_read": _counter_read, "counter_write": _counter_write}
    chosen = settings.command.ratios
    operations = tuple(
        {
            "name": name.upper(),
            "weight": weight,
            "keys": keys(settings),
            "steps": [{"kind": "execute", "statement": name}],
        }
        for name, weight in chosen.items()
    )
    empty = not settings.errors.validate
    return Plan(
        keyspace=settings.schema.keyspace,
        statements=tuple(makers[name](settings) for name in chosen),
        operations=operations,
        # A missing counter is an error whatever -errors is; a missing row only if rows are compared.
        counted={name.upper(): Counting(may_be_empty=empty and name == "read") for name in chosen},
        clustering=settings.command.clustering,
        validated=settings.errors.validate,
    )


def _key(settings: Settings) -> dict[str, Any]:
    return {"type": "blob", "make": {"kind": "stress-key", "size": settings.command.key_size}}


def _column(settings: Settings, name: str) -> dict[str, Any]:
    make: dict[str, Any] = {"kind": "stress-column", "column": 0, "size": settings.columns.size.wire()}
    if settings.columns.given:
        make["named"] = name
    else:
        make["column"] = int(name[1:])
    if settings.command.key_size != 10:
        make["key_size"] = settings.command.key_size
    return {"type": "blob", "make": make}


def _table(settings: Settings, table: str) -> str:
    return f"{quoted(settings.schema.keyspace)}.{quoted(table)}"


def _write(settings: Settings) -> dict[str, Any]:
    columns = settings.columns
    using = f" USING TIMESTAMP {columns.timestamp}" if columns.timestamp else ""
    sets = ", ".join(f"{quoted(name)} = ?" for name in columns.names)
    return {
        "name": "write",
        "cql": f"UPDATE {_table(settings, 'standard1')}{using} SET {sets} WHERE key = ?",
        "values": [*(_column(settings, name) for name in columns.names), _key(settings)],
        "partition_key": [len(columns.names)],
        "writes": True,
    }


def _read(settings: Settings) -> dict[str, Any]:
    columns = settings.columns
    expected = [_column(settings, name) for name in columns.names]
    if columns.slice:
        expected.insert(0, {"type": "blob", "make": {"kind": "any"}})
    asked = "*" if columns.slice else ", ".join(quoted(name) for name in columns.names)
    return {
        "name": "read",
        "cql": f"SELECT {asked} FROM {_table(settings, 'standard1')} WHERE key = ?",
        "values": [_key(settings)],
        "partition_key": [0],
        "writes": False,
        "wants_row": True,
        "expect": expected if settings.errors.validate else [],
    }


def _counter_write(settings: Settings) -> dict[str, Any]:
    names = [quoted(name) for name in settings.columns.names]
    added = {"type": "bigint", "make": {"kind": "draw", "number": settings.command.add.wire()}}
    sets = ", ".join(f"{name} = {name} + ?" for name in names)
    return {
        "name": "counter_write",
        "cql": f"UPDATE {_table(settings, 'counter1')} SET {sets} WHERE key = ?",
        "values": [*(added for _ in names), _key(settings)],
        "partition_key": [len(names)],
        "writes": True,
    }


def _counter_read(settings: Settings) -> dict[str, Any]:
    return {
        "name": "counter_read",
        "cql": f"SELECT * FROM {_table(settings, 'counter1')} WHERE key = ?",
        "values": [_key(settings)],
        "partition_key": [0],
        "writes": False,
        "wants_row": True,
    }


@dataclass(frozen=True)
class Ending:
    """End of a load; only a signal if neither is set. `partitions`: of all operations."""

    partitions: int | None = None
    duration_s: float | None = None

    def wire(self, plan: Plan, only: str | None = None) -> StopAt:
        """Form in the agent's order."""
        if plan.takes_several(only):
            return StopAt(keys=self.partitions, duration_s=self.duration_s)
        return StopAt(operations=self.partitions, duration_s=self.duration_s)


def ending(settings: Settings) -> Ending:
    """End of the measured load. `no-wrap` also ends it after every key was used once, `err<` after the maximum number
    of measurements."""
    operations, population = settings.command.count, settings.population
    if settings.command.uncertainty is not None:
        return Ending(duration_s=(settings.command.measurements[1] + 1) * settings.log.interval_ms / 1000)
    if population.sequence is not None and not population.wrap:
        low, high = population.sequence
        operations = min(high - low + 1, operations if operations is not None else high)
    return Ending(operations, settings.command.duration_s)


def warm_up_operations(settings: Settings) -> int:
    """Warm-up operations of each kind: a quarter of the measured ones, at most 50,000, per named node."""
    count = settings.command.count
    per_node = WARM_UP_OPERATIONS if count is None else min(WARM_UP_OPERATIONS, int(count * WARM_UP_SHARE))
    return per_node * len(settings.connection.nodes)


def warm_up_threads(settings: Settings) -> int:
    """Warm-up threads, at most 100."""
    return min(WARM_UP_THREADS, settings.rate.threads or settings.rate.most)


def order(
    settings: Settings,
    plan: Plan,
    contacts: Sequence[str],
    threads: int,
    stop: Ending,
    seed: int,
    only: str | None = None,
) -> Order:
    """The agent's order for the plan's load, or the unpaced order of its operation `only`."""
    rate = max(settings.rate.throttle_per_s, settings.rate.fixed_per_s) / plan.partitions() if only is None else 0
    schedule = Steady(kind="constant", rate_per_s=rate, in_flight=threads) if rate else Closed(threads=threads)
    compression = settings.connection.compression
    return Order(
        contacts=tuple(contacts),
        target=CqlTarget.model_validate(
            {
                "keyspace": plan.keyspace,
                "read_consistency": settings.command.consistency,
                "write_consistency": settings.command.consistency,
                "serial_consistency": settings.command.serial_consistency,
                "routing": "token",
                "compression": None if compression == "none" else compression,
            }
        ),
        action="load",
        work=plan.program(only, records(settings)),
        seed=seed,
        schedule=schedule,
        stop=stop.wire(plan, only),
        timeout_ms=TIMEOUT_MS,
        tries=settings.errors.tries,
        interval_s=settings.log.interval_ms / 1000,
        discover=not settings.connection.whitelist,
        tls=tls(settings),
    )


def tls(settings: Settings) -> Tls | None:
    """The encryption options of an order; None without encryption."""
    trusted, own = settings.connection.trusted, settings.connection.own
    if trusted is None and own is None:
        return None
    # Java's client checks who signed a certificate, not the host name in it.
    ours = None if own is None else str(own)
    return Tls(ca=None if trusted is None else str(trusted), certificate=ours, key=ours, verify="chain")
