"""Profile files of `user profile=FILE`: YAML with a table, the distributions of its values, and statements."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from steelyard.dropin.stress.parse import distributions
from steelyard.dropin.stress.parse.distributions import WHOLE, Distribution, Ratio, fixed
from steelyard.dropin.stress.parse.refusal import Refused, text_of, unknown
from steelyard.dropin.stress.plan.schema import quoted

KEYS = (
    "specname",
    "keyspace",
    "keyspace_definition",
    "table",
    "table_definition",
    "extra_definitions",
    "columnspec",
    "insert",
    "queries",
    "token_range_queries",
)
BATCHES = ("LOGGED", "UNLOGGED", "COUNTER")
FIELDS = ("samerow", "multirow")


@dataclass(frozen=True)
class ColumnSpec:
    """Distributions of a column's values; None means cassandra-stress's default.

    `population`: of the values, `size`: of bytes or entries, `cluster`: of distinct values within a partition."""

    name: str
    size: Distribution | None = None
    population: Distribution | None = None
    cluster: Distribution | None = None


@dataclass(frozen=True)
class Query:
    """A statement of the profile; `same_row`: whether all its markers come from one row."""

    name: str
    cql: str
    same_row: bool


@dataclass(frozen=True)
class Profile:
    """A parsed profile."""

    path: str
    spec_name: str
    """What `ops(NAME.insert=1)` calls it."""
    keyspace: str
    table: str
    keyspace_cql: str | None
    table_cql: str | None
    extra_cql: tuple[str, ...]
    columns: Mapping[str, ColumnSpec]
    partitions: Distribution
    select: Ratio
    batch: str
    queries: Mapping[str, Query]

    def creations(self) -> tuple[str, ...]:
        """CQL that creates what is missing; IF NOT EXISTS is added to statements that lack it."""
        statements = [cql for cql in (self.keyspace_cql, self.table_cql, *self.extra_cql) if cql]
        return tuple(_if_not_there(_qualified(cql, self.keyspace)) for cql in statements)

    @property
    def qualified(self) -> str:
        """The table name with its keyspace, in CQL."""
        return f"{_name(self.keyspace)}.{_name(self.table)}"

    def spec(self, column: str) -> ColumnSpec:
        """The spec of a column; empty if the profile has none."""
        return self.columns.get(column, ColumnSpec(column))


def _name(name: str) -> str:
    """An unquoted name is case-insensitive, as in CQL."""
    return name if re.fullmatch("[a-z][a-z0-9_]*", name) else quoted(name)


def _if_not_there(cql: str) -> str:
    pattern = r"^\s*CREATE\s+(KEYSPACE|TABLE|COLUMNFAMILY|TYPE|(?:CUSTOM\s+)?INDEX|MATERIALIZED\s+VIEW)\s+(?!IF\b)"
    return re.sub(pattern, r"CREATE \1 IF NOT EXISTS ", cql.strip().rstrip(";"), flags=re.IGNORECASE)


NAME = r'(?:"(?:[^"]|"")+"|\w+)'
UNQUALIFIED = re.compile(
    r"'(?:[^']|'')*'|"
    r"(\b(?:TABLE|COLUMNFAMILY|FROM|ON|INTO|UPDATE|CREATE\s+TYPE|CREATE\s+MATERIALIZED\s+VIEW)\s+(?:IF\s+NOT\s+EXISTS\s+)?)"
    rf"(?!IF\s+NOT\b)({NAME})(?![\w\".])(?!\s*\.)",
    re.IGNORECASE,
)
"""A string, or a name without a keyspace where CQL has that of a table, view or type."""
CREATED = re.compile(
    rf"\bCREATE\s+(?:TABLE|COLUMNFAMILY)\s+(?:IF\s+NOT\s+EXISTS\s+)?(?:{NAME}\s*\.\s*)?({NAME})", re.IGNORECASE
)


def _qualified(cql: str, keyspace: str) -> str:
    """Add the keyspace to names without one (cassandra-stress sends USE first)."""

    def with_keyspace(found: re.Match[str]) -> str:
        return f"{found[1]}{_name(keyspace)}.{found[2]}" if found[1] else found[0]

    return UNQUALIFIED.sub(with_keyspace, cql)


def _same_name(one: str, other: str) -> bool:
    return one.strip('"').lower() == other.strip('"').lower()


class _OnceLoader(yaml.SafeLoader):
    """Refuses a key that is given twice in one mapping; YAML's own loader takes the last without a word."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            name = str(key.value).lower()
            if name in seen and name != "<<":
                raise yaml.constructor.ConstructorError(
                    None, None, f"{key.value!r} is given more than once", key.start_mark
                )
            seen.add(name)
        return super().construct_mapping(node, deep)


def load(path: str) -> Profile:
    """Read a profile. Raises Refused with the place, what was read, and what is allowed."""
    option = "user profile="
    if re.match(r"^https?://", path):
        raise Refused(option, path, "profiles are read from files, not fetched", "a path")
    text = text_of(option, Path(path.removeprefix("file://")).expanduser(), "a YAML file")
    try:
        read = yaml.load(text, _OnceLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 1}: " if mark is not None else ""
        raise Refused(option, path, f"{where}{getattr(error, 'problem', None) or 'no YAML'}", "YAML") from None
    if not isinstance(read, dict):
        raise Refused(option, path, "the file is not a mapping", ", ".join(KEYS))
    return profile_of(path, {str(key): value for key, value in read.items()})


