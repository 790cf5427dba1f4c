"""Tables of a workload file: the type of each column and the generator of its values."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

from steelyard.format import count
from steelyard.model import cql_statement
from steelyard.model import data_model as model
from steelyard.model.errors import StudyError
from steelyard.tomlfile.problems import Missing, problem
from steelyard.workload import _models, _types
from steelyard.workload._distributions import bounds, mean
from steelyard.workload._types import CqlType

TABLE_NAME = r"[A-Za-z0-9_]{1,48}"
DEFAULT_BYTES = 32
DEFAULT_ENTRY_BYTES = 12
DEFAULT_ENTRIES = 4
LEAST_VERSIONED_BYTES = 24
"""Minimum size of a versioned value: a version has at most 20 digits; the other bytes are pseudo-random."""
MS_PER_DAY = 86_400_000
NUMBERLESS = (*_types.COLLECTIONS, "tuple", "vector")
"""Types that cannot hold a number."""
WHOLE = ("tinyint", "smallint", "int", "bigint", "varint", "counter")
FIXED = {
    **dict.fromkeys(("text", "varchar", "ascii"), "a quoted string"),
    **dict.fromkeys(WHOLE, "a whole number"),
    **dict.fromkeys(("list", "set"), "a list"),
    "boolean": "true or false",
    "blob": "a string of hexadecimal digits after 0x",
}
"""Expected form of a fixed value by type, for messages."""

Json = dict[str, Any]
Refuse = Callable[[StudyError], None]


@dataclass(frozen=True)
class ColumnInfo:
    """A column of a table."""

    name: str
    kind: CqlType
    value: Json
    """The value in the agent's order: `type` and `make`."""
    spec: _models.Column

    @property
    def make(self) -> str:
        """Source of the value: key, random, draw, row or fixed."""
        return str(self.value["make"]["kind"])


@dataclass(frozen=True)
class TableInfo:
    """A table."""

    name: str
    columns: Mapping[str, ColumnInfo]
    partition: tuple[str, ...]
    clustering: tuple[str, ...]

    @property
    def primary_key(self) -> tuple[str, ...]:
        """Partition and clustering columns."""
        return (*self.partition, *self.clustering)

    @property
    def counts(self) -> bool:
        """Whether it is a table of counters."""
        return any(column.kind.name == "counter" for column in self.columns.values())

    def in_order(self) -> tuple[str, ...]:
        """Columns as listed by `SELECT *`: partition key, clustering, static and other ones by name."""
        rest = sorted(name for name in self.columns if name not in self.primary_key)
        static = [name for name in rest if self.columns[name].spec.static]
        return (*self.primary_key, *static, *(name for name in rest if name not in static))


def types_of(file: _models.File, refuse: Refuse) -> tuple[dict[str, CqlType], dict[str, tuple[_models.Column, ...]]]:
    """User-defined types in order, and how the values of their fields are made."""
    known: dict[str, CqlType] = {}
    specs: dict[str, tuple[_models.Column, ...]] = {}
    for name, fields in file.types.items():
        members = [type_of(spec.type, known, f"types.{name}.{field}", refuse) for field, spec in fields.items()]
        if not fields:
            refuse(problem(f"types.{name}", Missing(), "a type needs fields"))
        known[name] = CqlType(name, tuple(one for one in members if one is not None), fields=tuple(fields))
        specs[name] = tuple(fields.values())
    return known, specs


def type_of(text: str, known: Mapping[str, CqlType], key: str, refuse: Refuse) -> CqlType | None:
    """Parse a type; None, with an error reported, if it is invalid."""
    if not text:
        refuse(problem(key, Missing(), "needs a type, such as 'text'"))
        return None
    try:
        return _types.parse(text, known)
    except _types.TypeProblem as error:
        refuse(StudyError(f"{key}: {error}", key=key, read=text))
        return None


