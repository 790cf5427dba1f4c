"""Compiler of a profile and the table's columns into a plan: same value distributions, other bytes.

A key of the agent is a partition; its number is cassandra-stress's seed. Columns of the partition key are functions of
it. Clustering columns are the row numbers within the partition, from 0. All other columns are pseudo-random functions
of partition and row.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from steelyard.dropin.stress.parse import bind_markers
from steelyard.dropin.stress.parse.distributions import Distribution, Ratio, fixed
from steelyard.dropin.stress.parse.profile import Profile, Query, qualified_cql
from steelyard.dropin.stress.parse.refusal import Refused
from steelyard.dropin.stress.parse.settings import Settings
from steelyard.dropin.stress.plan import orders
from steelyard.dropin.stress.plan.orders import Plan
from steelyard.dropin.stress.plan.schema import literal, quoted
from steelyard.dropin.stress.run.interval_stats import Counting

Role = Literal["partition_key", "clustering", "regular", "static"]
TEXTS, BLOBS = ("ascii", "text", "varchar"), ("blob",)
HOLDS = {"tinyint": 2**7 - 1, "smallint": 2**15 - 1, "int": 2**31 - 1, "date": 2**31 - 1, "inet": 2**32 - 1}
"""Greatest value of types that are too small for cassandra-stress's default, 100 billion."""
DEFAULT_POPULATION = 100_000_000_000
LAST_MS = 1_576_800_000_000
"""Greatest timestamp of cassandra-stress: 50 years after 1970, in ms."""
LAST_NS = 86_399_999_999_999
MOST_DIGITS = 64
DEFAULT_SIZE = Distribution("uniform", 4, 8)
PAGE_ROWS, MAX_PAGES = 5000, 10_000
"""cassandra-stress's client library fetches pages of 5000 rows to the end."""
SCHEMA_CQL = (
    "SELECT column_name, kind, position, type FROM system_schema.columns WHERE keyspace_name = {} AND table_name = {}"
)


@dataclass(frozen=True)
class Column:
    """A column of the table as the server describes it."""

    name: str
    cql_type: str
    role: Role
    position: int

    @property
    def outer(self) -> str:
        """The type without its parameters."""
        bare = self.cql_type.removeprefix("frozen<") if self.cql_type.startswith("frozen<") else self.cql_type
        return bare.partition("<")[0].rstrip(">")


def schema_question(profile: Profile) -> str:
    """CQL that selects the table's columns."""
    return SCHEMA_CQL.format(literal(_server_name(profile.keyspace)), literal(_server_name(profile.table)))


def _server_name(name: str) -> str:
    return name.strip('"')


def columns_of(rows: Sequence[Mapping[str, Any]]) -> tuple[Column, ...]:
    """Columns in the order of the primary key, then by name."""
    order = {"partition_key": 0, "clustering": 1, "static": 2, "regular": 2}
    columns = [Column(str(r["column_name"]), str(r["type"]), r["kind"], int(r["position"])) for r in rows]
    return tuple(
        sorted(columns, key=lambda one: (order[one.role], one.position if order[one.role] < 2 else 0, one.name))
    )


