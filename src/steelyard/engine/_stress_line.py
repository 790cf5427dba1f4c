"""Compiler of an order into a cassandra-stress command line, as far as that tool supports it. Pure.

Unsupported features are refused by name; nothing is silently left out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from steelyard.model.errors import EngineError
from steelyard.wire.order import CqlTarget, Order
from steelyard.wire.program import (
    DrawnKeys,
    Execute,
    ExistingKeys,
    OperationSpec,
    Program,
    StatementSpec,
    Step,
    StressColumn,
    StressKey,
)
from steelyard.wire.schedule import Closed, Steady

TABLE = re.compile(r"""\b(?:from|into|update)\s+(?:"?\w+"?\.)?"?standard1"?(?!\w)""", re.IGNORECASE)
LOOKED_AT = (
    *("contacts", "keyspace", "action", "schedule", "stop", "warm_up_s", "routing", "interval_s"),
    *("read_consistency", "write_consistency"),
)
WITHOUT_MEANING = (
    *("format", "protocol", "table", "key", "share", "serial_consistency", "backlog_limit", "discover"),
    *("seed", "timeout_ms", "connections_per_node"),
)
"""Fields without effect for these statements; the reference page describes the tool's behaviour for the last three."""
CONSISTENCIES = ("ONE", "TWO", "THREE", "QUORUM", "LOCAL_QUORUM", "EACH_QUORUM", "ALL", "ANY", "LOCAL_ONE")
NO_JMX_PORT = 1
"""The tool reads the nodes' garbage collection over JMX, a load that our agent does not cause. Nothing listens on this
port."""

Json = Mapping[str, Any]
"""A distribution."""


def refused(what: str, allowed: str) -> EngineError:
    """The error for an order that the tool does not support."""
    return EngineError(
        f"engine cassandra-stress cannot run {what}",
        f"cassandra-stress can: {allowed}. Choose load.engine = 'agent', or another workload",
    )


@dataclass(frozen=True)
class Columns:
    """The rows that statements read and write."""

    names: tuple[str, ...]
    size: str
    key_size: int

    @property
    def words(self) -> tuple[str, ...]:
        """The section -col."""
        numbered = tuple(sorted(f"C{number}" for number in range(len(self.names))))
        named = f"n=FIXED({len(self.names)})" if self.names == numbered else f"names={','.join(self.names)}"
        return ("-col", named, f"size={self.size}")


@dataclass(frozen=True)
class Line:
    """The arguments for one load node, and the names of the operations that the tool calls READ and WRITE."""

    words: tuple[str, ...]
    names: Mapping[str, str]


@dataclass(frozen=True)
class _Asked:
    """An order of this tool's kind: its work is a program, its target speaks CQL."""

    order: Order
    program: Program
    target: CqlTarget


def line(order: Order, index: int, of: int) -> Line:
    """The arguments for load node `index` of `of`. Raises EngineError for anything that the tool does not support."""
    program, target = order.work, order.target
    if not isinstance(program, Program):
        raise refused(f"a workload of kind {program.kind!r}", "the workload stress")
    if not isinstance(target, CqlTarget):
        raise refused(f"a load over {target.protocol}", "CQL")
    for name, value in order.said():
        if name not in (*LOOKED_AT, *WITHOUT_MEANING):
            raise refused(f"{name} = {value!r}", "a plain connection, one phase")
    statements = {statement.name: _statement(statement) for statement in program.statements}
    columns = _columns(program.statements)
    asked = _Asked(order, program, target)
    if order.action == "populate":
        return _populate(asked, statements, columns, index, of)
    return _load(asked, statements, columns, index, of)


def _populate(asked: _Asked, statements: Mapping[str, str], columns: Columns, index: int, of: int) -> Line:
    order, program = asked.order, asked.program
    if program.populate_stride != 1 or _kind(program.populate, statements) != "write":
        raise refused("the operation that fills the table", "one write of standard1 for each key")
    first, beyond = _part(program.records, index, of)
    words = ("write", f"n={beyond - first}", f"keysize={columns.key_size}")
    common = _common(asked, columns, asked.target.write_consistency, validated=True)
    population = ("-pop", f"seq={first + 1}..{beyond}")
    return Line((*words, *common, *population, *_rate(order, index, of)), {"WRITE": "write"})


