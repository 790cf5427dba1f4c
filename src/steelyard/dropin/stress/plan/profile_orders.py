"""Compiler of a profile and the table's columns into a plan: same value distributions, other bytes.

A key of the agent is cassandra-stress's seed. Columns of the partition key are functions of it; several seeds may be
the same partition. A clustering column is a function of the columns before it and of a number within them. All other
columns are pseudo-random functions of the values of the primary key, so that a row follows from its key.
"""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Mapping, Sequence
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

KEYS = ("partition_key", "clustering")
Role = Literal["partition_key", "clustering", "regular", "static"]
TEXTS, BLOBS = ("ascii", "text", "varchar"), ("blob",)
HOLDS = {"tinyint": 2**7 - 1, "smallint": 2**15 - 1, "int": 2**31 - 1, "date": 2**31 - 1, "inet": 2**32 - 1}
"""Largest value of types that are too small for cassandra-stress's default, 100 billion."""
DEFAULT_POPULATION = 100_000_000_000
LAST_MS = 1_576_800_000_000
"""Largest timestamp of cassandra-stress: 50 years after 1970, in ms."""
UNHASHED = ("uuid", "timeuuid", "boolean", "duration")
"""Types whose values as cassandra-stress makes them would not distinguish rows."""
COLLECTIONS = ("set", "list", "map", "tuple", "vector")
MOST_DIGITS = 64
MOST_CODE_DIGITS = 18
"""Digits of a 63-bit number."""
MOST_IN_BATCH = 65_535
KNOWN_TYPES = (
    "ascii", "bigint", "blob", "boolean", "counter", "date", "decimal", "double", "duration", "float", "inet", "int",
    "smallint", "text", "time", "timestamp", "timeuuid", "tinyint", "uuid", "varchar", "varint",
    "list", "set", "map", "frozen", "tuple", "vector",
)  # fmt: skip
"""Types of CQL; all others are user-defined."""
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
class ProfileTable:
    """A table with the distributions of its values."""

    profile: Profile
    columns: tuple[Column, ...]
    rows: Rows

    @classmethod
    def of(cls, profile: Profile, columns: tuple[Column, ...]) -> ProfileTable:
        """Raises Refused for a missing table."""
        if not any(column.role == "partition_key" for column in columns):
            raise Refused(
                f"{profile.path}: table", profile.qualified, "the table does not exist", "table_definition: CREATE ..."
            )
        for name in profile.columns:
            if name not in {column.name for column in columns}:
                raise _no_column(profile, f"{profile.path}: columnspec", name, columns)
        return cls(profile, columns, Rows.of(profile, columns))

    def column(self, name: str) -> Column | None:
        """The column of a name, compared as CQL does."""
        return next((one for one in self.columns if one.name == name), None)

    def value(self, column: Column) -> dict[str, Any]:
        """The generator of a column's values, in a statement with `wire` as its table."""
        self._check(column)
        if column.role == "partition_key":
            make = self._of_partition(column)
        elif column.role == "clustering":
            make = {"kind": "clustering", "column": column.position}
        else:
            make = self._random(column)
        return {"type": column.cql_type, "make": make}

    def wire(self, *, apart: bool = False) -> dict[str, Any]:
        """The primary key in the agent's order. `apart`: each marker takes its own row, of few."""
        keys = {role: [one for one in self.columns if one.role == role] for role in KEYS}
        return {
            "partition": [self.value(one) for one in keys["partition_key"]],
            "clustering": [self._level(one) for one in keys["clustering"]],
            "apart": apart,
        }

    def _check(self, column: Column) -> None:
        """Raises Refused for a column that cannot be generated."""
        where = f"{self.profile.path}: table {self.profile.qualified}: column {column.name}"
        unknown = next(
            (one for one in re.findall(r'"(?:[^"]|"")+"|\w+', column.cql_type) if _is_user_defined(one)), None
        )
        if unknown is not None:
            others = [one.name for one in self.columns if one is not column]
            insert = f"insert into {self.profile.table} ({', '.join(others)}) values ({', '.join('?' * len(others))})"
            raise Refused(
                where,
                column.cql_type,
                f"no values are generated of a user-defined type ({unknown}), and insert writes every column",
                "in place of insert a query of the profile that leaves the column out, such as "
                f'`add: {{cql: "{insert}", fields: samerow}}` and ops(add=1)',
            )
        if column.role in KEYS and "<" in column.cql_type:
            raise Refused(where, column.cql_type, "keys have types without others in them")
        cluster, most = self.profile.spec(column.name).cluster, HOLDS.get(column.outer)
        if column.role == "clustering" and cluster is not None and most is not None and cluster.high - 1 > most:
            raise Refused(f"{where}: cluster", str(cluster), f"{column.cql_type} has fewer values", f"up to {most + 1}")

    def _of_partition(self, column: Column) -> dict[str, Any]:
        """A function of the key number: cassandra-stress's own, except that text counts."""
        make, spec = self._digits(column), self.profile.spec(column.name)
        if column.outer == "boolean" or (spec.population is None and column.outer in UNHASHED):
            return make | _code(column)
        return make | {"identity": self._identity(column, counts=column.outer in TEXTS)}

    def _identity(self, column: Column, *, counts: bool) -> dict[str, Any]:
        """Values that cassandra-stress draws for a column. `counts`: without a population its value is another one."""
        spec = self.profile.spec(column.name)
        default = Distribution("uniform", 1, LAST_MS if column.outer == "timestamp" else DEFAULT_POPULATION)
        size = {"size": spec.size.wire()} if spec.size is not None and _is_known(spec.size) else {}
        hidden = counts and spec.population is None
        bytes_ = {"bytes": True} if column.outer in BLOBS and column.role in KEYS else {}
        return {"named": column.name, "of": (spec.population or default).wire(), "hidden": hidden, **size, **bytes_}

    def _level(self, column: Column) -> dict[str, Any]:
        """A clustering column: a function of the values before it, and of a number within them."""
        spec = self.profile.spec(column.name)
        count = spec.cluster or fixed(1)
        make = self._digits(column)
        if spec.population is not None:
            make["identity"] = self._identity(column, counts=False)
        elif count.high > 1:
            make = {"kind": "key"}
        else:
            counts = column.outer in (*TEXTS, *UNHASHED)
            make["identity"] = self._identity(column, counts=counts)
            if column.outer in UNHASHED:
                make |= _code(column)
            elif column.outer in TEXTS and not self._tells_seed():
                make |= {"scramble": True, "modulo": 10 ** min(MOST_CODE_DIGITS, max(1, make["digits"]))}
        return {"count": count.wire(), "value": {"type": column.cql_type, "make": make}}

    def _digits(self, column: Column) -> dict[str, Any]:
        spec = self.profile.spec(column.name)
        digits = round((spec.size or DEFAULT_SIZE).average) if column.outer in TEXTS else 0
        return {"kind": "key", "digits": min(MOST_DIGITS, max(0, digits))}

    def _tells_seed(self) -> bool:
        """Whether each seed is its own partition."""
        keys = [one for one in self.columns if one.role == "partition_key"]
        return any(one.outer in TEXTS and self.profile.spec(one.name).population is None for one in keys)

    def _random(self, column: Column) -> dict[str, Any]:
        """A function of the row: of the number that cassandra-stress draws for it, where its values are made of that.
        An entry of a collection has its own draw."""
        spec, sized = self.profile.spec(column.name), column.outer in (*TEXTS, *BLOBS)
        size = {"size": (spec.size or DEFAULT_SIZE).wire()}
        make: dict[str, Any] = {"kind": "random", "salt": _salt(column)}
        if column.outer in COLLECTIONS:
            # As in cassandra-stress, `size` applies to the collection and to each of its texts.
            many = size if column.outer in ("set", "list", "map") else {}
            within = [replace(column, cql_type=one) for one in _types_within(column.cql_type)]
            return make | many | {"of": [{"type": one.cql_type, "make": self._random(one)} for one in within]}
        if column.outer == "boolean":
            return {"kind": "fixed", "value": True}
        if spec.population is None and (sized or column.outer in UNHASHED):
            return make | (size if sized else {})
        # As many different texts as there are numbers.
        many = size if sized and spec.size is not None else {}
        return make | many | {"choice": self._identity(column, counts=False)}


