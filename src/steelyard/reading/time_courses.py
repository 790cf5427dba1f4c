"""Time series within a trial: rate, percentiles and a heat map of response time.

Histograms of seconds are merged into windows with enough operations for the drawn percentiles. Percentiles are never
averaged, and one that the window's count does not support is left out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

from steelyard.events.base import Unknown
from steelyard.events.kept import (
    ActivityBegan,
    ActivityEnded,
    DisksLimited,
    DraftRemoved,
    ProcessorsLimited,
    SessionBegan,
    SessionEnded,
    StartBegan,
    StartEnded,
    StartReady,
    TrialSealed,
)
from steelyard.heavy import pl
from steelyard.judging.activity_phases import WAITING, phases
from steelyard.judging.disruptions import marked_s
from steelyard.judging.membership import sizes
from steelyard.model.activity import HEALED
from steelyard.model.histogram import Bucket, total
from steelyard.model.load import (
    CAPACITY,
    CAPACITY_WARM_UP,
    POPULATE,
    READ_AGAIN,
    READ_BACK,
    SEARCH_SETTLE,
    WARM_UP,
    LoadPhase,
    Offered,
)
from steelyard.model.outcome import ANSWERED
from steelyard.model.percentiles import BEYOND, midpoint_ms, quantiles_by_group, quantiles_ns, supported
from steelyard.model.search import Search
from steelyard.model.trial import CellKey, TrialRecord, by_cell
from steelyard.reading.node_strips import Strip, cpu_strips
from steelyard.reading.server_metrics import StripGroup, Worst, paused_ms, pauses_of, server_strips, worst_window
from steelyard.store.journal import Entry

QUANTILES: Final = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999}
MARKS: Final = {**QUANTILES, "p99.99": 0.9999, "p99.999": 0.99999}
STEPS_S: Final = (1.0, 2.0, 5.0, 10.0, 15.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0)
FEWEST_WINDOWS: Final = 5
ENOUGH_WINDOWS: Final = 8
"""Minimum number of windows: they are not widened further to support a percentile."""
ROOM: Final = (1.5, 1.0)
"""Operations of a usual window, as a multiple of those that a p99 needs: with room, so that a window in which the
cluster stalls has its p99, too; without, where the trial is too short for that."""
MOST_WINDOWS: Final = 180
BANDS_A_DECADE: Final = 10
BOOKKEEPING: Final = frozenset(
    kind.name
    for kind in (
        SessionBegan,
        SessionEnded,
        StartBegan,
        StartReady,
        ProcessorsLimited,
        DisksLimited,
        StartEnded,
        TrialSealed,
        DraftRemoved,
        ActivityBegan,
        ActivityEnded,
    )
)
"""Events of the journal that say nothing about the system under test, or whose bands are drawn from the sealed
record."""
NOT_DRAWN: Final = (POPULATE, CAPACITY, CAPACITY_WARM_UP, READ_BACK, READ_AGAIN)


@dataclass(frozen=True)
class CourseWindow:
    """A window of a trial."""

    at_s: float
    """Start of the window, seconds since the first interval."""
    seconds: float
    operations: int
    """Operations answered."""
    failed: int
    offered_per_s: float | None
    """Operations per second that were due; None in a closed loop, and for a trace."""
    percentiles_ms: Mapping[str, float]
    """The percentiles of `QUANTILES` that the count supports."""

    @property
    def achieved_per_s(self) -> float:
        """Operations answered per second."""
        return self.operations / self.seconds


@dataclass(frozen=True)
class CourseSpan:
    """A phase of the load, seconds since the first interval."""

    name: str
    from_s: float
    to_s: float


@dataclass(frozen=True)
class Timeline:
    """One trial over time."""

    record: TrialRecord
    value: float | None
    """Its main response; None for a trial that is not used."""
    step_s: float
    seconds: float
    windows: tuple[CourseWindow, ...]
    spans: tuple[CourseSpan, ...]
    heat: tuple[tuple[int, int, int], ...]
    """CourseWindow, band and count: band b holds response times from 10^(b / BANDS_A_DECADE) ms on."""
    events: tuple[tuple[float, str], ...] = ()
    """Seconds since the first interval, and what happened."""
    middle: bool = False
    """Whether it is the median trial of its treatment."""
    bands: tuple[CourseSpan, ...] = ()
    """Spans from the journal: an event that began one and an event that ended it."""
    strips: tuple[Strip, ...] = ()
    """CPU of each node; empty without samples."""
    server: tuple[StripGroup, ...] = ()
    """Metrics that the database reports; empty without its own metrics."""
    paused_ms: tuple[float | None, ...] = ()
    """The longest pause of any node in each window; empty if pauses were not watched."""
    worst: Worst | None = None
    """The window with the highest percentile, where pauses were watched."""
    phases: tuple[CourseSpan, ...] = ()
    """Phases of the nodes that joined or left, by name and node."""
    nodes: tuple[tuple[float, int], ...] = ()
    """Seconds since the first interval, and nodes in service from then on; empty if the cluster kept its size."""


@dataclass(frozen=True)
class Curve:
    """Response or service time of one treatment over the percentile, from histograms added up over its trials."""

    treatment: Mapping[str, Any]
    measure: str
    trials: int
    operations: int
    points: tuple[tuple[float, float], ...] = field(repr=False)
    """Share of operations at or below, and the time in ms; up to the last share that the count supports."""
    marks: Mapping[str, float] = field(default_factory=dict)
    """The percentiles of `MARKS` that the count supports, in ms."""


def timeline(
    record: TrialRecord,
    intervals: pl.DataFrame,
    *,
    journal: Sequence[Entry] = (),
    value: float | None = None,
    middle: bool = False,
    samples: pl.DataFrame | None = None,
) -> Timeline | None:
    """A trial over time, from the store's intervals; None if it is too short. `samples`: of its nodes, for a strip
    each."""
    drawn = intervals.filter(~pl.col("phase").is_in(NOT_DRAWN) & (pl.col("measure") == "response"))
    if drawn.is_empty():
        return None
    begun_s = float(drawn["t_s"].min())  # type: ignore[arg-type]
    # The middle of an interval, not its beginning: clocks of load nodes differ by less than half a second.
    drawn = drawn.with_columns((pl.col("t_s") - begun_s).alias("from_s")).with_columns(
        (pl.col("from_s") + pl.col("seconds")).alias("to_s"),
        (pl.col("from_s") + pl.col("seconds") / 2).alias("middle_s"),
        midpoint_ms().alias("ms"),
        pl.col("outcome").is_in(ANSWERED).alias("answered"),
    )
    seconds = float(drawn["to_s"].max())  # type: ignore[arg-type]
    step_s = _step(seconds, drawn.filter("answered"))
    if seconds / step_s < FEWEST_WINDOWS:
        return None
    drawn = drawn.with_columns((pl.col("middle_s") / step_s).floor().cast(pl.Int64).alias("window"))
    spans = _spans(drawn)
    answered = drawn.filter("answered")
    windows = _windows(drawn, answered, step_s, seconds, _offers(record, spans))
    bands, rest = _bands(journal, begun_s, seconds)
    pauses = {} if samples is None else pauses_of(samples, begun_s)
    paused = {} if samples is None else paused_ms(samples, pauses, begun_s, step_s, len(windows))
    measured_s = next((span.from_s for span in spans if span.name != WARM_UP), 0.0)
    return Timeline(
        record,
        value,
        step_s,
        seconds,
        windows,
        spans,
        _heat(answered),
        _events([*rest, *_marks(record)], begun_s, seconds),
        middle,
        bands,
        () if samples is None else cpu_strips(samples, begun_s, step_s, len(windows)),
        () if samples is None else server_strips(samples, begun_s, step_s, len(windows), paused),
        tuple(_longest(of_window) for of_window in zip(*paused.values(), strict=True)),
        worst_window(windows, pauses, measured_s),
        _phases(record, begun_s, seconds),
        _nodes(record, begun_s, seconds),
    )


def _longest(of_window: Sequence[float | None]) -> float | None:
    return max((ms for ms in of_window if ms is not None), default=None)


def _step(seconds: float, answered: pl.DataFrame) -> float:
    """The narrowest window that is not too narrow to draw, and that supports a p99, with room if the trial is long
    enough."""
    hours = math.ceil(seconds / STEPS_S[-1] / MOST_WINDOWS)
    fitting = [step for step in STEPS_S if seconds / step <= MOST_WINDOWS] or [STEPS_S[-1] * hours]
    counts = answered.group_by(pl.col("middle_s").floor()).agg(pl.col("count").sum())["count"]
    # The 10th percentile of the rate, so that a rate near the threshold gives a stable choice.
    rate = float(counts.quantile(0.1) or 0.0) if len(counts) else 0.0
    enough = [step for step in fitting if step == fitting[0] or seconds / step >= ENOUGH_WINDOWS]
    supporting = (step for room in ROOM for step in enough if supported(0.99, int(rate * step / room)))
    return next(supporting, fitting[0])


def _spans(drawn: pl.DataFrame) -> tuple[CourseSpan, ...]:
    phases = (
        drawn.filter(pl.col("phase") != SEARCH_SETTLE)
        .group_by("phase")
        .agg(pl.col("from_s").min(), pl.col("to_s").max())
        .sort("from_s")
    )
    return tuple(CourseSpan(str(name), float(first), float(last)) for name, first, last in phases.iter_rows())


def _offers(record: TrialRecord, spans: Sequence[CourseSpan]) -> list[tuple[CourseSpan, Offered]]:
    """Each phase with its schedule; the warm-up is the beginning of the first."""
    load = record.settings.stated_load
    if load is None:
        return []
    named: dict[str, Offered] = {
        name: one for name, one in zip(load.measured, load.offered, strict=True) if one.is_open
    }
    if load.offered[0].is_open:
        named[WARM_UP] = load.offered[0]
    if record.search is not None:
        return _windows_offered(record.search, spans)
    offers = []
    for span in spans:
        offered = named.get(span.name)
        if offered is None:
            continue
        if offered.capacity_fraction and record.capacity:
            rate = offered.capacity_fraction * record.capacity.rate_per_s
            offered = Offered(schedule="constant", rate_per_s=rate)
        offers.append((span, offered))
    return offers


def _windows_offered(search: Search, spans: Sequence[CourseSpan]) -> list[tuple[CourseSpan, Offered]]:
    """The windows of a search, each from its settle time on: at one rate. Between them nothing is due."""
    rates = {window.name: window.rate_per_s for window in search.windows}
    offers, free_s = [], 0.0
    for span in spans:
        if span.name in rates:
            begun = CourseSpan(span.name, max(free_s, span.from_s - search.rules.settle_s), span.to_s)
            offers.append((begun, Offered(schedule="constant", rate_per_s=rates[span.name])))
        free_s = span.to_s
    return offers


def _offered_per_s(offers: Sequence[tuple[CourseSpan, Offered]], first_s: float, last_s: float) -> float | None:
    due, known = 0.0, False
    for span, offered in offers:
        left, right = max(first_s, span.from_s), min(last_s, span.to_s)
        if left >= right:
            continue
        end_s = offered.duration_s if isinstance(offered, LoadPhase) else math.inf
        until = offered.operations_within(min(right - span.from_s, end_s))
        before = offered.operations_within(min(left - span.from_s, end_s))
        if until is not None and before is not None:
            due, known = due + until - before, True
    return due / (last_s - first_s) if known else None


def _windows(
    drawn: pl.DataFrame,
    answered: pl.DataFrame,
    step_s: float,
    seconds: float,
    offers: Sequence[tuple[CourseSpan, Offered]],
) -> tuple[CourseWindow, ...]:
    totals = dict(answered.group_by("window").agg(pl.col("count").sum()).iter_rows())
    failed = dict(drawn.filter(~pl.col("answered")).group_by("window").agg(pl.col("count").sum()).iter_rows())
    quantiles_ms = quantiles_by_group(answered, "window", "ms", QUANTILES)
    windows = []
    for index in range(math.ceil(seconds / step_s - 1e-9)):
        first, last, count = index * step_s, min((index + 1) * step_s, seconds), totals.get(index, 0)
        if last - first < step_s / 4 and index:
            continue  # A sliver at the end has no rate worth a point.
        percentiles = {
            name: quantiles_ms[name][index] for name, q in QUANTILES.items() if count and supported(q, count)
        }  # fmt: skip
        offered = _offered_per_s(offers, first, last)
        windows.append(CourseWindow(first, last - first, count, failed.get(index, 0), offered, percentiles))
    return tuple(windows)


def _heat(answered: pl.DataFrame) -> tuple[tuple[int, int, int], ...]:
    band = (pl.col("ms").clip(lower_bound=1e-6).log10() * BANDS_A_DECADE).floor().cast(pl.Int64).alias("band")
    cells = answered.with_columns(band).group_by("window", "band").agg(pl.col("count").sum()).sort("window", "band")
    return tuple((int(window), int(place), int(count)) for window, place, count in cells.iter_rows())


def _bands(
    journal: Sequence[Entry], begun_s: float, seconds: float
) -> tuple[tuple[CourseSpan, ...], list[tuple[float, str]]]:
    """Events that began and ended, as far as they lie within the trial, and the others with their times. The
    laboratory's own book-keeping is neither."""
    spans: list[CourseSpan] = []
    rest: list[tuple[float, str]] = []
    open_since: dict[tuple[str, str], float] = {}
    for entry in journal:
        event, at_s = entry.event, entry.t_s
        if event is None or at_s is None or event.name in BOOKKEEPING:
            continue
        node = str(event.given.get("node") or "") if isinstance(event, Unknown) else ""
        stem, _, end = event.name.rpartition("-")
        if end not in ("began", "ended"):
            rest.append((at_s, _called(event.name, node)))
            continue
        key = (stem, node)
        if end == "began":
            open_since[key] = at_s
            continue
        first = open_since.pop(key, begun_s) - begun_s
        spans.append(CourseSpan(_called(*key), max(first, 0.0), min(at_s - begun_s, seconds)))
    spans += [CourseSpan(_called(*key), max(at_s - begun_s, 0.0), seconds) for key, at_s in open_since.items()]
    return tuple(sorted((one for one in spans if one.from_s < one.to_s), key=lambda one: one.from_s)), rest