def _load(asked: _Asked, statements: Mapping[str, str], columns: Columns, index: int, of: int) -> Line:
    order, program = asked.order, asked.program
    by_kind: dict[str, OperationSpec] = {}
    for operation in program.operations:
        kind = _kind(operation.steps, statements)
        if kind in by_kind:
            raise refused(f"two operations that {kind}: {by_kind[kind].name!r} and {operation.name!r}", "one of each")
        if operation.weight > 0:
            by_kind[kind] = operation
    fraction = program.validate_fraction
    if fraction not in (0.0, 1.0):
        raise refused(f"validate_fraction = {fraction:g}", "0 or 1")
    common = _common(asked, columns, _consistency(asked.target, by_kind), validated=fraction == 1.0)
    words = (*_command(program, by_kind), f"keysize={columns.key_size}", *_length(order, index, of))
    population = ("-pop", _population(program, tuple(by_kind.values()), of))
    names = {kind.upper(): operation.name for kind, operation in by_kind.items()}
    return Line((*words, *common, *population, *_rate(order, index, of)), names)


def _command(program: Program, by_kind: Mapping[str, OperationSpec]) -> tuple[str, ...]:
    clustering = program.clustering
    if len(by_kind) == 1:
        return (next(iter(by_kind)),)
    ratio = ",".join(f"{kind}={operation.weight:g}" for kind, operation in sorted(by_kind.items()))
    return ("mixed", f"ratio({ratio})", f"clustering={distribution(clustering) if clustering else 'FIXED(1)'}")


def _common(asked: _Asked, columns: Columns, consistency: str, *, validated: bool) -> tuple[str, ...]:
    order, target = asked.order, asked.target
    if target.routing != "token":
        raise refused(f"load.routing = {target.routing!r}", "token")
    if consistency not in CONSISTENCIES:
        raise refused(f"consistency {consistency}", ", ".join(CONSISTENCIES))
    contacts = [contact.rpartition(":") for contact in order.contacts]
    ports = sorted({port for _, _, port in contacts})
    if len(ports) != 1:
        raise refused(f"nodes that listen on several ports ({', '.join(ports)})", "one port for all")
    return (
        *("no-warmup", f"cl={consistency}", *columns.words),
        *("-schema", f"keyspace={target.keyspace}", "-node", ",".join(name.strip("[]") for name, _, _ in contacts)),
        *("-port", f"native={ports[0]}", f"jmx={NO_JMX_PORT}", "-mode", "native", "cql3"),
        *("-errors", "ignore", "retries=0", *(() if validated else ("skip-read-validation",))),
        *("-log", "hdrfile=/dev/stdout", f"interval={round(order.interval_s * 1000)}ms", "no-settings"),
    )


def _statement(statement: StatementSpec) -> str:
    """The kind of a statement: `read` or `write`."""
    makes = [value.make.kind for value in statement.values]
    cql = statement.cql
    own = TABLE.search(cql) is not None and makes.count("stress-key") == 1
    for key in ("consistency", "conditional", "page_rows"):
        if value := getattr(statement, key):
            raise refused(f"statement {statement.name!r}: {key} = {value!r}", "plain reads and writes of a row")
    if own and makes == ["stress-key"] and cql.lstrip()[:6].upper() == "SELECT":
        return "read"
    if own and len(makes) > 1 and makes.count("stress-column") == len(makes) - 1 and " USING " not in cql.upper():
        return "write"
    raise refused(f"statement {statement.name!r}", "reads and writes of the rows of its own table standard1")


def _kind(steps: Sequence[Step], statements: Mapping[str, str]) -> str:
    if len(steps) != 1 or not isinstance(steps[0], Execute):
        raise refused("operations of several requests, or batches", "one statement per operation")
    return statements[steps[0].statement]


def _columns(statements: Sequence[StatementSpec]) -> Columns:
    """The columns of the statements: from a write, or from a read with expected values."""
    by_statement: dict[str, Columns] = {}
    for statement in statements:
        makes = [value.make for value in (*statement.values, *statement.expect)]
        columns = [make for make in makes if isinstance(make, StressColumn)]
        if not columns:
            continue
        sizes = {distribution(make.size) for make in columns}
        key_sizes = {make.key_size for make in columns}
        key_sizes |= {make.size for make in makes if isinstance(make, StressKey)}
        if len(sizes) != 1 or len(key_sizes) != 1:
            raise refused("columns of several size distributions, or keys of several sizes", "one for all")
        names = tuple(sorted(make.named or f"C{make.column}" for make in columns))
        by_statement[statement.name] = Columns(names, sizes.pop(), key_sizes.pop())
    if len(set(by_statement.values())) != 1:
        what = "statements that say nothing of columns" if not by_statement else "statements of different columns"
        raise refused(what, "reads and writes of whole rows, one of them a write or with values to expect")
    return next(iter(by_statement.values()))


