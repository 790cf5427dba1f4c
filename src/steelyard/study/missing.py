"""Parts that a study names and that do not exist yet: it can be planned, and run without them.

A name that resembles an existing one is a spelling mistake and refused; any other site, system, link or profile is
missing. Settings of a missing plug-in cannot be checked.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict

from steelyard.model.errors import StudyError
from steelyard.model.named_level import Level
from steelyard.model.study import Study
from steelyard.model.trial_settings import TrialSettings
from steelyard.model.value import Choice
from steelyard.plugins import find
from steelyard.plugins.find import Plugins, how_to_add, is_path
from steelyard.tomlfile.problems import problem

MAY_BE_MISSING = ("site", "system")
"""Kinds of plug-ins that a plan can do without: of a workload it must know the operations."""
LINKS = find.shipped_values("link")
PROFILES = find.shipped_values("profile")
LEAST_LIKENESS = 0.6
"""Likeness (`difflib`) to an existing name from which a name is a spelling mistake."""


class Unchecked(BaseModel):
    """Settings of a plug-in that does not exist: any keys."""

    model_config = ConfigDict(extra="allow")


@dataclass(frozen=True)
class MissingPart:
    """One part that does not exist yet."""

    kind: str
    """site, system, link or profile."""
    name: str
    field: str
    """The field that names it, such as `site.name`."""
    known: tuple[str, ...]
    """The parts of this kind that exist."""

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


def settings_model(plugins: Plugins, seam: str, name: str) -> type[BaseModel]:
    """The settings of a plug-in; of a missing one, `Unchecked`. Raises StudyError if the name is misspelt."""
    try:
        return plugins.settings_model(seam, name)
    except StudyError:
        if _is_missing_plugin(seam, name):
            return Unchecked
        raise


def _is_missing_plugin(seam: str, name: str) -> bool:
    if seam not in MAY_BE_MISSING or is_path(name):
        return False
    return _is_missing(name, find.names(seam))


def _is_missing(name: str, known: Sequence[str]) -> bool:
    return name not in known and not difflib.get_close_matches(name, known, n=1, cutoff=LEAST_LIKENESS)


def missing_parts(every: Iterable[TrialSettings]) -> list[tuple[MissingPart, ...]]:
    """The parts that do not exist yet, for each of several trials' settings."""
    known: dict[tuple[str, ...], tuple[MissingPart, ...]] = {}
    parts = []
    for settings in every:
        named = {
            "site.name": settings.site.name,
            "load_site.name": settings.load_site.name,
            "system.name": settings.system.name,
            "link.name": settings.link.name,
            "node.profile": settings.node.profile,
        }
        key = tuple(named.values())
        if key not in known:
            known[key] = tuple(_missing(named))
        parts.append(known[key])
    return parts


def _missing(fields: Mapping[str, Level]) -> Iterator[MissingPart]:
    """The missing parts that fields name, by their long or short names."""
    for field, kind in (("site.name", "site"), ("system.name", "system"), ("load_site.name", "site")):
        name = fields.get(field, fields.get(field.removesuffix(".name"), ""))
        if name and _is_missing_plugin(kind, str(name)):
            yield MissingPart(kind, str(name), field, find.names(kind))
    for field, kind, known in (("link.name", "link", LINKS), ("node.profile", "profile", PROFILES)):
        name = fields.get(field, fields.get(kind, ""))
        if name and name not in known and not is_path(str(name)):
            yield MissingPart(kind, str(name), field, known)


def without_missing(study: Study) -> Study:
    """The study without every level that names a missing part, without listed treatments that have one, and without
    the settings of a missing plug-in."""
    design = study.design
    every = [(factor, level) for factor, levels in study.factors.items() for level in levels]
    every += [item for treatment in design.treatments for item in treatment.items()]
    lacking = {item: tuple(_missing(study.fields_of(dict([item])))) for item in every}
    treatments = tuple(one for one in design.treatments if not any(lacking[item] for item in one.items()))
    factors = {
        factor: tuple(
            level
            for level in levels
            if not lacking[factor, level] and (not treatments or any(one.get(factor) == level for one in treatments))
        )
        for factor, levels in study.factors.items()
    }
    named = {
        factor: {name: level for name, level in levels.items() if next(_missing(level.sets), None) is None}
        for factor, levels in study.levels.items()
    }
    gone = {(part.kind, part.name) for parts in lacking.values() for part in parts}
    smaller = {
        "factors": factors,
        "levels": named,
        "design": design.model_copy(update={"treatments": treatments}),
        "site": _without_subtables(study.site, {name for kind, name in gone if kind == "site"}),
        "load_site": _without_subtables(study.load_site, {name for kind, name in gone if kind == "site"}),
        "system": _without_subtables(study.system, {name for kind, name in gone if kind == "system"}),
    }
    return study.model_copy(update=smaller)


def _without_subtables(choice: Choice, names: Set[str]) -> Choice:
    """A seam's table without the settings of these plug-ins."""
    kept = {key: item for key, item in choice.settings.items() if not (key in names and isinstance(item, Mapping))}
    common = {name: getattr(choice, name) for name in type(choice).model_fields if name in choice.model_fields_set}
    return type(choice).model_validate({**common, **kept})


def misspelt(settings: Mapping[str, Any]) -> Iterator[StudyError]:
    """Problems with links and profiles in complete settings whose name resembles an existing one."""
    for field, known in (("link.name", LINKS), ("node.profile", PROFILES)):
        section, _, key = field.partition(".")
        name = settings.get(section, {}).get(key) or ""
        if name and name not in known and not is_path(name) and not _is_missing(name, known):
            yield problem(field, name, f"unknown {section if key == 'name' else key}", known)


def error_of(part: MissingPart, study: Study, needed: str) -> StudyError:
    """A missing part at the place in the study that names it. `needed`: how much of the plan needs it."""
    known = f"there is only {', '.join(part.known)}" if part.known else f"there is no {part.kind} yet"
    how = f"; {how_to_add(part.kind)}" if part.kind in find.HOWTO else ""
    key = _place(part, study)
    message = f"{key}: {part} does not exist yet ({known}); {needed}"
    hint = f"the study can be planned but not run; --without-missing leaves out every level that needs it{how}"
    return StudyError(message, hint, key=key, read=part.name, allowed=part.known)


def _place(part: MissingPart, study: Study) -> str:
    """The key that names a missing part: of a named level, a factor, the listed treatments, or a fixed setting."""
    names = (part.field, part.field.removesuffix(".name"))
    for factor, levels in study.levels.items():
        for level, named in levels.items():
            for name in names:
                if named.sets.get(name) == part.name:
                    return f"levels.{factor}.{level}.{name}"
    factors = (name for name in names if part.name in study.tried.get(name, ()))
    return next((f"factors.{name}" if name in study.factors else "design.treatments" for name in factors), part.field)
