"""Row types of tables: frozen values whose fields are the columns, each with meaning and unit.

The docstring below a field is the meaning of its column. `Annotated` with a `Column` gives the unit and the layout;
`Hidden` keeps a field out of tables, `Levels` marks the factor levels of the row's treatment.
"""

from __future__ import annotations

import operator
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from functools import reduce
from typing import Annotated, Any, ClassVar, Final, Literal, Union, get_args, get_origin

from pydantic.fields import FieldInfo

from steelyard.field_docs import field_docs
from steelyard.model.estimate import Estimate
from steelyard.model.named_level import Level
from steelyard.model.value import Value

IN_UNIT: Final = "in the unit of column `unit`"
"""The unit of a column whose unit is that of the row's response."""
NO_UNIT: Final = "without unit"


class Kind(Enum):
    """Content of a column."""

    TEXT = "text"
    WHOLE = "whole number"
    NUMBER = "number"
    YES_NO = "yes or no"
    ESTIMATE = "estimate"
    """It has four columns: the value, both ends of its interval, and the method."""


@dataclass(frozen=True)
class Column:
    """Properties of a column apart from name, type and meaning."""

    unit: str = ""
    head: str = ""
    """Head on the page; the field's name, if empty."""
    is_p: bool = False
    """A p-value: shown with a p-value's digits."""
    bare: bool = False
    """An estimate that never has an interval: one column, its value."""


@dataclass(frozen=True)
class Hidden:
    """A field that is not a column."""


@dataclass(frozen=True)
class OfFactors:
    """A field with the factor levels of the row's treatment: a column for each factor, first in the table."""


Levels = Annotated[dict[str, Level], OfFactors()]
HIDDEN: Final = Hidden()
P = Annotated[float | None, Column(unit=NO_UNIT, is_p=True)]
Share = Annotated[float | None, Column(unit="as a fraction")]
Number = Annotated[float | None, Column(unit=NO_UNIT)]
Ratio = Annotated[Estimate, Column(unit=NO_UNIT)]
RatioOrNone = Annotated[Estimate | None, Column(unit=NO_UNIT)]
InUnit = Annotated[Estimate, Column(unit=IN_UNIT)]
InUnitOrNone = Annotated[Estimate | None, Column(unit=IN_UNIT)]
NumberInUnit = Annotated[float, Column(unit=IN_UNIT)]
FractionOrNone = Annotated[Estimate | None, Column(unit="as a fraction")]
PercentOrNone = Annotated[Estimate | None, Column(unit="%")]


class Row(Value):
    """One row of a table of the results."""

    LAST: ClassVar[tuple[str, ...]] = ()
    """Fields that are the last columns, after those of derived classes."""


class TreatmentRow(Row):
    """A row about one treatment."""

    treatment: Levels


class MeasuredRow(Row):
    """A row about one response."""

    response: str
    """Response, as named in the store."""
    unit: str
    """Unit of the response."""


class MeasuredTreatment(MeasuredRow, TreatmentRow):
    """One response of one treatment."""


class ComparedLevels(Row):
    """A level of a factor against its baseline, the other factors equal."""

    factor: str
    """Factor whose levels are compared."""
    baseline: Level
    """Level compared with."""
    level: Level
    """Level compared."""
    others: Levels


class MeasuredLevels(MeasuredRow, ComparedLevels):
    """One response at a level of a factor, against the baseline."""


@dataclass(frozen=True)
class TableColumn:
    """A column of a table: name, meaning, and how to read it from a row."""

    name: str
    meaning: str
    kind: Kind
    read: Callable[[Any], Any]
    """From a row to a text, number, truth value, `Estimate` or None."""
    unit: str = ""
    head: str = ""
    is_p: bool = False

    @property
    def called(self) -> str:
        """The column's head on the page."""
        return self.head or self.name.replace("_", " ")

    @property
    def about(self) -> str:
        """The meaning with the unit."""
        if not self.unit:
            return self.meaning
        return f"{self.meaning.removesuffix('.')}{', ' if self.unit[:1].isalpha() else ' ('}{self.unit}" + (
            "." if self.unit[:1].isalpha() else ")."
        )


