"""Reader of study files: TOML to a frozen study, or one error with all problems in the file."""

from __future__ import annotations

import copy
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from steelyard import plugin
from steelyard.judging.settings_hash import canonical
from steelyard.model.errors import StudyError
from steelyard.model.study import Level, Study
from steelyard.plugin import Plugins, how_to_add
from steelyard.study.fields import SEAMS, SECTIONS, allowed_factors, dotted, exists, names_in_use, short
from steelyard.study.named_responses import response_problems
from steelyard.study.settings import complete, tables_of
from steelyard.study.treatments import control_of, design_problems, treatments_of
from steelyard.tomlfile.parse import parsed, text_of
from steelyard.tomlfile.positions import key_lines, line_of
from steelyard.tomlfile.problems import Missing, from_validation, placed, problem, raise_all

LEAST_SCALED = 100
"""Lower limit of records and operations when scaling down."""
SCALED = ("workload.records", "load.operations")


def read(path: Path, *, scale: float = 1.0, plugins: Plugins | None = None) -> Study:
    """The study in a file. `scale` multiplies records and operations; `plugins` (default: those beside the file)
    resolves names of plug-ins. Raises StudyError; see its `errors`."""
    text = text_of(path, "study file")
    return read_text(text, str(path), scale=scale, plugins=plugins or Plugins(path.parent))


def read_text(text: str, path: str = "", *, scale: float = 1.0, plugins: Plugins | None = None) -> Study:
    """The study in a text; `path` is only for error messages. Raises StudyError; see its `errors`."""
    plugins = plugins or Plugins()
    raw = parsed(text, path)
    lines = key_lines(text)

    def find_line(key: str) -> int:
        return line_of(lines, _spelt(key, lines))

    errors = _normalise(raw)
    raise_all(errors, path, find_line)
    _scale(raw, scale, plugins)
    study: Study | None = None
    try:
        study = Study.model_validate(raw)
    except ValidationError as error:
        errors += from_validation(error, "", Study)
    tables = {section: raw[section] for section in SECTIONS if isinstance(raw.get(section), dict)}
    if study is not None:
        tables = tables_of(study)
    _, problems = complete(tables, {}, plugins)
    errors += [error for error in problems if error.key.partition(".")[0] in tables]
    errors += _unknown_plugins(raw)
    if study is not None:
        errors += design_problems(study, plugins)
        errors += response_problems(study)
        if not any(error.key.endswith(".name") for error in errors):
            errors += _unknown_factors(study, plugins)
    raise_all(errors, path, find_line)
    assert study is not None
    raise_all(_treatment_problems(study, plugins), path, find_line)
    return study


def _spelt(key: str, lines: Mapping[str, int]) -> str:
    """The key as spelt in the file: factors may be written in short or long form."""
    if key in lines:
        return key
    table = re.match(r"(factors|design\.(?:base|control|treatments\.\d+))\.(.+)", key)
    if table is None:
        return key
    return next((long for name in (dotted(table[2]), short(table[2])) if (long := f"{table[1]}.{name}") in lines), key)


def _normalise(raw: dict[str, Any]) -> list[StudyError]:
    """Flatten tables of levels to short factor names, in place; returns problems with their shape."""
    errors: list[StudyError] = []
    if "factors" in raw:
        raw["factors"] = _flat(raw["factors"], "factors", errors, many=True)
    design = raw.get("design")
    if not isinstance(design, dict):
        return errors
    for name in ("base", "control"):
        if name in design:
            design[name] = _flat(design[name], f"design.{name}", errors)
    if isinstance(design.get("treatments"), list):
        design["treatments"] = [
            _flat(treatment, f"design.treatments.{index}", errors)
            for index, treatment in enumerate(design["treatments"])
        ]
    return errors


def _flat(table: Any, key: str, errors: list[StudyError], *, many: bool = False) -> dict[str, Any]:
    """Dotted names in a table of levels (`many`: in a table of lists of levels)."""
    if not isinstance(table, dict):
        errors.append(problem(key, table, "must be a table"))
        return {}
    flat: dict[str, Any] = {}
    pending = [(str(name), value) for name, value in reversed(table.items())]
    while pending:
        name, value = pending.pop()
        if isinstance(value, dict):
            pending += [(f"{name}.{inner}", item) for inner, item in reversed(value.items())]
        elif short(name) in flat:
            errors.append(problem(f"{key}.{name}", value, f"{short(name)} is there already, by its other name"))
        elif many and not (isinstance(value, list) and all(_is_level(level) for level in value)):
            errors.append(problem(f"{key}.{name}", value, "must be a list of levels: text, numbers, true or false"))
        elif not many and not _is_level(value):
            errors.append(problem(f"{key}.{name}", value, "must be one level: text, a number, true or false"))
        else:
            flat[short(name)] = value
    return flat


def _is_level(value: object) -> bool:
    return isinstance(value, (str, int, bool)) or (isinstance(value, float) and math.isfinite(value))