@dataclass(frozen=True)
class Table:
    """A table with the distributions of its values. `rows`: per partition."""

    profile: Profile
    columns: tuple[Column, ...]
    rows: Distribution

    @classmethod
    def of(cls, profile: Profile, columns: tuple[Column, ...], note: Callable[[str], None]) -> Table:
        """`note` receives the differences from cassandra-stress. Raises Refused for a missing table."""
        if not any(column.role == "partition_key" for column in columns):
            raise Refused(
                f"{profile.path}: table", profile.qualified, "the table is not there", "table_definition: CREATE ..."
            )
        for name in profile.columns:
            if name not in {column.name for column in columns}:
                raise Refused(f"{profile.path}: columnspec", name, "the table has no such column", _names(columns))
        return cls(profile, columns, _rows(profile, columns, note))

    def column(self, name: str) -> Column | None:
        """The column of a name, compared as CQL does."""
        return next((one for one in self.columns if one.name == name), None)

    def value(self, column: Column) -> dict[str, Any]:
        """The generator of a column's values."""
        makers = {"partition_key": self._of_partition, "clustering": self._of_row}
        return {"type": column.cql_type, "make": makers.get(column.role, self._random)(column)}

    def _of_partition(self, column: Column) -> dict[str, Any]:
        population = self.profile.spec(column.name).population
        if population is not None and population.kind not in ("uniform", "fixed", "sequence"):
            raise Refused(
                f"{self.profile.path}: columnspec ({column.name}): population",
                population.described(),
                "values of a partition key are spread evenly",
                "uniform(min..max); say with -pop dist= which keys are popular",
            )
        return self._of_key(column)

    def _of_key(self, column: Column) -> dict[str, Any]:
        """One value per partition, uniformly distributed."""
        if "<" in column.cql_type:
            raise Refused(
                f"{self.profile.path}: {column.name}", column.cql_type, "keys have types without others in them"
            )
        spec = self.profile.spec(column.name)
        digits = round((spec.size or DEFAULT_SIZE).average) if column.outer in TEXTS else 0
        make: dict[str, Any] = {"kind": "key", "digits": min(MOST_DIGITS, max(0, digits))}
        if spec.population is None and column.outer in (*TEXTS, *BLOBS):
            # Each seed has its own value; cassandra-stress's random text has rare duplicates.
            return make
        numbers = spec.population or Distribution("uniform", 1, _greatest(column.outer))
        return {**make, "scramble": True, "modulo": numbers.high - numbers.low + 1, "offset": numbers.low}

    def _of_row(self, column: Column) -> dict[str, Any]:
        cluster = self.profile.spec(column.name).cluster
        if cluster is None or cluster.high <= 1:
            return self._of_key(column)
        if "<" in column.cql_type:
            raise Refused(
                f"{self.profile.path}: {column.name}", column.cql_type, "keys have types without others in them"
            )
        return {"kind": "row", "count": self.rows.wire()}

    def _random(self, column: Column) -> dict[str, Any]:
        spec = self.profile.spec(column.name)
        size = (spec.size or DEFAULT_SIZE).wire()
        salt = zlib.crc32(column.name.encode())
        if column.outer in ("set", "list"):
            # As in cassandra-stress, `size` applies to the collection and to each of its texts.
            inner = replace(column, cql_type=column.cql_type.partition("<")[2].removesuffix(">"))
            if column.outer in inner.cql_type.partition("<")[0]:
                inner = replace(column, cql_type=inner.cql_type.partition("<")[2].removesuffix(">"))
            return {
                "kind": "random",
                "salt": salt,
                "size": size,
                "of": [{"type": inner.cql_type, "make": self._random(inner)}],
            }
        if column.outer in ("map", "tuple", "vector"):
            return {"kind": "random", "salt": salt, **({"size": size} if column.outer == "map" else {})}
        if column.outer in (*TEXTS, *BLOBS):
            few = spec.population is not None and spec.size is None
            return {
                "kind": "random",
                "salt": salt,
                **({"number": spec.population.wire()} if few and spec.population else {"size": size}),
            }
        if column.outer in ("uuid", "timeuuid", "boolean", "duration") and spec.population is None:
            return {"kind": "random", "salt": salt}
        numbers = spec.population or Distribution("uniform", 1, _greatest(column.outer))
        return {"kind": "random", "salt": salt, "number": numbers.wire()}


def _names(columns: Sequence[Column]) -> str:
    return ", ".join(column.name for column in columns)


def _greatest(outer: str) -> int:
    return {**HOLDS, "timestamp": LAST_MS, "time": LAST_NS}.get(outer, DEFAULT_POPULATION)


def _rows(profile: Profile, columns: Sequence[Column], note: Callable[[str], None]) -> Distribution:
    """Distribution of the rows per partition. With several clustering columns only the widest varies, over the product
    of all."""
    spread = [profile.spec(one.name).cluster for one in columns if one.role == "clustering"]
    several = [one for one in spread if one is not None and one.high > 1]
    if any(one.low < 1 for one in several):
        raise Refused(f"{profile.path}: columnspec: cluster", "below 1", "a partition has rows", "from 1")
    if not several:
        return fixed(1)
    widest = max(several, key=lambda one: one.high)
    others = round(math.prod(one.average for one in several) / widest.average)
    if len(several) > 1:
        note(
            f"{profile.path}: {len(several)} clustering columns have `cluster`: partitions have as many rows as in "
            f"cassandra-stress, but each row has values of its own in all of them"
        )
    return scaled(widest, others)


def scaled(distribution: Distribution, factor: float) -> Distribution:
    """The distribution scaled by `factor`, at least 1."""
    low, high = (max(1, round(bound * factor)) for bound in (distribution.low, distribution.high))
    if low == high:
        return fixed(low)
    mean, deviation = distribution.mean * factor, distribution.deviation * factor
    return replace(distribution, low=low, high=high, mean=mean, deviation=deviation)


def plan(settings: Settings, table: Table, note: Callable[[str], None]) -> Plan:
    """The plan of the command `user`. Raises Refused for what is not supported."""
    profile = table.profile
    statements, operations, counted = [], [], {}
    for name, weight in settings.command.ratios.items():
        if name.lower() == "insert":
            statement, step, counting = _insert(settings, table, note)
        elif name.lower() in profile.queries:
            statement, counting = _query(table, profile.queries[name.lower()])
            step = {"kind": "execute", "statement": statement["name"]}
        else:
            known = ", ".join(["insert", *profile.queries])
            why = "validate and token_range_queries are not there" if name == "validate" else "no such query"
            raise Refused("user ops", name, why, known)
        statements.append(statement)
        keys = orders.keys(settings)
        operations.append({"name": name, "weight": weight, "keys": keys, "steps": [step]})
        counted[name] = counting
    return Plan(
        keyspace=_server_name(profile.keyspace),
        statements=tuple(statements),
        operations=tuple(operations),
        counted=counted,
        clustering=settings.command.clustering,
        validated=False,
    )