def profile_of(path: str, read: Mapping[str, Any]) -> Profile:
    """The profile in a parsed YAML file. Raises Refused."""
    for key in read:
        if key not in KEYS:
            raise unknown(path, key, "unknown key", KEYS)
    for key in ("keyspace", "table"):
        if not isinstance(read.get(key), str):
            raise Refused(path, str(read.get(key)), f"`{key}` has no name", "a name")
    for key in ("keyspace_definition", "table_definition"):
        if not isinstance(read.get(key) or "", str):
            raise Refused(f"{path}: {key}", str(read[key]), "this is not a statement", "CREATE ...")
    extra = read.get("extra_definitions") or []
    if not isinstance(extra, list) or not all(isinstance(one, str) for one in extra):
        raise Refused(f"{path}: extra_definitions", str(extra), "this is not a list of statements", "- CREATE ...")
    definitions = [read.get("table_definition") or "", *extra]
    _check_filled(path, [read["keyspace"], read["table"], read.get("keyspace_definition") or "", *definitions])
    _check_created(path, read["table"], definitions)
    insert = _lower(path, "insert", read.get("insert"))
    for key in insert:
        if key not in ("partitions", "select", "row-population", "batchtype", "visits"):
            raise Refused(f"{path}: insert", key, "unknown key here", "partitions, select, batchtype")
    if (
        distributions.parse_ratio(str(insert.get("row-population", "fixed(1)/1")), f"{path}: insert: row-population")
        != WHOLE
    ):
        raise Refused(
            f"{path}: insert: row-population", insert["row-population"], "all columns are written", "fixed(1)/1"
        )
    if distributions.parse(str(insert.get("visits", "fixed(1)")), f"{path}: insert: visits") != fixed(1):
        raise Refused(f"{path}: insert: visits", insert["visits"], "partitions have one visit", "fixed(1)")
    batch = str(insert.get("batchtype", "LOGGED")).upper()
    if batch not in BATCHES:
        raise Refused(f"{path}: insert: batchtype", batch, "unknown batch type", ", ".join(BATCHES))
    return Profile(
        path=path,
        spec_name=str(read.get("specname") or f"{read['keyspace']}.{read['table']}"),
        keyspace=read["keyspace"],
        table=read["table"],
        keyspace_cql=read.get("keyspace_definition") or None,
        table_cql=read.get("table_definition") or None,
        extra_cql=tuple(extra),
        columns=_columns(path, read.get("columnspec") or []),
        partitions=distributions.parse(str(insert.get("partitions", "fixed(1)")), f"{path}: insert: partitions"),
        select=distributions.parse_ratio(str(insert.get("select", "fixed(1)/1")), f"{path}: insert: select"),
        batch=batch,
        queries=_queries(path, read.get("queries") or {}),
    )


def _check_filled(path: str, texts: Sequence[str]) -> None:
    """Refuse a template with gaps."""
    for text in texts:
        if gap := re.search(r"\$\{[^}]*\}", text):
            raise Refused(path, gap[0], "this profile is a template", f"fill in the template's {gap[0]} first")


def _check_created(path: str, table: str, definitions: Sequence[str]) -> None:
    """Refuse a table that another one is created in place of."""
    created = CREATED.findall(" ".join(definitions))
    if created and not any(_same_name(table, one) for one in created):
        raise Refused(f"{path}: table", table, f"table_definition creates {', '.join(created)}", f"table: {created[0]}")


def _lower(path: str, key: str, value: object) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise Refused(f"{path}: {key}", str(value), "this is not a table of keys", "key: value")
    return {str(name).lower(): one for name, one in value.items()}


def _columns(path: str, read: object) -> dict[str, ColumnSpec]:
    if not isinstance(read, list):
        raise Refused(f"{path}: columnspec", str(read), "this is not a list", "a list of columns")
    by_name = {}
    for number, entry in enumerate(read):
        where = f"{path}: columnspec {number + 1}"
        spec = _lower(path, f"columnspec {number + 1}", entry)
        name = spec.pop("name", None)
        if not isinstance(name, str):
            raise Refused(where, str(entry), "the column has no name", "name: ...")
        if name in by_name:
            raise Refused(where, name, "the column is given more than once", "each column once")
        spread = {
            key: distributions.parse(str(spec.pop(key)), f"{where} ({name}): {key}")
            for key in ("size", "population", "cluster")
            if key in spec
        }
        if spec:
            raise Refused(f"{where} ({name})", ", ".join(spec), "unknown key", "size, population, cluster")
        by_name[name] = ColumnSpec(name, **spread)
    return by_name


def _queries(path: str, read: object) -> dict[str, Query]:
    by_name = {}
    for name, entry in _lower(path, "queries", read).items():
        where = f"{path}: queries: {name}"
        query = _lower(path, f"queries: {name}", entry)
        cql, fields = query.pop("cql", None), query.pop("fields", None)
        if not isinstance(cql, str):
            raise Refused(where, str(entry), "the statement is missing", "cql: ...")
        if query:
            raise Refused(where, ", ".join(query), "unknown key", "cql, fields")
        if fields is not None and str(fields).lower() not in FIELDS:
            raise Refused(f"{where}: fields", str(fields), "the value does not fit", ", ".join(FIELDS))
        by_name[name] = Query(name, cql.strip().rstrip(";"), str(fields).lower() == "samerow")
    return by_name


def qualified_cql(profile: Profile, query: Query) -> str:
    """The statement with its table's keyspace."""
    return _qualified(query.cql, profile.keyspace)
