"""The percentiles of every used trial with their intervals, from the histograms of its seconds in the store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from steelyard.analysis import percentiles
from steelyard.analysis.merits import TrialPercentile
from steelyard.model.histogram import Bucket, quantile_buckets
from steelyard.model.study import Level
from steelyard.model.trial import TrialRecord
from steelyard.reading.time_courses import measured
from steelyard.store import layout
from steelyard.store.read import Store

SHOWN = ("response_ms_p50", "response_ms_p95", "response_ms_p99")


def of_trials(
    store: Store, records: Sequence[TrialRecord], treatment: Mapping[str, Level], confidence: float
) -> tuple[TrialPercentile, ...]:
    """Those of `records`, trials of one treatment, in their order; none of a trial without an answered operation."""
    buckets = _buckets(store, records)
    if buckets is None:
        return ()
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
    found = []
    for record in records:
        key = layout.trial_folder(record.id, record.attempt)
        if key in whole:
            for name in SHOWN:
                below = [(int(row["all"]), int(row[name])) for row in parts[key].iter_rows(named=True)]
                found.append(_one(record, treatment, name, whole[key], below, confidence))
    return tuple(found)


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
    place = ((middle - begun) / (ended - begun) * percentiles.PARTS).floor().cast(pl.Int32)
    return rows.with_columns(place=place).group_by("trial", "place", "low", "high").agg(pl.col("count").sum())


def _edges(buckets: Sequence[Bucket]) -> list[int]:
    """Lower bounds of the buckets of the quantiles that are shown."""
    found = quantile_buckets(buckets, [percentiles.PERCENTILES[name] for name in SHOWN])
    return [(bucket or buckets[-1])[0] for bucket in found]


def _parts(buckets: pl.DataFrame, edges: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """Of each trial a row per part: `all`, and by percentile those at or below it."""
    rows = buckets.join(edges, on="trial").group_by("trial", "place").agg(
        pl.col("count").sum().alias("all"),
        *(pl.col("count").filter(pl.col("low") <= pl.col(name)).sum().alias(name) for name in SHOWN),
    )  # fmt: skip
    found = rows.sort("trial", "place").partition_by("trial", as_dict=True, include_key=False)
    return {str(name): part for (name,), part in found.items()}


def _one(
    record: TrialRecord, treatment: Mapping[str, Level], name: str, buckets: Sequence[Bucket],
    parts: Sequence[tuple[int, int]], confidence: float,
) -> TrialPercentile:  # fmt: skip
    q = percentiles.PERCENTILES[name]
    operations, needed = sum(count for _, _, count in buckets), percentiles.needed(q)
    estimate = percentiles.quantile(buckets, q, parts, confidence)
    note = ""
    if estimate is None:
        note = f"{operations:,} operations are too few: {needed:,} are needed, so that {percentiles.BEYOND} lie beyond"
    elif estimate.high is None:
        note = "no upper end: too few operations lie beyond"
    return TrialPercentile(
        trial_id=record.id, attempt=record.attempt, treatment=dict(treatment), response=name, unit="ms",
        operations=operations, needed=needed, percentile=estimate, note=note,
    )  # fmt: skip


def sentences(found: Sequence[TrialPercentile], response: str) -> tuple[str, ...]:
    """Caveats by the percentiles of single trials: of the main response, else of the p99."""
    name = response if response in SHOWN else SHOWN[-1]
    mine = [one for one in found if one.response == name]
    told = []
    lacking = [one for one in mine if one.percentile is None]
    which = name.rpartition("_")[2]
    if lacking:
        most = max(one.operations for one in lacking)
        told.append(
            f"{len(lacking)} of {len(mine)} trials have no {which}: it needs {lacking[0].needed:,} operations, they "
            f"have at most {most:,}."
        )
    widths = sorted(
        (one.percentile.high - one.percentile.low) / 2 / one.percentile.value
        for one in mine
        if one.percentile and one.percentile.low is not None and one.percentile.high is not None
        and one.percentile.value > 0
    )  # fmt: skip
    if widths:
        operations = sorted(one.operations for one in mine if one.percentile)
        confidence = next(one.percentile.confidence for one in mine if one.percentile)
        told.append(
            f"Within a trial the {which} rests on about {operations[len(operations) // 2]:,} operations and is known "
            f"to ±{100 * widths[len(widths) // 2]:.2g}% ({confidence:.0%} interval of the median trial; operations "
            "that follow each other are alike, so it is at least so wide)."
        )
    return tuple(told)
