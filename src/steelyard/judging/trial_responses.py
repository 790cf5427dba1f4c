"""Computation of a trial's responses, one number each, from the engine's records. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from steelyard.model import histogram
from steelyard.model import responses as registered
from steelyard.model.histogram import Bucket
from steelyard.model.outcome import ANSWERED
from steelyard.model.percentiles import quantile_ns, supported
from steelyard.model.response import NS_PER_MS, NS_PER_S, Counted, Measured, Response
from steelyard.model.trial import Responses, TrialRecord

if TYPE_CHECKING:
    from steelyard.wire.record import Done, Interval

COUNTS: Final = ("operations", "errors", "unsent", "not_found", "rows", "cpu_ns", "dropped", "reconnections")
"""Counts at the ends of phases, to be added up."""


def merged(intervals: Sequence[Interval], measure: str, outcomes: Collection[str] = ANSWERED) -> list[Bucket]:
    """The histogram of a measure over all intervals, operations and load nodes."""
    return histogram.merge(
        counts.buckets
        for interval in intervals
        for counts in interval.counts
        if counts.measure == measure and counts.outcome in outcomes
    )


def quantile_ms(buckets: Sequence[Bucket], q: float) -> float | None:
    """A quantile in milliseconds."""
    value = quantile_ns(buckets, q)
    return None if value is None else value / NS_PER_MS


def joined(ends: Iterable[tuple[str, Done]]) -> dict[str, Done]:
    """The ends of each node's phases merged into one, by node, in order of first appearance."""
    nodes: dict[str, list[Done]] = {}
    for node, done in ends:
        nodes.setdefault(node, []).append(done)
    return {node: dones[0] if len(dones) == 1 else _as_one(dones) for node, dones in nodes.items()}


def _as_one(dones: Sequence[Done]) -> Done:
    first_s = min(done.first_sent_s for done in dones)
    last_s = max(done.last_done_s for done in dones)
    kinds: dict[str, int] = {}
    for done in dones:
        for kind, count in done.errors_by_kind.items():
            kinds[kind] = kinds.get(kind, 0) + count
    return replace(
        dones[0],
        **_totals(dones),
        first_sent_s=first_s,
        last_done_s=last_s,
        execution_ns=int((last_s - first_s) * NS_PER_S),
        errors_by_kind=kinds,
        busiest_thread_fraction=max(done.busiest_thread_fraction for done in dones),
    )


def _totals(dones: Sequence[Done]) -> dict[str, Any]:
    return {name: sum(getattr(done, name) for done in dones) for name in COUNTS}


def measured(intervals: Sequence[Interval], dones: Sequence[Done]) -> Measured | None:
    """Totals of the measured phases over all load nodes; None if no phase ended.

    Execution time runs from the first operation sent by any load node to the last answered.
    """
    if not dones:
        return None
    first_s = min(done.first_sent_s for done in dones)
    last_s = max(done.last_done_s for done in dones)
    parts: dict[Counted, list[Sequence[Bucket]]] = {}
    for interval in intervals:
        for counts in interval.counts:
            key = (counts.operation, counts.outcome, counts.measure)
            parts.setdefault(key, []).append(counts.buckets)
    return Measured(
        **_totals(dones),
        execution_ns=dones[0].execution_ns if len(dones) == 1 else (last_s - first_s) * NS_PER_S,
        histograms={key: histogram.merge(buckets) for key, buckets in parts.items()},
    )


def responses(intervals: Sequence[Interval], dones: Sequence[Done], capacity_per_s: float | None = None) -> Responses:
    """Every response of a trial, from the records of its measured phases from all load nodes, and the result of its
    search."""
    totals = measured(intervals, dones)
    if totals is None:
        return Responses()
    return Responses.model_validate(registered.compute(replace(totals, capacity_per_s=capacity_per_s)))


def response_of(record: TrialRecord, name: str) -> float | int | None:
    """A response; None for a percentile that the trial's number of operations does not support, whatever was
    recorded, and for what a search would pool over windows of all its rates."""
    response = registered.of(name)
    if record.search is not None and pools_windows(response):
        return None
    if response.source not in ("records", "search"):
        return record.measures.get(name)
    q = response.percentile
    return None if q is not None and not supported(q, record.responses.operations) else record.responses.of(name)


def pools_windows(response: Response) -> bool:
    """Whether a search's value of a response would be over windows of all rates, overloaded ones too: of all that is
    counted from operations but their number."""
    return response.source in ("records", "study") and response.name != "operations"
