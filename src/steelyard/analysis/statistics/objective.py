"""Objective: whether each treatment meets the limit that the study declares, and the highest level that does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Final

from steelyard.analysis.cells import ObjectiveVerdict, met, value_of
from steelyard.analysis.frame import TrialFrame, numeric, size_factor, start_means
from steelyard.analysis.inference import estimates
from steelyard.analysis.narrative.answer_table import at
from steelyard.analysis.row import HIDDEN, Column, InUnit, MeasuredTreatment
from steelyard.analysis.statistic import Context, Section, Statistic
from steelyard.analysis.treatments import factor_label, label, part
from steelyard.analysis.wording import capital, quantity
from steelyard.format import interval, listed
from steelyard.model.estimate import Estimate
from steelyard.model.named_level import Level
from steelyard.model.objective import Limit
from steelyard.model.responses import label_of, unit_of
from steelyard.model.trial import Attempt

EMPTY: Final[Mapping[Attempt, float]] = MappingProxyType({})


class ObjectiveLevel(MeasuredTreatment):
    """One treatment judged by the study's objective."""

    objective: str
    """The limit that the study declares, in the unit of the response."""
    n: int
    """Used trials."""
    starts: int
    """Starts that they came from."""
    value: InUnit
    """Geometric mean of start means, with its interval over starts; the mean where a start's is not above 0, or where
    levels are compared by their difference."""
    verdict: ObjectiveVerdict
    """Met: the whole interval meets the limit; not met: none of it does; undecided: the limit lies within it, or there
    is no interval."""
    why: str = ""
    """Why it is undecided."""
    seconds_over: Annotated[Estimate | None, Column(unit="%", head="seconds over it")] = None
    """Share of the seconds of the measurement in which the response of that second alone did not meet the limit, also
    for lack of answered operations: mean over start means with t interval. Of the mean response time, throughput, and
    percentiles, which are those of the operations of a second, however few."""
    highest: bool = False
    """Whether it is the highest level that meets the limit, among those that differ in the ordered factor only."""
    factor: Annotated[str, HIDDEN] = ""
    """The ordered factor; empty without one."""
    place: Annotated[float, HIDDEN] = 0.0
    """The level of the ordered factor as a number."""


def objective_levels(
    frame: TrialFrame, limit: Limit, confidence: float = 0.95, over: Mapping[Attempt, float] = EMPTY
) -> tuple[ObjectiveLevel, ...]:
    """Every treatment with a used trial, in the order of the levels. `over`: percent of the seconds of each trial in
    which the limit was not met, as far as it is known."""
    factor = size_factor(frame) or next(iter(numeric(frame)), "")
    unit, rows = unit_of(limit.response), []
    for treatment in frame.treatments:
        means = start_means(frame.values(limit.response, treatment), limit.response)
        if not means:
            continue
        place = frame.numbers.get(factor, {}).get(treatment.get(factor, ""))
        value = value_of([mean for _, mean, _ in means], limit.response, confidence)
        verdict, why = met(value, limit)
        keys = frame.where(treatment).select("start", "trial_id", "attempt").rows()
        seconds = [(start, over[trial, attempt]) for start, trial, attempt in keys if (trial, attempt) in over]
        rows.append(
            ObjectiveLevel(
                treatment=treatment, response=limit.response, unit=unit, objective=limit.text,
                n=sum(n for *_, n in means), starts=len(means), value=value, verdict=verdict, why=why, factor=factor,
                seconds_over=estimates.by_start(seconds, "%", confidence) if seconds else None,
                place=float(treatment[factor]) if factor and place is None else place or 0.0,
            )
        )  # fmt: skip
    for line in _lines(rows, factor) if factor else ():
        best = next((row for row in reversed(line) if row.verdict == "met"), None)
        rows = [row.model_copy(update={"highest": True}) if row is best else row for row in rows]
    return tuple(rows)


def answers(rows: Sequence[ObjectiveLevel]) -> Iterator[str]:
    """A sentence for each line of treatments that differ in the ordered factor only; one for all without such a
    factor."""
    if not rows:
        return
    limit, factor = rows[0].objective, rows[0].factor
    name = f"`{limit}` ({label_of(rows[0].response)}, {rows[0].unit})"
    if not factor:
        yield f"The objective {name} is {_by_verdict(rows, '')}."
        return
    for line in _lines(rows, factor):
        rest = {key: level for key, level in line[0].treatment.items() if key != factor}
        about = f"{label(rest)}: " if rest and len(rows) > len(line) else ""
        top = next((row for row in line if row.highest), None)
        others = [row for row in line if row is not top]
        if top is None:
            none = f"no level of {factor_label(factor)} is shown to meet the objective {name}"
            yield capital(f"{about}{none}: {_by_verdict(line, factor)}.")
            continue
        more = f"; it is {_by_verdict(others, factor)}" if others else ""
        level = part(factor, top.treatment[factor])
        yield capital(f"{about}the highest level that meets the objective {name} is {level}: {_valued(top)}{more}.")


def _by_verdict(rows: Sequence[ObjectiveLevel], factor: str) -> str:
    """`met on 1 node (3.1 ms [3.0, 3.2]); undecided on 3 nodes (...)`."""
    clauses = []
    for verdict in ("met", "undecided", "not met"):
        named = [
            f"{part(factor, row.treatment[factor]) if factor else label(row.treatment)} ({_valued(row)})"
            for row in rows
            if row.verdict == verdict
        ]
        if named:
            clauses.append(f"{verdict}{f' {at(factor)}' if factor else ' with'} {listed(named)}")
    return "; ".join(clauses)


def _valued(row: ObjectiveLevel) -> str:
    known = interval(row.value)
    return f"{quantity(row.value.value, row.unit)}{f' {known}' if known else ', ' + row.why}"


def _lines(rows: Sequence[ObjectiveLevel], factor: str) -> list[list[ObjectiveLevel]]:
    """Treatments that differ in the ordered factor only, in its order."""
    lines: dict[tuple[tuple[str, Level], ...], list[ObjectiveLevel]] = {}
    for row in rows:
        key = tuple(item for item in row.treatment.items() if item[0] != factor)
        lines.setdefault(key, []).append(row)
    return [sorted(line, key=lambda row: row.place) for line in lines.values()]


def _of_context(context: Context) -> tuple[ObjectiveLevel, ...]:
    limit = context.study.analysis.limit
    return (
        ()
        if limit is None
        else objective_levels(context.frame, limit, context.confidence, context.within.over_objective)
    )


STATISTIC = Statistic(
    name="objective",
    row=ObjectiveLevel,
    title="Whether each treatment meets the objective of the study",
    section=Section.ANSWER,
    compute=_of_context,
    order=6,
)
