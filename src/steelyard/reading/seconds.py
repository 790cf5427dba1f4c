"""The inside of trials, read for all trials of a treatment at once: seconds, percentiles, use of nodes."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from steelyard.analysis.frame import frame_of
from steelyard.analysis.statistic import Seconds, Within
from steelyard.analysis.statistics.percentile import TrialPercentile
from steelyard.model.study import Level
from steelyard.model.trial import TrialRecord
from steelyard.reading import trial_percentiles, usage
from steelyard.reading.time_courses import ANSWERED, measured
from steelyard.store import layout
from steelyard.store.read import Store


def within_trials(store: Store, every: Sequence[TrialRecord]) -> Within:
    """What the store has of the inside of the used trials, for the analysis.

    `every`: all records of the store, which need not be read again.
    """
    study = store.study
    rows = frame_of(every, study).values(study.analysis.response)
    used = set(zip(rows["trial_id"], rows["attempt"], strict=True))
    groups: dict[tuple[tuple[str, Level], ...], list[TrialRecord]] = {}
    for record in every:
        if (record.id, record.attempt) in used:
            groups.setdefault(tuple(sorted(record.treatment.items())), []).append(record)
    found: list[Seconds] = []
    quantiles: list[TrialPercentile] = []
    for treatment, records in groups.items():
        quantiles += trial_percentiles.of_trials(store, records, dict(treatment), study.analysis.confidence)
        trials = []
        for seconds in series(store, records):
            trial_id, _, attempt = str(seconds["trial"][0]).rpartition(".")
            trials.append(((trial_id, int(attempt)), seconds))
        found.append(Seconds(dict(treatment), trials))
    return Within(seconds=found, percentiles=quantiles, uses=usage.uses(store, study, every))


def series(store: Store, records: Sequence[TrialRecord]) -> list[pl.DataFrame]:
    """One frame per trial, a row per second of its measured phases in order: mean response time in ms, operations/s.

    Load nodes are added up; seconds in which nothing was answered are no rows.
    """
    of = {
        str(path): f"{record.id}.{record.attempt}"
        for record in records
        for path in sorted((store.folder_of(record) / layout.INTERVALS).glob("*.parquet"))
    }
    if not of:
        return []
    wanted = (
        (pl.col("measure") == "response")
        & pl.col("outcome").is_in(ANSWERED)
        & pl.col("phase").is_in(list(measured(records[0])))
    )
    # Twice the sum of nanoseconds, whole numbers: sums of fractions would depend on the order in which threads add up.
    twice_ns = (pl.col("bucket_low_ns") + pl.col("bucket_high_ns")) * pl.col("count")
    rows = (
        pl.scan_parquet(list(of), include_file_paths="path")
        .filter(wanted)
        .group_by("path", "t_s", "seconds")
        .agg(twice_ns.sum().alias("twice_ns"), pl.col("count").sum())
        .collect(engine="streaming")
    )
    placed = rows.with_columns(trial=pl.col("path").replace_strict(of, return_dtype=pl.String)).with_columns(
        # Clocks of load nodes differ by less than half an interval.
        place=((pl.col("t_s") - pl.col("t_s").min().over("trial")) / pl.col("seconds").max().over("trial")).round()
    )
    summed = placed.group_by("trial", "place").agg(
        (pl.col("twice_ns").sum() / pl.col("count").sum() / 2e6).alias("response_ms_mean"),
        (pl.col("count").sum() / pl.col("seconds").max()).alias("throughput_per_s"),
    )
    return summed.sort("trial", "place").partition_by("trial", maintain_order=True)
