"""Responses before, during and after activities of trials, and of their controls around the time at which the policy
would have acted there.

Only trials with activities and their controls are read: other stores cost nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from steelyard.analysis.statistic import ActivityReturn, AlignedTrial, AroundActivity
from steelyard.heavy import pl
from steelyard.judging.activity_phases import arrival
from steelyard.judging.activity_windows import ActivityWindow, delayed, returned, windows, within
from steelyard.judging.derived import gives
from steelyard.judging.disruptions import marked_s
from steelyard.judging.membership import Span, sizes
from steelyard.judging.policy_points import ROUNDING_S, Seen, mean_in_service, point
from steelyard.model import histogram
from steelyard.model.activity import HEALED, RECOVERED, Activity, Disrupted
from steelyard.model.histogram import Bucket
from steelyard.model.outcome import ANSWERED
from steelyard.model.percentiles import quantile_ns, supported
from steelyard.model.response import NS_PER_MS
from steelyard.model.trial import Attempt, CellKey, TrialRecord
from steelyard.reading.replay import seen_of, sham_delay_s
from steelyard.store.read import Store

SHORTEST_S: Final = 0.95
"""Least time of operations that a window has numbers of: an interval of 1 s whose end the load may have cut off."""
WHOLE: Final = 0.5
"""Least part of a trial's longest interval that an interval must have lasted to be a second of its series."""
AROUND_S: Final = (-120, 300)
"""Seconds around a decision that are aligned."""
CPU: Final = "cpu_percent_mean"
PERCENTILES: Final = {"response_ms_p50": 0.5, "response_ms_p99": 0.99}


@dataclass(frozen=True)
class TrialOperations:
    """Operations of a trial by the interval in which they ended; load nodes are added up."""

    rows: pl.DataFrame = field(repr=False)
    """`place` (number of the interval), `answered`, `low`, `high`, `count`."""
    first_s: float
    """When the first interval began, in seconds of the trial."""
    last_s: float
    """When the last one ended."""
    step_s: float
    """Length of a whole interval."""

    @cached_property
    def intervals(self) -> dict[int, Span]:
        """Whole intervals by their number, those without an operation included."""
        spans = {}
        for place in range(math.ceil((self.last_s - self.first_s) / self.step_s)):
            begun_s = self.first_s + place * self.step_s
            span = Span(begun_s, min(begun_s + self.step_s, self.last_s))
            if span.seconds >= WHOLE * self.step_s:
                spans[place] = span
        return spans

    def values(self, spans: Sequence[Span]) -> dict[str, float]:
        """Response to its value over the intervals that lie within the spans; without those that these do not
        support, and empty if they last less than SHORTEST_S."""
        inside = {place: span for place, span in self.intervals.items() if within(span, self.step_s, spans)}
        seconds = math.fsum(span.seconds for span in inside.values())
        if seconds < SHORTEST_S:
            return {}
        rows = self.rows.filter(pl.col("place").is_in(list(inside)))
        counted = rows.filter("answered").select("low", "high", "count").iter_rows()
        buckets: list[Bucket] = histogram.merge([counted])
        operations, failed = histogram.total(buckets), int(rows.filter(~pl.col("answered"))["count"].sum())
        values = {"throughput_per_s": operations / seconds}
        mean_ns = histogram.mean_ns(buckets)
        if mean_ns is not None:
            values["response_ms_mean"] = mean_ns / NS_PER_MS
        for name, q in PERCENTILES.items():
            value_ns = quantile_ns(buckets, q)
            if value_ns is not None and supported(q, operations):
                values[name] = value_ns / NS_PER_MS
        if operations + failed:
            values["error_percent"] = 100 * failed / (operations + failed)
        return values

    @cached_property
    def answered(self) -> dict[int, tuple[int, int]]:
        """Answered operations of each interval that has any, and twice the sum of their response times, ns."""
        # Whole numbers, as in `within_trials.series`.
        twice_ns = ((pl.col("low") + pl.col("high")) * pl.col("count")).sum()
        sums = self.rows.filter("answered").group_by("place").agg(pl.col("count").sum(), twice_ns.alias("twice_ns"))
        return {place: (operations, twice) for place, operations, twice in sums.iter_rows()}

    @cached_property
    def means(self) -> list[tuple[float, float]]:
        """When each interval began, and the mean response time in it, ms; infinite without an answered operation."""
        return [
            (span.begun_s, _mean_ms(*self.answered[place]) if place in self.answered else math.inf)
            for place, span in self.intervals.items()
        ]

    def curves(self, at_s: float) -> dict[str, dict[int, float]]:
        """Response to its values in the whole seconds since `at_s` of the trial, as far as AROUND_S reaches. Second 0
        begins with the interval whose beginning is nearest, so seconds are exact to half an interval."""
        zero = round((at_s - self.first_s) / self.step_s)
        seconds: dict[int, list[int]] = {}
        for place in self.intervals:
            second = math.floor((place - zero) * self.step_s + ROUNDING_S)
            if AROUND_S[0] <= second < AROUND_S[1]:
                seconds.setdefault(second, []).append(place)
        times, rates = {}, {}
        for second, places in seconds.items():
            sums = [self.answered.get(place, (0, 0)) for place in places]
            operations = sum(n for n, _ in sums)
            rates[second] = operations / math.fsum(self.intervals[place].seconds for place in places)
            if operations:
                times[second] = _mean_ms(operations, sum(twice for _, twice in sums))
        return {"response_ms_mean": times, "throughput_per_s": rates}


