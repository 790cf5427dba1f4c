"""Distributions of numbers in workload files: `5`, `"uniform(1..100)"`, or a table with a `name`.

A new distribution is an entry in `DISTRIBUTIONS` here, its wire format in `crates/steelyard-wire/src/program.rs` and
its sampling in `crates/steelyard-workload/src/distributions.rs`; one of fractions is also in `program/numbers.rs`.
The schema of orders and the reference page are generated from the entry. The short form is that of cassandra-stress's
options.

Choosers of keys that exist (`Chooser`) are another mechanism, YCSB's: they know which keys are written meanwhile. A new
one is a name in `src/steelyard/wire/program.py`, its wire format in `crates/steelyard-wire/src/order.rs`
(`RequestDistribution`) and its choice in `crates/steelyard-workload/src/key_chooser.rs`.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, get_args

from steelyard.wire.program import Chooser

SHORT = re.compile(r"\s*(~?)\s*([a-z][a-z-]*)\s*\((.*)\)\s*", re.IGNORECASE | re.DOTALL)
RANGE = re.compile(r"\s*(-?[0-9_]+(?:\.[0-9]+)?)\s*\.\.\s*(-?[0-9_]+(?:\.[0-9]+)?)\s*")
CHOOSERS: tuple[str, ...] = get_args(Chooser)


@dataclass(frozen=True)
class Parameter:
    """A parameter of a distribution after `min..max`."""

    name: str
    kind: type[int] | type[float] = float
    required: bool = False
    nullable: bool = False
    """Whether an order may use null for the default."""
    holds: Callable[[float], bool] = lambda value: value > 0
    """Predicate of the allowed values."""
    must: str = "above 0"
    """The allowed values in words."""


@dataclass(frozen=True)
class Distribution:
    """A distribution with the bounds `min` and `max`, as described in workload files and on the reference page."""

    meaning: str
    parameters: tuple[Parameter, ...] = ()
    """Further parameters, in the order of the short form."""
    real: bool = False
    """Whether its bounds may be fractional and it draws fractions:
    `crates/steelyard-workload/src/program/numbers.rs`."""
    mean_at: float = 0.5
    """Approximate position of the mean between the bounds, for size estimates; a parameter `mean` takes precedence."""


def _share(name: str) -> Parameter:
    return Parameter(name, required=True, holds=lambda value: 0 <= value <= 1, must="from 0 to 1")


DISTRIBUTIONS: Mapping[str, Distribution] = {
    "sequence": Distribution(
        "min, min + 1, ... max, then min again: by the operation's index, or by the key for a stored value"
    ),
    "uniform": Distribution(
        "all equally often; whole bounds give whole numbers, fractional bounds also fractions", real=True
    ),
    "zipfian": Distribution(
        "the lowest most often; theta is 0.99 by default",
        (Parameter("theta", holds=lambda value: 0 < value < 1, must="above 0 and below 1"),),
        mean_at=0.2,
    ),
    "scrambled-zipfian": Distribution("zipfian, with the popular ones scattered by a hash"),
    "latest": Distribution("the highest most often", mean_at=0.8),
    "hotspot": Distribution(
        "`operation_fraction` of the draws from the lowest `data_fraction` of the numbers",
        (_share("data_fraction"), _share("operation_fraction")),
    ),
    "exponential": Distribution("cassandra-stress's EXP", mean_at=0.2),
    "gaussian": Distribution(
        "cassandra-stress's GAUSSIAN; by default the mean is the middle and the deviation a sixth of the width",
        (
            Parameter("mean", nullable=True, holds=lambda _: True),
            Parameter("deviation", nullable=True),
        ),
    ),
    "extreme": Distribution(
        "cassandra-stress's EXTREME (Weibull), or QEXTREME with `quanta`",
        (Parameter("shape", required=True), Parameter("quanta", int, nullable=True)),
    ),
}
"""Every distribution with bounds. `fixed(value)` and `inverted`, which reverses another one, exist as well."""
NAMES = ("fixed", *DISTRIBUTIONS)
FIXED_MEANING = "always the same"


def distribution(read: object) -> dict[str, Any]:
    """Parse a distribution into its form in the agent's order. Raises ValueError with the allowed forms."""
    if isinstance(read, bool) or not isinstance(read, (int, float, str, Mapping)):
        raise ValueError(f"must be a number or a distribution such as 'uniform(1..100)': {', '.join(NAMES)}")
    if isinstance(read, (int, float)):
        return {"name": "fixed", "value": float(read)}
    return _checked(_short(read) if isinstance(read, str) else dict(read))


