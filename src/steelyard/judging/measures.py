"""Measures of a trial: responses computed from the samples of its measured phases. Pure, and without heavy libraries.

A reading at time t describes the time since the reading before it: that is the weight it has, as far as it lies within
the measured span. So a gap, after which a counter gives the mean of the whole gap, is counted once and with its length,
and a node that joins late counts from its first reading. A reading below 0, of a counter that restarted, is left out.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from steelyard.judging.capacity_search import plateau
from steelyard.judging.elasticity import elasticity_of
from steelyard.judging.membership import ALWAYS, Span, in_service, mean_nodes, spans
from steelyard.model import power, responses
from steelyard.model.cost import Cost
from steelyard.model.facts import MACHINE, of_systems, role_of
from steelyard.model.measure import JOB_SPAN, POINT_S, Measure
from steelyard.model.plausible import number_in
from steelyard.model.response import Response
from steelyard.model.responses.cost import PER_MILLION, PER_TRIAL
from steelyard.model.responses.scaling import SEALED
from steelyard.model.sample import Sample
from steelyard.model.study import Study
from steelyard.model.trial import CellKey, Phase, TrialRecord

Facts = Mapping[str, Mapping[str, str]]
Readings = Mapping[str, Mapping[str, Sequence[tuple[float, float]]]]
"""Node, metric: its readings as (seconds since the epoch, value), in order of time."""
READING_S = 1.0
"""Seconds that the first reading of a node covers: the second before it."""
COVERED = 0.95
"""Least share of a point that readings must cover."""
S_PER_H = 3600.0
MILLION = 1e6


class Piece(NamedTuple):
    """A time within the measured span, seconds since its beginning, over which a node had one value."""

    from_s: float
    to_s: float
    value: float

    @property
    def seconds(self) -> float:
        """Its length."""
        return self.to_s - self.from_s


def belongs(from_s: Any, t_s: Any, span: tuple[float, float]) -> Any:
    """Whether a reading at `t_s`, which covers the time since `from_s`, belongs to a span: any of what it covers lies
    within. Of numbers, or of columns (polars expressions)."""
    return (t_s > span[0]) & (from_s < span[1])


def readings_of_samples(samples: Mapping[str, Iterable[Sample]]) -> Readings:
    """Samples by node as readings by node and metric."""
    nodes: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for node, of_node in samples.items():
        metrics = nodes.setdefault(node, {})
        for sample in of_node:
            metrics.setdefault(sample.metric, []).append((sample.t_s, sample.value))
        for of_metric in metrics.values():
            of_metric.sort()
    return nodes


def over_time(names: Collection[str]) -> tuple[str, ...]:
    """Those of the responses that have a value in each second: means over time of samples."""
    known = responses.measured_by_samples()
    return tuple(name for name in names if name in known and (measure := known[name].measure) and _each_second(measure))


def _each_second(measure: Measure) -> bool:
    return measure.how == "mean" and measure.per != "operation" and measure.during == "measured"


def metrics_of(names: Collection[str]) -> frozenset[str]:
    """The metrics that these responses are computed from; `power.ANY` represents all in watts."""
    known = responses.measured_by_samples()
    measures = [_measure(known[name]) for name in names if name in known]
    named = {metric for measure in measures if not measure.power for metric in measure.metrics}
    named |= {JOB_SPAN for measure in measures if measure.during == "jobs"}
    return frozenset(named | {power.ANY for measure in measures if measure.power})


def measures_of(
    record: TrialRecord, readings: Readings, facts: Facts, names: Collection[str] | None = None
) -> dict[str, float]:
    """Every measure that the samples of a trial give, by name; only these `names`, if given.

    Empty if the trial has no measured phase.
    """
    if not sampled_spans(record):
        return {}
    known = responses.measured_by_samples()
    chosen = {name: known[name] for name in known if names is None or name in names}
    values = {name: _value(_measure(response), record, readings, facts) for name, response in chosen.items()}
    return {name: value for name, value in values.items() if value is not None}


def sampled_spans(record: TrialRecord) -> tuple[tuple[float, float], ...]:
    """The times over which measures are taken, seconds since the epoch: the measured span, but of a search for
    saturation the windows over which its result is averaged. Empty without a measured span."""
    beyond = () if record.search is None else plateau(record.search)
    known = tuple((one.begun_at, one.begun_at + one.seconds) for one in beyond if one.begun_at is not None)
    return known or (() if record.measured_span is None else (record.measured_span,))


def idle_spans(record: TrialRecord) -> tuple[tuple[float, float], ...]:
    """The idle phase of a trial, seconds since the epoch; empty without one."""
    whole = [(one.entered_s, one.left_s) for one in record.phases if one.phase is Phase.IDLE and one.left_s is not None]
    return tuple(whole[-1:])


def job_spans(readings: Readings) -> tuple[tuple[float, float], ...]:
    """The times in which at least one job was at work, by the engine's samples, seconds since the epoch."""
    merged: list[tuple[float, float]] = []
    of_nodes = (of_node.get(JOB_SPAN, ()) for of_node in readings.values())
    for span in sorted((t_s - seconds, t_s) for of_node in of_nodes for t_s, seconds in of_node):
        if merged and span[0] <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], span[1]))
        else:
            merged.append(span)
    return tuple(merged)


