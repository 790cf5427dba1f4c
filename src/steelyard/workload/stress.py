"""cassandra-stress's table and rows as a workload: the same keys and values for our agent and that tool.

So `load.engine` can be a factor over the same data. Keys and values are those of cassandra-stress 3.11, byte for byte.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from steelyard.model.data_model import Schema, Table, quoted
from steelyard.model.value import Value
from steelyard.wire.order import CQL
from steelyard.wire.program import (
    BoundValue,
    DrawnKeys,
    Execute,
    OperationSpec,
    Program,
    StatementSpec,
    StressColumn,
    StressKey,
)
from steelyard.workload._distributions import bounds, distribution, mean, short_form
from steelyard.workload.base import Explanation, OperationShape

KEYSPACE = "keyspace1"
TABLE = "standard1"
KEY_SIZE = 10
MOST_COLUMN_BYTES = 2**28
DRAWN = frozenset({"fixed", "sequence", "uniform", "exponential", "gaussian", "extreme", "inverted"})
"""Distributions that cassandra-stress supports."""

HARD: dict[str, Any] = {"easy": False}
"""The filled data depends on the setting."""
EASY: dict[str, Any] = {"easy": True}
"""The setting can change between trials on the same data."""


def _normal(read: object) -> str:
    spread = distribution(read)
    name = spread["of"]["name"] if spread["name"] == "inverted" else spread["name"]
    if name not in DRAWN:
        raise ValueError(f"cassandra-stress has no {name}; allowed: {', '.join(sorted(DRAWN - {'inverted'}))}, and ~")
    return short_form(spread)


Distribution = Annotated[
    str, BeforeValidator(_normal), WithJsonSchema({"anyOf": [{"type": "integer"}, {"type": "string"}]})
]


class Settings(Value):
    """cassandra-stress's commands `read`, `write`, `mixed` on its table standard1, with the defaults of that tool."""

    records: int = Field(default=1_000_000, ge=1, le=2**40, json_schema_extra=HARD)
    """Number of rows that fill the table before the load: the seeds 1 to records (write n=)."""
    columns: int = Field(default=5, ge=1, le=1000, json_schema_extra=HARD)
    """Value columns per row, from C0 on (-col n=)."""
    column_size: Distribution = Field(default="34", json_schema_extra=HARD)
    """Bytes per value: a number, or fixed, uniform, gaussian, exponential, extreme, sequence (-col size=)."""
    read_proportion: float = Field(default=0.5, ge=0, json_schema_extra=EASY)
    """Share of reads; the shares are divided by their sum (mixed ratio)."""
    write_proportion: float = Field(default=0.5, ge=0, json_schema_extra=EASY)
    """Share of writes (mixed ratio)."""
    population: Distribution | None = Field(default=None, json_schema_extra=EASY)
    """Rows, by their seeds from 1 (-pop dist=); None: uniform over all records."""
    clustering: Distribution | None = Field(default=None, json_schema_extra=EASY)
    """Number of consecutive operations of one kind (mixed clustering=; the tool's own default is gaussian(1..10));
    None: each is drawn independently."""
    validate_fraction: float = Field(default=0.0, ge=0, le=1, json_schema_extra=EASY)
    """Share of the reads whose values are compared with those written. The tool's own default is 1."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.read_proportion + self.write_proportion <= 0:
            raise ValueError("the proportions are all 0: give at least one of read_proportion, write_proportion")
        size = distribution(self.column_size)
        low, high = bounds(size)
        if low < 0 or high > MOST_COLUMN_BYTES:
            raise ValueError(f"column_size {self.column_size} must be from 0 to {MOST_COLUMN_BYTES} bytes")
        if size["name"] == "inverted" or size.get("quanta"):
            raise ValueError(f"column_size {self.column_size}: cassandra-stress fails with ~ and with quanta here")
        if self.population is not None:
            low, high = bounds(distribution(self.population))
            if low < 1 or high > self.records:
                raise ValueError(
                    f"population {self.population} goes beyond the seeds 1 to {self.records} that are filled"
                )
        if self.clustering is not None and bounds(distribution(self.clustering))[0] < 1:
            raise ValueError(f"clustering {self.clustering} must be of numbers from 1")
        return self

    def seeds(self) -> dict[str, Any]:
        """The distribution of seeds."""
        if self.population is not None:
            return distribution(self.population)
        if self.records == 1:
            return distribution(1)
        return {"name": "uniform", "min": 1.0, "max": float(self.records)}


class Stress:
    """Reads and writes of whole rows of standard1."""

    name = "stress"
    protocols: tuple[str, ...] = (CQL,)

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.writes = settings.write_proportion > 0
        self._names = tuple(f"C{number}" for number in range(settings.columns))

    def schema(self) -> Schema:
        """cassandra-stress's table without COMPACT STORAGE, which it does not need; compression and compaction
        are the system's settings."""
        columns = ", ".join(f"{quoted(name)} blob" for name in self._names)
        return Schema(KEYSPACE, TABLE, "key", self._names, (Table(TABLE, f"key blob PRIMARY KEY, {columns}"),))

    def data(self) -> dict[str, Any]:
        """The settings that determine the filled table."""
        return self.settings.model_dump(mode="json", include={"records", "columns", "column_size"})

    def order(self) -> Program:
        """The `work` of an order: a program."""
        settings = self.settings
        keys = DrawnKeys(number=shifted(settings.seeds(), -1))
        shares = {"read": settings.read_proportion, "write": settings.write_proportion}
        return Program(
            records=settings.records,
            statements=(self._write(), self._read()),
            populate=(Execute(statement="write"),),
            operations=tuple(
                OperationSpec(name=name, weight=share, keys=keys, steps=(Execute(statement=name),))
                for name, share in shares.items()
                if share > 0
            ),
            clustering=None if settings.clustering is None else distribution(settings.clustering),
            validate_fraction=settings.validate_fraction,
        )

    def explain(self) -> Explanation:
        """Operations, shares, sizes."""
        settings = self.settings
        row_bytes = round(mean(distribution(settings.column_size)) * settings.columns) + KEY_SIZE
        total = settings.read_proportion + settings.write_proportion
        keys = settings.population or f"uniform(1..{settings.records})"
        shapes = (
            ("read", settings.read_proportion, "read", KEY_SIZE),
            ("write", settings.write_proportion, "update", row_bytes),
        )
        return Explanation(
            about="cassandra-stress's rows of standard1",
            records=settings.records,
            record_bytes=row_bytes,
            filling="write",
            operations=tuple(
                OperationShape(name, share / total, keys, name, kind, size)
                for name, share, kind, size in shapes
                if share
            ),
        )

    def _key(self) -> BoundValue:
        return BoundValue(type="blob", make=StressKey(size=KEY_SIZE))

    def _values(self) -> tuple[BoundValue, ...]:
        size = distribution(self.settings.column_size)
        makes = [StressColumn(column=number, size=size) for number in range(self.settings.columns)]
        return tuple(BoundValue(type="blob", make=make) for make in makes)

    def _write(self) -> StatementSpec:
        assigned = ", ".join(f"{quoted(name)} = ?" for name in self._names)
        return StatementSpec(
            name="write",
            cql=f"UPDATE {KEYSPACE}.{TABLE} SET {assigned} WHERE key = ?",
            values=(*self._values(), self._key()),
            partition_key=(self.settings.columns,),
            writes=True,
        )

    def _read(self) -> StatementSpec:
        return StatementSpec(
            name="read",
            cql=f"SELECT {', '.join(quoted(name) for name in self._names)} FROM {KEYSPACE}.{TABLE} WHERE key = ?",
            values=(self._key(),),
            partition_key=(0,),
            writes=False,
            wants_row=True,
            expect=self._values(),
        )


def shifted(spread: Mapping[str, Any], by: int) -> dict[str, Any]:
    """The distribution shifted up by `by`: seeds begin with 1, keys of an order with 0."""
    if spread["name"] == "inverted":
        return {**spread, "of": shifted(spread["of"], by)}
    moved = {
        key: value + by for key, value in spread.items() if key in ("value", "min", "max", "mean") and value is not None
    }
    return {**spread, **moved}


def create(settings: Settings) -> Stress:
    """The workload under its settings."""
    return Stress(settings)