def _known(name: str) -> str:
    lower = name.lower().replace("_", "-")
    if lower not in NAMES:
        near = difflib.get_close_matches(lower, NAMES, n=1, cutoff=0.4)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise ValueError(f"unknown distribution {name!r}; {hint}allowed: {', '.join(NAMES)}")
    return lower


def _short(text: str) -> dict[str, Any]:
    match = SHORT.fullmatch(text)
    if match is None:
        try:
            return {"name": "fixed", "value": float(text)}
        except ValueError:
            raise ValueError(
                f"{text!r} is not a distribution; write a number or NAME(min..max), with NAME one of {', '.join(NAMES)}"
            ) from None
    inverted, name, inside = match[1], _known(match[2]), match[3]
    inner = _fixed(inside) if name == "fixed" else _ranged(name, inside)
    return {"name": "inverted", "of": inner} if inverted else inner


def _fixed(inside: str) -> dict[str, Any]:
    try:
        return {"name": "fixed", "value": float(inside)}
    except ValueError:
        raise ValueError(f"fixed(VALUE) needs one number, not {inside!r}") from None


def _ranged(name: str, inside: str) -> dict[str, Any]:
    bounds, *more = inside.split(",")
    parameters = DISTRIBUTIONS[name].parameters
    match = RANGE.fullmatch(bounds)
    if match is None or len(more) > len(parameters):
        raise ValueError(f"write {grammar(name)}, not {name}({inside})")
    fields: dict[str, Any] = {"name": name, "min": _number(match[1]), "max": _number(match[2])}
    for parameter, value in zip(parameters, more, strict=False):
        fields[parameter.name] = _number(value.strip())
    return fields


def grammar(name: str) -> str:
    """The syntax of the short form: `zipfian(min..max[, theta])`."""
    if name == "fixed":
        return "fixed(value)"
    parameters = DISTRIBUTIONS[name].parameters
    more = "".join(f", {each.name}" if each.required else f"[, {each.name}]" for each in parameters)
    return f"{name}(min..max{more})"


def _number(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a number") from None


def _checked(table: Mapping[str, Any]) -> dict[str, Any]:
    given = dict(table)
    if given.get("name") == "inverted":
        return {"name": "inverted", "of": distribution(given.get("of"))}
    name = _known(str(given.pop("name", "")))
    allowed: dict[str, type[int] | type[float]] = {"value": float}
    required = ["value"]
    if name != "fixed":
        defined = DISTRIBUTIONS[name]
        bound = float if defined.real else int
        allowed = {"min": bound, "max": bound, **{each.name: each.kind for each in defined.parameters}}
        required = ["min", "max", *(each.name for each in defined.parameters if each.required)]
    for key, value in given.items():
        if key not in allowed:
            raise ValueError(f"{name} has no parameter {key!r}; allowed: {', '.join(allowed)}")
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
    if name == "fixed":
        return
    if fields["min"] > fields["max"]:
        raise ValueError(f"{name}: min {fields['min']:g} is above max {fields['max']:g}")
    for parameter in DISTRIBUTIONS[name].parameters:
        value = fields.get(parameter.name)
        if value is not None and not parameter.holds(value):
            raise ValueError(f"{name}: {parameter.name} must be {parameter.must}, not {value:g}")


def bounds(spread: Mapping[str, Any]) -> tuple[float, float]:
    """Smallest and largest value."""
    if spread["name"] == "inverted":
        return bounds(spread["of"])
    if spread["name"] == "fixed":
        return spread["value"], spread["value"]
    return spread["min"], spread["max"]


def mean(spread: Mapping[str, Any]) -> float:
    """Approximate mean, for size estimates only."""
    low, high = bounds(spread)
    if spread.get("mean") is not None:
        return float(spread["mean"])
    defined = DISTRIBUTIONS.get(spread["name"])
    return low + (high - low) * (defined.mean_at if defined else 0.5)


def short_form(spread: Mapping[str, Any]) -> str:
    """A distribution in the short form."""
    if spread["name"] == "inverted":
        return "~" + short_form(spread["of"])
    if spread["name"] == "fixed":
        return f"{spread['value']:g}"
    low, high = bounds(spread)
    names = [each.name for each in DISTRIBUTIONS[spread["name"]].parameters]
    extras = [f"{spread[name]:g}" for name in names if spread.get(name) is not None]
    return f"{spread['name']}({', '.join([f'{low:.15g}..{high:.15g}', *extras])})"