def _phases(record: TrialRecord, begun_s: float, seconds: float) -> tuple[CourseSpan, ...]:
    """The phases of the trial's activities, as far as they lie within it."""
    every = [
        phase
        for activity in record.activities
        for node in activity.nodes
        for phase in phases(activity, node)
        if phase.name != WAITING
    ]
    within = [
        CourseSpan(_called(one.name, one.node), max(one.from_s - begun_s, 0.0), min(one.to_s - begun_s, seconds))
        for one in every
    ]
    disrupted = [
        CourseSpan(activity.cause, max(activity.begun_s - begun_s, 0.0), min(healed_s - begun_s, seconds))
        for activity in record.disruptions
        if (healed_s := marked_s(activity, HEALED)) is not None
    ]
    return tuple(span for span in (*within, *disrupted) if span.from_s < span.to_s)


def _marks(record: TrialRecord) -> list[tuple[float, str]]:
    """The marks of the trial's disruptions: time, seconds since the epoch, and what happened to which node."""
    return [(mark.t_s, _called(mark.name, mark.node)) for one in record.disruptions for mark in one.marks]


def _nodes(record: TrialRecord, begun_s: float, seconds: float) -> tuple[tuple[float, int], ...]:
    """Nodes in service over the time of a trial whose cluster changed its size, or was to."""
    if not record.activities:
        return ()
    nodes = record.settings.site.nodes
    steps = [(t_s - begun_s, size) for t_s, size in sizes(nodes, record.activities)]
    first = next((size for at_s, size in reversed(steps) if at_s <= 0), nodes)
    return ((0.0, first), *((at_s, size) for at_s, size in steps if 0 < at_s < seconds))


