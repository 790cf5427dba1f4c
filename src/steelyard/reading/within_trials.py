"""Data within the trials: the interval tables of each treatment are read once, for seconds, percentiles and curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field

from steelyard.analysis.inference import percentile_intervals
from steelyard.analysis.statistic import Seconds, Within
from steelyard.analysis.statistics.percentile import SHOWN, TOO_SHORT, TrialPercentile
from steelyard.analysis.statistics.pooled_percentile import PooledPercentile
from steelyard.heavy import pl
from steelyard.judging.measures import metrics_of, over_time, seconds_of
from steelyard.model import histogram, responses
from steelyard.model.histogram import Bucket
from steelyard.model.named_level import Level
from steelyard.model.objective import Limit
from steelyard.model.percentiles import BEYOND, needed, quantile_buckets, quantile_ns, supported
from steelyard.model.study import AnalysisChoice
from steelyard.model.trial import Attempt, CellKey, TrialRecord
from steelyard.reading.around_activities import WHOLE, around_activities
from steelyard.reading.node_strips import readings_of_table
from steelyard.reading.parallel import of_store
from steelyard.store import layout
from steelyard.store.read import Store

OF_JOBS, OF_STAGES = "job_tasks_failed", "job_"
"""Measure of every trial that was jobs; beginning of the metrics of their stages."""
OF_CELLS = ("seconds", "percentiles", "pooled", "sampled", "stages")
"""Data that are added up from those within the trials of each treatment."""


@dataclass(frozen=True)
class TrialsWithin:
    """Data within the used trials."""

    of_analysis: Within
    histograms: Mapping[CellKey, pl.DataFrame] = field(repr=False)
    """Treatment to the buckets of response and service time, added up over its trials: `measure`, `bucket_low_ns`,
    `bucket_high_ns`, `count`."""


def within_trials(
    store: Store, cells: Mapping[CellKey, Sequence[TrialRecord]], analysis: AnalysisChoice,
    executor: Executor | None = None,
) -> TrialsWithin:  # fmt: skip
    """Seconds, percentiles and histograms of the used trials of each treatment. Searches have none: they would be over
    windows of all rates."""
    chosen = [cell for cell, records in cells.items() if all(record.search is None for record in records)]
    read = of_store(_cell, store, [(dict(cell), cells[cell], analysis) for cell in chosen], executor)
    around, returns, aligned = around_activities(store, cells)
    of_cells = {part: [one for cell, _ in read for one in getattr(cell, part)] for part in OF_CELLS}
    over = {trial: percent for cell, _ in read for trial, percent in cell.over_objective.items()}
    of_analysis = Within(**of_cells, around=around, returns=returns, aligned=aligned, over_objective=over)
    return TrialsWithin(of_analysis, dict(zip(chosen, (histogram for _, histogram in read), strict=True)))


def _cell(
    store: Store, task: tuple[dict[str, Level], Sequence[TrialRecord], AnalysisChoice]
) -> tuple[Within, pl.DataFrame]:
    """Data within the trials of one treatment, and its histogram."""
    treatment, records, analysis = task
    rows = answered(store, records, ("response", "service"))
    response = rows.filter(pl.col("measure") == "response")
    own, pooled = percentiles(response, records, treatment, analysis.confidence)
    seconds = Seconds(treatment, series(response, records))
    limit, named = analysis.limit, over_time(analysis.needed)
    over = {} if limit is None else seconds_over(response, seconds.trials, records, limit)
    sampled = [Seconds(treatment, [_sampled(store, record, named) for record in records])] if named else []
    jobs = [record for record in records if OF_JOBS in record.measures]
    stages = [Seconds(treatment, [(one.key, _stages(store, one)) for one in jobs])] if jobs else []
    within = Within(
        seconds=[seconds], percentiles=own, pooled=pooled, sampled=sampled, stages=stages, over_objective=over
    )
    return within, added_up(rows)


def seconds_of_cells(
    store: Store, cells: Mapping[CellKey, Sequence[TrialRecord]], executor: Executor | None = None
) -> list[Seconds]:
    """The seconds of the trials of each treatment."""
    return of_store(_seconds_of_cell, store, [(dict(cell), records) for cell, records in cells.items()], executor)


def _seconds_of_cell(store: Store, task: tuple[dict[str, Level], Sequence[TrialRecord]]) -> Seconds:
    treatment, records = task
    return Seconds(treatment, series(answered(store, records), records))


def answered(store: Store, records: Sequence[TrialRecord], measures: Sequence[str] = ("response",)) -> pl.DataFrame:
    """Buckets of answered operations in the measured phases of trials of one treatment, as `Store.answered`."""
    columns = ("trial", "node", "t_s", "seconds", "measure", "bucket_low_ns", "bucket_high_ns", "count")
    rows = store.answered(records, records[0].measured_phases, measures)
    return rows.select(columns).collect(engine="streaming")


def added_up(rows: pl.DataFrame) -> pl.DataFrame:
    """Buckets added up over trials, nodes and seconds: `measure`, `bucket_low_ns`, `bucket_high_ns`, `count`."""
    keys = ("measure", "bucket_low_ns", "bucket_high_ns")
    return rows.group_by(keys).agg(pl.col("count").sum()).sort(keys)


def series(rows: pl.DataFrame, records: Sequence[TrialRecord]) -> list[tuple[Attempt, pl.DataFrame]]:
    """One frame per trial, a row per second of its measured phases in order: mean response time in ms, operations/s.

    Load nodes are added up; seconds without an answered operation have no row, nor have those that were cut off: the
    last interval of a phase may have lasted milliseconds, in which the last operations ended.
    """
    # Twice the sum of nanoseconds, whole numbers: sums of fractions would depend on the order in which threads add up.
    twice_ns = (pl.col("bucket_low_ns") + pl.col("bucket_high_ns")) * pl.col("count")
    intervals = rows.group_by("trial", "node", "t_s", "seconds").agg(
        twice_ns.sum().alias("twice_ns"), pl.col("count").sum()
    )
    summed = (
        intervals.with_columns(place=_place())
        .group_by("trial", "place")
        .agg(
            (pl.col("twice_ns").sum() / pl.col("count").sum() / 2e6).alias("response_ms_mean"),
            (pl.col("count").sum() / pl.col("seconds").max()).alias("throughput_per_s"),
            lasted=pl.col("seconds").max(),
        )
    )
    summed = summed.filter(pl.col("lasted") >= WHOLE * pl.col("lasted").max().over("trial")).drop("lasted")
    attempts = {layout.trial_folder(record.id, record.attempt): record.key for record in records}
    frames = summed.sort("trial", "place").partition_by("trial", maintain_order=True)
    return [(attempts[str(frame["trial"][0])], frame) for frame in frames]


def _place() -> pl.Expr:
    """Number of an interval in its trial; clocks of load nodes differ by less than half an interval."""
    return ((pl.col("t_s") - pl.col("t_s").min().over("trial")) / pl.col("seconds").max().over("trial")).round()


def seconds_over(
    rows: pl.DataFrame, seconds: Sequence[tuple[Attempt, pl.DataFrame]], records: Sequence[TrialRecord], limit: Limit
) -> dict[Attempt, float]:
    """Percent of the seconds of each trial's measurement in which a limit was not met, also for lack of answered
    operations. `rows`: `answered`; `seconds`: `series` of them. Empty if the response has no value in a second."""
    q = responses.of(limit.response).percentile
    values = _seconds_of_percentile(rows, records, q) if q is not None else {
        trial: dict(frame.select("place", limit.response).iter_rows())
        for trial, frame in seconds if limit.response in frame.columns
    }  # fmt: skip
    over = {}
    for record in records:
        of_trial, load, span = values.get(record.key, {}), record.settings.stated_load, record.measured_span
        # What was left over at the end of an open loop is answered after its last second.
        length_s = (load and load.measured_s) or (span[1] - span[0] if span else 0.0)
        if of_trial and round(length_s):
            met = sum(limit.is_met(value) for place, value in of_trial.items() if place < round(length_s))
            over[record.key] = 100 * (1 - met / round(length_s))
    return over


def _seconds_of_percentile(
    rows: pl.DataFrame, records: Sequence[TrialRecord], q: float
) -> dict[Attempt, dict[float, float | None]]:
    """A percentile of the operations of each second of each trial by its number, ms, however few they were."""
    columns = ("bucket_low_ns", "bucket_high_ns", "count")
    attempts = {layout.trial_folder(record.id, record.attempt): record.key for record in records}
    values: dict[Attempt, dict[float, float | None]] = {}
    for trial, place, *buckets in rows.group_by("trial", _place().alias("place")).agg(*columns).iter_rows():
        value_ns = quantile_ns(histogram.merge([zip(*buckets, strict=True)]), q)
        value = None if value_ns is None else value_ns / percentile_intervals.NS_PER_MS
        values.setdefault(attempts[trial], {})[place] = value
    return values


def _sampled(store: Store, record: TrialRecord, names: Sequence[str]) -> tuple[Attempt, pl.DataFrame]:
    """A row per second of a trial's measured phases in order: `place`, the second's number from 0, and a column for
    each response, the mean over its nodes. Seconds that a node's readings do not cover have no row."""
    readings, facts = readings_of_table(store.samples(record), metrics_of(names)), store.facts(record)
    by_name = {name: seconds_of(name, record, readings, facts) for name in names}
    length = max((len(values) for values in by_name.values()), default=0)
    columns = {name: [*values, *[None] * (length - len(values))] for name, values in by_name.items()}
    frame = pl.DataFrame({"place": range(length), **columns}, schema_overrides=dict.fromkeys(names, pl.Float64))
    return record.key, frame.drop_nulls()