def _code(column: Column) -> dict[str, Any]:
    """A hash in place of cassandra-stress's own values; its booleans are all true."""
    return {"scramble": True, "modulo": 1 if column.outer == "boolean" else DEFAULT_POPULATION, "offset": 1}


def _types_within(cql_type: str) -> list[str]:
    """The types in a type's brackets, without the dimension of a vector."""
    bare = cql_type.removeprefix("frozen<").removesuffix(">") if cql_type.startswith("frozen<") else cql_type
    inner, depth, types = bare.partition("<")[2].removesuffix(">"), 0, [""]
    for sign in inner:
        depth += (sign == "<") - (sign == ">")
        if sign == "," and depth == 0:
            types.append("")
        else:
            types[-1] += sign
    return [one.strip() for one in types if not one.strip().isdigit()]


def _no_column(profile: Profile, where: str, name: str, columns: Sequence[Column]) -> Refused:
    if re.search(rf"\b{re.escape(name)}\b", (profile.table_cql or "").partition("(")[2], re.IGNORECASE):
        why = f"the server's {profile.qualified} is another table than table_definition's: it has no such column"
        refused = Refused(where, name, why, _names(columns))
        refused.hint += f"\nDROP TABLE {profile.qualified}, or use another name"
        return refused
    return Refused(where, name, "the table has no such column", _names(columns))


