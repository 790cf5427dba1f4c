"""Compiler of an order into a latte workload script, as far as latte supports it. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from steelyard.model.errors import EngineError
from steelyard.wire.order import CqlTarget, Order
from steelyard.wire.program import (
    BoundValue,
    DrawnKeys,
    Execute,
    ExistingKeys,
    FromKey,
    NewKeys,
    OperationSpec,
    Program,
    Random,
    StatementSpec,
    Step,
)

KEYS_BY_RANDOM = ("uniform",)
TEXT = ("text", "varchar", "ascii")
INTEGERS = ("bigint", "counter", "timestamp")
"""Types to which latte's integers can be bound without a conversion."""


def refused(what: str, allowed: str) -> EngineError:
    """The error for an order that latte does not support."""
    return EngineError(
        f"engine latte cannot run {what}",
        f"latte can: {allowed}. Choose load.engine = 'agent', or another workload",
    )


def asked(order: Order) -> tuple[Program, CqlTarget]:
    """The program of an order and where it goes. Raises EngineError for an order of another kind."""
    if not isinstance(order.work, Program):
        raise refused(f"workload {order.work.kind!r}", "workloads that are files, and stress")
    if not isinstance(order.target, CqlTarget):
        raise refused(f"a load over {order.target.protocol}", "CQL")
    return order.work, order.target


def script(order: Order) -> str:
    """The text of a script whose functions are `load` and one for each of the order's operations (`operation_0`...).

    Raises EngineError with the name of an unsupported feature.
    """
    program, target = asked(order)
    if program.populate_stride != 1:
        raise refused(f"populate.stride = {program.populate_stride}", "filling with a cycle for each key")
    if program.validate_fraction:
        raise refused(f"validate_fraction = {program.validate_fraction}", "validate_fraction = 0")
    if program.clustering:
        raise refused("runs of equal operations (clustering)", "operations drawn one by one")
    lines = ["pub async fn prepare(ctx) {", f"    ctx.load_cycle_count = {program.records};"]
    for statement in program.statements:
        lines.append(f"    ctx.prepare({_text(statement.name)}, {_text(statement.cql)}).await?;")
    lines += ["}", ""]
    statements = program.by_name
    lines += _function("load", "i", program.populate, statements, target)
    for number, operation in enumerate(program.operations):
        key = _key(operation, program.records, order.seed + number)
        lines += _function(f"operation_{number}", key, operation.steps, statements, target)
    return "\n".join(lines) + "\n"


def weights(order: Order) -> str:
    """Arguments of `-f`: functions with their shares."""
    operations = enumerate(asked(order)[0].operations)
    return ",".join(f"operation_{number}:{operation.weight:g}" for number, operation in operations)


def names(order: Order) -> dict[str, str]:
    """Names of the operations in records, by the script's function."""
    return {f"operation_{number}": operation.name for number, operation in enumerate(asked(order)[0].operations)}


def _function(
    name: str,
    key: str,
    steps: Sequence[Step],
    statements: Mapping[str, StatementSpec],
    target: CqlTarget,
) -> list[str]:
    if len(steps) != 1 or not isinstance(steps[0], Execute):
        raise refused(f"{name} with {len(steps)} steps or a batch", "operations of one statement")
    statement = statements[steps[0].statement]
    if statement.conditional or statement.page_rows:
        raise refused(f"statement {statement.name!r} (conditional or paged)", "plain statements")
    levels = {target.read_consistency, target.write_consistency}
    if statement.consistency or (name != "load" and len(levels) > 1):
        raise refused(f"more than one consistency level ({', '.join(sorted(levels))})", "one level for all")
    values = [_value(value, statement.name) for value in statement.values]
    return [
        f"pub async fn {name}(ctx, i) {{",
        f"    let key = {key};",
        f"    ctx.execute_prepared({_text(statement.name)}, [{', '.join(values)}]).await?",
        "}",
        "",
    ]


def _key(operation: OperationSpec, records: int, seed: int) -> str:
    keys = operation.keys
    if isinstance(keys, ExistingKeys) and keys.distribution in KEYS_BY_RANDOM:
        return f"latte::hash2(i, {seed}) % {records}"
    if isinstance(keys, DrawnKeys) and keys.number["name"] == "uniform":
        low, high = int(keys.number["min"]), int(keys.number["max"])
        return f"latte::hash2(i, {seed}) % {high - low + 1} + {low}"
    if isinstance(keys, NewKeys):
        return f"{records} + i"
    chosen = keys.distribution if isinstance(keys, ExistingKeys) else repr(keys.kind)
    raise refused(f"keys {chosen}", "keys that are uniform or new")


def _value(value: BoundValue, statement: str) -> str:
    cql_type, make = value.type, value.make
    if isinstance(make, FromKey) and not make.scramble:
        return _number(make, cql_type, statement)
    if isinstance(make, Random) and not make.of and cql_type in (*TEXT, "blob"):
        size = make.size or {}
        if size.get("name") != "fixed":
            raise refused(f"{statement}: {cql_type} of varying size", "sizes that are fixed")
        generator = "blob" if cql_type == "blob" else "text"
        return f"latte::{generator}(latte::hash2(i, {make.salt}), {int(size['value'])})"
    raise refused(f"{statement}: a {cql_type} by {make.kind!r}", "keys as numbers or text; random text and blobs")


def _number(make: FromKey, cql_type: str, statement: str) -> str:
    term = "key" if make.divide == 1 else f"(key / {make.divide})"
    if make.modulo:
        term = f"({term} % {make.modulo})"
    if make.scale != 1:
        term = f"({term} * {make.scale})"
    if make.offset:
        term = f"({term} + {make.offset})"
    if cql_type in INTEGERS:
        return term
    if cql_type in TEXT and make.digits <= 1:
        prefix = make.prefix
        if set(prefix) & set("`$\\"):
            raise refused(f"{statement}: the prefix {prefix!r}", "prefixes without ` $ and \\")
        return f"`{prefix}${{{term}}}`"
    raise refused(f"{statement}: a key of type {cql_type}", f"keys of type {', '.join((*INTEGERS, *TEXT))}")


def _text(text: str) -> str:
    return json.dumps(text)