def table_of(
    name: str,
    table: _models.DeclaredTable,
    known: Mapping[str, CqlType],
    makes: Maker,
    refuse: Refuse,
) -> tuple[TableInfo | None, model.Table | None]:
    """The compiled table and the table for the system to create; None, with an error reported, if it is invalid."""
    key = f"tables.{name}"
    if not re.fullmatch(TABLE_NAME, name):
        refuse(problem(key, Missing(), "not a table name: use at most 48 letters, digits and _"))
    try:
        definition = definition_of(table) if table.create else _from_columns(table)
    except cql_statement.CqlProblem as error:
        refuse(problem(key, Missing(), str(error)))
        return None, None
    (partition, clustering), specs = definition.primary, definition.specs
    lacking = [column for column in (*partition, *clustering) if column not in specs]
    if lacking or not partition:
        example = "requires a primary key, such as 'id' or '(device, day), at'"
        what = f"{lacking[0]} is not a column" if lacking else example
        read = table.primary_key or Missing()
        refuse(problem(f"{key}.primary_key", read, what, tuple(specs) if lacking else (), near=False))
        return None, None
    columns: dict[str, ColumnInfo] = {}
    for column, spec in specs.items():
        kind = type_of(spec.type, known, f"{key}.columns.{column}", refuse)
        if kind is None:
            continue
        value = makes.value(spec, kind, f"{key}.columns.{column}", is_key=column in (*partition, *clustering))
        columns[column] = ColumnInfo(column, kind, value, spec)
    _counters(key, columns, (*partition, *clustering), refuse)
    asked = model.Table(name, definition.text, (*definition.options, *table.options), table.indexes)
    return TableInfo(name, columns, partition, clustering), asked


def _counters(key: str, columns: Mapping[str, ColumnInfo], primary_key: Sequence[str], refuse: Refuse) -> None:
    """Check that counters are not keys, and that a table with counters has no other columns outside its key."""
    counters = [name for name, column in columns.items() if column.kind.name == "counter"]
    for name in counters:
        if name in primary_key:
            refuse(problem(f"{key}.columns.{name}", Missing(), "a counter cannot be in the primary key"))
    others = [name for name in columns if name not in (*counters, *primary_key)]
    if counters and others:
        what = f"a table with counters ({counters[0]}) may have no other columns outside its primary key"
        refuse(problem(f"{key}.columns.{others[0]}", Missing(), what))


@dataclass(frozen=True)
class Definition:
    """A table's definition, from either of its two forms."""

    text: str
    specs: Mapping[str, _models.Column]
    primary: tuple[tuple[str, ...], ...]
    """Partition and clustering columns."""
    options: tuple[str, ...] = ()


def _from_columns(table: _models.DeclaredTable) -> Definition:
    """The definition from columns and primary key."""
    parts = []
    for name, spec in table.columns.items():
        parts.append(f"{model.quoted(name)} {spec.type}{' static' if spec.static else ''}")
    primary = _primary_key(table.primary_key)
    partition, clustering = (", ".join(model.quoted(name) for name in names) for names in primary)
    parts.append(f"PRIMARY KEY (({partition}){', ' if clustering else ''}{clustering})")
    return Definition(", ".join(parts), dict(table.columns), primary)


def definition_of(table: _models.DeclaredTable) -> Definition:
    """The definition from a CREATE TABLE statement."""
    if table.primary_key:
        raise cql_statement.CqlProblem("primary_key must not be set: create defines it")
    words = cql_statement.tokens(table.create)
    opening = next((index for index, word in enumerate(words) if word.text == "("), None)
    if opening is None or [word.text for word in words[:2]] != ["create", "table"]:
        raise cql_statement.CqlProblem("create must be CREATE TABLE name (...)")
    items, end = _items(words, opening)
    specs: dict[str, _models.Column] = {}
    primary: tuple[tuple[str, ...], ...] = ((), ())
    for item in items:
        first, *rest = [word.text for word in item]
        if [first, *rest[:1]] == ["primary", "key"]:
            primary = _primary_key(" ".join(_written(word) for word in item[3:-1]))
            continue
        if rest[-2:] == ["primary", "key"]:
            primary, rest = ((first,), ()), rest[:-2]
        static = rest[-1:] == ["static"]
        changes = {"type": " ".join(rest[:-1] if static else rest), "static": static}
        given = table.columns.get(first, _models.Column())
        specs[first] = _models.Column.model_validate({**given.model_dump(exclude_unset=True), **changes})
    unknown = [name for name in table.columns if name not in specs]
    if unknown:
        raise cql_statement.CqlProblem(f"columns.{unknown[0]} is not a column of create; allowed: {', '.join(specs)}")
    text = table.create
    inside = text[words[opening].at + 1 : words[end].at]
    behind_with = cql_statement.one_line(text[words[end + 2].at :]) if end + 2 < len(words) else ""
    return Definition(cql_statement.one_line(inside), specs, primary, (behind_with,) if behind_with else ())


