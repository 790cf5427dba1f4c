"""Node profiles that a study names: resolved into the limits and the heap of complete settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from steelyard.model.errors import StudyError
from steelyard.model.profile import Profile
from steelyard.plugins.find import Plugins
from steelyard.tomlfile.problems import from_validation
from steelyard.tomlfile.validated import validated

KIND = "profile"
FIELD = "node.profile"
HEAP = "heap_mb"


def profile_of(plugins: Plugins, name: str) -> Profile:
    """A shipped profile, or that of a file in the study's folder. Raises StudyError."""
    table = plugins.values_file(KIND, name, FIELD)
    try:
        return validated(Profile, table)
    except ValidationError as error:
        problems = from_validation(error, "", Profile)
        what = "; ".join(problem.message for problem in problems)
        raise StudyError(f"{FIELD}: profile {name}: {what}", problems[0].hint, key=FIELD, read=name) from error


def resolve(tables: dict[str, Any], plugins: Plugins, system_fields: Mapping[str, object]) -> None:
    """Fill in the tables of a treatment from a profile, in place. `system_fields`:
    settings that the system has. Raises StudyError; a profile that does not exist is left to `study.missing`."""
    name = tables["node"].get("profile")
    if not isinstance(name, str) or not name or not plugins.has_values(KIND, name):
        return
    profile = profile_of(plugins, name)
    for field, value in profile.limits.items():
        if tables["node"].get(field) is None:
            tables["node"][field] = value
    if profile.heap_mb is not None and HEAP in system_fields:
        tables["system"].setdefault(HEAP, profile.heap_mb)
