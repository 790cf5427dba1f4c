"""The shipped tables: the CSV files as they were transcribed, each with its source, units, rounding and caveats."""

from __future__ import annotations

import csv
import difflib
import functools
import tomllib
from collections.abc import Mapping
from importlib.resources import files
from typing import Literal

from pydantic import Field

from steelyard.model.errors import StudyError
from steelyard.model.value import Value
from steelyard.reference.printed import Printed, Rounding, parse

INDEX = "tables.toml"


class UnknownReference(StudyError):
    """There is no shipped table of this name."""


class Source(Value):
    """Where numbers were published."""

    name: str
    """The study's short name, such as richardson2017."""
    authors: tuple[str, ...]
    title: str
    """Empty where the transcription does not say."""
    kind: str
    published_by: str
    year: int
    note: str = ""

    def words(self) -> str:
        """The source as one line of a bibliography."""
        parts = (", ".join(self.authors), self.title, self.kind, self.published_by, str(self.year))
        return ", ".join(part for part in parts if part) + "." + (f" {self.note}" if self.note else "")


class Column(Value):
    """One column of numbers."""

    unit: str
    rounding: Rounding = Rounding()


class Number(Value):
    """Which number of ours stands beside a column of a table."""

    column: str
    where: dict[str, str] = Field(default_factory=dict)
    """The rows that this is about, by their key; all if it is empty."""
    response: str = ""
    """A response of trials, or one made of samples; empty: we have nothing like it, and `missing` says why."""
    response_words: str = ""
    statistic: Literal["mean", "sd", "cohens_d"] = "mean"
    cell: dict[str, str] = Field(default_factory=dict)
    """Column of the key to the facet of ours that must have its level, beside those of the form."""
    against: dict[str, str] | None = None
    """The same of the treatment that is compared with, for `cohens_d`."""
    only: dict[str, str] = Field(default_factory=dict)
    """Facets of ours and the level that they must have."""
    unlike: tuple[str, ...] = ()
    """Why the two are never quite the same number."""
    missing: str = ""


class Form(Value):
    """How own trials are laid beside a table (`reference.mapping`)."""

    system: str = ""
    """Name of the system that a store must weigh."""
    system_words: str = ""
    cell: dict[str, str] = Field(default_factory=dict)
    """Column of the key to the facet of ours that must have its level."""
    levels: dict[str, dict[str, str]] = Field(default_factory=dict)
    """Column of the key to its levels in the words of our facet, where they differ."""
    conditions: dict[str, str] = Field(default_factory=dict)
    """Facet to what it was in the publication: a level, or `column NAME` of the row."""
    words: dict[str, str] = Field(default_factory=dict)
    """Facets and columns in words."""
    numbers: tuple[Number, ...] = ()
    missing: str = ""
    """Why nothing of ours is like it."""


class Row(Value):
    """One line of the file."""

    line: int
    """Line in the CSV file; the heading is line 1."""
    key: dict[str, str]
    """What the line is about."""
    numbers: dict[str, Printed]
    """Column to number; blank cells have no value."""


class Table(Value):
    """One shipped table."""

    name: str
    source: Source
    title: str
    printed_in: str
    """Numbers of tables or sections in the source."""
    unit: str
    row: str
    """What a row is."""
    caveats: tuple[str, ...] = ()
    spread: tuple[str, str] | None = None
    """In a long table the column that names the number, and the column of the number."""
    order: tuple[str, ...] = ()
    """How a long table's numbers stand side by side; the others after them."""
    columns: dict[str, Column]
    rows: tuple[Row, ...] = ()
    form: Form | None = None
    """How own trials are laid beside it; None where `reference.comparison` does it."""

    def wide(self) -> tuple[Row, ...]:
        """One row per cell: a long table's numbers side by side; any other table as it is."""
        if self.spread is None:
            return self.rows
        name, value = self.spread
        first: dict[tuple[tuple[str, str], ...], Row] = {}
        numbers: dict[tuple[tuple[str, str], ...], dict[str, Printed]] = {}
        for row in self.rows:
            key = tuple((column, text) for column, text in row.key.items() if column != name)
            first.setdefault(key, row)
            numbers.setdefault(key, {})[row.key[name]] = row.numbers[value]

        def side_by_side(found: Mapping[str, Printed]) -> dict[str, Printed]:
            return {label: found[label] for label in (*self.order, *found) if label in found}

        return tuple(
            Row(line=row.line, key=dict(key), numbers=side_by_side(numbers[key])) for key, row in first.items()
        )


@functools.cache
def tables() -> Mapping[str, Table]:
    """Every shipped table by name."""
    index = tomllib.loads(_text(INDEX))
    sources = {name: Source(name=name, **fields) for name, fields in index["sources"].items()}
    found = {}
    for name, fields in index["tables"].items():
        table = Table.model_validate({"name": name, **fields, "source": sources[fields["source"]]})
        found[name] = table.model_copy(update={"rows": _rows(table, _text(f"{name}.csv"))})
    return found


def _text(name: str) -> str:
    return files("steelyard.reference").joinpath("data", name).read_text(encoding="utf-8")


def _rows(table: Table, text: str) -> tuple[Row, ...]:
    found = []
    for line, fields in enumerate(csv.DictReader(text.splitlines()), start=2):
        numbers = {name: parse(fields[name], column.rounding) for name, column in table.columns.items()}
        key = {name: value for name, value in fields.items() if name not in numbers}
        found.append(Row(line=line, key=key, numbers=numbers))
    return tuple(found)


def named(name: str) -> tuple[Table, ...]:
    """The table of this name, or all tables of the study of this name, or `all`. Raises UnknownReference for others."""
    every = tables()
    if name in every:
        return (every[name],)
    found = tuple(table for table in every.values() if name in ("all", table.source.name))
    if found:
        return found
    known = [*every, *dict.fromkeys(table.source.name for table in every.values()), "all"]
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    raise UnknownReference(f"{name!r} is no shipped table and no study", f"{hint}there are: {', '.join(known)}")
