"""Tables of levels in a study file: dotted names flattened to short ones, lists in treatments crossed."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from steelyard.model.client import Client
from steelyard.model.errors import StudyError
from steelyard.study.fields import short
from steelyard.study.treatments import MAX_TREATMENTS
from steelyard.tomlfile.problems import Missing, problem


def normalise(raw: dict[str, Any]) -> list[StudyError]:
    """Flatten tables of levels to short factor names, and put `[client]` where complete settings hold it, in place;
    returns problems with their shape."""
    errors = _client_into_load(raw)
    analysis = raw.get("analysis")
    if isinstance(analysis, dict) and isinstance(compared := analysis.get("compared"), str):
        analysis["compared"] = short(compared)
    if "factors" in raw:
        raw["factors"] = _flat(raw["factors"], "factors", errors, many=True)
    if "levels" in raw:
        raw["levels"] = _flat_levels(raw["levels"], errors)
    design = raw.get("design")
    if not isinstance(design, dict):
        return errors
    for name in ("base", "control"):
        if name in design:
            design[name] = _flat(design[name], f"design.{name}", errors)
    if isinstance(design.get("treatments"), list):
        design["treatments"] = [
            _flat(treatment, f"design.treatments.{index}", errors, lists=True)
            for index, treatment in enumerate(design["treatments"])
        ]
    return errors


def _client_into_load(raw: dict[str, Any]) -> list[StudyError]:
    if (client := raw.pop("client", None)) is None:
        return []
    if not isinstance(client, dict):
        return [problem("client", client, "must be a table")]
    if not isinstance(load := raw.setdefault("load", {}), dict):
        return []  # refused as a load
    allowed = tuple(Client.model_fields)
    errors = [problem(f"client.{name}", client[name], "no such key", allowed) for name in client if name not in allowed]
    both = [name for name in client if name in load]
    errors += [problem(f"client.{name}", client[name], f"is given already, as load.{name}") for name in both]
    load |= {name: value for name, value in client.items() if name in allowed}
    return errors


def cross(raw: Mapping[str, Any], errors: list[StudyError]) -> list[int]:
    """Replace listed treatments that have lists of levels by one treatment for each combination, in place; returns the
    place in the file of each."""
    design = raw.get("design")
    listed = design.get("treatments") if isinstance(design, dict) else None
    if not isinstance(design, dict) or not isinstance(listed, list):
        return []
    crossed: list[dict[str, Any]] = []
    origins: list[int] = []
    for index, treatment in enumerate(listed):
        levels = [value if isinstance(value, list) else [value] for value in treatment.values()]
        if len(crossed) + math.prod(len(each) for each in levels) > MAX_TREATMENTS:
            what = f"more than {MAX_TREATMENTS:,} treatments, the most that can be planned"
            errors.append(problem(f"design.treatments.{index}", Missing(), what))
            continue
        combinations = [dict(zip(treatment, each, strict=True)) for each in itertools.product(*levels)]
        crossed += combinations
        origins += [index] * len(combinations)
    design["treatments"] = crossed
    return origins


def as_written(error: StudyError, origins: Sequence[int]) -> StudyError:
    """The error with the treatment's place in the file, where lists of levels stand for several treatments."""

    def in_file(text: str) -> str:
        return re.sub(r"\bdesign\.treatments\.(\d+)", lambda match: f"design.treatments.{origins[int(match[1])]}", text)

    if list(range(len(origins))) == list(origins):
        return error
    message, key = in_file(error.message), in_file(error.key)
    return StudyError(message, error.hint, key=key, read=error.read, allowed=error.allowed)


def _flat(table: Any, key: str, errors: list[StudyError], *, many: bool = False, lists: bool = False) -> dict[str, Any]:
    """Dotted names in a table of levels (`many`: in a table of lists of levels; `lists`: of levels or lists)."""
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
            errors.append(problem(f"{key}.{name}", value, f"{short(name)} is given already, under its other name"))
        elif many and not (value == [] or _is_list_of_levels(value)):
            errors.append(problem(f"{key}.{name}", value, "must be a list of levels: text, numbers, true or false"))
        elif not many and not _is_level(value) and not (lists and _is_list_of_levels(value)):
            single = "must be one level: text, a number, true or false"
            what = f"{single}; or a list of them, for one treatment with each" if lists else single
            errors.append(problem(f"{key}.{name}", value, what))
        else:
            flat[short(name)] = value
    return flat


def _is_list_of_levels(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(_is_level(level) for level in value)


def _flat_levels(table: Any, errors: list[StudyError]) -> dict[str, Any]:
    """The fields of each named level by their dotted names."""
    levels: dict[str, Any] = {}
    for factor, named in (table if isinstance(table, dict) else {"": table}).items():
        key = f"levels.{factor}" if factor else "levels"
        if not isinstance(named, dict):
            errors.append(problem(key, named, "must be a table of levels, each of them a table of fields"))
            continue
        levels[factor] = {name: _flat(fields, f"{key}.{name}", errors) for name, fields in named.items()}
    return levels


def _is_level(value: object) -> bool:
    return isinstance(value, (str, int, bool)) or (isinstance(value, float) and math.isfinite(value))