def _consistency(target: CqlTarget, by_kind: Mapping[str, OperationSpec]) -> str:
    wanted = {kind: str(getattr(target, f"{kind}_consistency")) for kind in by_kind}
    if len(set(wanted.values())) != 1:
        raise refused(f"reads at {wanted['read']} and writes at {wanted['write']}", "one consistency level for both")
    return next(iter(wanted.values()))


def _length(order: Order, index: int, of: int) -> tuple[str, ...]:
    warm_up_s, operations, duration_s = order.warm_up_s, order.stop.operations, order.stop.duration_s
    if operations and duration_s:
        raise refused("both load.operations and load.duration_s", "one of them")
    if operations:
        if warm_up_s:
            raise refused("load.warm_up_s with load.operations", "a warm-up with load.duration_s")
        first, beyond = _part(operations, index, of)
        return (f"n={beyond - first}",)
    whole_s = (duration_s or 0.0) + warm_up_s
    if whole_s != int(whole_s) or warm_up_s != int(warm_up_s):
        raise refused(f"{whole_s:g} s of load, {warm_up_s:g} s of them warm-up", "whole seconds")
    return (f"duration={whole_s:.0f}s",)


def _rate(order: Order, index: int, of: int) -> tuple[str, ...]:
    schedule = order.schedule
    if isinstance(schedule, Closed):
        return ("-rate", f"threads={_threads(schedule.threads, index, of)}")
    if not isinstance(schedule, Steady) or schedule.kind != "constant":
        raise refused(f"schedule {schedule.kind!r}", "closed, constant")
    rate_per_s = schedule.rate_per_s / of
    if rate_per_s != int(rate_per_s):
        raise refused(f"{rate_per_s:g} operations/s a load node", "whole numbers")
    threads = _threads(schedule.in_flight, index, of)
    return ("-rate", f"threads={threads}", f"fixed={rate_per_s:.0f}/s")


def _threads(whole: int, index: int, of: int) -> int:
    first, beyond = _part(whole, index, of)
    return max(1, beyond - first)


def _part(whole: int, index: int, of: int) -> tuple[int, int]:
    """The key range of one load node: first, and one beyond the last."""
    return whole * index // of, whole * (index + 1) // of


def _population(program: Program, operations: Sequence[OperationSpec], of: int) -> str:
    """The word of -pop: keys of an order begin with 0, seeds of the tool with 1."""
    every = [operation.keys for operation in operations]
    if not every or any(one != every[0] for one in every):
        raise refused("operations that choose their keys differently", "one distribution for all")
    keys = every[0]
    if isinstance(keys, ExistingKeys) and keys.distribution == "uniform":
        return f"dist=UNIFORM(1..{program.records})"
    if not isinstance(keys, DrawnKeys):
        what = f"keys {keys.model_dump()!r}"
        raise refused(what, "keys that are drawn from a distribution of numbers, or uniform")
    number = keys.number
    if number["name"] == "sequence":
        if of > 1:
            raise refused("keys in sequence from several load nodes", "one load node, or keys that are drawn")
        return f"seq={int(number['min']) + 1}..{int(number['max']) + 1}"
    return f"dist={distribution(number, shift=1)}"


def distribution(read: Json, shift: int = 0) -> str:
    """A distribution in the tool's syntax, shifted up by `shift`."""
    name = read["name"]
    if name == "inverted":
        return f"~{distribution(read['of'], shift)}"
    if name == "fixed":
        return f"FIXED({_whole(read['value']) + shift})"
    if name not in ("uniform", "exponential", "gaussian", "extreme", "sequence"):
        raise refused(f"distribution {name!r}", "fixed, sequence, uniform, exponential, gaussian, extreme, inverted")
    bounds = f"{_whole(read['min']) + shift}..{_whole(read['max']) + shift}"
    mean, deviation, quanta = read.get("mean"), read.get("deviation"), read.get("quanta")
    if name == "gaussian" and (mean is not None or deviation is not None):
        low, high = float(read["min"]), float(read["max"])
        middle = (low + high) / 2 if mean is None else float(mean)
        spread = (high - low) / 6 if deviation is None else float(deviation)
        return f"GAUSSIAN({bounds},{middle + shift!r},{spread!r})"
    if name == "extreme":
        more = f",{int(quanta)}" if quanta else ""
        return f"{'Q' if quanta else ''}EXTREME({bounds},{float(read['shape'])!r}{more})"
    return (
        f"{ {'uniform': 'UNIFORM', 'exponential': 'EXP', 'gaussian': 'GAUSSIAN', 'sequence': 'SEQ'}[name] }({bounds})"
    )


def _whole(value: float) -> int:
    if value != int(value):
        raise refused(f"a distribution with the bound {value:g}", "whole numbers")
    return int(value)
