"""Steadiness over the study: change points over starts, or over the trials of a single start.

A disturbance at some hour affects every treatment measured then. So all treatments are also analysed together, each
less its own mean: many more starts, one question.
"""

from __future__ import annotations

from collections.abc import Sequence

from steelyard.analysis.comparisons.level_pairs import Over
from steelyard.analysis.frame import TrialFrame
from steelyard.analysis.inference.steadiness import judged
from steelyard.analysis.statistic import Section, Statistic
from steelyard.analysis.statistics.steady import SteadyState, steady_fields
from steelyard.analysis.treatments import Treatment, label
from steelyard.analysis.wording import MOST_NAMED
from steelyard.format import count
from steelyard.heavy import pl
from steelyard.model.responses import unit_of


class Course(SteadyState):
    """Whether the trials of a treatment, or of all together, kept their level over the study: change points."""

    together: bool
    """All treatments at once, each less its own mean: what happened to all of them."""
    over: Over
    """Kind of value: start means in order of time, or the trials of a single start."""
    n: int
    """Values."""
    starts: int
    """Starts of a cluster."""
    fixed_cut: int
    """Trials at the beginning of each start that the fixed count dropped before."""


def courses(frame: TrialFrame, response: str, confidence: float = 0.95) -> tuple[Course, ...]:
    """All treatments together (where there are several), then each treatment that has a used trial."""
    treatments = frame.treatments
    first_s = float(frame.data["begun_s"].min()) if frame.data.height else 0.0  # type: ignore[arg-type]
    judged = []
    if len(treatments) > 1:
        rows = frame.values(response).filter(pl.col(response) > 0)
        if rows.height:
            judged.append(_course(_together(frame, rows, response), frame, response, {}, True, first_s, confidence))
    for treatment in treatments:
        rows = frame.values(response, treatment)
        if rows.height:
            judged.append(_course(_units(rows, response), frame, response, treatment, False, first_s, confidence))
    return tuple(judged)


def _units(rows: pl.DataFrame, response: str) -> pl.DataFrame:
    """Columns start, begun_s, value: the mean of each start; for a single start its trials."""
    value = pl.col(response).cast(pl.Float64)
    if rows["start"].n_unique() == 1:
        return rows.select("start", "begun_s", value.alias("value")).sort("begun_s", "start")
    means = rows.group_by("start", maintain_order=True).agg(pl.col("begun_s").min(), value.mean().alias("value"))
    return means.sort("begun_s", "start")


def _together(frame: TrialFrame, rows: pl.DataFrame, response: str) -> pl.DataFrame:
    """The same over all treatments: the geometric mean over a start of value / the treatment's geometric mean.

    Treatments with one start are left out.
    """
    names = list(frame.names)
    log = pl.col(response).cast(pl.Float64).log()
    rows = rows.filter(pl.col("start").n_unique().over(names) > 1).with_columns(off=log - log.mean().over(names))
    return (
        rows.group_by("start", maintain_order=True)
        .agg(pl.col("begun_s").min(), pl.col("off").mean().exp().alias("value"))
        .sort("begun_s", "start")
    )


def _course(
    units: pl.DataFrame, frame: TrialFrame, response: str, treatment: Treatment, together: bool, first_s: float,
    confidence: float,
) -> Course:  # fmt: skip
    values = [float(value) for value in units["value"]]
    starts = units["start"].n_unique()
    over: Over = "trials" if starts == 1 and not together else "start means"
    noun = "trial" if over == "trials" else "start"
    hours = [(float(begun_s) - first_s) / 3600 for begun_s in units["begun_s"]]
    state = judged(values, noun, over, confidence, at_h=hours)
    return Course(
        treatment=treatment, together=together, response=response,
        unit="of its treatment's mean" if together else unit_of(response), over=over, n=len(values), starts=starts,
        fixed_cut=frame.warm_up_trials, **steady_fields(state),
    )  # fmt: skip


def moved(courses: Sequence[Course], response: str = "") -> list[str]:
    """Sentences on changes of level between starts: of all treatments together, otherwise of single ones.

    The trials of a single start are tested by the statistic `trend`.
    """
    together = next((one for one in courses if one.together), None)
    if together is not None and together.change_points:
        first, *others = together.change_points
        more = f", and {len(others)} more" if others else ""
        at = f" {first.at_h:.1f} h into the study" if first.at_h is not None else ""
        return [
            f"Over all treatments together the level changed after start {first.after} of {together.n}{at}: "
            f"{first.size}{more}. Check what happened then; randomised blocks keep it out of the comparisons, but "
            "not out of the intervals."
        ]
    if together is not None and together.verdict == "drifting":
        return [f"Over all treatments together the level drifted: {together.detail}."]
    changed = [one for one in courses if not one.together and one.changes and one.over == "start means"]
    if not changed:
        return []
    named = "; ".join(f"{label(one.treatment)}: {one.detail}" for one in changed[:MOST_NAMED])
    rest = f"; and {len(changed) - MOST_NAMED} more" if len(changed) > MOST_NAMED else ""
    return [f"The level of {count(len(changed), 'treatment')} changed over the study ({named}{rest})."]


STATISTIC = Statistic(
    name="course",
    row=Course,
    title="Level of {response} over the study: change points, MSER-5",
    section=Section.VALIDITY,
    compute=lambda context: courses(context.frame, context.response, context.confidence),
    sentences=moved,
    order=50,
    sentence_order=30,
)
