"""Derived thresholds: the levels that trials without a policy gave for those with one, and what drifted in between.

All trials that give a threshold come before those that use it, so time is confounded with the policy. The control is
measured in both phases: the ratio of its second trial of a block to its first is drift, and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated

from steelyard.analysis.inference import estimates
from steelyard.analysis.row import NO_UNIT, Column, InUnit, MeasuredTreatment, NumberInUnit
from steelyard.analysis.statistic import Context, Section, Statistic
from steelyard.analysis.treatments import label
from steelyard.analysis.wording import change_text
from steelyard.format import count, interval, listed
from steelyard.judging.derived import mean_over_starts
from steelyard.judging.t_interval import FEWEST_STARTS
from steelyard.judging.trial_responses import response_of
from steelyard.model.derived import Derived
from steelyard.model.estimate import Estimate
from steelyard.model.responses import label_of, unit_of
from steelyard.model.trial import Attempt, CellKey, TrialRecord


class DerivedThreshold(MeasuredTreatment):
    """The threshold of one treatment's policy, from the trials without a policy."""

    level: str
    """Its name in the study."""
    threshold: Annotated[NumberInUnit, Column(unit="in the unit of column `unit`", head="threshold")]
    """What the policy was given: the mean, and what the study adds to it."""
    mean: InUnit
    """Of the trials that gave it, over their starts."""
    add: NumberInUnit
    """What was added."""
    trials: int
    """Valid trials that gave it."""
    acted: Annotated[Estimate | None, Column(unit="%", head="acting by chance")] = None
    """Share of these trials in which the policy would have acted at the threshold although nothing changed their size,
    with Clopper and Pearson's interval. Set the share of trials that scaled out against it."""
    drift: Annotated[Estimate | None, Column(unit=NO_UNIT)] = None
    """Control after these trials over control among them, of this response: geometric mean over blocks with t interval
    on logarithms. 1: nothing drifted between the phases."""
    drift_of_main: Annotated[Estimate | None, Column(unit=NO_UNIT, head="drift of the main response")] = None
    """The same of the study's main response."""


def thresholds(context: Context) -> Iterator[DerivedThreshold]:
    """A row for each threshold that trials of a treatment had: one, unless the study was extended in between."""
    known = {record.key: record for record in context.records}
    given: dict[CellKey, dict[Derived, TrialRecord]] = {}
    for record in context.records:
        if record.derived is not None:
            given.setdefault(record.cell, {}).setdefault(record.derived, record)
    for of_cell in given.values():
        for derived, record in of_cell.items():
            yield _row(derived, record, known, context)


def _row(
    derived: Derived, record: TrialRecord, known: Mapping[Attempt, TrialRecord], context: Context
) -> DerivedThreshold:
    response, unit = derived.response, unit_of(derived.response)
    sources = [known[key] for key in derived.trials if key in known]
    values = [(one.start, value) for one in sources if (value := response_of(one, response)) is not None]
    mean = estimates.by_start(values, unit, context.confidence)
    acted = None
    if derived.acted is not None:
        share = estimates.share(derived.acted, len(derived.trials), context.confidence)
        acted = share.mapped(lambda fraction: 100 * fraction, "%")
    return DerivedThreshold(
        treatment=record.treatment, response=response, unit=unit, level=derived.level, threshold=derived.value,
        mean=mean.model_copy(update={"value": derived.mean}), add=derived.add, trials=len(derived.trials),
        acted=acted, drift=_drift(context, response), drift_of_main=_drift(context, context.response),
    )  # fmt: skip


def _drift(context: Context, response: str) -> Estimate | None:
    """Ratio of the control's later trials to its earlier ones; None without a block that has both."""
    valid = [record for record in context.records if record.verdict.outcome == "valid"]
    cells = {record.cell for record in valid if record.control}
    ratios = []
    for block in sorted({record.block for record in valid if record.control}):
        of_block = [record for record in valid if record.block == block and record.cell in cells]
        after, among = (
            mean_over_starts([one for one in of_block if one.control is later], response) for later in (True, False)
        )
        if after is not None and among is not None and min(after, among) > 0:
            ratios.append(after / among)
    if not ratios:
        return None
    return estimates.geometric_mean(ratios, "", context.confidence, "blocks", FEWEST_STARTS)


def drifted(rows: Sequence[DerivedThreshold], response: str) -> Iterator[str]:
    """A sentence on drift between the phases, or on its absence from the study."""
    if not rows:
        return
    row = rows[0]
    ratios = {row.response: row.drift, response: row.drift_of_main}
    known = [f"{label_of(name)} {change_text(ratio, name)}" for name, ratio in ratios.items() if ratio is not None]
    for each in rows:
        if each.acted is not None:
            yield (
                f"{label(each.treatment)}: at its threshold the policy would have acted in {each.acted.value:.0f}% "
                f"{interval(each.acted)} of the trials without a policy that gave it: that many act by chance."
            )
    several = [label(one.treatment) for one in rows if sum(other.treatment == one.treatment for other in rows) > 1]
    if several:
        yield f"The study was extended: trials of {listed(list(dict.fromkeys(several)))} had different thresholds."
    before = "Trials that gave a threshold came before those that used it"
    if not known:
        yield f"{before}, and no control was measured in both phases: what drifted in between looks like the policy's."
        return
    blocks = count(max(ratio.n for ratio in ratios.values() if ratio is not None), "block")
    yield f"{before}: in between, the control changed by drift alone: {', '.join(known)} (over {blocks})."


STATISTIC = Statistic(
    name="derived_threshold",
    row=DerivedThreshold,
    title="Thresholds that trials without a policy gave for those with one",
    section=Section.ACTIVITIES,
    compute=thresholds,
    sentences=drifted,
    order=6,
    sentence_order=14,
    of_records=True,
)
