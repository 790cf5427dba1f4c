"""Partial parser of CQL statements: table, column of each marker, selected columns.

The server reports errors in a statement. This parser reads only what the markers' values require, and raises an error
for anything else that it would have to understand.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from steelyard.model.data_model import quoted

TOKEN = re.compile(
    r"""(?P<blank>\s+|--[^\n]*|//[^\n]*|/\*.*?\*/)
      | (?P<text>'(?:[^']|'')*'|\$\$.*?\$\$)
      | (?P<quoted>"(?:[^"]|"")+")
      | (?P<marker>\?|:\s*[A-Za-z_][A-Za-z0-9_]*)
      | (?P<number>[0-9][0-9A-Fa-f.eExX-]*)
      | (?P<word>[A-Za-z_][A-Za-z0-9_]*)
      | (?P<symbol><=|>=|!=|[-+*/%<>=(),.;:\[\]{}])""",
    re.VERBOSE | re.DOTALL,
)
VERBS = ("select", "insert", "update", "delete")
OPERATORS = ("=", "<", ">", "<=", ">=", "!=", "+", "-", "in", "contains", "key", "like")
LIMITS = {"limit": "int", "ttl": "int", "timestamp": "bigint"}
"""Words before a marker that belongs to no column, and the marker's type."""


class CqlProblem(ValueError):
    """A statement that cannot be read."""


@dataclass(frozen=True)
class Token:
    """A word (in lower case), name, literal, marker or symbol, and its position."""

    kind: str
    text: str
    at: int


@dataclass(frozen=True)
class Marker:
    """A placeholder for a value."""

    name: str
    """Name in the workload file: the text after the colon, otherwise the column, `limit`, `ttl` or `timestamp`."""
    column: str
    """Column that the value is compared with or written to; empty for LIMITS."""
    relation: str
    """An operator such as `=`, `values` for a column of INSERT, `set` for one that UPDATE assigns, or a word of
    LIMITS."""
    within: str = ""
    """`element` or `key` for one entry of a collection, `list` after IN, `same` within its parentheses."""
    condition: bool = False
    """Whether it follows IF."""
    at: int = 0


@dataclass(frozen=True)
class Reading:
    """A parsed statement."""

    verb: str
    table: str
    markers: tuple[Marker, ...]
    cql: str
    """The statement with a question mark for each marker."""
    inserted: tuple[str, ...] = ()
    """Columns of INSERT."""
    assigned: tuple[str, ...] = ()
    """Columns that UPDATE sets or DELETE names."""
    selected: tuple[str, ...] | None = None
    """Plain columns of SELECT; None for `*`; empty if it selects anything else."""
    conditional: bool = False

    @property
    def writes(self) -> bool:
        """Whether the statement changes data."""
        return self.verb != "select"


def tokens(cql: str) -> list[Token]:
    """The tokens of a statement. Raises CqlProblem."""
    words, at = [], 0
    while at < len(cql):
        match = TOKEN.match(cql, at)
        if match is None:
            raise CqlProblem(f"at character {at + 1}: cannot read {cql[at : at + 20]!r}")
        kind, text = str(match.lastgroup), match[0]
        if kind == "word":
            text = text.lower()
        elif kind == "quoted":
            kind, text = "name", text[1:-1].replace('""', '"')
        elif kind == "marker":
            text = text[1:].strip()
        if kind != "blank":
            words.append(Token(kind, text, at))
        at = match.end()
    while words and words[-1].text == ";":
        words.pop()
    return words


def read(cql: str) -> Reading:
    """Parse a statement. Raises CqlProblem."""
    words = tokens(cql)
    verb = words[0].text if words else ""
    if verb not in VERBS:
        raise CqlProblem(f"must begin with SELECT, INSERT, UPDATE or DELETE, not {cql.strip()[:20]!r}")
    table = _table(words, verb)
    inserted = _inserted(words) if verb == "insert" else ()
    markers = _markers(cql, words, verb, inserted)
    return Reading(
        verb=verb,
        table=table,
        markers=markers,
        cql=one_line(cql, marker="?"),
        inserted=inserted,
        assigned=_assigned(words, verb),
        selected=_selected(words) if verb == "select" else (),
        conditional=verb != "select" and _behind_if(words) is not None,
    )


def one_line(cql: str, marker: str | None = None) -> str:
    """The text on one line without comments, with `marker` in place of each marker; literals are unchanged."""
    parts: list[str] = []
    for match in TOKEN.finditer(cql):
        part = {"blank": " ", "marker": marker}.get(str(match.lastgroup)) or match[0]
        if part != " " or parts[-1:] != [" "]:
            parts.append(part)
    return "".join(parts).strip("; ")


def _is_name(word: Token) -> bool:
    return word.kind in ("word", "name")


def _table(words: Sequence[Token], verb: str) -> str:
    """The table name after FROM, INTO or UPDATE, without its keyspace."""
    before = {"select": "from", "delete": "from", "insert": "into", "update": "update"}[verb]
    for index, word in enumerate(words):
        if word.kind == "word" and word.text == before and index + 1 < len(words) and _is_name(words[index + 1]):
            dotted = index + 3 < len(words) and words[index + 2].text == "."
            return words[index + 3 if dotted else index + 1].text
    raise CqlProblem(f"no table after {before.upper()}")


