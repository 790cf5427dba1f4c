"""Keys found within a section that belong at the top of a study file."""

from __future__ import annotations

from pydantic import BaseModel

from steelyard.model.errors import StudyError
from steelyard.model.study import Study
from steelyard.tomlfile.problems import problem


def of_its_own(error: StudyError) -> StudyError:
    """The same error, or, for an unknown key of a section that is a section or a key at the top, one that says so
    instead of the most similar key. Pure."""
    section, _, name = error.key.partition(".")
    field = Study.model_fields.get(name)
    if not name or section in ("factors", "levels") or field is None or ": no such key" not in error.message:
        return error
    table = isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel)
    place = f"[{name}] is a separate section" if table else f"{name} is a top-level key, above the first section"
    return problem(error.key, error.read, f"no such key; {place}", hint=error.hint)
