"""Steady state within each trial, by change points over its seconds."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, ClassVar

from steelyard.analysis.inference import change_points
from steelyard.analysis.inference.steadiness import (
    BATCH,
    FEWEST_BATCHES,
    ChangePoint,
    Steadiness,
    WarmUpVerdict,
    judged,
    relative_change,
)
from steelyard.analysis.row import HIDDEN, Column, MeasuredTreatment, Number, Share
from steelyard.analysis.statistic import Context, Section, Statistic
from steelyard.analysis.treatments import Treatment
from steelyard.format import count
from steelyard.heavy import stats
from steelyard.model.responses import unit_of


class SteadyState(MeasuredTreatment):
    """Evidence of a steady state in a series of values."""

    LAST: ClassVar[tuple[str, ...]] = ("detected_cut", "verdict", "detail", "changes")

    detected_cut: int | None = None
    """Values (seconds, trials, starts) at the beginning that MSER-5 would drop; none below 20. Nothing is dropped."""
    verdict: WarmUpVerdict
    """By change points and trend. Warm-up: another level in the first half, then steady. Drifting: a later change, or a
    trend. None: no steady state can be shown."""
    detail: str
    """The sentence behind the verdict."""
    changes: str = ""
    """Changes of level: after how many values, where known how many hours into the study, by how much, p."""
    change_points: Annotated[tuple[ChangePoint, ...], HIDDEN] = ()


def steady_fields(state: Steadiness) -> dict[str, Any]:
    """The fields of `SteadyState`."""
    of_row = {"verdict": state.verdict, "detail": state.detail, "changes": state.text}
    return {**of_row, "detected_cut": state.cut, "change_points": state.points}


class Steady(SteadyState):
    """The steady state of one trial within itself: change points over its seconds, and MSER-5."""

    trial_id: Annotated[str, Column(head="trial")]
    """Trial."""
    attempt: int
    """Attempt of the trial, from 1."""
    n: int
    """Seconds with an answered operation."""
    change_detected: Share = None
    """Change of the mean by the detected cut."""
    likeness: Number = None
    """Correlation of neighbours that the verdict allows for; of seconds, or of means of several."""


ALARMS = 0.005
"""Share of studies of steady trials with a sentence on trials that moved."""
RESPONSE = "response_ms_mean"
"""The series of seconds that is tested."""


def steady(
    series: Sequence[float], *, trial_id: str, attempt: int, treatment: Treatment, response: str,
    confidence: float = 0.95,
) -> Steady | None:  # fmt: skip
    """Steady-state verdict within a trial, from one value per second; None without a value.

    By change points and trend with autocorrelated seconds (`inference.change_points`), with MSER-5's cut for reference.
    No other number depends on it.
    """
    if not series:
        return None
    state = judged(
        series, "second", "seconds, counted as independent", confidence,
        fewest=BATCH * FEWEST_BATCHES, correlated=True,
    )  # fmt: skip
    mean = math.fsum(series) / len(series)
    rest = series[state.cut or 0 :]
    return Steady(
        trial_id=trial_id, attempt=attempt, treatment=treatment, response=response, unit=unit_of(response),
        n=len(series), likeness=state.likeness, **steady_fields(state),
        change_detected=None if state.cut is None else relative_change(math.fsum(rest) / len(rest), mean),
    )  # fmt: skip


def not_settled(steady: Sequence[Steady], response: str = "") -> list[str]:
    """Sentence on trials without a steady state; empty if no more moved than chance explains.

    Each trial has two tests at 1%, so the number of those that move is compared with a binomial distribution.
    """
    if not steady:
        return []
    counts = {verdict: sum(one.verdict == verdict for one in steady) for verdict in ("warm-up", "drifting", "none")}
    tested = len(steady) - counts["none"]
    if not tested:
        if len(steady) == 1:
            return ["The one trial is too short to test for a steady state within it."]
        return [f"All {len(steady)} trials are too short to test for a steady state within them."]
    by_chance = int(stats.binom.ppf(1 - ALARMS, tested, 2 * change_points.ALPHA))
    if counts["drifting"] + counts["warm-up"] <= by_chance:
        return []
    clauses = []
    if counts["drifting"]:
        clauses.append(f"{counts['drifting']} still moved at their end")
    if counts["warm-up"]:
        clauses.append(f"{counts['warm-up']} began at another level")
    return [f"Within {count(tested, 'trial')}, by the seconds: {'; '.join(clauses)}."]


def _of_context(context: Context) -> Iterator[Steady]:
    """A row for each trial but those whose cluster changed its size."""
    for of in context.seconds_of_constant_size:
        for (trial_id, attempt), seconds in of.trials:
            row = steady(
                [float(value) for value in seconds[RESPONSE]], trial_id=trial_id, attempt=attempt,
                treatment=of.treatment, response=RESPONSE, confidence=context.confidence,
            )  # fmt: skip
            if row is not None:
                yield row


STATISTIC = Statistic(
    name="steady",
    row=Steady,
    title="Steady state within each trial",
    section=Section.WITHIN,
    compute=_of_context,
    sentences=not_settled,
    order=20,
    sentence_order=80,
)