def _inserted(words: Sequence[Token]) -> tuple[str, ...]:
    texts = [word.text if word.kind != "text" else "" for word in words]
    if "values" not in texts:
        raise CqlProblem("INSERT requires (columns) VALUES (values)")
    opening, closing = texts.index("(") if "(" in texts else 0, texts.index("values")
    return tuple(word.text for word in words[opening:closing] if _is_name(word))


def _assigned(words: Sequence[Token], verb: str) -> tuple[str, ...]:
    """Columns that UPDATE sets or DELETE names."""
    if verb == "delete":
        end = next((index for index, word in enumerate(words) if word.text == "from"), 0)
        return tuple(word.text for word in words[1:end] if _is_name(word))
    if verb != "update":
        return ()
    columns, depth, expecting = [], 0, False
    for word in words:
        depth += (word.text in ("(", "[", "{") and word.kind == "symbol") - (
            word.text in (")", "]", "}") and word.kind == "symbol"
        )
        if word.kind == "word" and word.text == "where":
            break
        if expecting and _is_name(word):
            columns.append(word.text)
            expecting = False
        elif depth == 0 and (
            (word.kind == "word" and word.text == "set") or (word.kind == "symbol" and word.text == ",")
        ):
            expecting = True
    return tuple(columns)


def _selected(words: Sequence[Token]) -> tuple[str, ...] | None:
    end = next(index for index, word in enumerate(words) if word.text == "from" and word.kind == "word")
    inside = [word for word in words[1:end] if not (word.kind == "word" and word.text in ("distinct",))]
    if [word.text for word in inside] == ["*"]:
        return None
    names, commas = inside[::2], inside[1::2]
    if all(_is_name(word) for word in names) and all(word.text == "," for word in commas) and len(inside) % 2:
        return tuple(word.text for word in names)
    return ()


def _behind_if(words: Sequence[Token]) -> int | None:
    return next((index for index, word in enumerate(words) if word.kind == "word" and word.text == "if"), None)


def _markers(cql: str, words: Sequence[Token], verb: str, inserted: tuple[str, ...]) -> tuple[Marker, ...]:
    behind_if = _behind_if(words)
    markers = []
    values_at = next((index for index, word in enumerate(words) if word.text == "values" and word.kind == "word"), -1)
    place = depth = 0
    for index, word in enumerate(words):
        if verb == "insert" and index > values_at >= 0:
            depth += (word.text == "(") - (word.text == ")") if word.kind == "symbol" else 0
            place += word.text == "," and word.kind == "symbol" and depth == 1
        if word.kind != "marker":
            continue
        if verb == "insert" and index > values_at and depth == 1:
            if place >= len(inserted):
                raise CqlProblem(f"INSERT has more values than its {len(inserted)} columns")
            marker = Marker(inserted[place], inserted[place], "values")
        else:
            marker = _looked_back(words, index)
        named = replace(marker, name=word.text or marker.name, at=word.at)
        if not named.name:
            raise CqlProblem(
                f"at character {word.at + 1}: the column of this marker is unclear; name it, for example "
                "`:since`, and add a value with a type under `values`"
            )
        markers.append(replace(named, condition=behind_if is not None and index > behind_if))
    return tuple(markers)


def _looked_back(words: Sequence[Token], index: int) -> Marker:
    """The marker after a column and an operator, or after a word of LIMITS; otherwise a marker without a name."""
    at = index - 1
    before = words[at]
    if before.kind == "word" and before.text in LIMITS:
        name = "per_partition_limit" if before.text == "limit" and words[at - 1].text == "partition" else before.text
        return Marker(name, "", before.text)
    within = ""
    if before.text == "(" and at >= 1 and words[at - 1].text == "in":
        at, before, within = at - 1, words[at - 1], "same"
    elif before.text == "," and (opening := _opening(words, at)) is not None and words[opening - 1].text == "in":
        at, before, within = opening - 1, words[opening - 1], "same"
    relation = before.text
    if before.kind in ("word", "symbol") and relation in OPERATORS:
        at -= 1
        if relation == "key" and words[at].text == "contains":
            at -= 1
            within = "key"
        elif relation == "contains":
            within = "element"
        elif relation == "in":
            within = "" if within == "same" else "list"
        if at >= 0 and _is_name(words[at]):
            setting = relation == "=" and _is_assignment(words, at)
            return Marker(words[at].text, words[at].text, "set" if setting else relation, within)
    return Marker("", "", "")


def _opening(words: Sequence[Token], at: int) -> int | None:
    """Index of the open parenthesis before a token, if only markers and commas are between them."""
    while at >= 0 and (words[at].kind == "marker" or words[at].text == ","):
        at -= 1
    return at if at >= 1 and words[at].text == "(" else None


def _is_assignment(words: Sequence[Token], at: int) -> bool:
    """Whether a column's equality is between SET and WHERE."""
    passed = [word.text for word in words[:at] if word.kind == "word"]
    return "set" in passed and "where" not in passed and "if" not in passed


def qualified(cql: str, keyspace: str) -> str:
    """The statement with its table qualified by `keyspace`, unless it already has one."""
    words = tokens(cql)
    before = {"select": "from", "delete": "from", "insert": "into", "update": "update"}[words[0].text]
    for index, word in enumerate(words[:-1]):
        if word.kind == "word" and word.text == before:
            named = index + 2 < len(words) and words[index + 2].text == "."
            at = words[index + 1].at
            return cql if named else f"{cql[:at]}{quoted(keyspace)}.{cql[at:]}"
    return cql