def _mean_ms(operations: int, twice_ns: int) -> float:
    return twice_ns / operations / (2 * NS_PER_MS)


@dataclass(frozen=True)
class TrialData:
    """What the windows of a trial are computed from."""

    record: TrialRecord
    operations: TrialOperations
    seen: Seen = field(repr=False)

    @property
    def length_s(self) -> float:
        """Seconds of its measurement."""
        span = self.record.measured_span
        return span[1] - span[0] if span else 0.0

    def values(self, spans: Sequence[Span]) -> dict[str, float]:
        """Response to its value in the spans: those of operations, and the CPU of the nodes in service."""
        begun_s = self.record.measured_span[0] if self.record.measured_span else 0.0
        cpu = mean_in_service(CPU, spans, begun_s, self.seen)
        return self.operations.values(spans) | ({} if cpu is None else {CPU: cpu})

    def curves(self, at_s: float) -> dict[str, dict[int, float]]:
        """Response to its values in the whole seconds since `at_s` of the trial: those of operations, and the CPU of
        the nodes in service, as a policy that follows it sees it."""
        span = self.record.measured_span
        assert span is not None, self.record.key
        seconds = range(max(AROUND_S[0], math.ceil(-at_s)), min(AROUND_S[1], math.floor(span[1] - span[0] - at_s)))
        points = ((second, point(CPU, at_s + second + 1, 1.0, span[0], self.seen).value) for second in seconds)
        cpu = {second: value for second, value in points if value is not None}
        return {**self.operations.curves(at_s), CPU: cpu}


def around_activities(
    store: Store, cells: Mapping[CellKey, Sequence[TrialRecord]]
) -> tuple[list[AroundActivity], list[ActivityReturn], list[AlignedTrial]]:
    """Every window around the changes of size of these trials, when their response times were back, and their seconds
    around the first of them, or the first disruption. Searches have none: their windows are of several rates."""
    every = [record for records in cells.values() for record in records if record.search is None]
    around: list[AroundActivity] = []
    returns: list[ActivityReturn] = []
    aligned: list[AlignedTrial] = []
    for block in sorted({record.block for record in every if record.activities or record.disruptions}):
        of_block = [record for record in every if record.block == block]
        read: dict[Attempt, TrialData | None] = {}
        for record in of_block:
            own = _data(store, record, read) if record.activities or record.disruptions else None
            if own is None:
                continue
            if not record.activities:
                undisrupted = [_data(store, other, read) for other in of_block if _is_undisrupted(other, record)]
                aligned.append(_aligned(own, record.disruptions[0], [(one, 0.0) for one in undisrupted if one]))
                continue
            controls = [
                data
                for other in of_block
                if _is_control(other, record) and (data := _data(store, other, read)) is not None
            ]
            named = windows(record)
            delays_s = [(one, sham_delay_s(store, one.record, record)) for one in controls]
            alike = [(one, delay_s) for one, delay_s in delays_s if delay_s is not None]
            around += [
                AroundActivity(
                    record.key, window, own.values(window.spans),
                    [one.values(delayed(window, delay_s, one.length_s)) for one, delay_s in alike]
                    if window.activity == 1 else [one.values(window.spans) for one in controls],
                )
                for window in named
            ]  # fmt: skip
            returns += _returns(record, named, own.operations)
            aligned.append(_aligned(own, record.activities[0], alike))
    return around, returns, aligned