def _called(name: str, node: str) -> str:
    return f"{name} {node}" if node else name


def _events(happened: Sequence[tuple[float, str]], begun_s: float, seconds: float) -> tuple[tuple[float, str], ...]:
    """Events within the trial, with seconds since its first interval."""
    within = [(at_s - begun_s, name) for at_s, name in happened if 0 <= at_s - begun_s <= seconds]
    return tuple(sorted(within))


def curves(
    histograms: Mapping[CellKey, pl.DataFrame], cells: Mapping[CellKey, Sequence[TrialRecord]]
) -> tuple[Curve, ...]:
    """Response and service time of each treatment, from the histograms added up over its used trials (`cells`)."""
    each = (
        curve(dict(cell), measure, merged.filter(pl.col("measure") == measure), trials=len(cells[cell]))
        for cell, merged in histograms.items()
        for measure in ("response", "service")
    )
    return tuple(one for one in each if one is not None)


def curve(treatment: Mapping[str, Any], measure: str, histogram: pl.DataFrame, *, trials: int) -> Curve | None:
    """A percentile curve from a merged histogram with columns bucket_low_ns, bucket_high_ns and count."""
    ordered = histogram.sort("bucket_low_ns")
    buckets: list[Bucket] = ordered.select("bucket_low_ns", "bucket_high_ns", "count").rows()
    operations = total(buckets)
    points = _at(buckets, _shares(operations))
    if len(points) < 2:
        return None
    marks = {name: q for name, q in MARKS.items() if supported(q, operations)}
    times_ms = dict(_at(buckets, list(marks.values())))
    return Curve(treatment, measure, trials, operations, points, {name: times_ms[q] for name, q in marks.items()})


