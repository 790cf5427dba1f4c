"""Dynamic enumeration type: a `Literal` whose choices are looked up when a value is read, not fixed in code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticKnownError, core_schema


@dataclass(frozen=True)
class OneOf:
    """Annotation for a field of type `str`; errors and JSON schema are the same as for a `Literal`."""

    names: Callable[[], Sequence[str]]
    """Returns the choices; called when a value is read."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Core schema of the type, followed by the check."""
        return core_schema.no_info_after_validator_function(self._checked, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """JSON schema with the choices as an enumeration."""
        return {"enum": list(self.names()), **handler(schema)}

    def _checked(self, name: str) -> str:
        names = self.names()
        if name not in names:
            quoted = [repr(one) for one in names]
            expected = " or ".join([", ".join(quoted[:-1]), quoted[-1]] if len(quoted) > 1 else quoted)
            raise PydanticKnownError("literal_error", {"expected": expected})
        return name
