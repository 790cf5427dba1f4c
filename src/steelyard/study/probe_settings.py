"""Check of the settings of probes: the tables `[probe.NAME]` of a study."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

from steelyard.model.errors import StudyError
from steelyard.model.study import Study
from steelyard.plugins.find import Plugins
from steelyard.tomlfile.problems import Missing, from_validation, problem


def probe_problems(study: Study, plugins: Plugins) -> list[StudyError]:
    """Problems with the settings of a study's probes. Unknown names are reported by the caller."""
    errors: list[StudyError] = []
    for name in study.probe:
        if name not in study.probes:
            errors.append(problem(f"probe.{name}", Missing(), "the study does not run this probe", study.probes))
    for name in study.probes:
        try:
            module = plugins.find("probe", name)
        except StudyError:
            continue
        errors += _of_one(name, study.probe.get(name, {}), getattr(module, "Settings", None))
    return errors


def _of_one(name: str, table: Mapping[str, Any], model: type[BaseModel] | None) -> list[StudyError]:
    prefix = f"probe.{name}"
    if model is None:
        what = "no such key: this probe has no settings"
        return [problem(f"{prefix}.{key}", read, what) for key, read in table.items()]
    allowed = tuple(model.model_fields)
    open_ended = model.model_config.get("extra") == "allow"
    unknown = [] if open_ended else [key for key in table if key not in allowed]
    errors = [problem(f"{prefix}.{key}", table[key], "no such key", allowed) for key in unknown]
    try:
        model.model_validate({key: item for key, item in table.items() if key not in unknown})
    except ValidationError as error:
        errors += from_validation(error, prefix, model)
    return errors
