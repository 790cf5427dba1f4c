"""What the seconds within trials say, and what trials used: read for all trials of a treatment at once."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from steelyard.analysis import costs, pointed
from steelyard.analysis.analyse import frame_of
from steelyard.analysis.findings import PartMean, Steady
from steelyard.analysis.merits import Merit, TrialPercentile
from steelyard.analysis.parts import mean_values
from steelyard.analysis.results import UNITS, Results
from steelyard.analysis.warmup import steady
from steelyard.model.study import Level
from steelyard.model.trial import TrialRecord
from steelyard.reading import trial_percentiles, usage
from steelyard.reading.time_courses import measured
from steelyard.store import layout
from steelyard.store.read import Store

SERIES = ("response_ms_mean", "throughput_per_s")


def within_trials(store: Store, results: Results, every: Sequence[TrialRecord]) -> Results:
    """The results with what the seconds of the used trials say: means over 2, 4 and 8 parts, and steady states.

    `every`: all records of the store, which need not be read again.
    """
    used = {(point.trial_id, point.attempt) for point in results.points if point.used and not point.control}
    groups: dict[tuple[tuple[str, Level], ...], list[TrialRecord]] = {}
    for record in every:
        if (record.id, record.attempt) in used:
            groups.setdefault(tuple(sorted(record.treatment.items())), []).append(record)
    found: list[PartMean] = []
    states: list[Steady | None] = []
    quantiles: list[TrialPercentile] = []
    for treatment, records in groups.items():
        seconds = series(store, records)
        named = {layout.trial_folder(record.id, record.attempt): record for record in records}
        quantiles += trial_percentiles.of_trials(store, records, dict(treatment), results.confidence)
        for name in SERIES:
            trials = [[float(value) for value in part[name]] for part in seconds]
            found += mean_values(trials, name, UNITS[name], treatment=dict(treatment), confidence=results.confidence)
        for part in seconds:
            record = named[str(part["trial"][0])]
            states.append(
                steady(
                    [float(value) for value in part[SERIES[0]]],
                    trial_id=record.id,
                    attempt=record.attempt,
                    treatment=dict(treatment),
                    response=SERIES[0],
                    confidence=results.confidence,
                )
            )
    settled = tuple(one for one in states if one is not None)
    caveats = (
        *results.caveats, *pointed.within_trials(settled), *trial_percentiles.sentences(quantiles, results.response)
    )  # fmt: skip
    update = {"parts": tuple(found), "steady": settled, "percentiles": tuple(quantiles), "caveats": caveats}
    update["merits"] = _merits(store, results, every)
    return results.model_copy(update=update)


def _merits(store: Store, results: Results, records: Sequence[TrialRecord]) -> tuple[Merit, ...]:
    """Cost and energy, where the study declares or measures them."""
    study = store.study
    used = usage.uses(store, study, records)
    return costs.merits(frame_of(records, study), study.cost, used, results.confidence) if used else ()


def series(store: Store, records: Sequence[TrialRecord]) -> list[pl.DataFrame]:
    """One frame per trial, a row per second of its measured phases in order: mean response time in ms, operations/s.

    Load nodes are added up; seconds in which nothing was answered are no rows.
    """
    # Twice the sum of nanoseconds, whole numbers: sums of fractions would depend on the order in which threads add up.
    twice_ns = (pl.col("bucket_low_ns") + pl.col("bucket_high_ns")) * pl.col("count")
    rows = (
        store.answered(records, measured(records[0]))
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
    )
    return summed.sort("trial", "place").partition_by("trial", maintain_order=True)