def _scale(raw: dict[str, Any], scale: float, plugins: Plugins) -> None:
    """Multiply all records and operations, in place, and mark the study's name."""
    if not (math.isfinite(scale) and scale > 0):
        raise StudyError(f"scale {scale}: must be more than 0", key="scale", read=scale)
    if scale == 1.0:
        return

    def scaled(value: Any) -> Any:
        if not isinstance(value, int) or isinstance(value, bool):
            return value
        least = min(value, LEAST_SCALED)
        return max(least, round(value * scale))

    for field in SCALED:
        section, _, name = field.partition(".")
        table = raw.get(section)
        if isinstance(table, dict):
            if field == "workload.records":
                _write_default(table, section, name, plugins)
            if name in table:
                table[name] = scaled(table[name])
        if field in raw.get("factors", {}):
            raw["factors"][field] = [scaled(level) for level in raw["factors"][field]]
        design = raw.get("design")
        design = design if isinstance(design, dict) else {}
        treatments = design.get("treatments")
        treatments = treatments if isinstance(treatments, list) else []
        for levels in (design.get("base", {}), design.get("control", {}), *treatments):
            if field in levels:
                levels[field] = scaled(levels[field])
    about = raw.get("study")
    if isinstance(about, dict) and isinstance(about.get("name"), str):
        about["name"] += f"-scale-{scale:g}"


def _write_default(table: dict[str, Any], seam: str, name: str, plugins: Plugins) -> None:
    """Write a plug-in's default into the study's table if the study omits it."""
    if name in table or not isinstance(table.get("name"), str):
        return
    try:
        field = plugins.settings_model(seam, table["name"]).model_fields.get(name)
    except StudyError:
        return  # reported with the other errors when the study is checked
    if field is not None and not field.is_required():
        table[name] = copy.deepcopy(field.get_default(call_default_factory=True))


def _unknown_plugins(raw: Mapping[str, Any]) -> list[StudyError]:
    """Engines and probes that cannot be found."""
    load = raw.get("load")
    asked = [("load.engine", load.get("engine", "agent") if isinstance(load, dict) else None)]
    probes = raw.get("probes")
    if isinstance(probes, list):
        asked += [(f"probes.{index}", name) for index, name in enumerate(probes)]
    errors = []
    for key, name in asked:
        seam = "engine" if key == "load.engine" else "probe"
        if isinstance(name, str) and not plugin.is_path(name) and name not in (known := plugin.names(seam)):
            errors.append(problem(key, name, f"there is no such {seam}", known))
    return errors


def _names(study: Study) -> dict[str, tuple[str, ...]]:
    levels: list[Mapping[str, Level]] = [*study.design.treatments]
    levels += [{factor: level} for factor, all_levels in study.factors.items() for level in all_levels]
    return {seam: names_in_use(seam, getattr(study, seam).name, levels) for seam in SEAMS}


def _unknown_factors(study: Study, plugins: Plugins) -> list[StudyError]:
    """Factors that are not a field of the study, and levels that are not a plug-in."""
    names = _names(study)
    errors = []
    keys = {factor: f"factors.{factor}" for factor in study.factors}
    for index, treatment in enumerate(study.design.treatments):
        for factor in treatment:
            keys.setdefault(factor, f"design.treatments.{index}.{factor}")
    for seam in SEAMS:
        for name in names[seam]:
            try:
                plugins.settings_model(seam, name)
            except StudyError as error:
                key = keys.get(short(f"{seam}.name"), f"{seam}.name")
                errors.append(problem(key, name, error.message, error.allowed, hint=how_to_add(seam)))
    if errors:
        return errors
    for factor, key in keys.items():
        if not exists(factor, names, plugins):
            section = dotted(factor).partition(".")[0]
            sections = [section] if section in SECTIONS else list(SECTIONS)
            allowed = [field for each in sections for field in allowed_factors(each, names.get(each, ()), plugins)]
            errors.append(problem(key, Missing(), "no such key: a factor is a field of the study", allowed))
    return errors


def _treatment_problems(study: Study, plugins: Plugins) -> list[StudyError]:
    """Problems with the treatments: their complete settings must be valid and distinct."""
    errors: list[StudyError] = []
    seen: dict[str, Mapping[str, Level]] = {}
    tables = tables_of(study)
    treatments = treatments_of(study, plugins)
    control = control_of(study)
    extra = [control] if control is not None and control not in treatments else []
    for index, treatment in enumerate([*treatments, *extra]):
        settings, problems = complete(tables, treatment, plugins)
        listed = f"design.treatments.{index}" if study.design.kind == "listed" else "factors"
        errors += [_blamed(error, treatment, listed) for error in problems]
        text = canonical(settings)
        if text in seen and not problems and study.design.kind != "same":
            what = f"treatments {_in_words(seen[text])} and {_in_words(treatment)} have the same complete settings"
            errors.append(problem(listed, Missing(), what))
        seen[text] = treatment
    return errors


def _in_words(treatment: Mapping[str, Level]) -> str:
    return "{" + ", ".join(f"{factor} = {level}" for factor, level in treatment.items()) + "}"


def _blamed(error: StudyError, treatment: Mapping[str, Level], table: str) -> StudyError:
    """The error with the key of the factor that set the field, otherwise with the treatment."""
    factor = next((name for name in treatment if error.key and f"{dotted(name)}.".startswith(f"{error.key}.")), None)
    key = f"{table}.{factor}" if factor else table
    message = f"{table}: {error.message}" if factor else f"{table}: with {_in_words(treatment)}: {error.message}"
    return StudyError(message, error.hint, key=key, read=error.read, allowed=error.allowed)


def located(errors: Sequence[StudyError], path: Path) -> tuple[StudyError, ...]:
    """Errors about a study, each with its line in the study file."""
    lines = key_lines(text_of(path, "study file"))

    def find_line(key: str) -> int:
        factor = _spelt(f"factors.{key}", lines)
        return line_of(lines, factor if factor in lines else _spelt(key, lines))

    return tuple(placed(error, str(path), find_line(error.key)) for error in errors)
