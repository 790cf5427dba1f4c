"""Columns of a table from its CREATE TABLE statement, as the server would describe them."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from steelyard.model import cql_statement
from steelyard.workload import _models, _tables, _types


def described(create: str) -> list[dict[str, Any]] | None:
    """Rows as in system_schema.columns. None if only the server knows: types of the user's own, an unusual
    statement."""
    try:
        defined = _tables.definition_of(_models.DeclaredTable(create=create))
        types = {name: _types.parse(column.type).wire() for name, column in defined.specs.items()}
    except (cql_statement.CqlProblem, _types.TypeProblem, ValidationError):
        return None
    columns = []
    for name, column in defined.specs.items():
        role, position = "static" if column.static else "regular", -1
        for kind, names in zip(("partition_key", "clustering"), defined.primary, strict=True):
            if name in names:
                role, position = kind, names.index(name)
        columns.append({"column_name": name, "type": types[name], "kind": role, "position": position})
    return columns
