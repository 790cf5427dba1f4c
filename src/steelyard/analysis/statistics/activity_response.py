"""Responses before, during and after activities: what a change of size costs clients, over trials.

The trial is the unit, and seconds are only pooled in it: a ratio is that of two windows of one trial, and its interval
is t on logarithms over starts. Such a ratio has what drifts within every trial, too: with a drift of 5% and no effect
44% of cells of five starts show one. So where a control in the same block kept its size, the difference of logarithms
from the control's is given as well, which errs in 5%. A policy chooses a moment at which the response that it follows
is high, also by chance, and after such a moment it falls even if nothing is done. So the control's windows lie around
the moment that the policy would have chosen there, and a control in which it would have chosen none is left out: in
the same seconds of all controls the difference errs in 11% of cells of five blocks, and in 24% of those of ten.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Final, Literal

from steelyard.analysis.comparisons.level_ratios import centre
from steelyard.analysis.inference import estimates
from steelyard.analysis.inference.effect_sizes import TwoSamples, cohens_d
from steelyard.analysis.row import HIDDEN, NO_UNIT, Column, InUnitOrNone, MeasuredTreatment
from steelyard.analysis.statistic import AroundActivity, Context, Section, Statistic
from steelyard.analysis.treatments import Treatment
from steelyard.judging.activity_windows import WindowName
from steelyard.judging.t_interval import FEWEST_STARTS
from steelyard.model.estimate import Estimate
from steelyard.model.responses import unit_of
from steelyard.model.trial import Attempt

SHARE: Final = "error_percent"
"""Mostly 0 before: it has no ratio."""
SHOWN: Final = ("response_ms_mean", "response_ms_p50", "response_ms_p99", "throughput_per_s", SHARE, "cpu_percent_mean")
ORDER: Final[tuple[WindowName, ...]] = ("before", "during", "streaming", "after", "from decision")


class ActivityResponse(MeasuredTreatment):
    """One response in one window around one activity, over the used trials of a treatment."""

    activity: int
    """Which activity of its trial, from 1."""
    kind: Literal["scale-out", "scale-in"]
    """scale-out: nodes join; scale-in: nodes leave."""
    window: WindowName
    """before: from the beginning of the measurement, or the arrival of the last node of the activity before; during:
    from the desired size to the arrival of the last node, or the end of the activity; streaming: the part of it in
    which data were streamed to nodes that join; after: to the next activity, or the end of the measurement; from
    decision: during and after together, the *after* of published studies (srinadhuni2018)."""
    seconds: Annotated[Estimate, Column(unit="s")]
    """Length of the window, mean over trials."""
    n: int
    """Used trials with a value: of a window of at least 1 s, and of a percentile with enough operations in it."""
    value: InUnitOrNone = None
    """Of the operations that ended in the load's intervals of 1 s that lie within the window, so its edges are exact to
    1 s: geometric mean over starts with t interval on logarithms; of failed operations the mean of start means. Of CPU:
    of the readings of the nodes in service, each weighed by the time in which it served."""
    ratio: Annotated[Estimate | None, Column(unit=NO_UNIT, head="times before")] = None
    """To `before` of the same trial, together with what drifts within every trial: geometric mean over starts with t
    interval on logarithms."""
    against_control: Annotated[Estimate | None, Column(unit=NO_UNIT, head="against the control")] = None
    """`ratio` over that of the control, a trial of the same block and settings whose policy is `none`: geometric mean
    over blocks with t interval on logarithms. The control's windows lie around the time at which the policy, asked
    again of what the control measured, would have changed its size in the same direction; one in which it would not
    have is left out. In the same seconds of its own trial: around later activities, and of a policy that follows no
    response."""
    controlled: Annotated[int, Column(head="with control")] = 0
    """Trials with such a control."""
    cohens_d: Annotated[Estimate | None, Column(unit=NO_UNIT, head="d")] = None
    """Cohen's d against `before` of the same trials: the difference of the means over starts, over sqrt((s² + s of
    before²)/2), s their standard deviations over starts. Noncentral t interval of pairs. Above 0: more than before."""
    cohens_d_published: Annotated[Estimate | None, Column(unit=NO_UNIT, head="d, as published")] = None
    """The same number with the interval of independent samples, which does not use that both windows are of one
    trial."""
    trials: Annotated[int, HIDDEN] = 0
    """Used trials with the window."""
    compared: Annotated[int, HIDDEN] = 0
    """Those of them with a ratio to before."""
    one_node: Annotated[bool, HIDDEN] = False
    """Whether a single node joined or left in each of them."""


def activity_responses(context: Context) -> Iterator[ActivityResponse]:
    """Every treatment and activity, each response window by window."""
    around = context.within.around
    for treatment in context.frame.treatments if around else ():
        trials = context.frame.where(treatment).select("trial_id", "attempt", "start", "block").rows()
        units = {(trial, attempt): (start, block) for trial, attempt, start, block in trials}
        own = [one for one in around if one.trial in units]
        for key in sorted(
            {(one.window.activity, one.window.kind) for one in own}, key=lambda key: (key[0], -len(key[1]))
        ):
            of_activity = [one for one in own if (one.window.activity, one.window.kind) == key]
            yield from rows_of_activity(treatment, of_activity, units, context.confidence)


def rows_of_activity(
    treatment: Treatment, around: Sequence[AroundActivity], units: Mapping[Attempt, tuple[str, int]], confidence: float
) -> Iterator[ActivityResponse]:
    """The rows of one activity of a treatment. `units`: trial to its start and block."""
    window = around[0].window
    before = {one.trial: one for one in around if one.window.name == "before"}
    for response in SHOWN:
        if not any(response in one.values for one in around):
            continue
        unit = unit_of(response)
        for name in ORDER:
            of_window = [one for one in around if one.window.name == name]
            if not of_window:
                continue
            values = [
                (units[one.trial][0], value) for one in of_window if (value := one.values.get(response)) is not None
            ]
            lengths = [(units[one.trial][0], one.window.seconds) for one in of_window]
            ratios = {
                one.trial: ratios
                for one in of_window
                if name != "before" and response != SHARE and one.trial in before
                and (ratios := _ratios(one, before[one.trial], response))
            }  # fmt: skip
            controlled = [(units[trial][1], own / control) for trial, (own, control) in ratios.items() if control]
            both = before_and(of_window, before, response) if name != "before" else []
            effects = [
                effect_of([(units[trial][0], *pair) for trial, pair in both], confidence, paired=paired)
                for paired in (True, False)
            ]
            yield ActivityResponse(
                treatment=treatment, response=response, unit=unit, activity=window.activity, kind=window.kind,
                window=name, seconds=estimates.by_start(lengths, "s", confidence), n=len(values),
                value=_value(values, response, unit, confidence),
                ratio=_over(((units[trial][0], own) for trial, (own, _) in ratios.items()), "start ratios", confidence),
                against_control=_over(controlled, "block ratios", confidence),
                controlled=len(controlled), cohens_d=effects[0], cohens_d_published=effects[1],
                trials=len(of_window), compared=len(ratios), one_node=all(one.window.nodes == 1 for one in of_window),
            )  # fmt: skip


def before_and(
    of_window: Sequence[AroundActivity], before: Mapping[Attempt, AroundActivity], response: str
) -> list[tuple[Attempt, tuple[float, float]]]:
    """Trials with a value before and in a window: trial, both values."""
    return [
        (one.trial, (before[one.trial].values[response], one.values[response]))
        for one in of_window
        if response in one.values and one.trial in before and response in before[one.trial].values
    ]


def effect_of(
    both: Sequence[tuple[str, float, float]], confidence: float, *, paired: bool, falls: bool = False
) -> Estimate | None:
    """Cohen's d over start means of (start, before, in a window), or `falls`: before less the window. None below two
    starts, or without spread."""
    starts: dict[str, list[tuple[float, float]]] = {}
    for start, *pair in both:
        starts.setdefault(start, []).append((pair[0], pair[1]))
    means = [[math.fsum(side) / len(side) for side in zip(*pairs, strict=True)] for pairs in starts.values()]
    if len(means) < 2:
        return None
    before, inside = zip(*means, strict=True)
    over = "starts" if paired else "starts, before and after counted as independent"
    return cohens_d(TwoSamples(*((inside, before) if falls else (before, inside)), over, paired), confidence)


def _value(values: Sequence[tuple[str, float]], response: str, unit: str, confidence: float) -> Estimate | None:
    if not values:
        return None
    if response == SHARE:
        share = estimates.by_start(values, unit, confidence)
        same = len({value for _, value in values}) == 1
        return share.without_interval("mean over start means; nothing varies") if same else share
    starts: dict[str, list[float]] = {}
    for start, value in values:
        starts.setdefault(start, []).append(value)
    return centre([math.fsum(each) / len(each) for each in starts.values()], unit, confidence)


def _ratios(one: AroundActivity, before: AroundActivity, response: str) -> tuple[float, float | None] | None:
    """The ratio of a window to before in a trial, and that of its controls, if they have one; None if the trial has
    none."""
    own = _ratio(one.values, before.values, response)
    if own is None:
        return None
    of_controls = [
        math.log(ratio)
        for inside, earlier in zip(one.controls, before.controls, strict=True)
        if (ratio := _ratio(inside, earlier, response)) is not None
    ]
    return own, math.exp(math.fsum(of_controls) / len(of_controls)) if of_controls else None


def _ratio(inside: Mapping[str, float], earlier: Mapping[str, float], response: str) -> float | None:
    value, base = inside.get(response, 0.0), earlier.get(response, 0.0)
    return value / base if value > 0 and base > 0 else None


def _over(ratios: Iterable[tuple[object, float]], over: str, confidence: float) -> Estimate | None:
    """Geometric mean of the ratios of trials over starts or blocks; None without any."""
    logs: dict[object, list[float]] = {}
    for unit, ratio in ratios:
        logs.setdefault(unit, []).append(math.log(ratio))
    means = [math.exp(math.fsum(each) / len(each)) for each in logs.values()]
    return estimates.geometric_mean(means, "", confidence, over, FEWEST_STARTS) if means else None


STATISTIC = Statistic(
    name="activity_response",
    row=ActivityResponse,
    title="Responses before, during and after nodes joined or left, and while data were streamed to them",
    section=Section.ACTIVITIES,
    compute=activity_responses,
    order=2,
    of_records=True,
)
