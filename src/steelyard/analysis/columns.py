"""What a column of a table is: its name, its meaning with unit, how to read it from a result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import polars as pl

OF_UNIT = "in the unit of column `unit`"
ESTIMATE = "estimate"
"""The type of a column that becomes four: value, both ends of its interval, and how they were computed."""


class Column(NamedTuple):
    """`dtype` estimate: three columns, value and both ends of its interval, and a fourth that names the method."""

    name: str
    about: str
    dtype: Any
    read: Callable[[Any], Any] | None = None


OF_RESPONSE = (
    Column("response", "response, as named in the store", pl.String),
    Column("unit", "unit of the response", pl.String),
)
