"""Capacities of the sizes of a cluster: as the study declares them, or as its searches found them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from steelyard.analysis.inference import estimates
from steelyard.judging.t_interval import FEWEST_STARTS
from steelyard.judging.trial_responses import response_of
from steelyard.model.demand import Capacity, Demand
from steelyard.model.estimate import Estimate
from steelyard.model.responses import unit_of
from steelyard.model.responses.capacity import CAPACITY
from steelyard.model.trial import TrialRecord

Capacities = Callable[[TrialRecord], Sequence[Capacity]]
"""What each size carries under the settings of a trial, in order of size, each more than the one before."""
ALIKE: Final = ("site", "system", "workload", "node", "link", "load_site")
"""Sections in which a search has the settings of a trial, but for the number of nodes."""
ALIKE_OF_LOAD: Final = ("engine", "read_consistency", "write_consistency", "routing")
"""And fields of the load."""


def capacities(demand: Demand, records: Sequence[TrialRecord], confidence: float) -> tuple[Capacities, ...]:
    """The capacities; of searches, where each size has an interval over starts, also with all at its lower and all at
    its upper end."""
    if demand.capacity:
        return (lambda _: demand.capacity,)
    known: dict[str, list[tuple[int, Estimate]]] = {}

    def of(record: TrialRecord) -> list[tuple[int, Estimate]]:
        key = repr(_alike(record))
        if key not in known:
            known[key] = searched(records, record, confidence)
        return known[key]

    def at(end: str) -> Capacities:
        return lambda record: _rising((nodes, getattr(one, end)) for nodes, one in of(record))

    if any(one.low is None for record in records for _, one in of(record)):
        return (at("value"),)
    return at("value"), at("low"), at("high")


def searched(records: Sequence[TrialRecord], like: TrialRecord, confidence: float) -> list[tuple[int, Estimate]]:
    """What each size carries by the valid searches with the settings of a trial but for nodes, load and policy:
    geometric mean of start means. In order of size."""
    wanted = _alike(like)
    starts: dict[int, dict[str, list[float]]] = {}
    for record in records:
        if record.verdict.outcome != "valid" or record.control or record.settings.policy.changes:
            continue
        capacity_per_s = response_of(record, CAPACITY)
        if capacity_per_s is not None and _alike(record) == wanted:
            starts.setdefault(record.settings.site.nodes, {}).setdefault(record.start, []).append(capacity_per_s)
    return [
        (nodes, estimates.geometric_mean(
            [sum(values) / len(values) for values in of_size.values()], unit_of(CAPACITY), confidence, "start means",
            FEWEST_STARTS,
        ))
        for nodes, of_size in sorted(starts.items())
    ]  # fmt: skip


def _alike(record: TrialRecord) -> dict[str, Any]:
    root = record.settings.root
    sections = {name: dict(root.get(name, {})) for name in ALIKE}
    sections["site"].pop("nodes", None)
    return {**sections, "load": {name: root["load"].get(name) for name in ALIKE_OF_LOAD}}


def _rising(carried: Iterable[tuple[int, float]]) -> list[Capacity]:
    """The sizes without those that carry no more than a smaller one: no rate demands them."""
    rising: list[Capacity] = []
    for nodes, per_s in carried:
        if not rising or per_s > rising[-1][1]:
            rising.append((nodes, per_s))
    return rising