def _stages(store: Store, record: TrialRecord) -> pl.DataFrame:
    """A row for each stage of a trial's jobs in order of time, with a column for each of its samples."""
    rows = store.samples(record).filter(pl.col("metric").str.starts_with(OF_STAGES))
    return rows.pivot("metric", index=("node", "t_s"), values="value").sort("t_s")


def percentiles(
    rows: pl.DataFrame, records: Sequence[TrialRecord], treatment: Mapping[str, Level], confidence: float
) -> tuple[tuple[TrialPercentile, ...], tuple[PooledPercentile, ...]]:
    """Percentiles of each of `records`, trials of one treatment, in order, and of all their operations together, from
    response times (`answered`); a trial without an answered operation has none."""
    if rows.is_empty():
        return (), ()
    buckets = _in_parts(rows)
    whole = {
        str(name): [(int(low), int(high), int(count)) for low, high, count in rows.iter_rows()]
        for (name,), rows in buckets.group_by("trial", "low", "high")
        .agg(pl.col("count").sum())
        .sort("trial", "low")
        .select("trial", "low", "high", "count")
        .partition_by("trial", as_dict=True, include_key=False)
        .items()
    }
    edges = pl.DataFrame(
        [{"trial": name, **dict(zip(SHOWN, _edges(found), strict=True))} for name, found in whole.items()]
    )
    parts = _parts(buckets, edges)
    estimated = []
    for record in records:
        key = layout.trial_folder(record.id, record.attempt)
        if key in whole:
            for name in SHOWN:
                below = [(int(row["all"]), int(row[name])) for row in parts[key].iter_rows(named=True)]
                estimated.append(_percentile(record, treatment, name, whole[key], below, confidence))
    answered = [record for record in records if layout.trial_folder(record.id, record.attempt) in whole]
    return tuple(estimated), _pooled(answered, treatment, tuple(whole.values()))


