"""Reader of study files: TOML to a frozen study, or one error with all problems in the file."""

from __future__ import annotations

import copy
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from steelyard.judging import load_response
from steelyard.judging.settings_hash import canonical
from steelyard.model.client import SECTION, as_client
from steelyard.model.errors import StudyError
from steelyard.model.named_level import Level, level_key
from steelyard.model.study import ALIASES, Study
from steelyard.plugins import find
from steelyard.plugins.find import Plugins, how_to_add
from steelyard.study.fields import OF_CONTROLS, SEAMS, SECTIONS, allowed_factors, dotted, exists, names_of, short
from steelyard.study.level_tables import as_written, cross, normalise
from steelyard.study.levels import contradictions, fields_by_key, level_problems, named_fields, places_of
from steelyard.study.missing import settings_model, without_missing
from steelyard.study.named_responses import response_problems
from steelyard.study.settings import complete, subtables_of, tables_of
from steelyard.study.treatments import control_of, design_problems, treatments_of
from steelyard.tomlfile.parse import parsed, text_of
from steelyard.tomlfile.positions import key_lines, line_of
from steelyard.tomlfile.problems import Missing, from_validation, placed, problem, raise_all
from steelyard.tomlfile.validated import validated

LEAST_SCALED = 100
"""Lower limit of records and operations when scaling down."""
ENDS = frozenset({"duration_s", "operations", "phases", "trace"})
"""Fields of a load that say when it ends."""
SCALED = ("workload.records", "load.operations")


def read(path: Path, *, scale: float = 1.0, plugins: Plugins | None = None, leave_out_missing: bool = False) -> Study:
    """The study in a file. `scale` multiplies records and operations; `plugins` (default: those in the file's folder)
    resolves names of plug-ins; `leave_out_missing`: without levels that need a part that does not exist yet. Raises
    StudyError; see its `errors`."""
    text = text_of(path, "study file")
    plugins = plugins or Plugins(path.parent)
    return read_text(text, str(path), scale=scale, plugins=plugins, leave_out_missing=leave_out_missing)


def read_text(
    text: str,
    path: str = "",
    *,
    scale: float = 1.0,
    plugins: Plugins | None = None,
    leave_out_missing: bool = False,
) -> Study:
    """The study in a text; `path` is only for error messages. Raises StudyError; see its `errors`."""
    plugins = plugins or Plugins()
    raw = parsed(text, path)
    lines = key_lines(text)

    def find_line(key: str) -> int:
        return line_of(lines, _spelt(key, lines))

    errors = normalise(raw)
    raise_all(errors, path, find_line)
    origins = cross(raw, errors)
    raise_all(errors, path, find_line)

    def refuse(problems: Sequence[StudyError]) -> None:
        written = [as_written(error, origins) for error in problems]
        with_client = any(f".{SECTION}" in f".{key}." for key in lines)
        raise_all([_of_client(error) if with_client else error for error in written], path, find_line)

    _scale(raw, scale, plugins)
    _end_of_the_load(raw)
    study: Study | None = None
    try:
        study = validated(Study, raw)
        if leave_out_missing:
            whole, study = study, without_missing(study)
            kept = study.design.treatments
            origins = [at for at, one in zip(origins, whole.design.treatments, strict=True) if one in kept]
    except ValidationError as error:
        errors += from_validation(error, "", Study)
    tables = {section: raw[section] for section in SECTIONS if isinstance(raw.get(section), dict)}
    if study is not None:
        tables = tables_of(study)
    named = _subtables_named(tables) if study is None else names_of(study)
    _, problems = complete(tables, {}, plugins, named)
    # Which policies a study names is known of a whole one only: until then a setting of one may be that of another;
    # so for disruptions.
    certain = [
        error
        for error in problems
        if study is not None or error.key.partition(".")[0] not in OF_CONTROLS or error.key.endswith(".name")
    ]
    errors += [error for error in certain if error.key.partition(".")[0] in tables]
    errors += _unknown_plugins(raw, plugins)
    if study is not None:
        errors += level_problems(study)
        errors += design_problems(study, plugins)
        errors += response_problems(study, plugins)
        errors += _probe_problems(study, plugins)
        if not any(error.key.endswith(".name") for error in errors):
            errors += _unknown_factors(study, plugins)
            errors += _subtable_problems(tables, plugins, named)
    refuse([_misplaced(error) for error in errors])
    assert study is not None
    refuse(_treatment_problems(study, plugins))
    return load_response.for_its_load(study, treatments_of(study, plugins))


def _of_client(error: StudyError) -> StudyError:
    """The error in a file with section `client`, whose settings are held in `load`."""
    message, hint = as_client(error.message), as_client(error.hint)
    return StudyError(message, hint, key=error.key, read=error.read, allowed=error.allowed)


