"""Trials with a value of the main response, marked as used, warm-up, control or not valid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

from steelyard.analysis.frame import TrialFrame
from steelyard.analysis.row import NO_UNIT, Column, TreatmentRow
from steelyard.analysis.statistic import Section, Statistic
from steelyard.heavy import pl
from steelyard.judging import dilation
from steelyard.model.trial_columns import COVARIATE

DILATION = f"{COVARIATE}{dilation.COVARIATE}"


class Point(TreatmentRow):
    """One trial with a value of the main response: used, warm-up, control or not valid, as marked."""

    trial_id: Annotated[str, Column(head="trial")]
    """Identity of the trial: hash of its settings, its start, its number. Its folder has this name."""
    attempt: int
    """Which attempt of the trial, from 1: one that the laboratory spoilt is repeated."""
    value: Annotated[float, Column(unit="in the unit of the main response")]
    """Main response."""
    start: str
    """Start that the trial was made on."""
    start_replicate: int
    """Which start of these hard-to-change levels, from 1."""
    block: int
    """Block, from 1: trials run close together, in random order."""
    order_in_start: int
    """How many trials this start had served, counting this one."""
    order_of_treatment: int | None
    """Which attempt of its treatment the start served, voided ones included, from 1; none if not valid."""
    position: int
    """Place in the plan, from 0."""
    used: bool
    """Valid and no warm-up trial."""
    warm_up: bool
    """Dropped by the fixed count."""
    control: bool
    """Control trial."""
    outcome: str
    """Verdict on the trial."""
    begun_s: Annotated[float, Column(unit="seconds since the epoch")]
    """When it began."""
    elapsed_h: Annotated[float, Column(unit="hours")]
    """Since the first trial of the study began."""
    dilation: Annotated[float, Column(unit=NO_UNIT)] = 1.0
    """By how much the trial's time was stretched: its times are the clock's divided by it, its rates multiplied by it;
    1: not dilated."""


def points(frame: TrialFrame, response: str) -> tuple[Point, ...]:
    """Every trial with a value of the response, in order of time, marked as used, warm-up, control or not valid."""
    rows = frame.data.filter(pl.col(response).is_not_null())
    if not rows.height:
        return ()
    first_s = float(frame.data["begun_s"].to_list()[0])
    return tuple(_point(row, response, frame.names, first_s) for row in rows.iter_rows(named=True))


def _point(row: Mapping[str, object], response: str, factors: Sequence[str], first_s: float) -> Point:
    kept = ("trial_id", "attempt", "start", "start_replicate", "block", "order_in_start", "order_of_treatment",
            "position", "used", "warm_up", "control", "outcome", "begun_s")  # fmt: skip
    treatment = {name: row[name] for name in factors if row[name] is not None}
    begun_s = float(str(row["begun_s"]))
    own = {
        "treatment": treatment,
        "value": row[response],
        "elapsed_h": (begun_s - first_s) / 3600,
        "dilation": row.get(DILATION) or 1.0,
    }
    return Point.model_validate({**{name: row[name] for name in kept}, **own})


STATISTIC = Statistic(
    name="trials",
    row=Point,
    title="Every trial with its {response}",
    section=Section.EVERY_TRIAL,
    compute=lambda context: points(context.frame, context.response),
    order=10,
)
