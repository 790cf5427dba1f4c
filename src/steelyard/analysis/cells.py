"""Value of each cell: the number that the report's answer quotes, for `status`, live tables and pages.

It goes by the same rule as the report: used trials only (valid, after the cut of warm-up trials, no control trials),
geometric mean of start means.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Literal

from steelyard.analysis.comparisons.level_ratios import level_value
from steelyard.analysis.frame import TrialFrame, factors_of, in_order_of_time, place, plain_levels, start_means
from steelyard.analysis.inference import estimates
from steelyard.analysis.treatments import Treatment, label
from steelyard.analysis.wording import quantities
from steelyard.judging.attempts import is_cut, orders_of_treatment
from steelyard.judging.measures import with_derived
from steelyard.judging.t_interval import FEWEST_STARTS
from steelyard.judging.trial_responses import response_of
from steelyard.model.estimate import Estimate
from steelyard.model.named_level import Level
from steelyard.model.objective import Limit
from steelyard.model.responses import of, unit_of
from steelyard.model.study import Study
from steelyard.model.trial import TrialRecord
from steelyard.model.value import Value

ObjectiveVerdict = Literal["met", "not met", "undecided"]


class CellValue(Value):
    """The main response of one treatment over its used trials."""

    treatment: Treatment
    cell: str
    """`workload A, 3 nodes`."""
    response: str
    n: int
    """Used trials."""
    starts: int
    """Starts that the used trials came from."""
    value: Estimate | None = None
    """Geometric mean of start means, with an interval for three or more starts; None without a used trial."""
    value_text: str = ""
    """The value with its unit, the same unit in all cells: `902 ms`; empty without a used trial."""


def cell_values(records: Sequence[TrialRecord], study: Study, *, intervals: bool = True) -> tuple[CellValue, ...]:
    """Each treatment's main response, as the report counts it, in the order of the study's levels. Without intervals no
    heavy library is loaded: `status` may be asked for while a study is measured."""
    response = study.analysis.response
    means = _start_means(records, study, response)
    return _cells(means, response, study.analysis.confidence if intervals else None)


def value_of(start_means: Sequence[float], response: str, confidence: float) -> Estimate:
    """The value of a level, as the answer has it: the mean of its start means, the geometric one where levels are
    compared by their ratio; the mean, with a t interval, where one of them is not above 0. Raises ValueError for
    none."""
    enough = len(start_means) >= FEWEST_STARTS and len(set(start_means)) > 1
    if min(start_means) <= 0 and enough and of(response).compared == "ratio":
        return estimates.mean(start_means, unit_of(response), confidence, "start means")
    return level_value(start_means, response, confidence)


def met(value: Estimate, limit: Limit) -> tuple[ObjectiveVerdict, str]:
    """Whether a value meets the study's objective, and, where that is undecided, why. Met: every value of the interval
    meets the limit; not met: none does."""
    if value.low is None or value.high is None:
        return "undecided", value.method.rpartition("; ")[2]
    ends = {limit.is_met(end) for end in (value.low, value.high)}
    if len(ends) > 1:
        return "undecided", "the limit lies within the interval"
    return ("met", "") if ends.pop() else ("not met", "")


def objective_cells(records: Sequence[TrialRecord], study: Study) -> dict[str, tuple[ObjectiveVerdict, str]]:
    """Each treatment with a used trial, by its label, judged by the study's objective: verdict, and why it is
    undecided. Empty without an objective."""
    limit = study.analysis.limit
    if limit is None:
        return {}
    verdicts = {}
    for treatment, starts in _start_means(records, study, limit.response):
        if starts:
            value = value_of([mean for _, mean, _ in starts], limit.response, study.analysis.confidence)
            verdicts[label(treatment)] = met(value, limit)
    return verdicts


def cells_of(frame: TrialFrame, response: str, confidence: float = 0.95) -> tuple[CellValue, ...]:
    """Each treatment's response over its used trials, in the order of the factors' levels."""
    means = [(treatment, start_means(frame.values(response, treatment), response)) for treatment in frame.treatments]
    return _cells(means, response, confidence)


StartMeans = Sequence[tuple[str, float, int]]
"""Start, mean of its used trials, number of them."""


def _cells(
    means: Iterable[tuple[Treatment, StartMeans]], response: str, confidence: float | None
) -> tuple[CellValue, ...]:
    """The cells; without intervals where `confidence` is None."""
    unit = unit_of(response)
    cells = [
        CellValue(
            treatment=treatment, cell=label(treatment), response=response, n=sum(n for *_, n in starts),
            starts=len(starts),
            value=level_value([mean for _, mean, _ in starts], response, confidence) if starts else None,
        )
        for treatment, starts in means
    ]  # fmt: skip
    texts = iter(quantities([one.value.value for one in cells if one.value is not None], unit, of(response).resolution))
    return tuple(one if one.value is None else one.model_copy(update={"value_text": next(texts)}) for one in cells)


def _start_means(records: Sequence[TrialRecord], study: Study, response: str) -> list[tuple[Treatment, StartMeans]]:
    """Means over each start's used trials, by treatment in the order of the levels: what `TrialFrame.values` and
    `start_means` say, without a frame."""
    factors, _ = factors_of(records, study)
    ordered = with_derived(in_order_of_time(records), study)
    values: dict[tuple[Level | None, ...], dict[str, list[float]]] = {}
    columns = [plain_levels([record.treatment.get(name) for record in ordered]) for name in factors]
    for record, order, *key in zip(ordered, orders_of_treatment(ordered, factors), *columns, strict=True):
        starts = values.setdefault(tuple(key), {})
        value = response_of(record, response)
        used = record.verdict.outcome == "valid" and not is_cut(order, study.analysis.warm_up_trials)
        if used and not record.control and value is not None:
            starts.setdefault(record.start, []).append(float(value))
    return [
        (
            {name: level for name, level in zip(factors, key, strict=True) if level is not None},
            [(start, math.fsum(found) / len(found), len(found)) for start, found in values[key].items()],
        )
        for key in sorted(values, key=lambda key: place(key, factors))
    ]
