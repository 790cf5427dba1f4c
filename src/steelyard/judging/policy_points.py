"""Points of the metric that a scaling policy follows: one per period of the measured phase. Pure: the laboratory asks
policies with them, and verification and replay compute them again from what is stored. Windows around activities have
means of the same readings."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from steelyard.judging.measures import COVERED, Facts, Readings, nodes_of, over_time, pieces_of, points
from steelyard.judging.membership import ALWAYS, Span, in_service, serving
from steelyard.judging.trial_responses import quantile_ms
from steelyard.model import histogram, responses
from steelyard.model.activity import Activity
from steelyard.model.histogram import Bucket
from steelyard.model.response import NS_PER_MS
from steelyard.model.scaling import Point

OF_CLIENTS: Final = ("response_ms_mean", "response_ms_p99", "throughput_per_s")
"""Responses that load nodes measure in each of their intervals."""
ROUNDING_S: Final = 1e-6


@dataclass(frozen=True)
class Seen:
    """What was measured in a trial, as far as it is known."""

    readings: Readings
    """Of the metrics that the points rest on."""
    facts: Facts
    shares: Sequence[str]
    """Resources that nodes share."""
    answers: Mapping[str, Sequence[tuple[float, Sequence[Bucket]]]]
    """Every load node, with its intervals with answered operations in order: end (seconds since the epoch), response
    times."""
    activities: Sequence[Activity]


def metrics() -> tuple[str, ...]:
    """Names of the responses that a policy can follow: means over time of samples, and responses of clients."""
    return (*OF_CLIENTS, *over_time(tuple(responses.every())))


def point(metric: str, end_s: float, period_s: float, begun_s: float, seen: Seen) -> Point:
    """The point of the period that ends at `end_s` of the measured phase, which began at `begun_s`. Of samples: the
    mean over the nodes that serve all of it and have a reading at its end or later, each with the mean over the period.
    So what comes in later changes no point but by the number of its nodes."""
    span = (begun_s + end_s - period_s, begun_s + end_s)
    if metric in OF_CLIENTS:
        return _of_clients(metric, end_s, span, seen)
    measure = responses.of(metric).measure
    assert measure is not None, metric
    nodes = nodes_of(measure, seen.readings, seen.facts, seen.shares)
    for t_s in span:
        nodes = serving(nodes, seen.activities, t_s)
    near = {node: _near(seen.readings.get(node, {}), span) for node in nodes}
    means = [
        points(pieces_of(measure, node, near, seen.facts, span) or (), period_s, period_s)[0]
        for node in nodes
        if any(readings[-1][0] >= span[1] for readings in near[node].values() if readings)
    ]
    known = [mean for mean in means if mean is not None]
    return Point(end_s, math.fsum(known) / len(known) if known else None, len(known))


def mean_in_service(metric: str, windows: Sequence[Span], begun_s: float, seen: Seen) -> float | None:
    """Mean of a measure over windows of the measured phase, which began at `begun_s`, and over the nodes that served in
    them, each weighed by the time in which it did. None if readings cover too little of that time."""
    measure = responses.of(metric).measure
    assert measure is not None, metric
    served, seconds, pieces = in_service(seen.activities), 0.0, []
    for node in nodes_of(measure, seen.readings, seen.facts, seen.shares):
        for window in windows:
            whole = Span(begun_s + window.begun_s, begun_s + window.ended_s)
            there = served.get(node, ALWAYS).within(whole)
            near = {node: _near(seen.readings.get(node, {}), there)}
            seconds += there.seconds
            pieces += pieces_of(measure, node, near, seen.facts, there) or [] if there.seconds else []
    covered = math.fsum(piece.seconds for piece in pieces)
    if not covered or covered < COVERED * seconds:
        return None
    return math.fsum(piece.value * piece.seconds for piece in pieces) / covered


def _near(
    of_node: Mapping[str, Sequence[tuple[float, float]]], span: tuple[float, float]
) -> dict[str, Sequence[tuple[float, float]]]:
    """A node's readings within a span, one before it and one after it."""
    near = {}
    for metric, readings in of_node.items():
        first, last = (bisect_left(readings, end, key=lambda reading: reading[0]) for end in span)
        near[metric] = readings[max(0, first - 1) : last + 1]
    return near


def _of_clients(metric: str, end_s: float, span: tuple[float, float], seen: Seen) -> Point:
    """The point from the intervals of load nodes that end within its period: no operation answered is a throughput of
    0, and no response time."""
    parts = []
    for intervals in seen.answers.values():
        first, last = (bisect_left(intervals, end + ROUNDING_S, key=lambda interval: interval[0]) for end in span)
        parts += [of_one for _, of_one in intervals[first:last]]
    buckets = histogram.merge(parts)
    mean_ns, value = histogram.mean_ns(buckets), None
    if metric == "response_ms_p99":
        value = quantile_ms(buckets, 0.99)
    elif metric == "throughput_per_s":
        value = histogram.total(buckets) / (span[1] - span[0])
    elif mean_ns is not None:
        value = mean_ns / NS_PER_MS
    return Point(end_s, value, len(seen.answers))
