"""Why the server does not know what a load names: keyspace or table do not exist, or the table has other columns."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from steelyard.dropin import table_definition
from steelyard.format import count
from steelyard.model.data_model import Schema
from steelyard.model.errors import EngineError, SteelyardError

ABSENT = ("does not exist", "unconfigured table")
UNKNOWN = ("undefined column", "unknown identifier", "undefined name", "no such column")
MOST_SHOWN = 12
QUESTION = "SELECT column_name, type FROM system_schema.columns WHERE keyspace_name = '{}' AND table_name = '{}'"
Rows = Callable[[Sequence[str]], Awaitable[Sequence[Sequence[Mapping[str, Any]]]]]
"""Asks the cluster statements."""


async def explained(error: EngineError, schema: Schema, rows: Rows, absent: str, other: str) -> EngineError:
    """The error with a hint that fits: `absent` if keyspace or table do not exist; where a table has other columns,
    which, and then `other`."""
    message = error.message.lower()
    if any(words in message for words in ABSENT):
        error.hint = absent
    elif any(words in message for words in UNKNOWN):
        for table in schema.all_tables():
            names = (one.replace("'", "''") for one in (schema.keyspace, table.name))
            try:
                (described,) = await rows([QUESTION.format(*names)])
            except SteelyardError:
                return error
            there = {str(row["column_name"]): str(row["type"]) for row in described}
            defined = table_definition.described(f"CREATE TABLE t ({table.columns})") or ()
            if difference := differing({one["column_name"]: one["type"] for one in defined}, there):
                error.hint = f"the table {schema.keyspace}.{table.name} has other columns: {difference}\n{other}"
                break
    return error


def differing(wanted: Mapping[str, str], there: Mapping[str, str]) -> str:
    """Differences of a table's columns from those that a load needs; empty if they do not."""
    missing = [name for name in wanted if name not in there]
    others = [f"{name} is {there[name]}, not {kind}" for name, kind in wanted.items() if there.get(name, kind) != kind]
    parts = [f"it lacks {_listed(missing)}"] if missing else []
    parts += [_listed(others)] if others else []
    return "; ".join([*parts, f"it has {_listed(list(there))}"]) if parts else ""


def _listed(names: Sequence[str]) -> str:
    more = len(names) - MOST_SHOWN
    return ", ".join(names[:MOST_SHOWN]) + (f" and {count(more, 'more', 'more')}" if more > 0 else "")
