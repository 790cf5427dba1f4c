"""Whether a treatment kept its level over the study: change points over starts, or over the trials of a single start.

What happens at an hour of the day happens to every treatment that is tried then. So all treatments are looked at
together too, each less its own mean: many more starts, one question.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from steelyard.analysis import changes, effects
from steelyard.analysis.findings import ChangePoint, Course, Over
from steelyard.analysis.frame import TrialFrame
from steelyard.analysis.mser import mser5
from steelyard.analysis.results import UNITS, Treatment, WarmUpVerdict

FEWEST = changes.FEWEST


def verdict_of(
    values: Sequence[float], found: Sequence[changes.Change], noun: str, r: float = 0.0, each: int = 1
) -> tuple[WarmUpVerdict, str]:
    """(verdict, the sentence behind it) of a series of `each` units a value, given its changes of level.

    warm-up: the last change lies in the first half and no trend comes after it; drifting: a later change, or a trend;
    steady: neither.
    """
    last = found[-1].after if found else 0
    rho, p = changes.trend(values[last:], r)
    places = ", ".join(str(one.after * each) for one in found)
    moves = f"still {'rises' if rho > 0 else 'falls'} (Spearman's {rho:+.2f})" if p < changes.ALPHA else ""
    if not found:
        return ("drifting", f"the series {moves}") if moves else ("steady", "no change of level and no trend is shown")
    told = f"the level changes after {noun} {places}"
    if moves:
        return "drifting", f"{told}, and the series {moves} after that"
    if last <= len(values) / 2:
        return "warm-up", f"{told}, and keeps its level from there"
    return "drifting", f"{told}, so late that no warm-up explains it"


def points_of(
    values: Sequence[float], found: Sequence[changes.Change], at_h: Sequence[float] | None, over: str,
    confidence: float, each: int = 1,
) -> tuple[ChangePoint, ...]:  # fmt: skip
    """The changes with their size: ratio of the levels on either side, Fieller's interval.

    The place was chosen by looking, so the size is rather too large than too small; `method` says so.
    """
    bounds = [0, *(one.after for one in found), len(values)]
    made = []
    for place, one in enumerate(found, start=1):
        before, after = values[bounds[place - 1] : bounds[place]], values[bounds[place] : bounds[place + 1]]
        ratio = effects.fieller(before, after, confidence, over)
        percent = None
        if ratio is not None:
            low, high = (None if end is None else 100 * (end - 1) for end in (ratio.low, ratio.high))
            percent = ratio.model_copy(
                update={"value": 100 * (ratio.value - 1), "low": low, "high": high, "unit": "%",
                        "method": f"{ratio.method}; the place was chosen by looking"}
            )  # fmt: skip
        when = at_h[one.after] if at_h is not None else None
        made.append(ChangePoint(after=one.after * each, at_h=when, change_percent=percent, p=one.p))
    return tuple(made)


def told(found: Sequence[ChangePoint]) -> str:
    """Changes in one line: `after 12: +8.1% (p 0.0005)`."""
    return "; ".join(
        f"after {one.after}: {'level' if one.change_percent is None else f'{one.change_percent.value:+.2g}%'} "
        f"(p {one.p:.2g})"
        for one in found
    )


def courses(frame: TrialFrame, response: str, confidence: float = 0.95) -> tuple[Course, ...]:
    """All treatments together (where there are several), then each treatment that has a used trial."""
    treatments = frame.treatments()
    first_s = float(frame.data["begun_s"].min()) if frame.data.height else 0.0  # type: ignore[arg-type]
    found = []
    if len(treatments) > 1:
        rows = frame.values(response).filter(pl.col(response) > 0)
        if rows.height:
            found.append(_course(_together(frame, rows, response), frame, response, {}, True, first_s, confidence))
    for treatment in treatments:
        rows = frame.values(response, treatment)
        if rows.height:
            found.append(_course(_units(rows, response), frame, response, treatment, False, first_s, confidence))
    return tuple(found)


def _units(rows: pl.DataFrame, response: str) -> pl.DataFrame:
    """start, begun_s, value: of each start its mean; of a single start its trials."""
    value = pl.col(response).cast(pl.Float64)
    if rows["start"].n_unique() == 1:
        return rows.select("start", "begun_s", value.alias("value")).sort("begun_s", "start")
    means = rows.group_by("start", maintain_order=True).agg(pl.col("begun_s").min(), value.mean().alias("value"))
    return means.sort("begun_s", "start")


def _together(frame: TrialFrame, rows: pl.DataFrame, response: str) -> pl.DataFrame:
    """The same over all treatments: the geometric mean over a start of value / the treatment's geometric mean.

    Treatments with one start say nothing of starts and are left out.
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
    cut = mser5(values)
    about = {
        "treatment": treatment, "together": together, "response": response,
        "unit": "of its treatment's mean" if together else UNITS[response], "over": over, "n": len(values),
        "starts": starts, "fixed_cut": frame.warm_up_trials, "detected_cut": None if cut is None else cut.drop,
    }  # fmt: skip
    if len(values) < FEWEST:
        detail = f"{len(values)} {noun}s are too few to tell a change from chance; {FEWEST} are needed"
        return Course.model_validate({**about, "verdict": "none", "detail": detail})
    found = changes.changes(values)
    verdict, detail = verdict_of(values, found, noun)
    hours = [(float(begun_s) - first_s) / 3600 for begun_s in units["begun_s"]]
    made = points_of(values, found, hours, over, confidence)
    return Course.model_validate({**about, "verdict": verdict, "detail": detail, "changes": made})
