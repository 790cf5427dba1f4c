"""The seconds within trials, for mean value analysis and steady states: read for all trials of a treatment at once."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from steelyard.analysis.findings import PartMean, Steady
from steelyard.analysis.parts import mean_values
from steelyard.analysis.results import UNITS, Results
from steelyard.analysis.warmup import steady
from steelyard.model.study import Level
from steelyard.model.trial import TrialRecord
from steelyard.report.within import ANSWERED, measured
from steelyard.store import layout
from steelyard.store.read import Store

SERIES = ("response_ms_mean", "throughput_per_s")


def within_trials(store: Store, results: Results) -> Results:
    """The results with what the seconds of the used trials say: means over 2, 4 and 8 parts, and steady states."""
    used = {(point.trial_id, point.attempt) for point in results.points if point.used and not point.control}
    groups: dict[tuple[tuple[str, Level], ...], list[TrialRecord]] = {}
    for record in store.trials():
        if (record.id, record.attempt) in used:
            groups.setdefault(tuple(sorted(record.treatment.items())), []).append(record)
    found: list[PartMean] = []
    states: list[Steady | None] = []
    for treatment, records in groups.items():
        seconds = series(store, records)
        for name in SERIES:
            trials = [[float(value) for value in part[name]] for part in seconds]
            found += mean_values(trials, name, UNITS[name], treatment=dict(treatment), confidence=results.confidence)
        for part in seconds:
            trial_id, _, attempt = str(part["trial"][0]).rpartition(".")
            states.append(
                steady(
                    [float(value) for value in part[SERIES[0]]],
                    trial_id=trial_id,
                    attempt=int(attempt),
                    treatment=dict(treatment),
                    response=SERIES[0],
                )
            )
    settled = tuple(one for one in states if one is not None)
    return results.model_copy(update={"parts": tuple(found), "steady": settled})


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
    middle_ms = (pl.col("bucket_low_ns") + pl.col("bucket_high_ns")) / 2e6
    rows = (
        pl.scan_parquet(list(of), include_file_paths="path")
        .filter(wanted)
        .group_by("path", "t_s", "seconds")
        .agg((middle_ms * pl.col("count")).sum().alias("ms"), pl.col("count").sum())
        .collect(engine="streaming")
    )
    placed = rows.with_columns(trial=pl.col("path").replace_strict(of, return_dtype=pl.String)).with_columns(
        # Clocks of load nodes differ by less than half an interval.
        place=((pl.col("t_s") - pl.col("t_s").min().over("trial")) / pl.col("seconds").max().over("trial")).round()
    )
    summed = placed.group_by("trial", "place").agg(
        (pl.col("ms").sum() / pl.col("count").sum()).alias("response_ms_mean"),
        (pl.col("count").sum() / pl.col("seconds").max()).alias("throughput_per_s"),
    )
    return summed.sort("trial", "place").partition_by("trial", maintain_order=True)