def _is_control(other: TrialRecord, record: TrialRecord) -> bool:
    """Whether a trial differs from another in its policy only, and kept its size."""
    return gives(other.settings, record.settings) and not other.activities


def _is_undisrupted(other: TrialRecord, record: TrialRecord) -> bool:
    """Whether a trial differs from another in its disruption only, and had none."""
    same = other.settings.without("disruption") == record.settings.without("disruption")
    return same and not other.settings.disruption.disrupts and not other.activities


def _returns(record: TrialRecord, named: Sequence[ActivityWindow], operations: TrialOperations) -> list[ActivityReturn]:
    by_name = {(window.activity, window.name): window for window in named}
    returns = []
    for (activity, name), during in by_name.items():
        before = by_name.get((activity, "before"))
        if name != "during" or before is None:
            continue
        after = by_name.get((activity, "after"), during)
        back = returned(
            operations.means, operations.step_s, before=before.spans[0], during=during.spans[0], after=after.spans[0]
        )
        if back is not None:
            returns.append(ActivityReturn(record.key, during, back))
    return returns


def _aligned(own: TrialData, first: Activity, controls: Sequence[tuple[TrialData, float]]) -> AlignedTrial:
    record, span = own.record, own.record.measured_span
    assert span is not None, record.key
    at_s = first.begun_s - span[0]
    steps = [(-math.inf, record.settings.site.nodes), *sizes(record.settings.site.nodes, record.activities)]
    nodes = {
        second: next(size for t_s, size in reversed(steps) if t_s <= first.begun_s + second + 0.5)
        for second in range(*AROUND_S)
    }
    arrived = (arrival(first, node) for node in first.nodes)
    times_s = [mark.t_s for mark in arrived if mark is not None]
    if isinstance(first, Disrupted):
        times_s = [t_s for name in (HEALED, RECOVERED) if (t_s := marked_s(first, name)) is not None]
    arrived_s = sorted(t_s - first.begun_s for t_s in times_s)
    return AlignedTrial(
        record.key, first.kind, own.curves(at_s), nodes, arrived_s,
        [control.curves(at_s + delay_s) for control, delay_s in controls],
    )  # fmt: skip


def _data(store: Store, record: TrialRecord, read: dict[Attempt, TrialData | None]) -> TrialData | None:
    """The data of a trial, read once; None without a measured phase or an operation."""
    if record.key not in read:
        operations, read[record.key] = _operations(store, record), None
        if operations is not None:
            seen = seen_of(CPU, record, store.samples(record), store.facts(record), pl.DataFrame())
            read[record.key] = TrialData(record, operations, seen)
    return read[record.key]


def _operations(store: Store, record: TrialRecord) -> TrialOperations | None:
    if record.measured_span is None:
        return None
    rows = store.operations([record], record.measured_phases).collect(engine="streaming")
    if rows.is_empty():
        return None
    zero_s, first_s = record.measured_span[0], float(rows["t_s"].min())  # type: ignore[arg-type]
    step_s = float(rows["seconds"].max())  # type: ignore[arg-type]
    last_s = float((rows["t_s"] + rows["seconds"]).max())  # type: ignore[arg-type]
    summed = (
        rows.group_by(
            # Clocks of load nodes differ by less than half an interval.
            ((pl.col("t_s") - first_s) / step_s).round().cast(pl.Int64).alias("place"),
            pl.col("outcome").is_in(ANSWERED).alias("answered"),
            pl.col("bucket_low_ns").alias("low"),
            pl.col("bucket_high_ns").alias("high"),
        )
        .agg(pl.col("count").sum())
        .sort("place", "answered", "low")
    )
    return TrialOperations(summed, first_s - zero_s, last_s - zero_s, step_s)
