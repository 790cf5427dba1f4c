"""Lookup of fields in nested pydantic models by dotted name, as in a TOML file."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Mapping, Sequence

from pydantic import BaseModel
from pydantic.fields import FieldInfo


def lookup(model: type[BaseModel], parts: Sequence[str]) -> FieldInfo | None:
    """The field at a path below a model; a key of a free table (`yaml.concurrent_reads`) gives the table's field."""
    field = model.model_fields.get(parts[0])
    if field is None or len(parts) == 1:
        return field
    inner = [part for part in (typing.get_args(field.annotation) or (field.annotation,)) if part is not types.NoneType]
    for annotation in (field.annotation, *inner):
        if inspect.isclass(annotation) and issubclass(annotation, BaseModel):
            return lookup(annotation, parts[1:])
        origin = typing.get_origin(annotation) or annotation
        if inspect.isclass(origin) and issubclass(origin, Mapping):
            of_value = typing.get_args(annotation)[-1:]
            if len(parts) > 2 and of_value and inspect.isclass(of_value[0]) and issubclass(of_value[0], BaseModel):
                return lookup(of_value[0], parts[2:])
            return field
    return None
