"""JSON schema of a study file, for editors: the models with the settings of shipped plug-ins."""

from __future__ import annotations

import json
from typing import Any

from pydantic import BaseModel

from steelyard.model.client import Client
from steelyard.model.study import Study
from steelyard.plugins import find
from steelyard.plugins.find import Plugins
from steelyard.study.fields import OF_CONTROLS, SEAMS, SECTIONS

REF = "#/$defs/"
PATH = "Path of a plug-in's Python file, or of a workload's TOML file."
LEVEL: dict[str, Any] = {"type": ["string", "integer", "number", "boolean"]}

OF_ONE_PLUGIN: dict[str, Any] = {
    "type": "object",
    "description": "Settings of one plug-in by its name, where the study names several.",
}


def schema() -> dict[str, Any]:
    """The schema as JSON data."""
    document = Study.model_json_schema(mode="validation", ref_template=REF + "{model}")
    document["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    document["title"] = "Steelyard study"
    definitions = document["$defs"]
    for section, seam in SEAMS.items():
        names = find.names(seam)
        for name in names:
            definitions[f"{section}:{name}"] = _plugin(section, name, definitions)
        choices = [{"$ref": f"{REF}{section}:{name}"} for name in names] + [_by_path(SECTIONS[section])]
        choices += [_of_several(SECTIONS[section])] if section in OF_CONTROLS else []
        document["properties"][section] = {"anyOf": choices} | _default(document["properties"][section])
    for unused in ("Choice", "SiteChoice", "LoadSiteChoice", "PolicyChoice", "DisruptionChoice"):
        definitions.pop(unused, None)
    document["properties"]["probe"] |= _of_probes(definitions)
    definitions["Levels"] = _nested({"type": "array", "items": LEVEL, "minItems": 1}, "Levels")
    definitions["Treatment"] = _nested(LEVEL, "Treatment")
    definitions["Treatments"] = _nested(
        {"anyOf": [LEVEL, {"type": "array", "items": LEVEL, "minItems": 1}]}, "Treatments"
    )
    definitions["NamedLevel"] |= {"additionalProperties": {"$ref": f"{REF}Treatment"}}
    definitions["Client"] = Client.model_json_schema()
    document["properties"]["client"] = {"$ref": f"{REF}Client"}
    table = {"type": "object", "additionalProperties": {"$ref": f"{REF}Levels"}}
    document["properties"]["factors"] |= table
    design = definitions["Design"]["properties"]
    treatment = {"type": "object", "additionalProperties": {"$ref": f"{REF}Treatment"}}
    design["treatments"]["items"] = {"type": "object", "additionalProperties": {"$ref": f"{REF}Treatments"}}
    design["base"] |= treatment
    design["control"] = {key: item for key, item in design["control"].items() if key not in ("anyOf", "default")}
    design["control"] |= treatment
    return document


def _of_probes(definitions: dict[str, Any]) -> dict[str, Any]:
    """Settings of each shipped probe that takes any, by its name; those of others are not known here."""
    shipped = {}
    for name, model in probe_settings().items():
        settings = model.model_json_schema(mode="validation", ref_template=REF + "{model}")
        definitions.update(settings.pop("$defs", {}))
        shipped[name] = {**settings, "title": f"probe {name}"}
    return {"type": "object", "properties": shipped, "additionalProperties": {"type": "object"}}


def probe_settings() -> dict[str, type[BaseModel]]:
    """The settings of each shipped probe that takes any."""
    models = {name: getattr(Plugins().find("probe", name), "Settings", None) for name in find.names("probe")}
    return {name: model for name, model in models.items() if model is not None}


def _default(section: dict[str, Any]) -> dict[str, Any]:
    return {"default": section["default"]} if "default" in section else {}


def _nested(leaf: dict[str, Any], name: str) -> dict[str, Any]:
    """A leaf, or a table of the same: a dotted key in TOML is a table within a table."""
    return {"anyOf": [leaf, {"type": "object", "additionalProperties": {"$ref": f"{REF}{name}"}}]}


def _own(model: type[BaseModel]) -> dict[str, Any]:
    return dict(model.model_json_schema(ref_template=REF + "{model}")["properties"])


def _plugin(section: str, name: str, definitions: dict[str, Any]) -> dict[str, Any]:
    model = Plugins().settings_model(SEAMS[section], name)
    settings = model.model_json_schema(mode="validation", ref_template=REF + "{model}")
    definitions.update(settings.get("$defs", {}))
    own = _own(SECTIONS[section])
    own["name"] = {"const": name, "description": own["name"].get("description", "")}
    return {
        "type": "object",
        "title": f"{section} {name}",
        "description": settings.get("description", ""),
        "properties": own | settings.get("properties", {}),
        "required": ["name", *settings.get("required", [])],
        "additionalProperties": settings.get("additionalProperties") or OF_ONE_PLUGIN,
    }


def _by_path(model: type[BaseModel]) -> dict[str, Any]:
    """Schema of a user's own plug-in, whose settings are not known here."""
    own = _own(model)
    own["name"] = {"type": "string", "pattern": r"(\.py$|\.toml$|/)", "description": PATH}
    return {"type": "object", "title": "a plug-in's path", "properties": own, "required": ["name"]}


def _of_several(model: type[BaseModel]) -> dict[str, Any]:
    """Schema of a section without a name: a factor names its plug-ins, which share these settings."""
    own = {key: item for key, item in _own(model).items() if key != "name"}
    return {"type": "object", "title": "of several plug-ins", "properties": own, "not": {"required": ["name"]}}


def text() -> str:
    """The schema as the text of its file."""
    return json.dumps(schema(), indent=1, sort_keys=True, ensure_ascii=False) + "\n"
