"""Base class of all frozen values that are read from or written to a file."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class Value(BaseModel):
    """Frozen value that refuses unknown keys and documents its fields by their docstrings."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False)


def later(default: Any, **constraints: Any) -> Any:
    """Field that was added after stores had been made: not written where it has its default, so that the ids of trials
    that do not use it, which hash their settings, stay as they are."""
    return Field(default=default, exclude_if=lambda value: value == default, **constraints)
