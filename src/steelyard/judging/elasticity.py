"""Measures of elasticity: how well the nodes in service of a cluster meet the demand of its load. Pure.

The measures of the SPEC Research Group: N. Herbst et al., Ready for Rain? A View from SPEC Research on the Future of
Cloud Metrics, SPEC-RG-2016-01, with accuracy relative to the demand as in N. Herbst et al., Quantifying Cloud
Performance and Dependability, ACM TOMPECS 3(4), 2018.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from operator import ne
from typing import Final, NamedTuple

from steelyard.judging.membership import mean_nodes, sizes
from steelyard.judging.searched_capacity import Capacities, capacities
from steelyard.model.activity import Activity
from steelyard.model.demand import Capacity
from steelyard.model.named_level import Level
from steelyard.model.responses.scaling import BEYOND, NODE_SECONDS
from steelyard.model.study import Study
from steelyard.model.trial import Attempt, CellKey, TrialRecord, cell_key

Steps = Sequence[tuple[float, float]]
"""A function that changes in steps: times in order, the first at 0, each with the value from then on."""
STEP_S: Final = 1.0
"""Time between two samples for the instability, which depends on it."""
ROUNDING: Final = 1e-9
S_PER_MIN: Final = 60.0
POLICY: Final = "policy"


class ElasticityMeasures(NamedTuple):
    """Measures of one trial, from demand d(t), supply s(t) and length T. All are 0 if supply always equals demand."""

    theta_under_percent: float
    """100/T times the integral of max(d - s, 0) / d."""
    theta_over_percent: float
    """100/T times the integral of max(s - d, 0) / d."""
    tau_under_percent: float
    """Share of the time with d > s."""
    tau_over_percent: float
    """Share of the time with s > d."""
    jitter_per_min: float
    """Nodes by which the supply changed, each change counted as positive, less those of the demand, over T."""
    instability_percent: float
    """Share of the samples at which supply and demand did not move in the same direction since the sample before."""


def elasticity_of(
    records: Sequence[TrialRecord], study: Study, carried: Capacities | None = None
) -> dict[Attempt, dict[str, float]]:
    """The measures of each trial by their names; none of a study whose policies change no size, and only what is paid
    for without a demand: capacities, and a rate that is known beforehand. `carried`: other capacities than those that
    are declared, or the means of those that were found."""
    demand = study.analysis.demand
    if not any(record.settings.policy.changes for record in records):
        return {}
    if carried is None and demand is not None:
        carried = capacities(demand, records)
    sizes_of = {} if carried is None else _in_reach(carried, records, study)
    return {
        record.key: _of_trial(record, sizes_of.get(cell_key(other_levels(study, record.treatment)), ()))
        for record in records
    }


def other_levels(study: Study, treatment: Mapping[str, Level]) -> dict[str, Level]:
    """The levels of the factors that set nothing of the policy."""

    def of_policy(factor: str) -> bool:
        return any(field.partition(".")[0] == POLICY for field in study.fields_under(factor))

    return {factor: level for factor, level in treatment.items() if not of_policy(factor)}


def offered(record: TrialRecord) -> Steps:
    """The offered rate of the measured phases; empty if it is not known beforehand."""
    load = record.settings.stated_load
    return () if load is None or not load.knows_rates else tuple(load.rates())


def _in_reach(carried: Capacities, records: Sequence[TrialRecord], study: Study) -> dict[CellKey, list[Capacity]]:
    """The sizes that count as a demand, with what they carry: those that a policy may ask for, or a control has, where
    the other levels are the same. So a control has the same demand as a policy that it is compared with."""
    reach: dict[CellKey, list[int]] = {}
    first: dict[CellKey, TrialRecord] = {}
    for record in records:
        if not offered(record):
            continue
        policy, nodes = record.settings.policy, record.settings.site.nodes
        key = cell_key(other_levels(study, record.treatment))
        first.setdefault(key, record)
        reach.setdefault(key, []).extend((policy.least(nodes), policy.most(nodes)))
    return {
        key: [(nodes, per_s) for nodes, per_s in carried(first[key]) if min(sizes) <= nodes <= max(sizes)]
        for key, sizes in reach.items()
    }


def _of_trial(record: TrialRecord, capacity: Sequence[Capacity]) -> dict[str, float]:
    load, span = record.settings.stated_load, record.measured_span
    if load is None or span is None:
        return {}
    length_s, rates = min(load.measured_s or math.inf, span[1] - span[0]), offered(record)
    if length_s <= 0:
        return {}
    paid = {NODE_SECONDS: mean_nodes(record, length_s) * length_s}
    if not rates or not capacity:
        return paid
    begun_s = span[0] if record.scaling is None else record.scaling.begun_s
    supply = supply_of(record.settings.site.nodes, record.activities, begun_s)
    measures = elasticity(demand_of(rates, capacity), supply, length_s)._asdict()
    return {**measures, BEYOND: beyond_percent(rates, capacity, length_s), **paid}


def elasticity(demand: Steps, supply: Steps, length_s: float, step_s: float = STEP_S) -> ElasticityMeasures:
    """The measures of a trial of this length, which is above 0; a demand is never 0."""
    pieces = list(_pieces(demand, supply, length_s))

    def percent(parts: Iterable[float]) -> float:
        return 100 * math.fsum(parts) / length_s

    changed = _changed(supply, length_s) - _changed(demand, length_s)
    return ElasticityMeasures(
        theta_under_percent=percent(seconds * max(d - s, 0) / d for seconds, d, s in pieces),
        theta_over_percent=percent(seconds * max(s - d, 0) / d for seconds, d, s in pieces),
        tau_under_percent=percent(seconds for seconds, d, s in pieces if d > s),
        tau_over_percent=percent(seconds for seconds, d, s in pieces if s > d),
        jitter_per_min=changed / length_s * S_PER_MIN,
        instability_percent=_instability(demand, supply, length_s, step_s),
    )


def demand_of(rates: Steps, capacity: Sequence[tuple[int, float]]) -> list[tuple[float, int]]:
    """The smallest size that carries the offered rate, over time; the largest where none does. `capacity`: each size,
    in order, with the rate that it carries."""
    most = capacity[-1][0]
    return [
        (from_s, next((nodes for nodes, carried in capacity if carried >= rate * (1 - ROUNDING)), most))
        for from_s, rate in rates
    ]


def beyond_percent(rates: Steps, capacity: Sequence[tuple[int, float]], length_s: float) -> float:
    """Share of the time in which the offered rate is more than the largest size carries."""
    carried = capacity[-1][1] * (1 + ROUNDING)
    above = [seconds for seconds, rate, _ in _pieces(rates, [(0.0, carried)], length_s) if rate > carried]
    return 100 * math.fsum(above) / length_s


def supply_of(nodes: int, activities: Sequence[Activity], begun_s: float) -> list[tuple[float, int]]:
    """Nodes in service over the seconds since `begun_s`, of a cluster that began with `nodes`."""
    return [(0.0, nodes), *((max(0.0, t_s - begun_s), size) for t_s, size in sizes(nodes, activities))]


def _pieces(first: Steps, second: Steps, length_s: float) -> Iterator[tuple[float, float, float]]:
    """Seconds over which neither of two functions changes, with the values of both."""
    times = sorted({0.0, length_s, *(t_s for t_s, _ in (*first, *second) if 0 < t_s < length_s)})
    for from_s, to_s in pairwise(times):
        yield to_s - from_s, _at(first, from_s), _at(second, from_s)


def _at(steps: Steps, t_s: float) -> float:
    return steps[bisect_right(steps, t_s, key=lambda step: step[0]) - 1][1]


def _changed(steps: Steps, length_s: float) -> float:
    """Sum of the absolute changes within the length."""
    values = [_at(steps, 0.0), *(value for t_s, value in steps if 0 < t_s < length_s)]
    return math.fsum(abs(after - before) for before, after in pairwise(values))


def _instability(demand: Steps, supply: Steps, length_s: float, step_s: float) -> float:
    samples = [place * step_s for place in range(math.ceil(length_s / step_s - ROUNDING))]
    apart = list(map(ne, _directions(demand, samples), _directions(supply, samples)))
    return 100 * sum(apart) / len(apart) if apart else 0.0


def _directions(steps: Steps, samples: Sequence[float]) -> Iterator[int]:
    """1, 0 or -1 after each sample but the first: whether a function is higher, as high, or lower than before."""
    values = [_at(steps, t_s) for t_s in samples]
    return ((after > before) - (after < before) for before, after in pairwise(values))
