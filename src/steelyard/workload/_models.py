"""Data model of a workload file: frozen values that mirror its TOML."""

from __future__ import annotations

from datetime import date, datetime
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from steelyard.model.client import Consistency
from steelyard.model.file_format import FileFormat
from steelyard.model.named_level import Level
from steelyard.model.value import Value
from steelyard.workload._distributions import distribution

MOST_RECORDS = 2**40
NAME = r"^[A-Za-z][A-Za-z0-9_-]{0,47}$"

Distribution = Annotated[
    dict[str, Any],
    BeforeValidator(distribution),
    WithJsonSchema({"type": "distribution"}),
]
"""A number, `"uniform(1..100)"`, or a table; as in the agent's order."""

MAKES = {
    "key": ("divide", "modulo", "scramble", "scale", "offset", "prefix", "digits"),
    "random": ("number", "size", "of", "versioned"),
    "draw": ("number",),
    "row": ("count",),
    "fixed": ("value",),
}
"""Ways to generate a value, and the keys that belong to each."""


class Column(Value):
    """A column, or another value of a statement: its type and where its values come from."""

    type: str = ""
    """CQL type: `text`, `map<text, frozen<list<int>>>`; the default for a statement's value is its column's type."""
    static: bool = False
    """Whether it is a static column of the partition."""
    make: Literal["key", "random", "draw", "row", "fixed"] | None = None
    """Source of values. key: from the record's key; random: pseudo-random, a function of the key; draw: drawn
    independently for each operation; row: number of the repetition within a batch, otherwise drawn below `count`;
    fixed: always `value`. By default, columns of the primary key come from the key and others are random, unless
    another key of this table implies otherwise."""
    divide: int | None = Field(default=None, ge=1)
    """key: the key is first divided by this (so that many keys have the same value)."""
    modulo: int | None = Field(default=None, ge=1)
    """key: then reduced modulo this."""
    scramble: bool | None = None
    """key: then hashed, so that neighbours are far apart."""
    scale: int | None = None
    """key: then multiplied by this."""
    offset: int | datetime | date | None = None
    """key: then this is added; a date for timestamps and dates."""
    prefix: str | None = None
    """key: text before the number."""
    digits: int | None = Field(default=None, ge=1, le=64)
    """key: minimum number of digits of the number in text."""
    number: Distribution | None = None
    """random, draw: distribution of the numbers. Without it, random values cover the whole range of the type."""
    size: Distribution | None = None
    """random: bytes of text and blobs (default 32), entries of collections (default 4)."""
    of: tuple[Column, ...] = ()
    """random: entries of a list or set; key and value of a map; members of a tuple. Default: random."""
    versioned: bool | None = None
    """random: whether the value changes with every operation that writes it; text and blobs then begin with the
    operation's number, so that they can still be compared. Default: true for text and blobs of 24 bytes or more."""
    count: Distribution | None = None
    """row: number of rows per key."""
    value: Any = None
    """fixed: the value as in TOML."""
    compare: bool = True
    """Whether reads compare this column, see `validate_fraction`."""

    @model_validator(mode="after")
    def _belongs(self) -> Self:
        given = self.model_fields_set
        meant = self.kind()
        if meant is None:
            return self
        every = {key for keys in MAKES.values() for key in keys}
        misplaced = sorted((given & every) - set(MAKES[meant]))
        if misplaced:
            owners = " or ".join(make for make, keys in MAKES.items() if misplaced[0] in keys)
            raise ValueError(f"{misplaced[0]} applies only to make = {owners!r}, but this is {meant!r}")
        needed = {"draw": "number", "row": "count", "fixed": "value"}.get(meant)
        if needed and needed not in given:
            raise ValueError(f"make = {meant!r} needs {needed}")
        return self

    def kind(self) -> str | None:
        """Generator of values, as far as this table specifies it."""
        if self.make is not None:
            return self.make
        given = self.model_fields_set
        for make in ("fixed", "row", "key"):
            if given & set(MAKES[make]):
                return make
        return "random" if given & set(MAKES["random"]) else None


class DeclaredTable(Value):
    """A table. Its columns are given in the order of CREATE TABLE."""

    primary_key: str = ""
    """Primary key as in CQL: `id`, or `(device, day), at`."""
    create: str = ""
    """A whole CREATE TABLE statement instead; `columns` then only defines how values are generated."""
    columns: dict[str, Column] = Field(default_factory=dict)
    """Column name to type, or to a table."""
    options: tuple[str, ...] = ()
    """Options after WITH: `"CLUSTERING ORDER BY (at DESC)"`. Compression and compaction are the system's settings,
    unless given here."""
    indexes: tuple[str, ...] = ()
    """Indexes, each the text after CREATE INDEX ... ON table: `"(tag)"`, `"(tag) USING 'sai'"`."""


