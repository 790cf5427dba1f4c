"""Generated part of `schema/order.schema.json`: distributions and choosers of keys. The rest is written by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from steelyard.workload._distributions import CHOOSERS, DISTRIBUTIONS, Distribution, Parameter

SCHEMA: Final = Path(__file__).resolve().parents[2] / "schema" / "order.schema.json"


def text() -> str:
    """The repository's schema with its definitions of distributions and choosers brought up to date."""
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    schema["$defs"] |= {"distribution": distribution(), "chooser": {"enum": list(CHOOSERS)}}
    return json.dumps(schema, indent=2) + "\n"


def distribution() -> dict[str, Any]:
    """The JSON schema of a distribution."""
    fixed = _object("fixed", {"value": {"type": "number"}}, ["value"])
    inverted = _object("inverted", {"of": {"$ref": "#/$defs/distribution"}}, ["of"])
    return {"oneOf": [fixed, *(_bounded(name, each) for name, each in DISTRIBUTIONS.items()), inverted]}


def _bounded(name: str, defined: Distribution) -> dict[str, Any]:
    bound = {"type": "number" if defined.real else "integer"}
    fields = {"min": bound, "max": bound, **{each.name: _field(each) for each in defined.parameters}}
    return _object(name, fields, ["min", "max", *(each.name for each in defined.parameters if each.required)])


def _field(parameter: Parameter) -> dict[str, Any]:
    kind = "integer" if parameter.kind is int else "number"
    least = {"minimum": 1} if parameter.kind is int else {}
    return {"type": [kind, "null"] if parameter.nullable else kind, **least}


def _object(name: str, fields: dict[str, Any], required: list[str]) -> dict[str, Any]:
    return {
        "type": "object",
        "additionalProperties": False,
        "required": ["name", *required],
        "properties": {"name": {"const": name}, **fields},
    }
