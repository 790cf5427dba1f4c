"""Generator of `schema/order.schema.json`: the models of `steelyard.wire.order` with the distributions of workloads."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from steelyard.wire.order import Order
from steelyard.workload._distributions import DISTRIBUTIONS, Distribution, Parameter

TAGS = ("format", "protocol", "kind")
"""Fields that an order must have although they have one value only."""


def schema() -> dict[str, Any]:
    """The schema as JSON data."""
    document = Order.model_json_schema()
    document["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    document["title"] = "An order: what the conductor asks of steelyard-agent"
    for part in _parts(document):
        if part.get("type") == "distribution":
            del part["type"]
            part["$ref"] = "#/$defs/distribution"
        tags = [name for name in TAGS if name in part.get("properties", {})]
        if tags:
            part["required"] = sorted({*tags, *part.get("required", ())})
    document["$defs"]["distribution"] = distribution()
    return document


def _parts(part: Any) -> Iterator[dict[str, Any]]:
    """Every object within a schema, itself included."""
    if isinstance(part, dict):
        yield part
    for inner in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
        yield from _parts(inner)


def text() -> str:
    """The schema as the text of its file."""
    return json.dumps(schema(), indent=1, sort_keys=True, ensure_ascii=False) + "\n"


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