class Statement(Value):
    """A prepared statement. Markers are `?` or `:name`; each gets the value of its column, unless it is in `values`."""

    cql: str
    """SELECT, INSERT, UPDATE or DELETE."""
    values: dict[str, Column] = Field(default_factory=dict)
    """Values of markers that have no column (`limit`, `ttl`, `timestamp`, `:since`), or that differ from the column's.
    A number or text is short for a distribution to draw from."""
    consistency: Consistency | None = None
    """Consistency level that overrides the load's."""
    page_rows: int | None = Field(default=None, ge=1, le=1_000_000)
    """SELECT: rows per page; without it, the whole answer comes in one page."""
    max_pages: int | None = Field(default=None, ge=1, le=1_000_000)
    """SELECT: maximum number of pages per operation, default 100."""
    wants_row: bool | None = None
    """SELECT: whether an answer without rows counts as not found. Default: true if the key determines the row."""
    compare: bool = True
    """SELECT: whether the first row is compared, see `validate_fraction`."""


class Step(Value):
    """One request: a statement, or statements in a batch."""

    statement: str | None = None
    """Name of a statement."""
    batch: tuple[str, ...] = ()
    """Names of statements that are sent as one batch."""
    mode: Literal["logged", "unlogged", "counter"] | None = None
    """batch: its kind; default counter for tables of counters, otherwise logged."""
    repeat: Distribution | None = None
    """batch: number of repetitions of all its statements, default 1."""
    next_key: bool | None = None
    """batch: whether each repetition uses the next key; otherwise the key stays and only `row` advances."""


class Steps(Step):
    """Requests of an operation: one, or several in sequence."""

    steps: tuple[Step, ...] = ()
    """Several requests: names of statements, or tables like this one."""

    @model_validator(mode="after")
    def _one(self) -> Self:
        given = [key for key in ("statement", "batch", "steps") if getattr(self, key)]
        if len(given) != 1:
            raise ValueError(f"needs one of statement, batch, steps, not {' and '.join(given) or 'none of them'}")
        for step in self.each():
            if (step.statement is None) == (not step.batch):
                raise ValueError("a step needs one of statement and batch")
            if not step.batch and (step.mode or step.repeat is not None or step.next_key is not None):
                raise ValueError("mode, repeat and next_key belong to a batch")
        return self

    def each(self) -> tuple[Step, ...]:
        """The requests in order."""
        if self.steps:
            return self.steps
        own = {name: getattr(self, name) for name in Step.model_fields}
        return (Step.model_construct(**own),)


class Populate(Steps):
    """Statement that fills the tables, for each key from 0 to records - 1."""

    stride: int | None = Field(default=None, ge=1)
    """Number of keys that one operation writes; default: the repetitions of a batch with `next_key`."""


class Operation(Steps):
    """One kind of operation."""

    name: str = Field(pattern=NAME)
    """Name in records, tables, figures."""
    weight: float = Field(default=1.0, ge=0)
    """Share of the operations, relative to the sum of all weights; a factor of studies: `workload.weights.NAME`."""
    keys: str = "uniform"
    """Choice of record: `new` is one that has not been written yet; `uniform`, `zipfian`, `latest`, `hotspot`,
    `sequential`, `exponential` choose an existing one, as in YCSB; a distribution such as `zipfian(0..999)` draws a
    number, whether that key exists or not."""


class File(Value):
    """One workload file."""

    format: FileFormat = 1
    """Version of the workload file's format."""
    name: str = Field(pattern=NAME)
    """Name of the workload."""
    about: str = ""
    """Purpose of the workload."""
    keyspace: str = Field(default="", pattern=r"^[A-Za-z0-9_]{0,48}$")
    """Keyspace; default: the name."""
    records: int = Field(default=1000, ge=0, le=MOST_RECORDS)
    """Number of keys in the filled state: 0 to records - 1. Values derive partition and clustering columns from the
    key."""
    validate_fraction: float = Field(default=0.0, ge=0, le=1)
    """Share of the answers whose values are compared with the expected ones."""
    insert_lag: int | None = Field(default=None, ge=0, le=MOST_RECORDS)
    """Operations see only keys inserted more than this many operations ago; default: 16 for each other operation that
    may be in flight."""
    clustering: Distribution | None = None
    """Number of consecutive operations of one kind; by default each is drawn independently."""
    parameters: dict[str, Level] = Field(default_factory=dict)
    """Names with default values: `"$name"` anywhere in the file is replaced by the value. Each is a setting of the
    workload and can be a factor of a study."""
    types: dict[str, dict[str, Column]] = Field(default_factory=dict)
    """User-defined types: name to fields."""
    tables: dict[str, DeclaredTable] = Field(min_length=1)
    """Tables by name."""
    statements: dict[str, Statement] = Field(min_length=1)
    """Statements by name; a statement can be given as its CQL alone."""
    populate: Populate | None = None
    """Statement that fills the tables; default: the only INSERT."""
    operations: tuple[Operation, ...] = Field(min_length=1)
    """The mix of operations."""
