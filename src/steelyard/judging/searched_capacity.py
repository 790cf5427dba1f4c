"""Capacities of the sizes of a cluster: as the study declares them, or as its searches found them. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

from steelyard.judging.trial_responses import response_of
from steelyard.model.demand import Capacity, Demand
from steelyard.model.responses.capacity import CAPACITY
from steelyard.model.trial import TrialRecord

Capacities = Callable[[TrialRecord], Sequence[Capacity]]
"""What each size carries under the settings of a trial, in order of size, each more than the one before."""
ALIKE: Final = ("site", "system", "workload", "node", "link", "load_site")
"""Sections in which a search has the settings of a trial, but for the number of nodes."""
ALIKE_OF_LOAD: Final = ("engine", "read_consistency", "write_consistency", "routing")
"""And fields of the load."""


def geometric_mean(means: Sequence[float]) -> float:
    """Of start means above 0."""
    return math.exp(math.fsum(map(math.log, means)) / len(means))


def capacities(
    demand: Demand, records: Sequence[TrialRecord], of_size: Callable[[Sequence[float]], float] = geometric_mean
) -> Capacities:
    """The declared capacities, or those of searches: `of_size` of the start means of each size."""
    known: dict[str, list[Capacity]] = {}

    def of(record: TrialRecord) -> Sequence[Capacity]:
        if demand.capacity:
            return demand.capacity
        key = repr(_alike(record))
        if key not in known:
            known[key] = _rising([(nodes, of_size(means)) for nodes, means in found_for(record, records)])
        return known[key]

    return of


def found_for(like: TrialRecord, records: Sequence[TrialRecord]) -> list[tuple[int, list[float]]]:
    """What the valid searches with the settings of a trial, but for nodes, load and policy, found for each size: start
    means, in order of size."""
    wanted = _alike(like)
    starts: dict[int, dict[str, list[float]]] = {}
    for record in records:
        if record.verdict.outcome != "valid" or record.control or record.settings.policy.changes:
            continue
        capacity_per_s = response_of(record, CAPACITY)
        if capacity_per_s is not None and _alike(record) == wanted:
            starts.setdefault(record.settings.site.nodes, {}).setdefault(record.start, []).append(capacity_per_s)
    return [
        (nodes, [sum(values) / len(values) for values in of_size.values()]) for nodes, of_size in sorted(starts.items())
    ]


def _alike(record: TrialRecord) -> dict[str, Any]:
    root = record.settings.root
    sections = {name: dict(root.get(name, {})) for name in ALIKE}
    sections["site"].pop("nodes", None)
    return {**sections, "load": {name: root.get("load", {}).get(name) for name in ALIKE_OF_LOAD}}


def _rising(carried: Sequence[tuple[int, float]]) -> list[Capacity]:
    """The sizes without those that carry no more than a smaller one: no rate demands them."""
    rising: list[Capacity] = []
    for nodes, per_s in carried:
        if not rising or per_s > rising[-1][1]:
            rising.append((nodes, per_s))
    return rising