def sampled_operations(record: TrialRecord) -> int:
    """Operations that were answered without error within `sampled_spans`."""
    if record.search is None or sampled_spans(record) == (record.measured_span,):
        return record.responses.operations
    return sum(window.operations for window in plateau(record.search))


def seconds_of(
    name: str, record: TrialRecord, readings: Readings, facts: Facts, step_s: float = 1.0
) -> list[float | None]:
    """A measure in each step of the measured span, the mean over the nodes that were there; None if a node's readings
    do not cover it. Empty if a node has none. The measure is a mean over time."""
    measure, span = _measure(responses.of(name)), record.measured_span
    if span is None:
        return []
    nodes = _served(nodes_of(measure, readings, facts, record.shares), record)
    known = [pieces_of(measure, node, readings, facts, span) for node in nodes]
    by_node = [points(pieces, span[1] - span[0], step_s) for pieces in known if pieces]
    if not by_node or len(by_node) < len(nodes):
        return []
    of_nodes = spans(record.activities)
    there = [of_nodes.get(node, ALWAYS) for node in nodes]
    means: list[float | None] = []
    for place, values in enumerate(zip(*by_node, strict=True)):
        step = Span(span[0] + place * step_s, span[0] + (place + 1) * step_s)
        of_step = [value for value, one in zip(values, there, strict=True) if step.within(one) == step]
        known_ones = [value for value in of_step if value is not None]
        means.append(math.fsum(known_ones) / len(known_ones) if known_ones and None not in of_step else None)
    return means


def with_derived(records: Sequence[TrialRecord], study: Study) -> list[TrialRecord]:
    """The records with the responses that follow from others and from what the study declares: the share of failed
    operations, the cost at its price, and measures of elasticity by its demand."""
    elastic, derived = elasticity_of(records, study), []
    for record in records:
        measures, done = record.measures | elastic.get(record.key, {}), record.responses.operations
        if done + record.responses.errors:
            measures["error_percent"] = 100 * record.responses.errors / (done + record.responses.errors)
        price, rate = study.cost.price_per_node_hour, record.responses.throughput_per_s
        if price is not None:
            per_s = price * sum(counted_nodes(record, study)) / S_PER_H
            if rate:
                measures[PER_MILLION] = per_s / rate * MILLION
            if record.measured_span is not None:
                measures[PER_TRIAL] = per_s * (record.measured_span[1] - record.measured_span[0])
        measures |= _declared_energy(record, study.cost, measures)
        derived.append(record.model_copy(update={"measures": measures}))
    return _without_censored(derived)