def _insert(
    settings: Settings, table: Table, note: Callable[[str], None]
) -> tuple[dict[str, Any], dict[str, Any], Counting]:
    profile = table.profile
    partitions = settings.insert.partitions or profile.partitions
    select = settings.insert.select or profile.select
    statement = _insertion(table)
    mode = (settings.insert.batch or profile.batch).lower()
    batch = {"kind": "batch", "statements": [statement["name"]], "mode": mode}
    rows = _selected(profile, table.rows, select, note)
    counting = Counting(rows=partitions.average * rows.average, partitions=partitions.average)
    if partitions != fixed(1):
        keys = {"repeat": partitions.wire(), "next_key": True}
        return statement, {**batch, **keys, **({} if rows == fixed(1) else {"rows": rows.wire()})}, counting
    if rows == fixed(1):
        return statement, {"kind": "execute", "statement": statement["name"]}, counting
    return statement, {**batch, "repeat": rows.wire()}, counting


def _selected(profile: Profile, rows: Distribution, select: Ratio, note: Callable[[str], None]) -> Distribution:
    """Rows per partition that one insert writes."""
    if select.is_whole or rows == fixed(1):
        return rows
    if select.greatest * rows.high <= 1:
        return fixed(1)
    where = f"{profile.path}: insert: select"
    note(f"{where}: an insert takes the first rows of its partition, not any of them")
    if rows.is_fixed:
        return scaled(select.of, rows.low / select.divisor)
    if not select.of.is_fixed:
        note(f"{where}: it and `cluster` both spread: the rows of an insert spread like `cluster`, with the mean share")
    return scaled(rows, min(1.0, select.of.average / select.divisor))


def _insertion(table: Table) -> dict[str, Any]:
    """The UPDATE that cassandra-stress prepares; INSERT for a table of key columns only."""
    keys = [one for one in table.columns if one.role in ("partition_key", "clustering")]
    others = [one for one in table.columns if one not in keys]
    partition = [index for index, one in enumerate(keys) if one.role == "partition_key"]
    if not others:
        names, marks = ", ".join(quoted(one.name) for one in keys), ", ".join("?" for _ in keys)
        cql = f"INSERT INTO {table.profile.qualified} ({names}) VALUES ({marks})"
    else:
        sets = ", ".join(_assignment(one) for one in others)
        where = " AND ".join(f"{quoted(one.name)} = ?" for one in keys)
        cql = f"UPDATE {table.profile.qualified} SET {sets} WHERE {where}"
    values = [*(table.value(one) for one in others), *(table.value(one) for one in keys)]
    return {
        "name": "insert",
        "cql": cql,
        "values": values,
        "partition_key": [len(others) + index for index in partition],
        "writes": True,
    }


def _assignment(column: Column) -> str:
    name = quoted(column.name)
    added = column.outer in ("set", "list", "counter") and not column.cql_type.startswith("frozen")
    return f"{name} = {name} + ?" if added else f"{name} = ?"


def _query(table: Table, query: Query) -> tuple[dict[str, Any], Counting]:
    where = f"{table.profile.path}: queries: {query.name}"
    cql = qualified_cql(table.profile, query)
    try:
        asked = bind_markers.columns_of(cql)
    except ValueError as error:
        raise Refused(where, str(error), "it is not clear which column this marker belongs to", "column = ?") from None
    values, partition = [], {}
    for index, (name, comparison) in enumerate(asked):
        column = table.column(name)
        if column is None:
            raise Refused(where, name, "the table has no such column", _names(table.columns))
        value = table.value(column)
        if column.role == "clustering" and not query.same_row and value["make"]["kind"] == "row":
            # Each marker draws its own row.
            value["make"] = {"kind": "draw", "number": _row_numbers(table.rows).wire()}
        if column.role == "partition_key" and comparison == "=":
            partition[column.name] = index
        values.append(value)
    wanted = [one.name for one in table.columns if one.role == "partition_key"]
    statement = {
        "name": query.name,
        "cql": cql,
        "values": values,
        "partition_key": [partition[name] for name in wanted] if set(wanted) <= set(partition) else [],
        "writes": not query.cql.lstrip().upper().startswith("SELECT"),
    }
    if not statement["writes"]:
        # An answer without rows is not an error, but reads no partition.
        statement |= {"page_rows": PAGE_ROWS, "max_pages": MAX_PAGES, "wants_row": True}
    return statement, Counting(rows=1.0 if statement["writes"] else None, may_be_empty=True)


def _row_numbers(rows: Distribution) -> Distribution:
    return fixed(0) if rows.is_fixed and rows.low == 1 else Distribution("uniform", 0, max(1, round(rows.average)) - 1)
