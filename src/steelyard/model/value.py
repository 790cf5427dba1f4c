"""Base class of all frozen values that are read from or written to a file."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field

MOST_S: Final = 1e11
"""Of a time since the epoch: the year 5138. Calendars end at 9999."""
Moment = Annotated[float, Field(ge=0, le=MOST_S)]
"""Seconds since the epoch."""


class Value(BaseModel):
    """Frozen value that refuses unknown keys and documents its fields by their docstrings."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False)
