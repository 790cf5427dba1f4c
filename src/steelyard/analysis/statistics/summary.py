"""Summary statistics of each response and treatment: means, standard deviation, quartiles, with intervals."""

from __future__ import annotations

import operator
import statistics
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Annotated

from steelyard.analysis.comparisons.level_ratios import arithmetic, centre
from steelyard.analysis.frame import TrialFrame, start_means, values_of_starts
from steelyard.analysis.inference import estimates
from steelyard.analysis.row import HIDDEN, IN_UNIT, Column, InUnitOrNone, MeasuredTreatment
from steelyard.analysis.statistic import Context, Section, Statistic
from steelyard.analysis.statistics.exclusions import Exclusion, exclusions
from steelyard.analysis.treatments import Treatment, label
from steelyard.analysis.wording import named
from steelyard.format import number
from steelyard.model import responses
from steelyard.model.estimate import Estimate
from steelyard.model.responses import unit_of


class Summary(MeasuredTreatment):
    """One response of one treatment, over its used trials."""

    n: int
    """Used trials."""
    starts: int
    """Starts of a cluster that the used trials came from."""
    excluded: int
    """Trials (attempts) left out."""
    excluded_because: str = ""
    """Reasons for which trials were left out, and how many each."""
    system_faults: int = 0
    """Trials (of those left out) in which the system under test failed: a result, shown as such."""
    geometric_mean: InUnitOrNone = None
    """Geometric mean of start means, t interval on logarithms with at least three starts: the value that answers,
    tables and figures quote, where levels are compared by their ratio."""
    mean: InUnitOrNone = None
    """Mean over trials, t interval over trials: describes only these starts."""
    mean_z: InUnitOrNone = None
    """The same mean with a normal interval, as chekkilla2016 printed it."""
    mean_of_starts: InUnitOrNone = None
    """Mean of start means, t interval with starts - 1 degrees of freedom, with at least three starts: describes new
    starts, too. None with one start."""
    sd: InUnitOrNone = None
    """Standard deviation over used trials (n - 1), none below two; chi-squared interval where trials are independent,
    that is one per start, or all of one start."""
    min: Annotated[Estimate | None, Column(unit=IN_UNIT, bare=True)] = None
    """Least value over used trials: as measured, without an interval."""
    q1: Annotated[Estimate | None, Column(unit=IN_UNIT, head="25%")] = None
    """First quartile over used trials, interpolated; order-statistic interval from 13 independent trials on."""
    median: InUnitOrNone = None
    """Median over used trials; order-statistic interval from 6 independent trials on."""
    median_of_starts: InUnitOrNone = None
    """Median of start medians, order-statistic interval with 6 or more starts: also describes new starts."""
    q3: Annotated[Estimate | None, Column(unit=IN_UNIT, head="75%")] = None
    """Third quartile over used trials, interpolated; order-statistic interval from 13 independent trials on."""
    max: Annotated[Estimate | None, Column(unit=IN_UNIT, bare=True)] = None
    """Largest value over used trials: as measured, without an interval."""
    range: Annotated[Estimate | None, Column(unit=IN_UNIT, bare=True)] = None
    """Largest minus smallest value, as measured, without an interval."""
    exclusions: Annotated[tuple[Exclusion, ...], HIDDEN] = ()
    start_means: Annotated[tuple[float, ...], HIDDEN] = ()
    notes: Annotated[tuple[str, ...], HIDDEN] = ()

    @property
    def value(self) -> Estimate | None:
        """The value that answers, as levels are compared by the response; None without a used trial."""
        if self.geometric_mean is None or responses.of(self.response).compared == "ratio":
            return self.geometric_mean
        return arithmetic(self.start_means, self.unit, self.geometric_mean.confidence)


WILD_CV = 0.3
"""Up to this coefficient of variation t intervals of skew start means have nominal coverage within about a point; at 1
they cover 86 to 91% instead of 95% (docs/explanation/coverage.md)."""


