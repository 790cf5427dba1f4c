"""Shipped published tables: transcribed CSV files with source, units, rounding and caveats."""

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


TIMES = ("scaled_out_at_s", "joining_s")
"""Quantities of trials under a policy that are no responses: when they scaled out, and how long nodes then joined."""


class UnknownReference(StudyError):
    """No shipped table has this name."""


class Source(Value):
    """Publication that numbers come from."""

    name: str
    """The study's short name, such as richardson2017."""
    authors: tuple[str, ...]
    title: str
    """Title; empty if the transcription does not give it."""
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
    """The own number that a table's column is compared with."""

    column: str
    where: dict[str, str] = Field(default_factory=dict)
    """The rows that this concerns, by their key; all if empty."""
    response: str = ""
    """A response of trials, one computed from samples, or one of `TIMES`; empty: there is none, and `missing` gives the
    reason."""
    response_words: str = ""
    statistic: Literal["mean", "sd", "cohens_d"] = "mean"
    window: Literal["", "before", "from decision"] = ""
    """Window around the first scale-out of a trial under a policy; Cohen's d is that of `before` less the window. The
    whole trial, or trials of two treatments, if empty."""
    cell: dict[str, str] = Field(default_factory=dict)
    """Column of the key to our facet that must have its level, in addition to those of the form."""
    against: dict[str, str] | None = None
    """The same for the treatment to compare with, for `cohens_d`."""
    only: dict[str, str] = Field(default_factory=dict)
    """Our facets to the level that they must have."""
    unlike: tuple[str, ...] = ()
    """Reasons why the two are never exactly the same quantity."""
    missing: str = ""

    @property
    def quantity(self) -> str:
        """The response, or the response in a window."""
        return in_window(self.response, self.window)


def in_window(response: str, window: str) -> str:
    """Name of a response in a window around a change of size; of the response itself without a window."""
    return f"{response} {window}".strip()


class Cells(Value):
    """The cells that a row's numbers were computed from, if not the cell that the row names."""

    where: dict[str, str]
    """The rows that this concerns, by their key."""
    of: tuple[dict[str, str], ...]
    """For each cell, the levels that the row does not give."""
    x: tuple[float, ...] = ()
    """For each cell, its x in a regression."""


class Form(Value):
    """Mapping of own trials to a table (`reference.mapping`): number by number, or computed from all trials."""

    system: str = ""
    """Name of the system that the store must measure."""
    system_words: str = ""
    cell: dict[str, str] = Field(default_factory=dict)
    """Column of the key to our facet that must have its level."""
    levels: dict[str, dict[str, str]] = Field(default_factory=dict)
    """Column of the key to its levels as our facet names them, if they differ."""
    conditions: dict[str, str] = Field(default_factory=dict)
    """Facet to its value in the publication: a level, or `column NAME` of the row."""
    words: dict[str, str] = Field(default_factory=dict)
    """Facets and columns in words."""
    numbers: tuple[Number, ...] = ()
    missing: str = ""
    """Reason why no own number is comparable."""
    computed: Literal["", "summary", "regression", "ratios"] = ""
    """How a row's numbers are computed from the trials of its cells; empty if `numbers` has the mapping. The fields
    below concern computed numbers."""
    cells_of: str = ""
    """The table that has the cells. The fields in `SHARED` that this form leaves empty are taken from it."""
    response: str = ""
    placed: dict[str, str] = Field(default_factory=dict)
    """Column of the key that none of our factors determines, to the level to compare with unless one is chosen."""
    follows: dict[str, dict[str, str]] = Field(default_factory=dict)
    """A chosen level of `placed`, to the levels that follow from it."""
    profiles: dict[str, dict[str, str]] = Field(default_factory=dict)
    """A node profile to the levels of `placed` that it represents; any other is a platform of its own name."""
    pooled: dict[str, str] = Field(default_factory=dict)
    """Column to the level under which cells of all its levels are pooled."""
    cells: tuple[Cells, ...] = ()
    needs: str = ""
    """Own results that it needs."""
    shown: tuple[str, ...] = ()
    """Statistics on the screen, if not all; the others are described by `hidden`."""
    hidden: str = ""
    drawn: tuple[str, ...] = ()
    """Statistics in the figure."""
    remarks: tuple[str, ...] = ()

    def cells_behind(self, key: Mapping[str, str]) -> tuple[tuple[float, dict[str, str]], ...]:
        """For each cell behind a row's numbers: its x (0 without an axis), and its levels."""
        special = next((one for one in self.cells if one.where.items() <= key.items()), None)
        if special is None:
            return ((0.0, {name: key[name] for name in self.cell}),)
        places = special.x or (0.0,) * len(special.of)
        levels = ({name: {**key, **one}[name] for name in self.cell} for one in special.of)
        return tuple(zip(places, levels, strict=True))


