"""Aligned curves: responses second by second around the decision for the first change of size, or the beginning of the
first disruption, over trials.

The trial is the unit: a start's trials are averaged first. Before and after a decision that a policy takes because of
a measured value differ also by chance, because the policy chose that moment, and a load that changes is in the curve
as well. So where blocks have a control, the difference of logarithms from it is given, too, around the moment that the
policy would have chosen there.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, get_args

from steelyard.analysis.inference import estimates
from steelyard.analysis.inference.curve_bands import Band, band
from steelyard.analysis.row import HIDDEN, IN_UNIT, NO_UNIT, Column, InUnit, MeasuredTreatment
from steelyard.analysis.statistic import AlignedKind, AlignedTrial, Context, Section, Statistic
from steelyard.analysis.treatments import Treatment
from steelyard.format import confidence_text, count
from steelyard.heavy import np
from steelyard.model.estimate import Estimate
from steelyard.model.responses import unit_of

Curve = Mapping[int, float]
OF_TIME: Final = "response_ms_mean"
KEYS: Final = ("trial_id", "attempt")
NO_BAND: Final = "no band"
SHOWN: Final = (OF_TIME, "throughput_per_s", "cpu_percent_mean")


class AlignedSecond(MeasuredTreatment):
    """One response in one second around the decision for the first activity, or the beginning of the first disruption,
    over the used trials of a treatment."""

    kind: AlignedKind
    """scale-out: nodes join; scale-in: nodes leave; disruption: of trials that kept their size."""
    second_s: Annotated[int, Column(unit="s", head="second")]
    """From this time since the desired size, or the beginning of the disruption, for 1 s; exact to half an interval of
    the load. From -120 s to 300 s, as far as all trials have it."""
    nodes: Annotated[float, Column(unit="nodes", head="nodes in service")]
    """Mean over trials."""
    n: int
    """Used trials whose first activity is of this kind: only they have a curve."""
    used: int
    """Used trials of the treatment."""
    value: InUnit
    """Mean over trials, of response times the geometric one; a start's trials are averaged first. Its band, by its
    method: `simultaneous` holds the true curve in all seconds together; `pointwise` each second alone, so no difference
    may be read from it; with fewer than five trials there is none."""
    control: Annotated[float | None, Column(unit=IN_UNIT)] = None
    """The same mean over the controls (trials of the same block and settings whose policy is `none`), from the time on
    at which the policy, asked again of what the control measured, would have changed its size in the same direction;
    without those in which it would not have. Of a policy that follows no response, and of a disruption, whose controls
    have none: in the same seconds of its own trial."""
    against_control: Annotated[Estimate | None, Column(unit=NO_UNIT, head="against the control")] = None
    """Ratio of each trial to its control in that second: geometric mean over blocks with its band, of the trials that
    have a control. What both have, as a load that changes, is not in it."""
    band: Annotated[str, HIDDEN]
    """What the band of `value` is, in words."""
    ratio_band: Annotated[str, HIDDEN] = ""
    """What the band of `against_control` is."""
    arrivals_s: Annotated[tuple[float, ...], HIDDEN]
    """When the first, the second, ... node came into service, or left; when targets of a disruption were healed, and
    had recovered. Medians over trials, since second 0."""


@dataclass(frozen=True)
class Cell:
    """The used trials of a treatment whose first activity is of one kind, with start and block of each."""

    treatment: Treatment
    used: int
    trials: Sequence[AlignedTrial]
    starts: Sequence[str]
    blocks: Sequence[int]


def aligned(context: Context) -> Iterator[AlignedSecond]:
    """Every treatment, kind of first activity and response, second by second."""
    trials = context.within.aligned
    for treatment in context.frame.treatments if trials else ():
        rows = context.frame.values(context.response, treatment)
        units = {(trial, attempt): unit for trial, attempt, *unit in rows.select(*KEYS, "start", "block").rows()}
        for kind in get_args(AlignedKind):
            own = [one for one in trials if one.trial in units and one.kind == kind]
            if own:
                starts, blocks = zip(*(units[one.trial] for one in own), strict=True)
                cell = Cell(treatment, len(units), own, starts, blocks)
                for response in SHOWN:
                    yield from _of_response(context, cell, response)


def _of_response(context: Context, cell: Cell, response: str) -> Iterator[AlignedSecond]:
    to, back, estimate, mean = (
        (_logs, math.exp, _exponential, "geometric mean") if response == OF_TIME else (dict, float, _linear, "mean")
    )
    seconds, over_starts = _over(cell.starts, [to(trial.curves[response]) for trial in cell.trials])
    if not seconds:
        return
    n, what = len(over_starts), "trial" if len(over_starts) == len(cell.trials) else "start"
    values, words = _band(context, over_starts, what)
    controlled = [(block, trial) for block, trial in zip(cell.blocks, cell.trials, strict=True) if trial.controls]
    controls = [_control(trial, response, to) for _, trial in controlled]
    of_controls, over_blocks = _over([block for block, _ in controlled], controls)
    control = dict(zip(of_controls, np.mean(over_blocks, axis=0), strict=True)) if of_controls else {}
    ratios, ratio_words = _ratios(context, controlled, response)
    arrivals_s, unit = _medians([trial.arrived_s for trial in cell.trials]), unit_of(response)
    for second, centre, half in zip(seconds, values.centre, values.half, strict=True):
        yield AlignedSecond(
            treatment=cell.treatment, response=response, unit=unit, kind=cell.trials[0].kind, second_s=second,
            nodes=statistics.fmean(trial.nodes[second] for trial in cell.trials), n=len(cell.trials), used=cell.used,
            value=estimate(centre, half, unit, context.confidence, n, f"{mean}, {words}"),
            control=back(control[second]) if second in control else None, against_control=ratios.get(second),
            band=words, ratio_band=ratio_words, arrivals_s=arrivals_s,
        )  # fmt: skip


def _ratios(
    context: Context, controlled: Sequence[tuple[int, AlignedTrial]], response: str
) -> tuple[dict[int, Estimate], str]:
    """Ratio to the control by second over blocks, and its band in words; none without a trial that has a control."""
    pairs = [(_logs(trial.curves[response]), _control(trial, response, _logs)) for _, trial in controlled]
    gaps = [{second: own[second] - control[second] for second in own.keys() & control.keys()} for own, control in pairs]
    seconds, over_blocks = _over([block for block, _ in controlled], gaps)
    if not seconds:
        return {}, ""
    values, words = _band(context, over_blocks, "block")
    ratios = {
        second: _exponential(centre, half, "", context.confidence, len(over_blocks), f"geometric mean, {words}")
        for second, centre, half in zip(seconds, values.centre, values.half, strict=True)
    }
    return ratios, words


def _exponential(log: float, half: float, unit: str, confidence: float, n: int, method: str) -> Estimate:
    return estimates.exponential(log, half if math.isfinite(half) else None, unit, confidence, n, method)


def _linear(centre: float, half: float, unit: str, confidence: float, n: int, method: str) -> Estimate:
    """Its low end is cut at 0: no response is below."""
    ends = (max(0.0, centre - half), centre + half) if math.isfinite(half) else None
    return Estimate.of(centre, ends, unit, confidence, n, method)


def _band(context: Context, curves: Any, what: str) -> tuple[Band, str]:
    """The band of curves, and what it is in words."""
    values = band(curves, context.confidence, context.generator())
    share, over = confidence_text(context.confidence), count(len(curves), what)
    words = {
        "none": f"{over}: {NO_BAND}",
        "pointwise": f"pointwise {share} band over {over}, no test",
        "simultaneous": f"simultaneous {share} band over {over}",
    }
    return values, words[values.kind]


def _control(trial: AlignedTrial, response: str, to: Callable[[Curve], Curve]) -> Curve:
    """Mean over the controls of a trial; empty without one."""
    seconds, curves = _over(range(len(trial.controls)), [to(control[response]) for control in trial.controls])
    return dict(zip(seconds, np.mean(curves, axis=0), strict=True)) if seconds else {}


def _over(units: Sequence[object], curves: Sequence[Curve]) -> tuple[list[int], Any]:
    """The seconds that all curves have, and a row for each unit, the mean of its curves."""
    seconds = sorted(set.intersection(*map(set, curves))) if curves else []
    rows: dict[object, list[list[float]]] = {}
    for unit, curve in zip(units, curves, strict=True):
        rows.setdefault(unit, []).append([curve[second] for second in seconds])
    return seconds, np.array([np.mean(of_unit, axis=0) for of_unit in rows.values()])


def _logs(curve: Curve) -> Curve:
    return {second: math.log(value) for second, value in curve.items() if value > 0}


def _medians(arrived_s: Sequence[Sequence[float]]) -> tuple[float, ...]:
    """Medians over trials of the first, the second, ... arrival; a trial without it counts as later than all."""
    most = max(map(len, arrived_s))
    of_place = (
        statistics.median([*times, *[math.inf] * (most - len(times))][place] for times in arrived_s)
        for place in range(most)
    )
    return tuple(median_s for median_s in of_place if math.isfinite(median_s))


STATISTIC = Statistic(
    name="aligned",
    row=AlignedSecond,
    title="Responses second by second around the first change of size, or the first disruption",
    section=Section.ACTIVITIES,
    compute=aligned,
    order=3,
    of_records=True,
)