def _at(buckets: Sequence[Bucket], shares: Sequence[float]) -> tuple[tuple[float, float], ...]:
    """Each share of operations with the time in ms that it did not exceed, by the middle of a bucket."""
    pairs = zip(shares, quantiles_ns(buckets, shares), strict=True)
    return tuple((share, value_ns / 1e6) for share, value_ns in pairs if value_ns is not None)


def _shares(operations: int) -> Sequence[float]:
    """Shares at equal steps of -log10(1 - share), up to the last one that the count supports."""
    if operations <= 2 * BEYOND:
        return ()
    last = math.log10(operations / BEYOND)
    steps = max(2, round(last * 16))
    return [1 - 10 ** (-last * step / steps) for step in range(1, steps + 1)]


def picked(
    records: Sequence[TrialRecord], used: Mapping[tuple[str, int], float], *, most: int
) -> tuple[TrialRecord, ...]:
    """The trials that a page shows over time, `most` at most. For each treatment: the median trial, the fastest and the
    slowest, others evenly by rank, then unused attempts, the latest first. The treatments take turns."""
    queues = []
    for group in by_cell(record for record in records if not record.control).values():
        counted = [record for record in group if record.key in used]
        ranked = sorted(counted, key=lambda record: (used[record.key], record.begun_s))
        others = [record for record in group if record.key not in used]
        others.sort(key=lambda record: -record.begun_s)
        queues.append([*(ranked[place] for place in _places(len(ranked))), *others])
    in_turn = [queue[turn] for turn in range(max(map(len, queues), default=0)) for queue in queues if turn < len(queue)]
    return tuple(in_turn[:most])


def _places(amount: int) -> list[int]:
    """Ranks by priority: the middle, both ends, then the middles of the widest gaps."""
    if not amount:
        return []
    order = [(amount - 1) // 2]
    for place in (0, amount - 1):
        if place not in order:
            order.append(place)
    gaps = sorted(pairwise(sorted(order)), key=lambda gap: gap[0] - gap[1])
    while gaps:
        left, right = gaps.pop(0)
        if right - left < 2:
            continue
        order.append((left + right) // 2)
        gaps += [(left, order[-1]), (order[-1], right)]
    return order