def remarks(settings: Settings, table: ProfileTable) -> list[str]:
    """Notes on parts of the profile without effect, or with another one than in cassandra-stress."""
    profile, sentences = table.profile, []
    clustering = [profile.spec(one.name).cluster or fixed(1) for one in table.columns if one.role == "clustering"]
    if any(one.high > 1 for one in clustering[2:]):
        sentences.append(
            f"{profile.qualified}: each of the first clustering columns' values has all rows below it, as announced; "
            f"cassandra-stress itself writes fewer of {len(clustering)} clustering columns, as few as one per insert"
        )
    for column in table.columns:
        spec = profile.spec(column.name)
        if spec.cluster is not None and column.role != "clustering":
            sentences.append(f"{column.name}: cluster changes nothing: it is not a clustering column")
        if column.outer in BLOBS and column.role in KEYS and spec.size is not None and not _is_known(spec.size):
            sentences.append(f"{column.name}: {spec.size} as size of a key: it has 4 to 8 bytes")
        counted = column.role == "clustering" and spec.population is None and (spec.cluster or fixed(1)).high > 1
        if column.role == "clustering" and column.outer == "timeuuid" and spec.cluster and not spec.cluster.is_fixed:
            sentences.append(
                f"{column.name}: each partition has a fixed number of rows; cassandra-stress redraws the number of a "
                "timeuuid column on every visit, so its table ends up with more rows"
            )
        lengths = spec.size if column.outer in TEXTS and column.role in KEYS and not counted else None
        if lengths and spec.population is None and not lengths.is_fixed:
            sentences.append(
                f"{column.name}: {lengths} as size of a key: its digits have about {lengths.average:g} "
                "characters, and no two seeds the same; cassandra-stress's short texts repeat, so it has fewer keys"
            )
        if counted and column.outer in BLOBS and spec.size is not None:
            sentences.append(f"{column.name}: size changes nothing: without a population it counts, in 8 bytes")
        if spec.size is not None and column.outer not in (*TEXTS, *BLOBS, *COLLECTIONS):
            sentences.append(f"{column.name}: size changes nothing: {column.cql_type} has one size")
    select = settings.insert.select or profile.select
    if select.of.high > select.divisor:
        sentences.append("insert: a select above 1 is taken as 1")
    partitions = settings.insert.partitions or profile.partitions
    inserts = any(name.lower() == "insert" for name in settings.command.ratios)
    if inserts and partitions.low < partitions.high and (settings.rate.throttle_per_s or settings.rate.fixed_per_s):
        sentences.append(
            f"insert: batches of {partitions} partitions are due at even intervals, of their mean "
            "number at that rate; cassandra-stress waits longer after a larger one"
        )
    return [f"{profile.path}: {one}" for one in sentences]


def _salt(column: Column) -> int:
    return zlib.crc32(column.name.encode())


def _is_user_defined(word: str) -> bool:
    return word not in KNOWN_TYPES and not word.isdigit()


def _names(columns: Sequence[Column]) -> str:
    return ", ".join(column.name for column in columns)


def _is_known(size: Distribution) -> bool:
    """Whether cassandra-stress makes the same size of the same number again."""
    return not (size.quanta or size.inverted)


@dataclass(frozen=True)
class Rows:
    """Rows of a partition. `outer`: values of the outermost clustering column; `below`: rows of each of them."""

    outer: Distribution
    high: int
    below: float

    @classmethod
    def of(cls, profile: Profile, columns: Sequence[Column]) -> Rows:
        """Raises Refused for a partition without rows."""
        spread = [profile.spec(one.name).cluster or fixed(1) for one in columns if one.role == "clustering"]
        if any(one.low < 1 for one in spread):
            raise Refused(f"{profile.path}: columnspec: cluster", "below 1", "a partition has rows", "from 1")
        outer, *inner = spread or [fixed(1)]
        high = math.prod(one.high for one in (outer, *inner))
        return cls(outer, high, math.prod(one.average for one in inner))

    def taken(self, select: Ratio) -> float:
        """Mean number of rows that an insert writes: each outermost value with a chance, and one at least."""
        chance = min(1.0, select.of.average / select.divisor)
        outer = self.outer.average
        return (outer * chance + math.pow(1 - chance, outer)) * self.below

    def most_taken(self, select: Ratio) -> int:
        """Greatest such number, but for a chance below 1 in 10^15: eight deviations above the mean of a binomial."""
        mean = self.high * select.greatest
        return max(1, math.ceil(mean + 8 * math.sqrt(mean * (1 - select.greatest))))


