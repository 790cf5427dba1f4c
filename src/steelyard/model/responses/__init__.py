"""The responses of a trial. A module of this package defines one, or a family of them, as `RESPONSES`.

Nothing else is needed for a new response of what `Measured` has: the laboratory computes it, `verify` checks it, and
tables, report and reference have it by its definition. `kept` says whether `verify` can compute it from the store.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from functools import cache
from importlib import import_module

from steelyard.model.response import Measured, Response


@cache
def every() -> Mapping[str, Response]:
    """Name to definition of every response, in their order. Raises ValueError if two have one name."""
    defined: list[Response] = []
    for module in pkgutil.iter_modules(__path__):
        defined += import_module(f"{__name__}.{module.name}").RESPONSES
    by_name = {response.name: response for response in sorted(defined, key=lambda response: response.order)}
    if len(by_name) < len(defined):
        names = [response.name for response in defined]
        raise ValueError(f"two responses are called {next(name for name in names if names.count(name) > 1)}")
    return by_name


def of(name: str) -> Response:
    """The definition of a response. Raises KeyError if there is none."""
    return every()[name]


def label_of(name: str) -> str:
    """What people call it; the name itself, if it is no response."""
    return every()[name].label if name in every() else name


def unit_of(name: str) -> str:
    """Its unit. Raises KeyError if there is no such response."""
    return of(name).unit


def main_names() -> tuple[str, ...]:
    """The responses that a study may name as its main response."""
    return tuple(name for name, response in every().items() if response.main)


def compute(measured: Measured) -> dict[str, float | int | None]:
    """Every response of a trial by its name."""
    return {name: response.compute(measured) for name, response in every().items()}