def _declared_energy(record: TrialRecord, cost: Cost, measures: Mapping[str, float]) -> dict[str, float]:
    """Energy by what the study declares: of the model, and, where no idle was measured, above the declared idle."""
    if record.measured_span is None or cost.node_watts_busy is None:
        return {}
    node_s = mean_nodes(record) * math.fsum(ended_s - begun_s for begun_s, ended_s in sampled_spans(record))
    idle_j = None if cost.node_watts_idle is None else cost.node_watts_idle * node_s
    watts = cost.watts(measures.get("cpu_percent_mean"))
    declared = {} if watts is None else {"modelled_energy_j_total": watts * node_s}
    # On a shared machine, what was measured is all of it, and what is declared is a node. A meter's gain error does not
    # leave a difference from a number that the meter did not read, and one trial's idle is never another's.
    measured = "energy_j_total" in measures and not idle_spans(record) and "cpu" not in record.shares
    measured = measured and not cost.gain_error_percent
    if idle_j is not None and measured:
        declared["energy_j_above_idle"] = measures["energy_j_total"] - idle_j
    if idle_j is not None and "modelled_energy_j_total" in declared:
        declared["modelled_energy_j_above_idle"] = declared["modelled_energy_j_total"] - idle_j
    operations = sampled_operations(record)
    if not operations:
        return declared
    return declared | {
        f"{name.removesuffix('_total')}_per_operation": joules / operations for name, joules in declared.items()
    }


def _without_censored(records: Sequence[TrialRecord]) -> list[TrialRecord]:
    """The records without the responses that some valid trials of a treatment have and others do not, because it did
    not happen in them: a mean of those that have one would be too short (statistic `time_to_event` has all)."""
    lacking: dict[CellKey, set[str]] = {}
    for record in records:
        if record.verdict.outcome == "valid":
            lacking.setdefault(record.cell, set()).update({one.name for one in SEALED} - record.measures.keys())

    def kept(record: TrialRecord) -> TrialRecord:
        left_out = lacking.get(record.cell, set()) & record.measures.keys()
        measures = {name: value for name, value in record.measures.items() if name not in left_out}
        return record.model_copy(update={"measures": measures}) if left_out else record

    return [kept(record) for record in records]


def counted_nodes(record: TrialRecord, study: Study) -> tuple[float, int]:
    """Database nodes (their mean over time) and load nodes whose cost and energy a study counts."""
    settings = record.settings
    return mean_nodes(record), settings.load_nodes if study.cost.count_load_nodes else 0


def cores_given(facts: Mapping[str, str]) -> float | None:
    """Cores that a node was given: its quota, at most the cores of its machine; None if neither is known."""
    limits = [number_in(facts.get("limit_cpus", "")), machine_cores(facts)]
    known = [limit for limit in limits if limit is not None and limit > 0]
    return min(known, default=None)


def machine_cores(facts: Mapping[str, str]) -> float | None:
    """Cores of a node's machine; None if they are not known. In modelled time, where facts name their dilation, a
    machine gives that many times as many processor seconds per second."""
    cores = number_in(facts.get("cores", ""))
    return None if cores is None or cores <= 0 else cores * (number_in(facts.get("dilation", "")) or 1.0)


