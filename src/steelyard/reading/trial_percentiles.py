"""Percentiles of every used trial with intervals, from the histograms of its seconds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from steelyard.analysis.inference import percentile_intervals
from steelyard.analysis.statistics.percentile import SHOWN, TOO_SHORT, TrialPercentile
from steelyard.analysis.statistics.pooled_percentile import PooledPercentile
from steelyard.heavy import pl
from steelyard.model import histogram, responses
from steelyard.model.histogram import Bucket
from steelyard.model.named_level import Level
from steelyard.model.percentiles import BEYOND, needed, quantile_buckets, quantile_ns, supported
from steelyard.model.trial import TrialRecord
from steelyard.reading.time_courses import measured
from steelyard.store import layout
from steelyard.store.read import Store


def of_treatment(
    store: Store, records: Sequence[TrialRecord], treatment: Mapping[str, Level], confidence: float
) -> tuple[tuple[TrialPercentile, ...], tuple[PooledPercentile, ...]]:
    """Percentiles of each of `records`, trials of one treatment, in order, and of all their operations together; a
    trial without an answered operation has none."""
    buckets = _buckets(store, records)
    if buckets is None:
        return (), ()
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


def _buckets(store: Store, records: Sequence[TrialRecord]) -> pl.DataFrame | None:
    """`trial`, `place` (part of time), `low`, `high`, `count` of answered operations of the measured phases."""
    rows = (
        store.answered(records, measured(records[0]))
        .select("trial", "t_s", "seconds", low="bucket_low_ns", high="bucket_high_ns", count="count")
        .collect(engine="streaming")
    )
    if not rows.height:
        return None
    middle = pl.col("t_s") + pl.col("seconds") / 2
    begun, ended = (pl.col("t_s").min().over("trial"), (pl.col("t_s") + pl.col("seconds")).max().over("trial"))
    # Whole seconds belong to one part: a trial of fewer seconds than PARTS has as many parts as seconds.
    # A span of no length, as only a table that nobody measured has it, is one part.
    part = ((middle - begun) / (ended - begun)).fill_nan(0.0).clip(0.0, 1.0)
    place = (part * percentile_intervals.PARTS).floor().cast(pl.Int32)
    return rows.with_columns(place=place).group_by("trial", "place", "low", "high").agg(pl.col("count").sum())


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
