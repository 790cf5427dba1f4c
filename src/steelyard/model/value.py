"""Base classes of frozen values that are read from or written to a file: of all, and of the choice of a plug-in."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from steelyard.field_docs import described


class Value(BaseModel):
    """Frozen value that refuses unknown keys and documents its fields by their docstrings, see `field_docs`."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """JSON schema whose properties have the fields' docstrings."""
        of_class = handler(schema)
        described(handler.resolve_ref_schema(of_class), cls)
        return of_class


class Choice(Value):
    """A plug-in by name, and its settings."""

    model_config = ConfigDict(extra="allow")

    name: str
    """Module name, entry point, or path of the plug-in."""

    @property
    def settings(self) -> dict[str, Any]:
        """All keys except those of the section itself."""
        return dict(self.__pydantic_extra__ or {})


def later(default: Any, **constraints: Any) -> Any:
    """Field that is not written where it has its default: left out of an order, or added after stores had been made, so
    that the ids of trials that do not use it, which hash their settings, stay as they are."""
    return Field(default=default, exclude_if=lambda value: value == default, **constraints)