def plan(settings: Settings, table: ProfileTable) -> Plan:
    """The plan of the command `user`. Raises Refused for what is not supported."""
    profile = table.profile
    statements, operations, counted = [], [], {}
    for name, weight in settings.command.ratios.items():
        if name.lower() == "insert":
            statement, step, counting = _insert(settings, table)
        else:
            statement, counting = _query(table, profile.queries[name.lower()])
            step = {"kind": "execute", "statement": statement["name"]}
        statements.append(statement)
        operations.append({"name": name, "weight": weight, "keys": orders.keys(settings), "steps": [step]})
        counted[name] = counting
    return Plan(
        keyspace=_server_name(profile.keyspace),
        statements=tuple(statements),
        operations=tuple(operations),
        counted=counted,
        clustering=settings.command.clustering,
        validated=False,
    )


def _insert(settings: Settings, table: ProfileTable) -> tuple[dict[str, Any], dict[str, Any], Counting]:
    profile, rows = table.profile, table.rows
    partitions = settings.insert.partitions or profile.partitions
    select = settings.insert.select or profile.select
    most = partitions.high * rows.most_taken(select)
    if most > MOST_IN_BATCH:
        raise Refused(
            f"{profile.path}: insert",
            f"up to {most} rows in a batch",
            f"a request holds {MOST_IN_BATCH}",
            "fewer `partitions`, a smaller `select`, or a smaller `cluster` of the columns",
        )
    statement = _insertion(table)
    counting = Counting(rows=partitions.average * rows.taken(select), partitions=partitions.average)
    if partitions == fixed(1) and rows.high == 1:
        return statement, {"kind": "execute", "statement": statement["name"]}, counting
    counting = replace(counting, batches=True)
    step = {
        "kind": "batch",
        "statements": [statement["name"]],
        "mode": (settings.insert.batch or profile.batch).lower(),
        "repeat": partitions.wire(),
        "next_key": True,
        "select": {"of": select.of.wire(), "divisor": select.divisor},
    }
    return statement, step, counting


def _insertion(table: ProfileTable) -> dict[str, Any]:
    """The UPDATE that cassandra-stress prepares; INSERT for a table of key columns only."""
    keys = [one for one in table.columns if one.role in KEYS]
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
        "table": table.wire(),
    }


def _assignment(column: Column) -> str:
    name = quoted(column.name)
    added = column.outer in ("set", "list", "counter") and not column.cql_type.startswith("frozen")
    return f"{name} = {name} + ?" if added else f"{name} = ?"


def _query(table: ProfileTable, query: Query) -> tuple[dict[str, Any], Counting]:
    where = f"{table.profile.path}: queries: {query.name}"
    values, partition = [], {}
    for index, (name, comparison) in enumerate(markers(table.profile, query)):
        column = table.column(name)
        if column is None:
            raise _no_column(table.profile, where, name, table.columns)
        if column.role == "partition_key" and comparison == "=":
            partition[column.name] = index
        values.append(table.value(column))
    wanted = [one.name for one in table.columns if one.role == "partition_key"]
    statement = {
        "name": query.name,
        "cql": qualified_cql(table.profile, query),
        "values": values,
        "partition_key": [partition[name] for name in wanted] if set(wanted) <= set(partition) else [],
        "writes": not query.cql.lstrip().upper().startswith("SELECT"),
        "table": table.wire(apart=not query.same_row),
    }
    if not statement["writes"]:
        # An answer without rows is not an error, but reads no partition.
        statement |= {"page_rows": PAGE_ROWS, "max_pages": MAX_PAGES, "wants_row": True}
    # Of a write, cassandra-stress counts what is in its answer: one row of a light-weight transaction, else none.
    partitions = None if statement["writes"] else 1.0
    return statement, Counting(rows=None, partitions=partitions, may_be_empty=True, reads=not statement["writes"])


def markers(profile: Profile, query: Query) -> list[tuple[str, str]]:
    """Column and comparison of each marker of a query. Raises Refused where a marker has no clear column."""
    try:
        return bind_markers.columns_of(query.cql)
    except ValueError as error:
        where = f"{profile.path}: queries: {query.name}"
        raise Refused(where, str(error), "it is not clear which column this marker belongs to", "column = ?") from None