def _pooled(
    records: Sequence[TrialRecord], treatment: Mapping[str, Level], histograms: Sequence[Sequence[Bucket]]
) -> tuple[PooledPercentile, ...]:
    """Percentiles of the histograms of these trials added up."""
    together = histogram.merge(histograms)
    operations, totals = histogram.total(together), [histogram.total(one) for one in histograms]
    rows = []
    for name in SHOWN:
        q = _share(name)
        value = quantile_ns(together, q) if supported(q, operations) else None
        rows.append(
            PooledPercentile(
                treatment=dict(treatment),
                response=name,
                unit="ms",
                trials=len(records),
                own=sum(supported(q, total) for total in totals),
                starts=len({record.start for record in records}),
                operations=operations,
                needed=needed(q),
                pooled=None if value is None else value / percentile_intervals.NS_PER_MS,
            )
        )
    return tuple(rows)


def _in_parts(rows: pl.DataFrame) -> pl.DataFrame:
    """`trial`, `place` (part of time), `low`, `high`, `count`."""
    middle = pl.col("t_s") + pl.col("seconds") / 2
    begun, ended = (pl.col("t_s").min().over("trial"), (pl.col("t_s") + pl.col("seconds")).max().over("trial"))
    # Whole seconds belong to one part: a trial of fewer seconds than PARTS has as many parts as seconds.
    # A span of no length, as only a table that nobody measured has it, is one part.
    part = ((middle - begun) / (ended - begun)).fill_nan(0.0).clip(0.0, 1.0)
    place = (part * percentile_intervals.PARTS).floor().cast(pl.Int32)
    named = rows.select("trial", "count", low="bucket_low_ns", high="bucket_high_ns", place=place)
    return named.group_by("trial", "place", "low", "high").agg(pl.col("count").sum())


