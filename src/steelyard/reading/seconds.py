"""Time series within trials, read per treatment: seconds, percentiles, node use."""

from __future__ import annotations

from collections.abc import Sequence

from steelyard.analysis.frame import TrialFrame, frame_of
from steelyard.analysis.statistic import Attempt, Seconds, Within
from steelyard.analysis.statistics.percentile import TrialPercentile
from steelyard.analysis.statistics.pooled_percentile import PooledPercentile
from steelyard.heavy import pl
from steelyard.model.named_level import Level
from steelyard.model.trial import TrialRecord
from steelyard.reading import measured, trial_percentiles, usage
from steelyard.reading.time_courses import measured as measured_phases
from steelyard.store import layout
from steelyard.store.read import Store

WHOLE = 0.5
"""Least part of a trial's longest interval that an interval must have lasted to be a second of its series."""


def within_trials(store: Store, every: Sequence[TrialRecord]) -> Within:
    """Seconds, percentiles and node use within the used trials, for the analysis.

    `every`: all records of the store, which need not be read again.
    """
    study = store.study
    per_treatment: list[Seconds] = []
    quantiles: list[TrialPercentile] = []
    pooled: list[PooledPercentile] = []
    sampled: list[Seconds] = []
    named = measured.over_time(study.analysis.needed)
    for treatment, records in _used(frame_of(every, study), every, study.analysis.response).items():
        own, of_cell = trial_percentiles.of_treatment(store, records, dict(treatment), study.analysis.confidence)
        quantiles += own
        pooled += of_cell
        per_treatment.append(Seconds(dict(treatment), series(store, records)))
        if named:
            sampled.append(Seconds(dict(treatment), measured.series(store, records, named)))
    return Within(
        seconds=per_treatment, percentiles=quantiles, pooled=pooled, sampled=sampled,
        uses=usage.uses(store, study, every),
    )  # fmt: skip


def of_treatments(store: Store, frame: TrialFrame, every: Sequence[TrialRecord], response: str) -> list[Seconds]:
    """The seconds of the trials that have a value of the response, per treatment. `every`: all records."""
    used = _used(frame, every, response)
    return [Seconds(dict(treatment), series(store, records)) for treatment, records in used.items()]


def _used(
    frame: TrialFrame, every: Sequence[TrialRecord], response: str
) -> dict[tuple[tuple[str, Level], ...], list[TrialRecord]]:
    rows = frame.values(response)
    used = set(zip(rows["trial_id"], rows["attempt"], strict=True))
    groups: dict[tuple[tuple[str, Level], ...], list[TrialRecord]] = {}
    for record in every:
        if (record.id, record.attempt) in used:
            groups.setdefault(tuple(sorted(record.treatment.items())), []).append(record)
    return groups


def series(store: Store, records: Sequence[TrialRecord]) -> list[tuple[Attempt, pl.DataFrame]]:
    """One frame per trial, a row per second of its measured phases in order: mean response time in ms, operations/s.

    Load nodes are added up; seconds without an answered operation have no row, nor have those that were cut off: the
    last interval of a phase may have lasted milliseconds, in which the last operations ended.
    """
    # Twice the sum of nanoseconds, whole numbers: sums of fractions would depend on the order in which threads add up.
    twice_ns = (pl.col("bucket_low_ns") + pl.col("bucket_high_ns")) * pl.col("count")
    rows = (
        store.answered(records, measured_phases(records[0]))
        .group_by("trial", "node", "t_s", "seconds")
        .agg(twice_ns.sum().alias("twice_ns"), pl.col("count").sum())
        .collect(engine="streaming")
    )
    placed = rows.with_columns(
        # Clocks of load nodes differ by less than half an interval.
        place=((pl.col("t_s") - pl.col("t_s").min().over("trial")) / pl.col("seconds").max().over("trial")).round()
    )
    summed = placed.group_by("trial", "place").agg(
        (pl.col("twice_ns").sum() / pl.col("count").sum() / 2e6).alias("response_ms_mean"),
        (pl.col("count").sum() / pl.col("seconds").max()).alias("throughput_per_s"),
        lasted=pl.col("seconds").max(),
    )
    summed = summed.filter(pl.col("lasted") >= WHOLE * pl.col("lasted").max().over("trial")).drop("lasted")
    attempts = {layout.trial_folder(record.id, record.attempt): (record.id, record.attempt) for record in records}
    frames = summed.sort("trial", "place").partition_by("trial", maintain_order=True)
    return [(attempts[str(frame["trial"][0])], frame) for frame in frames]