def summarise(
    frame: TrialFrame, response: str, treatment: Treatment, confidence: float = 0.95, gain_error_percent: float = 0.0
) -> Summary:
    """Summary of one treatment over its used trials; two levels of interval where there are several starts.
    `gain_error_percent`: of the meter that reads the response, by which intervals of its size are widened."""
    unit = unit_of(response)
    rows = frame.values(response, treatment)
    values = [float(value) for value in rows[response]]
    means = [mean for _, mean, _ in start_means(rows, response)]
    medians = [statistics.median(each) for each in values_of_starts(rows, response).values()]
    left_out = exclusions(frame, response, treatment)
    common = {
        "treatment": treatment, "response": response, "unit": unit, "n": len(values), "starts": len(means),
        "excluded": sum(exclusion.trials for exclusion in left_out), "exclusions": left_out,
        "excluded_because": "; ".join(f"{one.reason}: {one.trials}" for one in left_out),
        "system_faults": int(frame.where(treatment)["system_fault"].sum()),
    }  # fmt: skip
    if not values:
        return Summary(**common, notes=("no valid trial has a value",))
    sd = estimates.standard_deviation(values, unit, confidence)

    def metered(estimate: Estimate) -> Estimate:
        return estimates.with_gain_error(estimate, gain_error_percent)

    return Summary(
        **common,
        geometric_mean=metered(centre(means, unit, confidence)),
        mean=metered(estimates.quantity(estimates.mean(values, unit, confidence, "trials"), values)),
        mean_z=estimates.quantity(estimates.mean_z(values, unit, confidence, "trials"), values),
        mean_of_starts=metered(estimates.mean_over_starts(means, unit, confidence)) if len(means) > 1 else None,
        sd=sd and estimates.if_independent(sd, len(means)),
        min=estimates.extreme(min(values), len(values), unit, confidence, "least"),
        q1=estimates.if_independent(estimates.quartile(values, 0.25, unit, confidence), len(means)),
        median=metered(estimates.if_independent(estimates.median(values, unit, confidence), len(means))),
        median_of_starts=metered(estimates.median(medians, unit, confidence, "start medians")),
        q3=estimates.if_independent(estimates.quartile(values, 0.75, unit, confidence), len(means)),
        max=estimates.extreme(max(values), len(values), unit, confidence, "greatest"),
        range=estimates.extreme(max(values) - min(values), len(values), unit, confidence, "greatest less least"),
        start_means=tuple(means),
        notes=_notes(len(values), len(means)),
    )


def _notes(n: int, starts: int) -> tuple[str, ...]:
    if starts == 1:
        return ("one start: the interval describes only this start, not another cluster started in the same way",)
    if n > starts:
        return (
            f"{n} trials are repeated measures of {starts} starts: the interval over start means is the one that holds "
            "for another start",
        )
    return ()


def summaries(
    frame: TrialFrame, response: str, confidence: float = 0.95, gain_error_percent: float = 0.0
) -> tuple[Summary, ...]:
    """One summary per treatment, in the order of the factors' levels."""
    treatments = frame.treatments
    return tuple(summarise(frame, response, treatment, confidence, gain_error_percent) for treatment in treatments)


def all_summaries(context: Context) -> Iterator[Summary]:
    """Summaries of the main response, then of every other response that a trial has."""
    data = context.frame.data
    rest = [name for name in responses.every() if name != context.response and data[name].is_not_null().any()]
    for response in (context.response, *rest):
        yield from context.once(Summary, response, partial(_of_response, context, response))


def _of_response(context: Context, response: str) -> tuple[Summary, ...]:
    gain_error_percent = responses.gain_error_percent(response, context.study.cost)
    return summaries(context.frame, response, context.confidence, gain_error_percent)


def wild(summaries: Sequence[Summary], response: str) -> list[str]:
    """Sentence on treatments whose start means vary so much that their t intervals may cover too little."""
    varying = [
        one
        for one in summaries
        if one.response == response
        and len(one.start_means) > 1
        and statistics.fmean(one.start_means) > 0
        and statistics.stdev(one.start_means) > WILD_CV * statistics.fmean(one.start_means)
    ]
    if not varying:
        return []
    on_logarithms = responses.of(response).compared == "ratio"
    instead = "read medians, and ratios, which are on logarithms" if on_logarithms else "read medians"
    return [
        f"Start means of {named([one.treatment for one in varying])} vary by more than {WILD_CV:.0%}: t intervals "
        f"of means that vary so are too narrow if they are skew (simulated, 86 to 91% at 100%); {instead}."
    ]


def failures(summaries: Sequence[Summary]) -> list[str]:
    """Sentence on operations that failed; empty if none did."""
    shares = [(one.mean.value, one.treatment) for one in summaries if one.response == "error_percent" and one.mean]
    most, where = max(shares, key=operator.itemgetter(0), default=(0.0, {}))
    if not most:
        return []
    return [
        f"{number(most, digits=2)}% of operations failed at {label(where)}, where most did: times and rates are of "
        "those that were answered. Compare error_percent, too."
    ]


STATISTIC = Statistic(
    name="summary",
    row=Summary,
    title="Each response of each treatment, over its used trials",
    section=Section.EVERY_CELL,
    compute=all_summaries,
    sentences=lambda rows, response: [*wild(rows, response), *failures(rows)],
    order=10,
    sentence_order=50,
)
