"""Work of kind `program`: statements, where their values come from, and which operations execute them how often.

The definitions match `crates/steelyard-wire/src/program.rs`, which gives the meaning of each. A `Distribution` is
defined by `steelyard.workload._distributions`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, WithJsonSchema

from steelyard.model.value import Value, later

Chooser = Literal["uniform", "zipfian", "latest", "hotspot", "sequential", "exponential"]
"""Choice of an operation among the keys that exist."""
Distribution = Annotated[Mapping[str, Any], WithJsonSchema({"type": "distribution"})]
"""Distribution of numbers: `{"name": "uniform", "min": 1, "max": 9}`."""
Count = Annotated[int, Field(ge=0)]


class Identity(Value):
    """The number that cassandra-stress draws for a column of a profile, before it makes a value of it."""

    named: str
    """Name of the column."""
    of: Distribution
    size: Distribution | None = later(None)
    """Bytes of the text or blob that the tool makes of it."""
    hidden: bool = later(False)
    """Whether the number stays as it is, and only the hash of the row follows from the identity."""
    bytes: bool = later(False)
    """Of a blob: whether it is the tool's own, `size` bytes, in place of the identity's 8."""


class FromKey(Value):
    """offset + scale x n, where n is (key / divide) modulo `modulo`, hashed first if `scramble`."""

    kind: Literal["key"] = "key"
    divide: int = later(1, ge=1)
    modulo: int | None = later(None, ge=1)
    scramble: bool = later(False)
    scale: int = later(1)
    offset: int = later(0)
    prefix: str = later("")
    """Text in front of the number."""
    digits: int = later(0, ge=0)
    """Minimum number of digits in text."""
    identity: Identity | None = later(None)
    """The source of n in place of `modulo` and `scramble`."""


class OfClustering(Value):
    """The value of a clustering column in the row that the operation means."""

    kind: Literal["clustering"] = "clustering"
    column: int = Field(ge=0)


class Random(Value):
    """A pseudo-random function of seed, key or row, `salt` and, if `versioned`, of the version."""

    kind: Literal["random"] = "random"
    salt: int = later(0, ge=0)
    number: Distribution | None = later(None)
    size: Distribution | None = later(None)
    """Bytes of text and blobs, entries of collections."""
    of: tuple[BoundValue, ...] = later(())
    """Entries of a list or set; key and value of a map; members of a tuple."""
    versioned: bool = later(False)
    choice: Identity | None = later(None)


class Draw(Value):
    """A number drawn for each operation."""

    kind: Literal["draw"] = "draw"
    number: Distribution


class Fixed(Value):
    """A JSON value; null is CQL's null."""

    kind: Literal["fixed"] = "fixed"
    value: Any


class RowNumber(Value):
    """Number of the repetition within a batch, otherwise drawn below `count`."""

    kind: Literal["row"] = "row"
    count: Distribution


class Anything(Value):
    """In `expect` only: whatever the column holds."""

    kind: Literal["any"] = "any"


class StressKey(Value):
    """The partition key that cassandra-stress makes of the seed."""

    kind: Literal["stress-key"] = "stress-key"
    size: int = Field(ge=1)


class StressColumn(Value):
    """The value that cassandra-stress makes for a column in the row of the seed."""

    kind: Literal["stress-column"] = "stress-column"
    column: int = Field(ge=0)
    size: Distribution
    named: str | None = later(None)
    """Name of the column where it is not `C` and the number."""
    key_size: int = later(10, ge=1)


Make = Annotated[
    FromKey | OfClustering | Random | Draw | Fixed | RowNumber | Anything | StressKey | StressColumn,
    Field(discriminator="kind"),
]
"""Source of a value."""


class BoundValue(Value):
    """A value of a CQL type, and where it comes from."""

    type: str
    make: Make


class Clustering(Value):
    """A clustering column: how many values it has within an entry of the column before, and which."""

    count: Distribution
    value: BoundValue


class TableKey(Value):
    """The primary key of a table's rows, as functions of the key number."""

    partition: tuple[BoundValue, ...] = Field(min_length=1)
    clustering: tuple[Clustering, ...] = later((), max_length=8)
    apart: bool = later(False)
    """Whether each marker takes a row of its own, of as many as there are markers."""


class StatementSpec(Value):
    """A prepared statement, and the values of its markers in order."""

    name: str
    cql: str
    values: tuple[BoundValue, ...] = later(())
    partition_key: tuple[Count, ...] = later(())
    """Markers that form the partition key; empty: the statement goes to any node."""
    writes: bool
    consistency: str | None = later(None)
    """Overrides the order's."""
    conditional: bool = later(False)
    page_rows: int | None = later(None, ge=1)
    max_pages: int = later(1, ge=1)
    wants_row: bool = later(False)
    """Whether an answer without rows is not found."""
    expect: tuple[BoundValue, ...] = later(())
    """Expected values of the first row."""
    table: TableKey | None = later(None)


class Fraction(Value):
    """A number of a distribution over a divisor, at most 1."""

    of: Distribution
    divisor: int = Field(ge=1)


class Execute(Value):
    """One execution of a statement."""

    kind: Literal["execute"] = "execute"
    statement: str

    @property
    def statements(self) -> tuple[str, ...]:
        """Names of the statements, as of a batch."""
        return (self.statement,)


class Batch(Value):
    """Statements in one BATCH request."""

    kind: Literal["batch"] = "batch"
    statements: tuple[str, ...] = Field(min_length=1)
    mode: Literal["logged", "unlogged", "counter"]
    repeat: Distribution = later({"name": "fixed", "value": 1.0})
    next_key: bool = later(False)
    """Whether each repetition takes the next key."""
    select: Fraction | None = later(None)
    """With `next_key`: the chance of each entry of the outermost clustering column."""


Step = Annotated[Execute | Batch, Field(discriminator="kind")]
"""One request."""


class NewKeys(Value):
    """The next key that no operation has taken."""

    kind: Literal["new"] = "new"


class ExistingKeys(Value):
    """A key that exists."""

    kind: Literal["existing"] = "existing"
    distribution: Chooser


class DrawnKeys(Value):
    """A number of the distribution, whether the key exists or not."""

    kind: Literal["drawn"] = "drawn"
    number: Distribution
    each: bool = later(False)
    """Whether each key of a batch with `next_key` is a draw of its own."""


class OperationSpec(Value):
    """One kind of operation: its share, its keys, its requests in sequence."""

    name: str
    weight: float = Field(ge=0)
    keys: Annotated[NewKeys | ExistingKeys | DrawnKeys, Field(discriminator="kind")]
    steps: tuple[Step, ...] = Field(min_length=1)


class Program(Value):
    """A workload as data."""

    kind: Literal["program"] = "program"
    records: int = Field(ge=0)
    """Keys of the filled state: 0 to records - 1."""
    statements: tuple[StatementSpec, ...]
    populate: tuple[Step, ...]
    """Requests that fill the tables, for each `populate_stride`-th key."""
    populate_stride: int = later(1, ge=1)
    operations: tuple[OperationSpec, ...]
    clustering: Distribution | None = later(None)
    """Number of consecutive operations of one kind; None: each is drawn independently."""
    validate_fraction: float = later(0.0, ge=0, le=1)
    """Share of the answers with an `expect` whose values are compared."""
    insert_lag: int | None = later(None, ge=0)
    value_seed: int = later(0, ge=0)
    """Seed of stored values, in place of the order's."""

    @property
    def by_name(self) -> dict[str, StatementSpec]:
        """The statements by their names."""
        return {statement.name: statement for statement in self.statements}