def _written(word: cql_statement.Token) -> str:
    """The source text of a token; quoted names get their quotes back."""
    return '"' + word.text.replace('"', '""') + '"' if word.kind == "name" else word.text


def _items(words: Sequence[cql_statement.Token], opening: int) -> tuple[list[list[cql_statement.Token]], int]:
    """The comma-separated items in parentheses, and the index of the closing one."""
    items: list[list[cql_statement.Token]] = [[]]
    depth = 0
    for index in range(opening, len(words)):
        word = words[index]
        if word.kind == "symbol":
            depth += (word.text in "(<[{") - (word.text in ")>]}")
        if depth == 0:
            return [item for item in items if item], index
        if depth == 1 and word.text == ",":
            items.append([])
        elif index > opening:
            items[-1].append(word)
    raise cql_statement.CqlProblem("a parenthesis is not closed")


def _primary_key(text: str) -> tuple[tuple[str, ...], ...]:
    """Partition and clustering columns."""
    words = cql_statement.tokens(text)
    names: list[list[str]] = [[], []]
    depth, within = 0, 0
    for word in words:
        if word.text in ("(", ")"):
            depth += 1 if word.text == "(" else -1
            within = 1 if depth == 0 else within
        elif word.kind in ("word", "name"):
            names[within].append(word.text)
            within = 1 if depth == 0 else within
        elif word.text != ",":
            raise cql_statement.CqlProblem(f"primary key {text!r}: expected names and commas, found {word.text!r}")
        if not 0 <= depth <= 1:
            break
    if depth != 0:
        raise cql_statement.CqlProblem(f"primary key {text!r}: write it as 'id' or '(device, day), at'")
    return tuple(names[0]), tuple(names[1])


class Maker:
    """Compiles columns to values of the agent's order."""

    def __init__(self, type_specs: Mapping[str, tuple[_models.Column, ...]], refuse: Refuse) -> None:
        self.type_specs = type_specs
        self.refuse = refuse

    def value(
        self, spec: _models.Column, kind: CqlType, key: str, *, is_key: bool = False, entry: bool = False
    ) -> Json:
        """`type` and `make` of a column, an entry of a collection, or a marker. `key`: its key in the file."""
        how = spec.kind() or ("key" if is_key else "random")
        if kind.name == "counter" and spec.kind() is None:
            make: Json = {"kind": "fixed", "value": 1}
        elif how == "key":
            make = self._of_key(spec, kind, key)
        elif how == "random":
            make = self._random(spec, kind, key, is_key=is_key, entry=entry)
        elif how == "draw":
            make = {"kind": "draw", "number": spec.number}
        elif how == "row":
            make = {"kind": "row", "count": spec.count}
        else:
            make = {"kind": "fixed", "value": _plain(spec.value, kind)}
            if not _holds(kind.bare.name, make["value"]):
                form = FIXED.get(kind.bare.name, "")
                self.refuse(problem(f"{key}.value", spec.value, f"is not a value of {kind.wire()}: {form}"))
        if how in ("draw", "row") and kind.bare.name in NUMBERLESS:
            self.refuse(problem(key, Missing(), f"make = {how!r} makes numbers, but the type is {kind.wire()}"))
        return {"type": kind.wire(), "make": make}

    def _of_key(self, spec: _models.Column, kind: CqlType, key: str) -> Json:
        if kind.bare.name in NUMBERLESS or kind.bare.fields:
            what = f"make = 'key' makes numbers, text, blobs, times and uuids, but the type is {kind.wire()}"
            self.refuse(problem(key, Missing(), what))
        if spec.prefix is not None and kind.bare.name not in ("text", "varchar", "ascii"):
            self.refuse(problem(f"{key}.prefix", spec.prefix, f"applies only to text, but the type is {kind.wire()}"))
        return {
            "kind": "key",
            "divide": spec.divide or 1,
            "modulo": spec.modulo,
            "scramble": bool(spec.scramble),
            "scale": 1 if spec.scale is None else spec.scale,
            "offset": _plain(spec.offset, kind) or 0,
            "prefix": spec.prefix or "",
            "digits": spec.digits or 0,
        }

    def _random(self, spec: _models.Column, kind: CqlType, key: str, *, is_key: bool, entry: bool) -> Json:
        bare = kind.bare
        size = spec.size
        sized = bare.name in _types.SIZED
        if size is not None and not (sized or bare.name in _types.COLLECTIONS):
            what = f"only text, blobs and collections have a size, but the type is {kind.wire()}"
            self.refuse(problem(f"{key}.size", Missing(), what))
        if size is not None and bounds(size)[0] < 0:
            self.refuse(problem(f"{key}.size", Missing(), f"a size cannot be below 0: {bounds(size)[0]:g}"))
        if size is None and sized:
            size = {"name": "fixed", "value": float(DEFAULT_ENTRY_BYTES if entry else DEFAULT_BYTES)}
        if size is None and bare.name in _types.COLLECTIONS:
            size = {"name": "fixed", "value": float(DEFAULT_ENTRIES)}
        long_enough = sized and size is not None and bounds(size)[0] >= LEAST_VERSIONED_BYTES
        by_itself = long_enough and not is_key and not entry
        return {
            "kind": "random",
            "salt": zlib.crc32(key.encode()),
            "number": spec.number,
            "size": size,
            "of": self._entries(spec, bare, key),
            "versioned": by_itself if spec.versioned is None else spec.versioned,
        }

    def _entries(self, spec: _models.Column, kind: CqlType, key: str) -> list[Json]:
        """Values of the members of a collection, tuple or user-defined type."""
        if not kind.members:
            if spec.of:
                self.refuse(problem(f"{key}.of", Missing(), f"{kind.wire()} has no entries"))
            return []
        given = spec.of or self.type_specs.get(kind.name, ())
        if given and len(given) != len(kind.members):
            what = f"{kind.name} needs {count(len(kind.members), 'entry', 'entries')}, not {len(given)}"
            self.refuse(problem(f"{key}.of", Missing(), what))
            given = ()
        specs = given or tuple(_models.Column() for _ in kind.members)
        return [
            self.value(one, member, f"{key}.of.{index}", entry=True)
            for index, (one, member) in enumerate(zip(specs, kind.members, strict=True))
        ]


