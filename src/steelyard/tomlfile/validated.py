"""Values of a TOML file as a model: each keeps the type that it has in the file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails, InitErrorDetails

Model = TypeVar("Model", bound=BaseModel)
TAKEN: Final[Mapping[str, tuple[type, ...]]] = {
    "int_type": (bool, str),
    "float_type": (bool, str),
    "bool_type": (int, float, str),
}
"""Errors of pydantic's strict mode to the types that its lax mode converts without a word."""


def validated(model: type[Model], table: Mapping[str, Any]) -> Model:
    """The model of a table. Text and `true` are no numbers; text and numbers are not `true` or `false`. Raises
    ValidationError."""
    value = model.model_validate(table)
    try:
        # As JSON: lists are tuples, and names are members, also in strict mode.
        model.model_validate_json(json.dumps(table, default=str), strict=True)
    except ValidationError as error:
        refused = [_again(one) for one in error.errors(include_url=False) if _is_of_other_type(one)]
        if refused:
            raise ValidationError.from_exception_data(model.__name__, refused) from None
    return value


def _is_of_other_type(error: ErrorDetails) -> bool:
    return isinstance(error["input"], TAKEN.get(error["type"], ()))


def _again(error: ErrorDetails) -> InitErrorDetails:
    return InitErrorDetails(type=error["type"], loc=error["loc"], input=error["input"])
