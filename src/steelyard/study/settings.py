"""Complete settings of a treatment: the study's tables with the treatment's levels and every plug-in default put in.

They are what a trial's id hashes, so their canonical text must depend on nothing but their meaning.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

from steelyard.model import former_words
from steelyard.model.errors import StudyError
from steelyard.model.secret import literals
from steelyard.model.study import SAME_FACTOR, Level, Study
from steelyard.study.fields import SEAMS, SECTIONS, dotted, hard, names_in_use, put, settings_model
from steelyard.study.problems import Missing, from_validation, problem

HASH_DIGITS = 12
IN_PLAIN_SIGHT = (
    "a secret must not stand in a study: it would be copied into the store; write 'env:NAME' and set that variable "
    "where the study runs, or 'file:/path' of a file outside of the store"
)


def settings_of(study: Study, treatment: Mapping[str, Level]) -> dict[str, Any]:
    """Complete settings under a treatment: site, system, workload, load, data. Raises StudyError if not valid."""
    settings, errors = complete(tables_of(study), treatment)
    if errors:
        raise errors[0]
    return settings


def tables_of(study: Study) -> dict[str, dict[str, Any]]:
    """The tables of a study that treatments change."""
    return {section: getattr(study, section).model_dump(mode="json") for section in SECTIONS}


def complete(
    tables: Mapping[str, Mapping[str, Any]], treatment: Mapping[str, Level]
) -> tuple[dict[str, Any], list[StudyError]]:
    """Put a treatment into the tables of a study and validate them: the settings, and what is wrong with them."""
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
            settings[section] |= _plugin_settings(section, table["name"], rest, errors)
    return settings, errors


def _validated(
    table: Mapping[str, Any], prefix: str, model: type[BaseModel], errors: list[StudyError], also: tuple[str, ...] = ()
) -> dict[str, Any]:
    try:
        return model.model_validate(table).model_dump(mode="json")
    except ValidationError as error:
        errors += from_validation(error, prefix, model, also)
        return {}


def _plugin_settings(seam: str, name: str, table: Mapping[str, Any], errors: list[StudyError]) -> dict[str, Any]:
    own = tuple(SECTIONS[seam].model_fields)
    try:
        model = settings_model(seam, name)
    except StudyError as error:
        errors.append(
            problem(f"{seam}.name", name, error.message, error.allowed)
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


def canonical(settings: Mapping[str, Any]) -> str:
    """The one text of settings: JSON with sorted keys and without spaces."""
    return json.dumps(settings, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def settings_hash(settings: Mapping[str, Any]) -> str:
    """First 12 hexadecimal digits of the SHA-256 of the canonical text, in the words in which settings were first
    written."""
    text = canonical(former_words.settings_as_first_written(settings))
    return hashlib.sha256(text.encode()).hexdigest()[:HASH_DIGITS]


def is_hard(study: Study, factor: str) -> bool:
    """Whether the factor needs a new cluster when it changes (see `fields.hard`). The label of identical systems does,
    so that they are compared as any two clusters are."""
    if study.design.kind == "same" and factor == SAME_FACTOR:
        return True
    levels = [
        *study.design.treatments,
        *({factor_: level} for factor_, all_ in study.factors.items() for level in all_),
    ]
    names = {seam: names_in_use(seam, getattr(study, seam).name, levels) for seam in SEAMS}
    return hard(factor, names)


def hard_settings(settings: Mapping[str, Any], hard_factors: Iterable[str]) -> dict[str, Any]:
    """What a start fixes of complete settings: the hard fields of site, system and data, and hard factors elsewhere."""
    fixed: dict[str, Any] = {}
    for section in ("site", "system", "data"):
        names = {section: (settings[section].get("name", ""),)}
        table = settings[section]
        fixed[section] = {key: item for key, item in table.items() if hard(f"{section}.{key}", names)}
    for factor in hard_factors:
        if factor == SAME_FACTOR:
            continue
        section, _, rest = dotted(factor).partition(".")
        if section not in fixed or rest.split(".")[0] not in fixed[section]:
            fixed[dotted(factor)] = settings[section].get(rest)
    return fixed
