"""From the engine's records to one number per trial. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from steelyard.model import histogram
from steelyard.model.histogram import Bucket
from steelyard.model.outcome import ANSWERED, Outcome
from steelyard.model.trial import Responses
from steelyard.wire.record import Done, Interval

NS_PER_MS = 1e6
NS_PER_S = 1e9
NS_PER_US = 1e3


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
    value = histogram.quantile_ns(buckets, q)
    return None if value is None else value / NS_PER_MS


def joined(ends: Iterable[tuple[str, Done]]) -> dict[str, Done]:
    """The ends of a node's phases as the end of one, by node; nodes in the order in which they came."""
    nodes: dict[str, list[Done]] = {}
    for node, done in ends:
        nodes.setdefault(node, []).append(done)
    return {node: dones[0] if len(dones) == 1 else _sum(dones) for node, dones in nodes.items()}


def _sum(dones: Sequence[Done]) -> Done:
    first_s = min(done.first_sent_s for done in dones)
    last_s = max(done.last_done_s for done in dones)
    kinds: dict[str, int] = {}
    for done in dones:
        for kind, count in done.errors_by_kind.items():
            kinds[kind] = kinds.get(kind, 0) + count
    return replace(
        dones[0],
        first_sent_s=first_s,
        last_done_s=last_s,
        execution_ns=int((last_s - first_s) * NS_PER_S),
        operations=sum(done.operations for done in dones),
        errors=sum(done.errors for done in dones),
        errors_by_kind=kinds,
        not_found=sum(done.not_found for done in dones),
        rows=sum(done.rows for done in dones),
        cpu_ns=sum(done.cpu_ns for done in dones),
        busiest_thread_fraction=max(done.busiest_thread_fraction for done in dones),
        dropped=sum(done.dropped for done in dones),
        reconnections=sum(done.reconnections for done in dones),
    )


def responses(intervals: Sequence[Interval], dones: Sequence[Done]) -> Responses:
    """`intervals` and `dones`: records of the measured phase, of all load nodes. Execution time runs from the first
    operation sent by any load node to the last answered."""
    if not dones:
        return Responses()
    first_s = min(done.first_sent_s for done in dones)
    last_s = max(done.last_done_s for done in dones)
    execution_ns = dones[0].execution_ns if len(dones) == 1 else (last_s - first_s) * NS_PER_S
    operations = sum(done.operations for done in dones)
    cpu_ns = sum(done.cpu_ns for done in dones)
    response, service = merged(intervals, "response"), merged(intervals, "service")
    lag = merged(intervals, "lag", (*ANSWERED, Outcome.TIMEOUT))
    response_mean, service_mean = histogram.mean_ns(response), histogram.mean_ns(service)
    return Responses(
        execution_time_ms=execution_ns / NS_PER_MS,
        operations=operations,
        errors=sum(done.errors for done in dones),
        not_found=sum(done.not_found for done in dones),
        throughput_per_s=operations / (execution_ns / NS_PER_S) if execution_ns > 0 else None,
        response_ms_mean=None if response_mean is None else response_mean / NS_PER_MS,
        response_ms_p50=quantile_ms(response, 0.50),
        response_ms_p95=quantile_ms(response, 0.95),
        response_ms_p99=quantile_ms(response, 0.99),
        response_ms_max=quantile_ms(response, 1.0),
        service_ms_mean=None if service_mean is None else service_mean / NS_PER_MS,
        service_ms_p50=quantile_ms(service, 0.50),
        service_ms_p95=quantile_ms(service, 0.95),
        service_ms_p99=quantile_ms(service, 0.99),
        lag_ms_p99=quantile_ms(lag, 0.99),
        generator_cpu_us_per_operation=cpu_ns / NS_PER_US / operations if operations else None,
    )