def columns_of(row: type[Value]) -> tuple[TableColumn, ...]:
    """The columns of a table with such rows, without factors. Raises TypeError for a field that cannot be a column,
    ValueError for one without a meaning or a number without a unit."""
    return tuple(_columns(row, row.__name__))


def factors_field(row: type[Value]) -> str | None:
    """Name of the field with the factor levels of a row's treatment; None if rows have no treatment."""
    return next((name for name, field in row.model_fields.items() if OfFactors() in field.metadata), None)


def meaning(row: type[Value], name: str) -> str:
    """The meaning of a column. Raises KeyError if rows have no such column."""
    return {column.name: column.meaning for column in columns_of(row)}[name]


def _columns(row: type[Value], where: str) -> Iterator[TableColumn]:
    last, docs = getattr(row, "LAST", ()), field_docs(row)
    for name, field in sorted(row.model_fields.items(), key=lambda item: item[0] in last):
        if any(isinstance(marker, Hidden | OfFactors) for marker in field.metadata):
            continue
        inner, meaning = _only_type(field.annotation), " ".join(docs.get(name, "").split())
        if isinstance(inner, type) and issubclass(inner, Value) and inner is not Estimate:
            yield from _nested(name, inner, meaning, where)
            continue
        yield _column(name, field, inner, meaning, where)


def _column(name: str, field: FieldInfo, inner: Any, meaning: str, where: str) -> TableColumn:
    marker = next((one for one in field.metadata if isinstance(one, Column)), Column())
    if not meaning:
        raise ValueError(f"{where}.{name}: say below the field what the column means")
    kind = _kind(inner, f"{where}.{name}")
    if kind in (Kind.NUMBER, Kind.ESTIMATE) and not marker.unit:
        raise ValueError(f"{where}.{name}: a number needs a unit, Annotated[..., Column(unit=...)]")
    read: Callable[[Any], Any] = _text(name) if inner == Level else _attribute(name)
    if marker.bare:
        kind, read = Kind.NUMBER, _value(name)
    return TableColumn(name, meaning, kind, read, marker.unit, marker.head, marker.is_p)


def _nested(name: str, inner: type[Value], prefix: str, where: str) -> Iterator[TableColumn]:
    """The columns of a value within the row, with the field's name and meaning before theirs."""
    for column in _columns(inner, f"{where}.{name}"):
        meaning = f"{prefix.removesuffix('.')}: {column.meaning[:1].lower()}{column.meaning[1:]}"
        read = _inside(name, column.read)
        full, head = f"{name}_{column.name}", f"{name} {column.head}" if column.head else ""
        yield TableColumn(full, meaning, column.kind, read, column.unit, head, column.is_p)


def _only_type(annotation: Any) -> Any:
    """An annotation without `| None`."""
    if get_origin(annotation) in (types.UnionType, Union):
        return reduce(operator.or_, [kind for kind in get_args(annotation) if kind is not type(None)])
    return annotation


def _kind(inner: Any, where: str) -> Kind:
    known = {str: Kind.TEXT, bool: Kind.YES_NO, int: Kind.WHOLE, float: Kind.NUMBER, Estimate: Kind.ESTIMATE}
    if inner == Level or get_origin(inner) is Literal:
        return Kind.TEXT
    if inner not in known:
        raise TypeError(f"{where}: {inner} can be no column; annotate it with HIDDEN")
    return known[inner]


def _attribute(name: str) -> Callable[[Any], Any]:
    return lambda row: getattr(row, name)


def _text(name: str) -> Callable[[Any], str]:
    return lambda row: str(getattr(row, name))


def _value(name: str) -> Callable[[Any], float | None]:
    def read(row: Any) -> float | None:
        estimate: Estimate | None = getattr(row, name)
        return None if estimate is None else estimate.value

    return read


def _inside(name: str, read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def of_row(row: Any) -> Any:
        inner = getattr(row, name)
        return None if inner is None else read(inner)

    return of_row
