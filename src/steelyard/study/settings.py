"""Complete settings of a treatment: the study's tables with the treatment's levels and all plug-in defaults.

A trial's id hashes them (`judging.settings_hash`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

from steelyard.model.errors import StudyError
from steelyard.model.secret import literals
from steelyard.model.study import SAME_FACTOR, Level, Study
from steelyard.plugin import Plugins, how_to_add
from steelyard.study.fields import SEAMS, SECTIONS, dotted, hard, names_in_use, put
from steelyard.tomlfile.problems import Missing, from_validation, problem

IN_PLAIN_SIGHT = (
    "a secret must not stand in a study: it would be copied into the store; write 'env:NAME' and set that variable "
    "where the study runs, or 'file:/path' of a file outside of the store"
)


def settings_of(study: Study, treatment: Mapping[str, Level], plugins: Plugins | None = None) -> dict[str, Any]:
    """Complete settings under a treatment: site, system, workload, load, data. Raises StudyError if not valid."""
    settings, errors = complete(tables_of(study), treatment, plugins or Plugins())
    if errors:
        raise errors[0]
    return settings


def tables_of(study: Study) -> dict[str, dict[str, Any]]:
    """The tables of a study that treatments change."""
    return {section: getattr(study, section).model_dump(mode="json") for section in SECTIONS}


def complete(
    tables: Mapping[str, Mapping[str, Any]], treatment: Mapping[str, Level], plugins: Plugins
) -> tuple[dict[str, Any], list[StudyError]]:
    """Apply a treatment to a study's tables and validate them; returns the settings and their problems."""
    changed: dict[str, Any] = {section: dict(tables.get(section, {})) for section in SECTIONS}
    for factor, level in treatment.items():
        put(changed, dotted(factor), level)
    settings: dict[str, Any] = {}
    errors: list[StudyError] = [problem(key, Missing(), IN_PLAIN_SIGHT) for key in literals(changed)]
    for section, model in SECTIONS.items():
        table = changed[section]
        own = {key: item for key, item in table.items() if key in model.model_fields or section not in SEAMS}
        settings[section] = _validated(own, section, model, errors)
        if section in SEAMS and isinstance(table.get("name"), str):
            rest = {key: item for key, item in table.items() if key not in own}
            settings[section] |= _plugin_settings(plugins, section, table["name"], rest, errors)
    return settings, errors


def _validated(
    table: Mapping[str, Any], prefix: str, model: type[BaseModel], errors: list[StudyError], also: tuple[str, ...] = ()
) -> dict[str, Any]:
    try:
        return model.model_validate(table).model_dump(mode="json")
    except ValidationError as error:
        errors += from_validation(error, prefix, model, also)
        return {}


def _plugin_settings(
    plugins: Plugins, seam: str, name: str, table: Mapping[str, Any], errors: list[StudyError]
) -> dict[str, Any]:
    own = tuple(SECTIONS[seam].model_fields)
    try:
        model = plugins.settings_model(seam, name)
    except StudyError as error:
        errors.append(
            problem(f"{seam}.name", name, error.message, error.allowed, hint=how_to_add(seam))
            if error.allowed
            else StudyError(f"{error.message}; {error.hint}", key=f"{seam}.name", read=name)
        )
        return {}
    unknown = [] if model.model_config.get("extra") == "allow" else [key for key in table if key not in _keys(model)]
    errors += [problem(f"{seam}.{key}", table[key], "no such key", (*own, *_keys(model))) for key in unknown]
    known = {key: item for key, item in table.items() if key not in unknown}
    return _validated(known, seam, model, errors, own)


def _keys(model: type[BaseModel]) -> tuple[str, ...]:
    return tuple(model.model_fields)


def is_hard(study: Study, factor: str, plugins: Plugins | None = None) -> bool:
    """Whether a change of the factor needs a new cluster (see `fields.hard`). The label in a study of identical systems
    does, so that they are compared like any two clusters."""
    if study.design.kind == "same" and factor == SAME_FACTOR:
        return True
    levels = [
        *study.design.treatments,
        *({factor_: level} for factor_, all_ in study.factors.items() for level in all_),
    ]
    names = {seam: names_in_use(seam, getattr(study, seam).name, levels) for seam in SEAMS}
    return hard(factor, names, plugins or Plugins())


def hard_settings(settings: Mapping[str, Any], hard_factors: Iterable[str], plugins: Plugins) -> dict[str, Any]:
    """The settings that are fixed at a start: hard fields of site, system and data, and hard factors elsewhere."""
    fixed: dict[str, Any] = {}
    for section in ("site", "system", "data"):
        names = {section: (settings[section].get("name", ""),)}
        table = settings[section]
        fixed[section] = {key: item for key, item in table.items() if hard(f"{section}.{key}", names, plugins)}
    for factor in hard_factors:
        if factor == SAME_FACTOR:
            continue
        section, _, rest = dotted(factor).partition(".")
        if section not in fixed or rest.split(".")[0] not in fixed[section]:
            fixed[dotted(factor)] = settings[section].get(rest)
    return fixed
