"""Bind markers of a CQL statement: the column that each `?` belongs to, found by parsing the statement.

cassandra-stress gets it from the server when it prepares a statement; we need it earlier, because the agent prepares.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

TOKEN = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|[A-Za-z_][\w]*|<=|>=|!=|[-+<>=(),?.;*\[\]{}:]|\d+(?:\.\d+)?""")
COMPARISONS = ("=", "<", ">", "<=", ">=", "!=", "LIKE", "CONTAINS", "KEY")
"""Operators between a column and its marker; KEY ends CONTAINS KEY."""


def columns_of(cql: str) -> list[tuple[str, str]]:
    """Column and comparison of each marker, in order. Raises ValueError, with the position, for a marker that belongs
    to no column."""
    tokens = TOKEN.findall(cql)
    inserted = _inserted(tokens)
    columns = []
    for index, token in enumerate(tokens):
        if token != "?":
            continue
        column = inserted.get(index) or _compared(tokens, index)
        if column is None:
            raise ValueError(" ".join(tokens[max(0, index - 4) : index + 1]))
        columns.append((_plain(column[0]), column[1]))
    return columns


def _plain(name: str) -> str:
    return name[1:-1].replace('""', '"') if name.startswith('"') else name.lower()


def _inserted(tokens: Sequence[str]) -> dict[int, tuple[str, str]]:
    """Markers of INSERT INTO t (a, b) VALUES (?, ?), by token index."""
    upper = [token.upper() for token in tokens]
    if "INSERT" not in upper or "VALUES" not in upper:
        return {}
    opening = upper.index("(")
    names = [token for token in tokens[opening + 1 : upper.index(")")] if token != ","]
    begin = upper.index("VALUES") + 1
    by_marker, position, depth = {}, 0, 0
    for index in range(begin, len(tokens)):
        token = tokens[index]
        depth += (token == "(") - (token == ")")
        if depth == 0 and token == ")":
            break
        if token == "," and depth == 1:
            position += 1
        elif token == "?" and depth == 1 and position < len(names):
            by_marker[index] = (names[position], "=")
    return by_marker


def _compared(tokens: Sequence[str], index: int) -> tuple[str, str] | None:
    before = tokens[index - 1].upper() if index else ""
    if before in ("+", "-") and index >= 4 and tokens[index - 3] == "=":
        return tokens[index - 2], "+"
    if before in COMPARISONS:
        back = index - 3 if before == "KEY" else index - 2
        name = tokens[back] if back >= 0 else ""
        return (name, before) if name and (name[0].isalpha() or name[0] in '_"') else None
    if before in ("(", ","):
        return _listed(tokens, index)
    return None


def _listed(tokens: Sequence[str], index: int) -> tuple[str, str] | None:
    """Markers within brackets: `a IN (?, ?)`, `(a, b) > (?, ?)`."""
    opening, position = index - 1, 0
    while opening >= 0 and tokens[opening] != "(":
        position += tokens[opening] == ","
        opening -= 1
    if opening < 2:
        return None
    operator = tokens[opening - 1].upper()
    name = tokens[opening - 2]
    if operator == "IN" and name != ")":
        return name, "IN"
    if operator in COMPARISONS and name == ")":
        begin = opening - 3
        while begin >= 0 and tokens[begin] != "(":
            begin -= 1
        names = [token for token in tokens[begin + 1 : opening - 2] if token != ","]
        return (names[position], operator) if position < len(names) else None
    return None
