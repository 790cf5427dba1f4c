"""Responses of a trial. Each module of this package defines one response, or a family of them, as `RESPONSES`.

A new response that can be computed from `Measured`, or from samples by a `Measure`, needs nothing else: the laboratory
computes it, `verify` checks it, and tables, report and reference show it from its definition. `kept` says whether
`verify` can recompute it from the store.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import Final

from steelyard.model.cost import Cost
from steelyard.model.percentiles import needed
from steelyard.model.response import Better, Measured, Response

SHORT_NAMES: Final = {
    "throughput": "throughput_per_s", "time": "execution_time_ms", "execution_time": "execution_time_ms",
    "p99": "response_ms_p99", "p95": "response_ms_p95", "p50": "response_ms_p50",
}  # fmt: skip
"""Names that a command line takes, and that an error in a study answers with the full one."""


@cache
def every() -> Mapping[str, Response]:
    """Definitions of all responses by name, in order. Raises ValueError if two have the same name."""
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
    """Name of a response for people; the given name itself if it is not a response."""
    return every()[name].label if name in every() else name


def unit_of(name: str) -> str:
    """Unit of a response. Raises KeyError if there is no such response."""
    return of(name).unit


def better_of(name: str) -> Better:
    """Which change of a response is an improvement. Raises KeyError if there is no such response."""
    return of(name).better


def main_names() -> tuple[str, ...]:
    """Names of the responses that a study may name: all but counts."""
    return tuple(name for name, response in every().items() if response.main)


def awaited_names() -> tuple[str, ...]:
    """Names of the responses that a stopping rule may wait for: those that are sealed with a trial."""
    return tuple(name for name in main_names() if every()[name].source != "study")


def measured_by_samples() -> Mapping[str, Response]:
    """Definitions of the responses that samples give, by name."""
    return {name: response for name, response in every().items() if response.measure is not None}


def probe_of(name: str) -> str:
    """The probe that a study runs for a response of samples; empty for any other response."""
    measure = of(name).measure
    return "" if measure is None else measure.probe


def gain_error_percent(name: str, cost: Cost) -> float:
    """Standard uncertainty of the meters' gain in a response, in percent; 0 for what no meter of power reads."""
    measure = of(name).measure
    return cost.gain_error_percent if measure is not None and measure.power and unit_of(name) != "s" else 0.0


def compute(measured: Measured) -> dict[str, float | int | None]:
    """All responses of a trial that its records give, by name; without those of a search if there was none."""
    computed = {
        name: response.compute(measured)
        for name, response in every().items()
        if response.source in ("records", "search")
    }
    return {name: value for name, value in computed.items() if value is not None or every()[name].source == "records"}


def lower_percentiles(name: str, operations: float) -> list[str]:
    """The percentiles of the same times that this number of operations supports, the highest first."""
    kind = name.rpartition("_p")[0]
    known = {one.percentile: other for other, one in every().items() if other.rpartition("_p")[0] == kind}
    supported = sorted(q for q in known if q is not None and needed(q) <= operations)
    return [known[q] for q in reversed(supported)]