def points(pieces: Sequence[Piece], seconds: float, point_s: float = POINT_S) -> list[float | None]:
    """Means over consecutive points of `point_s` from the beginning of the span, whole points only; None for one that
    readings cover too little."""
    count = math.floor(seconds / point_s + 1e-9)
    parts: list[list[tuple[float, float]]] = [[] for _ in range(count)]
    for piece in pieces:
        for place in range(int(piece.from_s // point_s), min(count, math.ceil(piece.to_s / point_s))):
            overlap = min(piece.to_s, (place + 1) * point_s) - max(piece.from_s, place * point_s)
            if overlap > 0:
                parts[place].append((overlap, piece.value))
    means: list[float | None] = []
    for part in parts:
        covered = math.fsum(weight for weight, _ in part)
        whole = covered >= COVERED * point_s
        means.append(math.fsum(weight * value for weight, value in part) / covered if whole else None)
    return means


def pieces_of(
    measure: Measure, node: str, readings: Readings, facts: Facts, span: tuple[float, float]
) -> list[Piece] | None:
    """A node's values over the measured span, in the measure's unit before `per` an operation; None without any."""
    of_node = readings.get(node, {})
    metrics = power.power_metrics(of_node) if measure.power else measure.metrics
    present = [of_node[metric] for metric in metrics if of_node.get(metric)]
    if not present or metrics[0] not in of_node:
        return None
    cores = cores_given(facts.get(node) or facts.get(MACHINE, {})) if measure.per == "cores" else 1.0
    if cores is None:
        return None
    sums = dict(present[0])
    for other in present[1:]:
        at = dict(other)
        sums = {t_s: value + at[t_s] for t_s, value in sums.items() if t_s in at}
    begun_s, ended_s = span
    pieces, before = [], None
    for t_s, value in sums.items():
        from_s = t_s - READING_S if before is None else before
        before = t_s
        if belongs(from_s, t_s, span) and math.isfinite(value) and value >= 0:
            low, high = max(from_s, begun_s), min(t_s, ended_s)
            pieces.append(Piece(low - begun_s, high - begun_s, value / cores * measure.scale + measure.shift))
    return pieces or None


def nodes_of(measure: Measure, readings: Readings, facts: Facts, shares: Sequence[str]) -> list[str]:
    """The nodes that a measure is taken over; of those that share the resource, which read the same, the first."""
    role = "load" if measure.over == "load" else "database"
    named = {*readings, *(of_systems(facts) if role == "database" else ())}
    nodes = sorted((node for node in named if role_of(node, facts) == role), key=lambda node: (len(node), node))
    if not measure.shared or measure.shared not in shares:
        return nodes
    # A meter of one node is its own, also where nodes share a machine.
    own = measure.power and any(name.startswith("node_") for node in nodes for name in power_of(readings, node))
    return nodes if own else nodes[:1]


def _served(nodes: Sequence[str], record: TrialRecord) -> list[str]:
    """The nodes without those that were to join and never came into service."""
    served = in_service(record.activities)
    return [node for node in nodes if served.get(node, ALWAYS).begun_s < math.inf]


def power_of(readings: Readings, node: str) -> tuple[str, ...]:
    """The metrics that make up a node's power."""
    return power.power_metrics(readings.get(node, {}))


def _value(measure: Measure, record: TrialRecord, readings: Readings, facts: Facts) -> float | None:
    """The number that samples give; None if a node has no reading, or if it is per operation and there was none."""
    nodes = _served(nodes_of(measure, readings, facts, record.shares), record)
    whole = () if record.measured_span is None else (record.measured_span,)
    spans_of = whole if measure.how == "max_30s" else sampled_spans(record)  # windows may be shorter
    idle = idle_spans(record)
    if measure.during != "measured":
        spans_of = idle if measure.during == "idle" else job_spans(readings)
    by_node = _pieces_over(spans_of, measure, nodes, readings, facts)
    if measure.above_idle:
        before = _pieces_over(idle, measure, nodes, readings, facts)
        by_node = [
            [piece._replace(value=piece.value - _mean(of_idle)) for piece in pieces] if of_idle else []
            for pieces, of_idle in zip(by_node, before, strict=True)
        ]
    known = [pieces for pieces in by_node if pieces]
    if not known or len(known) < len(by_node):
        return None
    value = _reduced(measure, known, math.fsum(ended_s - begun_s for begun_s, ended_s in spans_of))
    if value is None or measure.per != "operation":
        return value
    operations = sampled_operations(record)
    return value / operations if operations else None


def _pieces_over(
    spans_of: Sequence[tuple[float, float]], measure: Measure, nodes: Sequence[str], readings: Readings, facts: Facts
) -> list[list[Piece]]:
    """Each node's values over several spans; none of a node without readings."""
    return [
        [piece for span in spans_of for piece in pieces_of(measure, node, readings, facts, span) or ()]
        for node in nodes
    ]


def _reduced(measure: Measure, nodes: Sequence[Sequence[Piece]], seconds: float) -> float | None:
    every = [piece for pieces in nodes for piece in pieces]
    match measure.how:
        case "mean":
            return max(_mean(pieces) for pieces in nodes) if measure.over == "each" else _mean(every)
        case "max":
            return max(piece.value for piece in every)
        case "max_30s":
            means = [mean for pieces in nodes for mean in points(pieces, seconds) if mean is not None]
            return max(means, default=None)
        case "longest":
            return max(piece.seconds for piece in every)
        case "sum":
            return math.fsum(piece.value for piece in every)
        case "integral":
            return math.fsum(piece.value * piece.seconds for piece in every)


def _mean(pieces: Sequence[Piece]) -> float:
    seconds = math.fsum(piece.seconds for piece in pieces)
    return math.fsum(piece.value * piece.seconds for piece in pieces) / seconds


def _measure(response: Response) -> Measure:
    if response.measure is None:  # the caller has chosen those that have one
        raise ValueError(f"{response.name} is not computed from samples")
    return response.measure