SHARED = ("cell", "response", "placed", "follows", "profiles", "pooled", "conditions", "words")
"""Fields of a form that are taken from the table `cells_of`."""


class Row(Value):
    """One line of the file."""

    line: int
    """Line in the CSV file; the heading is line 1."""
    key: dict[str, str]
    """Levels of the line's cell."""
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
    """Subject of a row."""
    caveats: tuple[str, ...] = ()
    spread: tuple[str, str] | None = None
    """In a long table, the column that names the number, and the column of the number."""
    order: tuple[str, ...] = ()
    """Order of a long table's numbers when placed side by side; others follow."""
    columns: dict[str, Column]
    rows: tuple[Row, ...] = ()
    form: Form | None = None
    """Mapping of own trials to the table."""

    def wide(self) -> tuple[Row, ...]:
        """One row per cell: a long table's numbers side by side; any other table unchanged."""
        if self.spread is None:
            return self.rows
        name, value = self.spread
        first: dict[tuple[tuple[str, str], ...], Row] = {}
        numbers: dict[tuple[tuple[str, str], ...], dict[str, Printed]] = {}
        for row in self.rows:
            key = tuple((column, text) for column, text in row.key.items() if column != name)
            first.setdefault(key, row)
            numbers.setdefault(key, {})[row.key[name]] = row.numbers[value]

        def side_by_side(numbers: Mapping[str, Printed]) -> dict[str, Printed]:
            return {label: numbers[label] for label in (*self.order, *numbers) if label in numbers}

        return tuple(
            Row(line=row.line, key=dict(key), numbers=side_by_side(numbers[key])) for key, row in first.items()
        )


@functools.cache
def tables() -> Mapping[str, Table]:
    """Every shipped table by name."""
    index = tomllib.loads(_text(INDEX))
    sources = {name: Source(name=name, **fields) for name, fields in index["sources"].items()}
    by_name = {}
    for name, fields in index["tables"].items():
        if cells_of := fields.get("form", {}).get("cells_of"):
            given = index["tables"][cells_of]["form"]
            fields["form"] = {key: given[key] for key in SHARED if key in given} | fields["form"]
        table = Table.model_validate({"name": name, **fields, "source": sources[fields["source"]]})
        by_name[name] = table.model_copy(update={"rows": _rows(table, _text(f"{name}.csv"))})
    return by_name


def _text(name: str) -> str:
    return files("steelyard.reference").joinpath("data", name).read_text(encoding="utf-8")


def _rows(table: Table, text: str) -> tuple[Row, ...]:
    rows = []
    for line, fields in enumerate(csv.DictReader(text.splitlines()), start=2):
        numbers = {name: parse(fields[name], column.rounding) for name, column in table.columns.items()}
        key = {name: value for name, value in fields.items() if name not in numbers}
        rows.append(Row(line=line, key=key, numbers=numbers))
    return tuple(rows)


def named(name: str) -> tuple[Table, ...]:
    """The table with this name, or all tables of the study with this name, or `all`. Raises UnknownReference for
    others."""
    every = tables()
    if name in every:
        return (every[name],)
    chosen = tuple(table for table in every.values() if name in ("all", table.source.name))
    if chosen:
        return chosen
    known = [*every, *dict.fromkeys(table.source.name for table in every.values()), "all"]
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    raise UnknownReference(f"{name!r} is neither a shipped table nor a study", f"{hint}there are: {', '.join(known)}")