def _share(name: str) -> float:
    """The fraction of operations at or below the named percentile."""
    q = responses.of(name).percentile
    if q is None:
        raise ValueError(f"{name} is not a percentile")
    return q


def _edges(buckets: Sequence[Bucket]) -> list[int]:
    """Lower bounds of the buckets of the quantiles that are shown."""
    chosen = quantile_buckets(buckets, [_share(name) for name in SHOWN])
    return [(bucket or buckets[-1])[0] for bucket in chosen]


def _parts(buckets: pl.DataFrame, edges: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """For each trial one row per part of time: `all`, and for each percentile the operations at or below it."""
    rows = buckets.join(edges, on="trial").group_by("trial", "place").agg(
        pl.col("count").sum().alias("all"),
        *(pl.col("count").filter(pl.col("low") <= pl.col(name)).sum().alias(name) for name in SHOWN),
    )  # fmt: skip
    by_trial = rows.sort("trial", "place").partition_by("trial", as_dict=True, include_key=False)
    return {str(name): part for (name,), part in by_trial.items()}


def _percentile(
    record: TrialRecord, treatment: Mapping[str, Level], name: str, buckets: Sequence[Bucket],
    parts: Sequence[tuple[int, int]], confidence: float,
) -> TrialPercentile:  # fmt: skip
    q = _share(name)
    operations, least = sum(count for _, _, count in buckets), needed(q)
    estimate = percentile_intervals.quantile(buckets, q, parts, confidence)
    note = ""
    if estimate is None:
        note = f"{operations:,} operations are too few: {least:,} are needed, so that {BEYOND} lie beyond"
    elif estimate.low is None and estimate.high is None:
        note = f"no interval: {len(parts)} s {TOO_SHORT}"
    elif estimate.high is None:
        note = "no upper end: too few operations lie beyond"
    return TrialPercentile(
        trial_id=record.id, attempt=record.attempt, treatment=dict(treatment), response=name, unit="ms",
        operations=operations, needed=least, percentile=estimate, note=note,
    )  # fmt: skip
