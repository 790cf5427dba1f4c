"""Elasticity: how well the nodes in service of clusters that change their size met the demand of their load.

The measures are responses of each trial (`model.responses.scaling`). The trial is the unit, and its start what an
interval rests on: t over starts, because the measures are often 0 and bounded. The elastic speed-up is a ratio, with t
on logarithms over blocks. Simulated with joins of random length, it holds the truth in 94 to 96% of studies, and
t over starts that of theta and tau likewise (docs/explanation/coverage.md); a bootstrap over starts in 74, 85 and 90%
(3, 5 and 10 starts).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Annotated, Any, Final

from steelyard.analysis.comparisons.level_pairs import pair_of
from steelyard.analysis.comparisons.level_ratios import ratio_of
from steelyard.analysis.frame import TrialFrame, start_means
from steelyard.analysis.inference import estimates
from steelyard.analysis.row import HIDDEN, NO_UNIT, Column, TreatmentRow
from steelyard.analysis.statistic import Context, Section, Statistic
from steelyard.analysis.treatments import Treatment, label
from steelyard.format import count, listed, number
from steelyard.heavy import pl
from steelyard.judging.elasticity import elasticity_of, offered, other_levels
from steelyard.judging.searched_capacity import Capacities, capacities, found_for
from steelyard.judging.t_interval import FEWEST_STARTS
from steelyard.model.demand import Demand
from steelyard.model.estimate import Estimate
from steelyard.model.policy import NONE
from steelyard.model.responses import unit_of
from steelyard.model.responses.scaling import BEYOND, NODE_SECONDS
from steelyard.model.study import Study
from steelyard.model.trial import TrialRecord

MEASURES: Final[Mapping[str, tuple[float, float]]] = {
    "theta_under_percent": (0.0, 100.0),
    "theta_over_percent": (0.0, math.inf),
    "tau_under_percent": (0.0, 100.0),
    "tau_over_percent": (0.0, 100.0),
    "jitter_per_min": (-math.inf, math.inf),
    "instability_percent": (0.0, 100.0),
}
"""Each measure with the least and the greatest value that it can have."""
FACTORS: Final = tuple(MEASURES)[:4]
"""The measures that the elastic speed-up multiplies."""
MEAN_OF_FACTORS: Final = "elasticity.mean_of_factors"
"""Their geometric mean; none where one is 0."""
NO_ERROR: Final = "the capacities count as exact"
WITH_ERROR: Final = "with the capacities at the ends of their intervals, too"
NONE_AT_AN_END: Final = "none with the capacities at an end of their intervals"
"""What an interval holds of the error of capacities that searches found."""
THE_CONTROL, NO_CONTROL = "it is the control", "no treatment with the same other levels keeps its size (policy none)"


class Elasticity(TreatmentRow):
    """How well the nodes in service met the demand under one treatment. Demand: the smallest size that carries the
    offered rate, by `analysis.demand`."""

    theta_under_percent: Annotated[Estimate, Column(unit="%", head="theta under")]
    """Accuracy of provisioning, too few nodes: the mean over time of the nodes that lacked, in percent of the
    demand. 0 is perfect."""
    theta_over_percent: Annotated[Estimate, Column(unit="%", head="theta over")]
    """Accuracy of provisioning, too many nodes: the mean over time of the nodes in excess, in percent of the demand. 0
    is perfect."""
    tau_under_percent: Annotated[Estimate, Column(unit="%", head="tau under")]
    """Share of the time with too few nodes."""
    tau_over_percent: Annotated[Estimate, Column(unit="%", head="tau over")]
    """Share of the time with too many nodes."""
    jitter_per_min: Annotated[Estimate, Column(unit="nodes/min", head="jitter")]
    """Nodes that joined or left, less those by which the demand changed, per minute. Above 0: changes that the load did
    not need; below 0: changes that are missing."""
    instability_percent: Annotated[Estimate, Column(unit="%", head="instability")]
    """Share of the seconds in which supply and demand did not change in the same direction. It depends on the step,
    which is 1 s."""
    n: int
    """Used trials."""
    starts: int
    """Starts that they were made on, over which intervals are."""
    never_under: int
    """Used trials that never had too few nodes: theta and tau under are 0."""
    never_over: int
    """Used trials that never had too many nodes: theta and tau over are 0."""
    beyond_scale_percent: Annotated[float, Column(unit="%", head="beyond scale")]
    """Share of the time in which the load offered more than the largest size carries. The demand is then that size, so
    that what lacks beyond it is in no other column."""
    node_seconds: Annotated[float, Column(unit="node-seconds", head="node-seconds")]
    """Time in which the servers of database nodes ran, summed over nodes: what is paid for. Mean over trials."""
    elastic_speedup: Annotated[Estimate | None, Column(unit=NO_UNIT, head="elastic speed-up")] = None
    """Geometric mean of the ratios of both theta and both tau, those of the control that keeps its size (policy none,
    same other levels) over those of this treatment. Above 1: more elastic than the control."""
    speedup_lacks: str = ""
    """Why there is no elastic speed-up. A measure that is 0 has no ratio: then the measures themselves are the
    result."""
    others: Annotated[Treatment, HIDDEN]
    """Levels of the factors that are not of the policy."""
    measures: Annotated[bool, HIDDEN] = False
    """Whether its policy follows what it measures; others keep the size, or know the load beforehand."""


def lacking(study: Study, records: Sequence[TrialRecord]) -> str:
    """Why a study whose clusters changed their size has no measures of elasticity; empty if it has, if none did, and if
    they only followed a schedule."""
    if not any(record.activities for record in records):
        return ""
    if study.analysis.demand is None:
        if all(record.settings.policy.times for record in records if record.settings.policy.changes):
            return ""
        return (
            "Measures of elasticity (SPEC) need the operations per second that each size carries, which the study does "
            "not say: `analysis.demand`."
        )
    if not any(offered(record) for record in records):
        return (
            "Measures of elasticity (SPEC) need a rate that is known beforehand: closed loops, traces and fractions of "
            "a measured capacity have none."
        )
    carried = capacities(study.analysis.demand, records)
    if not any(carried(record) for record in records if offered(record)):
        return (
            "Measures of elasticity (SPEC) need the operations per second that each size carries: no search of this "
            "study with the settings of its other trials has found one."
        )
    return ""


def elasticities(context: Context) -> Iterator[Elasticity]:
    """A row for each treatment with a used trial, in the order of the levels; none without a demand, and none if no
    cluster changed its size."""
    demand, records = context.study.analysis.demand, context.records
    if demand is None or not any(record.activities for record in records):
        return
    ends = [] if demand.capacity else _at_ends(demand, records, context.confidence)
    frames = [_with_measures(context, carried) for carried in ends]
    of_ends = [{label(row.treatment): row for row in _rows(context, frame)} for frame in frames]
    for row in _rows(context, context.frame):
        at_ends = [rows.get(label(row.treatment)) for rows in of_ends]
        yield row if demand.capacity else _with_error_of_capacity(row, at_ends)


def _at_ends(demand: Demand, records: Sequence[TrialRecord], confidence: float) -> list[Capacities]:
    """The capacities of searches with all sizes at the lower, and all at the upper ends of their intervals over starts;
    none if a size has no interval."""

    def interval(means: Sequence[float]) -> Estimate:
        return estimates.geometric_mean(means, "", confidence, "start means", FEWEST_STARTS)

    offering = [record for record in records if offered(record)]
    every = [interval(means) for record in offering for _, means in found_for(record, records)]
    if any(one.low is None for one in every):
        return []
    return [
        capacities(demand, records, lambda means: interval(means).low or 0.0),
        capacities(demand, records, lambda means: interval(means).high or 0.0),
    ]


def _with_measures(context: Context, carried: Capacities) -> TrialFrame:
    """The trial frame with the measures that other capacities give."""
    known, data = elasticity_of(context.records, context.study, carried), context.frame.data
    keys = data.select("trial_id", "attempt").rows()
    columns = [
        pl.Series(name, [known.get(key, {}).get(name) for key in keys], dtype=pl.Float64)
        for name in (*MEASURES, BEYOND)
    ]
    return replace(context.frame, data=data.with_columns(columns))


def _rows(context: Context, frame: TrialFrame) -> Iterator[Elasticity]:
    study, frame = context.study, with_mean_of_factors(frame)
    treatments = [one for one in frame.treatments if not _trials(frame, one).is_empty()]
    known = {record.key: record for record in context.records}
    firsts = [known[_trials(frame, one).select("trial_id", "attempt").row(0)] for one in treatments]
    controls = [one for one, first in zip(treatments, firsts, strict=True) if first.settings.policy.name == NONE]
    for treatment, first in zip(treatments, firsts, strict=True):
        others = other_levels(study, treatment)
        same = [one for one in controls if other_levels(study, one) == others]
        control = min(same, key=lambda one: sum(one[name] != treatment.get(name) for name in one), default=None)
        row = row_of(frame, treatment, control, others, context.confidence)
        yield row.model_copy(update={"measures": first.scaling is not None and bool(first.scaling.points)})


def with_mean_of_factors(frame: TrialFrame) -> TrialFrame:
    """The trial frame with the geometric mean of both theta and both tau; none where one is 0."""
    product = reduce(operator.mul, [pl.col(name) for name in FACTORS])
    mean = pl.when(product > 0).then(product ** (1 / len(FACTORS)))
    return replace(frame, data=frame.data.with_columns(mean.alias(MEAN_OF_FACTORS)))


def _with_error_of_capacity(row: Elasticity, at_ends: Sequence[Elasticity | None]) -> Elasticity:
    """A row whose intervals go from the lowest to the highest end that they have with the capacities as found, all at
    the lower and all at the upper ends of their intervals. `at_ends`: the rows with those, None where the treatment has
    none; empty without intervals."""
    changes: dict[str, Any] = {}
    for name in (*MEASURES, "elastic_speedup"):
        estimate = getattr(row, name)
        every: list[Estimate | None] = [
            estimate,
            *(None if other is None else getattr(other, name) for other in at_ends),
        ]
        if estimate is None:
            continue
        known = [one for one in every if one is not None]
        low = min(one.value if one.low is None else one.low for one in known)
        high = max(one.value if one.high is None else one.high for one in known)
        if not at_ends or row.starts < FEWEST_STARTS:
            changes[name] = estimate.model_copy(update={"method": f"{estimate.method}; {NO_ERROR}"})
        elif len(known) < len(every):
            changes[name] = estimate.without_interval(f"{estimate.method}; {NONE_AT_AN_END}")
        elif low < high:
            changes[name] = estimate.model_copy(
                update={"low": low, "high": high, "method": f"{estimate.method}; {WITH_ERROR}"}
            )
    return row.model_copy(update=changes)


def _trials(frame: TrialFrame, treatment: Treatment) -> pl.DataFrame:
    """The used trials of a treatment that have measures."""
    return frame.values(FACTORS[0], treatment)


def row_of(
    frame: TrialFrame, treatment: Treatment, control: Treatment | None, others: Treatment, confidence: float
) -> Elasticity:
    """The row of a treatment, its control (None: it has none) in the same frame, which has the measures' mean."""
    trials = _trials(frame, treatment)
    columns: dict[str, Any] = {}
    for name, (least, most) in MEASURES.items():
        means = [mean for _, mean, _ in start_means(trials, name)]
        columns[name] = estimates.mean_within(means, unit_of(name), confidence, least, most)
    over_trials = {name: math.fsum(trials[name]) / trials.height for name in (BEYOND, NODE_SECONDS)}
    speedup, lacks = _speedup(frame, treatment, control, confidence)
    return Elasticity(
        treatment=treatment, **columns, n=trials.height, starts=trials["start"].n_unique(),
        never_under=_zeros(trials, "theta_under_percent"), never_over=_zeros(trials, "theta_over_percent"),
        **over_trials, elastic_speedup=speedup, speedup_lacks=lacks, others=others,
    )  # fmt: skip