def _spelt(key: str, lines: Mapping[str, int]) -> str:
    """The key as spelt in the file: factors may be written in short or long form."""
    if key in lines:
        return key
    if (client := as_client(key)) in lines:
        return client
    table = re.match(r"(factors|design\.(?:base|control|treatments\.\d+))\.(.+)", key)
    if table is not None:
        spelt = ((table[1], name) for name in (dotted(table[2]), short(table[2])))
    elif key.startswith("levels."):
        ends = ((key.removesuffix(f".{name}"), name) for name in ALIASES if key.endswith(f".{name}"))
        spelt = ((start, ALIASES[name]) for start, name in ends)
    else:
        return key
    return next((long for start, name in spelt if (long := f"{start}.{name}") in lines), key)


def _scale(raw: dict[str, Any], scale: Any, plugins: Plugins) -> None:
    """Multiply all records and operations, in place, and mark the study's name."""
    if not (isinstance(scale, int | float) and math.isfinite(scale) and scale > 0):
        raise problem("scale", scale, "must be a number, more than 0")
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
        for levels in _tables_of_levels(raw):
            if field in levels:
                levels[field] = scaled(levels[field])
    about = raw.get("study")
    if isinstance(about, dict) and isinstance(about.get("name"), str):
        about["name"] += f"-scale-{scale:g}"


def _end_of_the_load(raw: dict[str, Any]) -> None:
    """Copy a factor's first level into section `load`, in place, if only that factor limits the load."""
    load, factors = raw.get("load", {}), raw.get("factors")
    if not isinstance(load, dict) or not isinstance(factors, dict) or ENDS & load.keys():
        return
    for name in ("duration_s", "operations"):
        levels = factors.get(f"load.{name}")
        if isinstance(levels, list) and levels and isinstance(levels[0], int | float):
            raw["load"] = {**load, name: levels[0]}
            return


