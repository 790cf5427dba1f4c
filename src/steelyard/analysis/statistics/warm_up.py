"""Warm-up within a start: the study's fixed count, the cut by MSER-5, and the verdict by change points."""

from __future__ import annotations

from steelyard.analysis.frame import TrialFrame
from steelyard.analysis.inference import estimates
from steelyard.analysis.inference.steadiness import judged, relative_change
from steelyard.analysis.row import InUnit, InUnitOrNone, Share
from steelyard.analysis.statistic import Section, Statistic
from steelyard.analysis.statistics.steady import SteadyState, steady_fields
from steelyard.analysis.treatments import Treatment
from steelyard.heavy import pl
from steelyard.model.responses import unit_of


class WarmUp(SteadyState):
    """Warm-up of one treatment within one start: the fixed count and the detected cut."""

    start: str
    """Start of a cluster."""
    n: int
    """Valid trials in the series."""
    fixed_cut: int
    """Trials dropped at the beginning by the study's fixed count."""
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
    state = judged(series, "trial", "trials", confidence)
    mean_all = estimates.mean(series, unit, confidence, "all trials")
    fixed = [float(value) for value in rows.filter(~pl.col("warm_up"))[response]]
    mean_fixed = estimates.mean(fixed, unit, confidence, "trials after the fixed count") if fixed else None
    mean_detected = None
    if state.cut is not None:
        mean_detected = estimates.mean(series[state.cut :], unit, confidence, "trials after the detected cut")
    return WarmUp(
        treatment=treatment, start=start, response=response, unit=unit, n=len(series),
        fixed_cut=len(series) - len(fixed), **steady_fields(state),
        mean_all=mean_all, mean_fixed=mean_fixed, mean_detected=mean_detected,
        change_fixed=relative_change(mean_fixed.value, mean_all.value) if mean_fixed else None,
        change_detected=relative_change(mean_detected.value, mean_all.value) if mean_detected else None,
    )  # fmt: skip


def warm_ups(frame: TrialFrame, response: str, confidence: float = 0.95) -> tuple[WarmUp, ...]:
    """One row per treatment and start."""
    rows = []
    for treatment in frame.treatments:
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
    appendix=True,
)