def _zeros(trials: pl.DataFrame, name: str) -> int:
    return trials.filter(pl.col(name) == 0).height


def _speedup(
    frame: TrialFrame, treatment: Treatment, control: Treatment | None, confidence: float
) -> tuple[Estimate | None, str]:
    """The elastic speed-up of a treatment against its control, or why there is none."""
    if control is None or control == treatment:
        return None, NO_CONTROL if control is None else THE_CONTROL
    zeros = []
    for side, whose in ((treatment, ""), (control, " of the control")):
        trials = _trials(frame, side)
        for word in ("under", "over"):
            if n := _zeros(trials, f"theta_{word}_percent"):
                zeros.append(f"theta and tau {word} are 0 in {n} of {count(trials.height, 'trial')}{whose}")
    if zeros:
        return None, listed(zeros)
    pair = pair_of((frame, treatment), (frame, control), MEAN_OF_FACTORS)
    return (None if pair is None else ratio_of(pair, confidence)), ""


def beyond_scale(rows: Sequence[Elasticity], response: str) -> Iterator[str]:
    """A sentence where the load offered more than any size carries."""
    del response
    most = max((row.beyond_scale_percent for row in rows), default=0.0)
    if most:
        yield (
            f"In up to {number(most)}% of the time of a treatment the load offered more than the largest size carries: "
            "measures of elasticity take that size as the demand, so what lacks beyond it is in none of them."
        )


STATISTIC = Statistic(
    name="elasticity",
    row=Elasticity,
    title="How well the nodes in service met the demand: measures of elasticity (SPEC)",
    section=Section.ACTIVITIES,
    compute=elasticities,
    sentences=beyond_scale,
    order=5,
    sentence_order=13,
    of_records=True,
)
