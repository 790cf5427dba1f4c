"""Compiler of an order into a latte workload script, as far as latte supports it. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from steelyard.model.errors import EngineError

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


def script(order: Mapping[str, Any]) -> str:
    """The text of a script whose functions are `load` and one for each of the order's operations (`operation_0`...).

    Raises EngineError with the name of an unsupported feature.
    """
    program = order["workload"]
    if program["kind"] != "program":
        raise refused(f"workload {program['kind']!r}", "workloads that are files, and stress")
    if int(program.get("populate_stride", 1)) != 1:
        raise refused(f"populate.stride = {program['populate_stride']}", "filling with a cycle for each key")
    if program.get("validate_fraction"):
        raise refused(f"validate_fraction = {program['validate_fraction']}", "validate_fraction = 0")
    if program.get("clustering"):
        raise refused("runs of equal operations (clustering)", "operations drawn one by one")
    statements = {statement["name"]: statement for statement in program["statements"]}
    lines = ["pub async fn prepare(ctx) {", f"    ctx.load_cycle_count = {int(program['records'])};"]
    for name, statement in statements.items():
        lines.append(f"    ctx.prepare({_text(name)}, {_text(statement['cql'])}).await?;")
    lines += ["}", ""]
    lines += _function("load", "i", program["populate"], statements, order)
    for number, operation in enumerate(program["operations"]):
        key = _key(operation, int(program["records"]), int(order["seed"]) + number)
        lines += _function(f"operation_{number}", key, operation["steps"], statements, order)
    return "\n".join(lines) + "\n"


def weights(order: Mapping[str, Any]) -> str:
    """Arguments of `-f`: functions with their shares."""
    operations = enumerate(order["workload"]["operations"])
    return ",".join(f"operation_{number}:{operation['weight']:g}" for number, operation in operations)


def names(order: Mapping[str, Any]) -> dict[str, str]:
    """Names of the operations in records, by the script's function."""
    return {f"operation_{number}": spec["name"] for number, spec in enumerate(order["workload"]["operations"])}


def _function(
    name: str,
    key: str,
    steps: Sequence[Mapping[str, Any]],
    statements: Mapping[str, Mapping[str, Any]],
    order: Mapping[str, Any],
) -> list[str]:
    if len(steps) != 1 or steps[0]["kind"] != "execute":
        raise refused(f"{name} with {len(steps)} steps or a batch", "operations of one statement")
    statement = statements[steps[0]["statement"]]
    if statement.get("conditional") or statement.get("page_rows"):
        raise refused(f"statement {statement['name']!r} (conditional or paged)", "plain statements")
    asked = {order[f"{part}_consistency"] for part in ("read", "write")}
    if statement.get("consistency") or (name != "load" and len(asked) > 1):
        raise refused(f"more than one consistency level ({', '.join(sorted(asked))})", "one level for all")
    values = [_value(value, statement["name"]) for value in statement.get("values", ())]
    return [
        f"pub async fn {name}(ctx, i) {{",
        f"    let key = {key};",
        f"    ctx.execute_prepared({_text(statement['name'])}, [{', '.join(values)}]).await?",
        "}",
        "",
    ]


def _key(operation: Mapping[str, Any], records: int, seed: int) -> str:
    keys = operation["keys"]
    if keys["kind"] == "existing" and keys["distribution"] in KEYS_BY_RANDOM:
        return f"latte::hash2(i, {seed}) % {records}"
    if keys["kind"] == "drawn" and keys["number"]["name"] == "uniform":
        low, high = int(keys["number"]["min"]), int(keys["number"]["max"])
        return f"latte::hash2(i, {seed}) % {high - low + 1} + {low}"
    if keys["kind"] == "new":
        return f"{records} + i"
    raise refused(f"keys {keys.get('distribution') or keys['kind']!r}", "keys that are uniform or new")


def _value(value: Mapping[str, Any], statement: str) -> str:
    cql_type, make = value["type"], value["make"]
    if make["kind"] == "key" and not make.get("scramble"):
        return _number(make, cql_type, statement)
    if make["kind"] == "random" and not make.get("of") and cql_type in (*TEXT, "blob"):
        size = make.get("size") or {}
        if size.get("name") != "fixed":
            raise refused(f"{statement}: {cql_type} of varying size", "sizes that are fixed")
        generator = "blob" if cql_type == "blob" else "text"
        return f"latte::{generator}(latte::hash2(i, {int(make.get('salt', 0))}), {int(size['value'])})"
    raise refused(f"{statement}: a {cql_type} by {make['kind']!r}", "keys as numbers or text; random text and blobs")


def _number(make: Mapping[str, Any], cql_type: str, statement: str) -> str:
    term = "key" if int(make.get("divide", 1)) == 1 else f"(key / {int(make['divide'])})"
    if make.get("modulo"):
        term = f"({term} % {int(make['modulo'])})"
    if int(make.get("scale", 1)) != 1:
        term = f"({term} * {int(make['scale'])})"
    if int(make.get("offset", 0)):
        term = f"({term} + {int(make['offset'])})"
    if cql_type in INTEGERS:
        return term
    if cql_type in TEXT and int(make.get("digits", 0)) <= 1:
        prefix = str(make.get("prefix", ""))
        if set(prefix) & set("`$\\"):
            raise refused(f"{statement}: the prefix {prefix!r}", "prefixes without ` $ and \\")
        return f"`{prefix}${{{term}}}`"
    raise refused(f"{statement}: a key of type {cql_type}", f"keys of type {', '.join((*INTEGERS, *TEXT))}")


def _text(text: str) -> str:
    return json.dumps(text)
