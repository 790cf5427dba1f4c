"""Warm-up detection within a start: the study's fixed count, and the cut by MSER-5 and change points."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from steelyard.analysis.frame import TrialFrame
from steelyard.analysis.inference import change_points, estimates, steadiness
from steelyard.analysis.inference.mser5 import BATCH, FEWEST_BATCHES, mser5
from steelyard.analysis.inference.steadiness import ChangePoint, WarmUpVerdict, relative_change
from steelyard.analysis.row import HIDDEN, InUnit, InUnitOrNone, Share, TreatmentRow
from steelyard.analysis.statistic import Section, Statistic
from steelyard.analysis.treatments import Treatment
from steelyard.heavy import np, pl, stats
from steelyard.model.responses import unit_of


class WarmUp(TreatmentRow):
    """Warm-up of one treatment within one start: the fixed count beside what detection found."""

    start: str
    """Start of a cluster."""
    response: str
    """Response, as named in the store."""
    unit: str
    """Unit of the response."""
    n: int
    """Valid trials in the series."""
    fixed_cut: int
    """Trials dropped at the beginning by the study's fixed count."""
    detected_cut: int | None = None
    """Trials that MSER-5 would drop; none if the series is too short to say."""
    verdict: WarmUpVerdict
    """Warm-up: a beginning to drop, level after it. Steady: level from the first trial. Drifting: a trend remains after
    the cut. None: no steady state can be shown."""
    detail: str
    """The sentence behind the verdict."""
    mean_all: InUnit
    """Mean of all valid trials."""
    mean_fixed: InUnitOrNone = None
    """Mean after the fixed count."""
    mean_detected: InUnitOrNone = None
    """Mean after the detected cut."""
    change_fixed: Share = None
    """Change of the mean by the fixed count."""
    change_detected: Share = None
    """Change of the mean by the detected cut."""
    changes: Annotated[tuple[ChangePoint, ...], HIDDEN] = ()
    """Change points over all valid trials of the start."""


ALPHA = 0.01
"""Significance level of the verdict's two tests: strict, because the cut was chosen from the same series."""


def judge(series: Sequence[float]) -> tuple[WarmUpVerdict, int | None, str]:
    """(verdict, cut, the sentence behind it) of a series of trials of one treatment in one start.

    The series after the cut drifts if Kendall's tau over its order differs from 0 (1%). The cut counts as warm-up
    only if the dropped part differs from the rest (Mann-Whitney, 1%), or only the whole has a trend. Steady is said
    only if a change of the first third by `steadiness.STEADY_FACTOR` would be found.
    """
    judged = _judge(series)
    if judged[0] == "steady" and any(_judge(one)[0] == "steady" for one in steadiness.planted(series, 1 / 3)):
        return "none", judged[1], steadiness.NOT_SEEN
    return judged


def _judge(series: Sequence[float]) -> tuple[WarmUpVerdict, int | None, str]:
    cut = mser5(series)
    if cut is None:
        needed = BATCH * FEWEST_BATCHES
        return "none", None, f"{len(series)} trials are too few to detect a steady state; MSER-5 needs {needed}"
    rest = series[cut.drop :]
    tau, left_p = _trend(rest)
    if left_p < ALPHA and cut.at_bound:
        return "none", cut.drop, f"MSER-5 would drop half of the {len(series)} trials and the rest still moves"
    if left_p < ALPHA:
        way = "rises" if tau > 0 else "falls"
        return "drifting", cut.drop, f"after trial {cut.drop} the series still {way} (Kendall's tau {tau:+.2f})"
    if not cut.drop:
        return "steady", 0, "MSER-5 drops nothing"
    differs = _p(stats.mannwhitneyu(series[: cut.drop], rest).pvalue) < ALPHA
    if differs or _trend(series)[1] < ALPHA:
        return "warm-up", cut.drop, f"the first {cut.drop} trials differ from the {len(rest)} after them"
    return "steady", 0, f"MSER-5 pointed at trial {cut.drop}, but the trials before it do not differ from the rest"


def _trend(series: Sequence[float]) -> tuple[float, float]:
    """Kendall's tau over the order, and its p-value."""
    test = stats.kendalltau(range(len(series)), series)
    return (0.0 if np.isnan(test.statistic) else float(test.statistic)), _p(test.pvalue)


def _p(value: float) -> float:
    return 1.0 if np.isnan(value) else float(value)


def warm_up(
    frame: TrialFrame, response: str, treatment: Treatment, start: str, confidence: float = 0.95
) -> WarmUp | None:
    """The series of valid trials of a treatment in a start, warm-up included; None if there is no such trial."""
    rows = frame.where(treatment).filter(
        (pl.col("start") == start) & (pl.col("outcome") == "valid") & pl.col(response).is_not_null()
    )
    rows = rows.sort("order_of_treatment")
    series = [float(value) for value in rows[response]]
    if not series:
        return None
    unit = unit_of(response)
    verdict, cut, detail = judge(series)
    found_changes = change_points.changes(series)
    if found_changes:
        detail = f"{detail}; change points after trial {', '.join(str(one.after) for one in found_changes)}"
    mean_all = estimates.mean(series, unit, confidence, "all trials")
    fixed, detected = [float(value) for value in rows.filter(~pl.col("warm_up"))[response]], series[cut or 0 :]
    mean_fixed = estimates.mean(fixed, unit, confidence, "trials after the fixed count") if fixed else None
    mean_detected = (
        estimates.mean(detected, unit, confidence, "trials after the detected cut") if cut is not None else None
    )
    return WarmUp(
        treatment=treatment,
        start=start,
        response=response,
        unit=unit,
        n=len(series),
        fixed_cut=len(series) - len(fixed),
        detected_cut=cut,
        verdict=verdict,
        detail=detail,
        changes=steadiness.points_of(series, found_changes, None, "trials", confidence),
        mean_all=mean_all,
        mean_fixed=mean_fixed,
        mean_detected=mean_detected,
        change_fixed=relative_change(mean_fixed.value, mean_all.value) if mean_fixed else None,
        change_detected=relative_change(mean_detected.value, mean_all.value) if mean_detected else None,
    )


def warm_ups(frame: TrialFrame, response: str, confidence: float = 0.95) -> tuple[WarmUp, ...]:
    """One row per treatment and start."""
    rows = []
    for treatment in frame.treatments():
        for start in frame.where(treatment)["start"].unique(maintain_order=True):
            row = warm_up(frame, response, treatment, str(start), confidence)
            if row is not None:
                rows.append(row)
    return tuple(rows)


STATISTIC = Statistic(
    name="warm_up",
    row=WarmUp,
    title="Warm-up of each treatment in each start: fixed count and detection",
    section=Section.VALIDITY,
    compute=lambda context: warm_ups(context.frame, context.response, context.confidence),
    order=30,
    own_form=True,
)
