"""Settings given as text, as the command line has them: the workload or the model of which they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

from steelyard.model.errors import StudyError
from steelyard.plugins import find
from steelyard.tomlfile.problems import from_validation
from steelyard.wire.order import OTHER_ENGINES
from steelyard.workload.base import Workload


def workload_of(name: str, settings: Mapping[str, str]) -> Workload:
    """A workload by the path of its file or by name, with settings as the command line has them. Raises StudyError."""
    module = find.find("workload", name)
    model: type[BaseModel] = module.Settings
    workload: Workload = module.create(settings_of(model, settings, "workload"))
    return workload


def protocols_of(workload: Workload) -> tuple[str, ...]:
    """The protocols of a workload that the agent speaks. Raises StudyError if there are none."""
    able = tuple(name for name in workload.protocols if name not in OTHER_ENGINES)
    if not able:
        lacks, hint = OTHER_ENGINES[workload.protocols[0]]
        raise StudyError(f"workload {workload.name} needs a study: the agent {lacks}", f"in the study, {hint}")
    return able


def settings_of(model: type[BaseModel], settings: Mapping[str, Any], prefix: str) -> BaseModel:
    """Settings, given as text. Raises StudyError."""
    raw: dict[str, Any] = {}
    for name, value in settings.items():
        outer, _, inner = name.partition(".")
        if inner and isinstance(raw.setdefault(outer, {}), dict):
            raw[outer][inner] = value
        elif inner or outer in raw:
            raise StudyError(f"--set {outer} and a part of it, {outer}.NAME: give only one", read=name)
        else:
            raw[outer] = value
    try:
        return model.model_validate(raw)
    except ValidationError as error:
        problems = from_validation(error, prefix, model)
        raise StudyError("\n".join(one.message for one in problems), errors=problems) from error
