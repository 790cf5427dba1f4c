"""Stages of jobs over trials: how long each took, its tasks, its shuffle.

Stages and tasks within a trial are repeated measurements: they are described, and the trial, its mean over jobs, is the
unit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean, median
from typing import Annotated

from steelyard.analysis.inference import estimates
from steelyard.analysis.row import Column, TreatmentRow
from steelyard.analysis.statistic import Context, Section, Statistic
from steelyard.analysis.treatments import Treatment, label
from steelyard.model.estimate import Estimate
from steelyard.model.measure import MIB
from steelyard.model.trial import Attempt


class JobStage(TreatmentRow):
    """One stage of the jobs of one treatment, in the used trials. Failed jobs count as far as they came."""

    stage: int
    """Its number in the application; each job is one application."""
    jobs: int
    """Jobs that had the stage."""
    n: int
    """Used trials."""
    seconds: Annotated[Estimate, Column(unit="s", head="time (s)")]
    """Time from the first submission of the stage to its end, mean over trials, each the mean of its jobs."""
    tasks: Annotated[float, Column(unit="tasks", head="tasks")]
    """Tasks of the stage, mean over jobs."""
    task_s_p50: Annotated[float, Column(unit="s", head="task, p50 (s)")]
    """Median time of the tasks that succeeded, mean over jobs."""
    straggling: Annotated[float | None, Column(unit="times the median", head="slowest task / p50")]
    """Time of the slowest task over that median, median over jobs: large where a few tasks are waited for. An extreme,
    which more tasks make larger."""
    shuffle_mb: Annotated[float, Column(unit="MiB", head="shuffle (MiB)")]
    """Written for other stages, mean over jobs."""
    failed: int
    """Attempts at tasks that failed, in all jobs."""
    repeated: int
    """Attempts after the first, in all jobs: after a failure, or because the first was slow."""


def job_stages(context: Context) -> Iterator[JobStage]:
    """Every stage of each treatment, in the order of its levels."""
    of_attempt = context.frame.data.select("trial_id", "attempt", "start").iter_rows()
    starts = {(trial, attempt): str(start) for trial, attempt, start in of_attempt}
    places = {label(treatment): place for place, treatment in enumerate(context.frame.treatments)}
    for of in sorted(context.within.stages, key=lambda of: places.get(label(of.treatment), len(places))):
        stages: dict[int, dict[Attempt, list[dict[str, float]]]] = {}
        for trial, frame in of.trials:
            for row in frame.iter_rows(named=True):
                stages.setdefault(int(row["job_stage"]), {}).setdefault(trial, []).append(row)
        for number, trials in sorted(stages.items()):
            yield _row(of.treatment, number, trials, starts, context.confidence)


def _row(
    treatment: Treatment, number: int, trials: Mapping[Attempt, Sequence[Mapping[str, float]]],
    starts: Mapping[Attempt, str], confidence: float,
) -> JobStage:  # fmt: skip
    rows = [row for of_trial in trials.values() for row in of_trial]
    means = [
        (starts.get(trial, trial[0]), fmean(row["job_stage_s"] for row in of_trial))
        for trial, of_trial in trials.items()
    ]
    slowest = [row["job_task_s_max"] / row["job_task_s_p50"] for row in rows if row["job_task_s_p50"] > 0]
    return JobStage(
        treatment=treatment, stage=number, jobs=len(rows), n=len(trials),
        seconds=estimates.by_start(means, "s", confidence), tasks=fmean(row["job_stage_tasks"] for row in rows),
        task_s_p50=fmean(row["job_task_s_p50"] for row in rows), straggling=median(slowest) if slowest else None,
        shuffle_mb=fmean(row["job_shuffle_bytes"] for row in rows) / MIB,
        failed=int(sum(row["job_tasks_failed"] for row in rows)),
        repeated=int(sum(row["job_tasks_repeated"] for row in rows)),
    )  # fmt: skip


STATISTIC = Statistic(
    name="job_stage",
    row=JobStage,
    title="Stages of the jobs",
    section=Section.RESPONSE_TIME,
    compute=job_stages,
    order=6,
    of_records=True,
)
