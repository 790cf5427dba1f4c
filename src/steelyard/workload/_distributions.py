"""Distributions in workload files: `5`, `"uniform(1..100)"`, or a table with a `name`.

The short form is that of cassandra-stress's options; docs/reference/workload-file.md defines each distribution.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from typing import Any

SHORT = re.compile(r"\s*(~?)\s*([a-z][a-z-]*)\s*\((.*)\)\s*", re.IGNORECASE | re.DOTALL)
RANGE = re.compile(r"\s*(-?[0-9_]+(?:\.[0-9]+)?)\s*\.\.\s*(-?[0-9_]+(?:\.[0-9]+)?)\s*")

EXTRAS: dict[str, tuple[tuple[str, type, bool], ...]] = {
    "sequence": (),
    "uniform": (),
    "zipfian": (("theta", float, False),),
    "scrambled-zipfian": (),
    "latest": (),
    "hotspot": (("data_fraction", float, True), ("operation_fraction", float, True)),
    "exponential": (),
    "gaussian": (("mean", float, False), ("deviation", float, False)),
    "extreme": (("shape", float, True), ("quanta", int, False)),
}
"""Parameters after `min..max`, in order: name, type, whether it is required."""
NAMES = ("fixed", *EXTRAS)
REAL = ("uniform",)
"""Distributions whose bounds need not be whole."""


def distribution(read: object) -> dict[str, Any]:
    """Parse a distribution into its form in the agent's order. Raises ValueError with what is allowed."""
    if isinstance(read, bool) or not isinstance(read, (int, float, str, Mapping)):
        raise ValueError(f"must be a number, or a distribution such as 'uniform(1..100)': {', '.join(NAMES)}")
    if isinstance(read, (int, float)):
        return {"name": "fixed", "value": float(read)}
    return _checked(_short(read) if isinstance(read, str) else dict(read))


def _known(name: str) -> str:
    lower = name.lower().replace("_", "-")
    if lower not in NAMES:
        near = difflib.get_close_matches(lower, NAMES, n=1, cutoff=0.4)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise ValueError(f"there is no distribution {name!r}; {hint}allowed: {', '.join(NAMES)}")
    return lower


def _short(text: str) -> dict[str, Any]:
    match = SHORT.fullmatch(text)
    if match is None:
        try:
            return {"name": "fixed", "value": float(text)}
        except ValueError:
            raise ValueError(
                f"{text!r} is no distribution; write a number, or NAME(min..max) with one of {', '.join(NAMES)}"
            ) from None
    inverted, name, inside = match[1], _known(match[2]), match[3]
    inner = _fixed(inside) if name == "fixed" else _ranged(name, inside)
    return {"name": "inverted", "of": inner} if inverted else inner


def _fixed(inside: str) -> dict[str, Any]:
    try:
        return {"name": "fixed", "value": float(inside)}
    except ValueError:
        raise ValueError(f"fixed(VALUE) takes one number, not {inside!r}") from None


def _ranged(name: str, inside: str) -> dict[str, Any]:
    bounds, *more = inside.split(",")
    extras = EXTRAS[name]
    form = f"{name}(min..max{''.join(f', {key}' if must else f'[, {key}]' for key, _, must in extras)})"
    match = RANGE.fullmatch(bounds)
    if match is None or len(more) > len(extras):
        raise ValueError(f"write {form}, not {name}({inside})")
    fields: dict[str, Any] = {"name": name, "min": _number(match[1]), "max": _number(match[2])}
    for (key, _, _), value in zip(extras, more, strict=False):
        fields[key] = _number(value.strip())
    return fields


def _number(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{text!r} is no number") from None


def _checked(table: Mapping[str, Any]) -> dict[str, Any]:
    given = dict(table)
    if given.get("name") == "inverted":
        return {"name": "inverted", "of": distribution(given.get("of"))}
    name = _known(str(given.pop("name", "")))
    allowed: dict[str, type] = {"value": float} if name == "fixed" else {"min": int, "max": int}
    if name in REAL:
        allowed = {"min": float, "max": float}
    required = [*allowed, *(key for key, _, must in EXTRAS.get(name, ()) if must)]
    allowed |= {key: kind for key, kind, _ in EXTRAS.get(name, ())}
    for key, value in given.items():
        if key not in allowed:
            raise ValueError(f"{name} has no {key!r}; allowed: {', '.join(allowed)}")
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise ValueError(f"{name}: {key} must be a number, not {value!r}")
        if allowed[key] is int and value != int(value):
            raise ValueError(f"{name}: {key} must be a whole number, not {value!r}")
    for key in required:
        if key not in given:
            raise ValueError(f"{name} needs {key}")
    fields = {"name": name, **{key: allowed[key](value) for key, value in given.items()}}
    _sensible(fields)
    return fields


def _sensible(fields: Mapping[str, Any]) -> None:
    name = fields["name"]
    if "min" in fields and fields["min"] > fields["max"]:
        raise ValueError(f"{name}: min {fields['min']:g} is above max {fields['max']:g}")
    for key in ("data_fraction", "operation_fraction"):
        if key in fields and not 0 <= fields[key] <= 1:
            raise ValueError(f"{name}: {key} must be from 0 to 1, not {fields[key]:g}")
    if "theta" in fields and not 0 < fields["theta"] < 1:
        raise ValueError(f"{name}: theta must be above 0 and below 1, not {fields['theta']:g}")
    for key in ("shape", "deviation", "quanta"):
        if fields.get(key) is not None and fields[key] <= 0:
            raise ValueError(f"{name}: {key} must be above 0, not {fields[key]:g}")


def bounds(spread: Mapping[str, Any]) -> tuple[float, float]:
    """Least and greatest value."""
    if spread["name"] == "inverted":
        return bounds(spread["of"])
    if spread["name"] == "fixed":
        return spread["value"], spread["value"]
    return spread["min"], spread["max"]


def mean(spread: Mapping[str, Any]) -> float:
    """Approximate mean, for size estimates only."""
    low, high = bounds(spread)
    match spread["name"]:
        case "zipfian" | "exponential":
            return low + (high - low) / 5
        case "latest":
            return high - (high - low) / 5
        case "gaussian" if spread.get("mean") is not None:
            return float(spread["mean"])
    return (low + high) / 2


def short_form(spread: Mapping[str, Any]) -> str:
    """The distribution in the short form."""
    if spread["name"] == "inverted":
        return "~" + short_form(spread["of"])
    if spread["name"] == "fixed":
        return f"{spread['value']:g}"
    low, high = bounds(spread)
    extras = [f"{spread[key]:g}" for key, _, _ in EXTRAS[spread["name"]] if spread.get(key) is not None]
    return f"{spread['name']}({', '.join([f'{low:.15g}..{high:.15g}', *extras])})"