def _holds(name: str, value: Any) -> bool:
    """Whether a fixed value can be of a type; the full check is the agent's."""
    if name in ("text", "varchar", "ascii"):
        return isinstance(value, str)
    if name == "boolean":
        return isinstance(value, bool)
    if name == "blob":
        return isinstance(value, str) and re.fullmatch(r"0x([0-9A-Fa-f]{2})*", value) is not None
    if name in WHOLE:
        return isinstance(value, int) and not isinstance(value, bool)
    if name in ("list", "set"):
        return isinstance(value, list)
    return True


def _plain(value: Any, kind: CqlType) -> Any:
    """A TOML value as JSON: times in milliseconds and dates in days since 1970, as the types count."""
    if isinstance(value, datetime):
        moment = value if value.tzinfo else value.replace(tzinfo=UTC)
        ms = round(moment.timestamp() * 1000)
        return ms // MS_PER_DAY if kind.bare.name == "date" else ms
    if isinstance(value, date):
        days = value.toordinal() - date(1970, 1, 1).toordinal()
        return days if kind.bare.name == "date" else days * MS_PER_DAY
    if isinstance(value, (list, tuple)):
        return [_plain(one, kind) for one in value]
    return value


def bytes_of(value: Json) -> float:
    """Approximate bytes of a value on the wire."""
    return _bytes(_types.parse(value["type"]), value["make"])


def _bytes(kind: CqlType, make: Json) -> float:
    bare = kind.bare
    if bare.name in _types.SIZED:
        if make["kind"] == "key":
            return float(len(make["prefix"]) + max(make["digits"], 6))
        return mean(make["size"]) if make.get("size") else float(len(str(make.get("value", ""))) or 8)
    if bare.name in (*_types.COLLECTIONS, "tuple", "vector"):
        inner = [_bytes(member, {"kind": "random"}) for member in bare.members]
        if make.get("of"):
            inner = [bytes_of(one) for one in make["of"]]
        entries = bare.count or (mean(make["size"]) if make.get("size") else 1.0)
        return entries * (sum(inner) + 4 * len(inner))
    return float(_types.BYTES[bare.name])