def _tables_of_levels(raw: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Every table that maps fields to one level each: named levels, base, control, listed treatments."""
    for named in raw.get("levels", {}).values():
        yield from named.values()
    design = raw.get("design")
    design = design if isinstance(design, dict) else {}
    treatments = design.get("treatments")
    yield from (design.get("base", {}), design.get("control", {}))
    yield from treatments if isinstance(treatments, list) else []


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


def _subtables_named(tables: Mapping[str, Mapping[str, Any]]) -> dict[str, tuple[str, ...]]:
    """The sub-tables with the name of a plug-in, by section: of a study that is not whole, any level may name it."""
    return {
        section: tuple(key for key in tables.get(section, ()) if find.is_path(key) or key in find.names(seam))
        for section, seam in SEAMS.items()
    }


def _unknown_plugins(raw: Mapping[str, Any], plugins: Plugins) -> list[StudyError]:
    """Engines and probes that cannot be found."""
    load = raw.get("load")
    asked = [("load.engine", load.get("engine", "agent") if isinstance(load, dict) else None)]
    probes = raw.get("probes")
    if isinstance(probes, list):
        asked += [(f"probes.{index}", name) for index, name in enumerate(probes)]
    errors = []
    for key, name in asked:
        seam = "engine" if key == "load.engine" else "probe"
        if isinstance(name, str) and find.is_path(name):
            try:
                plugins.find(seam, name)
            except StudyError as error:
                errors.append(problem(key, name, error.in_a_line))
        elif isinstance(name, str) and name not in (known := find.names(seam)):
            errors.append(problem(key, name, f"unknown {seam}", known))
    return errors


def _unknown_factors(study: Study, plugins: Plugins) -> list[StudyError]:
    """Factors and fields of named levels that are not a field of the study, and levels that are not a plug-in."""
    names = names_of(study)
    errors = []
    keys = fields_by_key(study)
    for section, seam in SEAMS.items():
        for name in names[section]:
            try:
                settings_model(plugins, seam, name)
            except StudyError as error:
                key = next(places_of(study, short(f"{section}.name"), name), f"{section}.name")
                errors.append(problem(key, name, error.message, error.allowed, hint=how_to_add(seam)))
    if errors:
        return errors
    for field, key in (*keys.items(), *named_fields(study)):
        if not exists(field, names, plugins):
            section, _, key_in_section = dotted(field).partition(".")
            sections = [section] if section in SECTIONS and key_in_section else list(SECTIONS)
            allowed = [known for each in sections for known in allowed_factors(each, names.get(each, ()), plugins)]
            of_level = key.startswith("levels.")
            what = f"no such key: a {'level sets fields' if of_level else 'factor is a field'} of the study"
            hint = "" if of_level else f"a factor of any other name needs its levels under [levels.{field}]"
            errors.append(problem(key, Missing(), what, allowed, hint=hint))
    return errors


def _subtable_problems(
    tables: Mapping[str, Mapping[str, Any]], plugins: Plugins, named: Mapping[str, Sequence[str]]
) -> list[StudyError]:
    """Problems with sub-tables that hold the settings of one plug-in, such as `[site.docker]`."""
    errors: list[StudyError] = []
    for section, seam in SEAMS.items():
        for name, table in subtables_of(tables[section], named[section]).items():
            common = [key for key in table if key in SECTIONS[section].model_fields]
            what = f"belongs in [{section}]: it is not a setting of a single {seam}"
            errors += [problem(f"{section}.{name}.{key}", table[key], what) for key in common]
            _, problems = complete(tables, {f"{section}.name": name}, plugins, named)
            for error in problems:
                own, _, key = error.key.partition(".")
                if own == section and key.partition(".")[0] in table and not common:
                    place = f"{section}.{name}.{key}"
                    message = error.message.replace(error.key, place, 1)
                    errors.append(StudyError(message, error.hint, key=place, read=error.read, allowed=error.allowed))
    return errors


def _treatment_problems(study: Study, plugins: Plugins) -> list[StudyError]:
    """Problems with the treatments: their complete settings must be valid and distinct."""
    errors: list[StudyError] = []
    seen: dict[str, Mapping[str, Level]] = {}
    tables = tables_of(study)
    treatments = treatments_of(study, plugins)
    control = control_of(study)
    extra = [control] if control is not None and control not in treatments else []
    if clashing := contradictions(study, [*treatments, *extra]):
        return clashing
    named = names_of(study)
    for index, treatment in enumerate([*treatments, *extra]):
        settings, problems = complete(tables, study.fields_of(treatment), plugins, named)
        listed = "factors"
        if study.design.kind == "listed":
            listed = f"design.treatments.{index}" if index < len(treatments) else "design.control"
        errors += [_blamed(error, study, treatment, listed) for error in problems]
        text = canonical(settings)
        if text in seen and not problems and study.design.kind != "same":
            what = f"treatments {_in_words(seen[text])} and {_in_words(treatment)} have the same complete settings"
            errors.append(problem(listed, Missing(), what))
        seen[text] = treatment
    return errors


def _in_words(treatment: Mapping[str, Level]) -> str:
    return "{" + ", ".join(f"{factor} = {level}" for factor, level in treatment.items()) + "}"


def _blamed(error: StudyError, study: Study, treatment: Mapping[str, Level], listed: str) -> StudyError:
    """The error with the key of the factor or named level that set the field, otherwise with the treatment."""
    for factor, level in treatment.items():
        table = f"levels.{factor}.{level_key(level)}" if factor in study.levels else listed
        for field in study.fields_of({factor: level}):
            if error.key and f"{dotted(field)}.".startswith(f"{error.key}."):
                message, key = f"{table}: {error.message}", f"{table}.{field}"
                return StudyError(message, error.hint, key=key, read=error.read, allowed=error.allowed)
    message = f"{listed}: with {_in_words(treatment)}: {error.message}"
    return StudyError(message, error.hint, key=listed, read=error.read, allowed=error.allowed)


def located(errors: Sequence[StudyError], path: Path) -> tuple[StudyError, ...]:
    """Errors about a study, each with its line in the study file."""
    lines = key_lines(text_of(path, "study file"))

    def find_line(key: str) -> int:
        factor = _spelt(f"factors.{key}", lines)
        section, _, field = key.partition(".")
        elsewhere = (
            name
            for name in lines
            if (name.startswith("levels.") and name.endswith((f".{key}", f".{as_client(key)}")))
            or (key not in lines and re.fullmatch(rf"{section}\.[^.]+\.{re.escape(field)}", name))
        )
        return line_of(lines, factor if factor in lines else next(elsewhere, _spelt(key, lines)))

    return tuple(placed(error, str(path), find_line(error.key)) for error in errors)


def _misplaced(error: StudyError) -> StudyError:
    """The same error, or, for an unknown key of a section that is a section or a key at the top, one that says so
    instead of the most similar key. Pure."""
    section, _, name = error.key.partition(".")
    field = Study.model_fields.get(name)
    if not name or section in ("factors", "levels") or field is None or ": no such key" not in error.message:
        return error
    table = isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel)
    place = f"[{name}] is a separate section" if table else f"{name} is a top-level key, above the first section"
    return problem(error.key, error.read, f"no such key; {place}", hint=error.hint)


def _probe_problems(study: Study, plugins: Plugins) -> list[StudyError]:
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
        errors += _settings_problems(name, study.probe.get(name, {}), getattr(module, "Settings", None))
    return errors


def _settings_problems(name: str, table: Mapping[str, Any], model: type[BaseModel] | None) -> list[StudyError]:
    prefix = f"probe.{name}"
    if model is None:
        what = "no such key: this probe has no settings"
        return [problem(f"{prefix}.{key}", read, what) for key, read in table.items()]
    allowed = tuple(model.model_fields)
    open_ended = model.model_config.get("extra") == "allow"
    unknown = [] if open_ended else [key for key in table if key not in allowed]
    errors = [problem(f"{prefix}.{key}", table[key], "no such key", allowed) for key in unknown]
    try:
        validated(model, {key: item for key, item in table.items() if key not in unknown})
    except ValidationError as error:
        errors += from_validation(error, prefix, model)
    return errors
