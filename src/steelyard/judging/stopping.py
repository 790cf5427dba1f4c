"""Sequential stopping rule: whether a study needs another block, from its sealed trials alone.

The plan extends to the cap (`design.starts` blocks), so ids, seeds and orders are fixed beforehand and do not depend on
what is measured. `decide` goes through the whole blocks in order and checks after each, from the trials of the blocks
so far and nothing else, whether to stop. So the same trials always give the same decision, however often the study was
interrupted, and trials after the stop do not change it.

Reason for a least number of starts: an interval that is narrow by chance stops the study, one that is wide by chance
does not, so the rule prefers samples whose spread came out too small. The fewer the values, the stronger this effect
(`plan.stopping_forecast` simulates it).
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from steelyard.judging.attempts import attempts_by_id, orders_of_treatment, settled
from steelyard.judging.t_interval import FEWEST_STARTS, deviation, half_width
from steelyard.judging.trial_responses import response_of
from steelyard.model.named_level import Level
from steelyard.model.plan import Plan, PlannedTrial
from steelyard.model.study import Study
from steelyard.model.trial import TrialRecord
from steelyard.model.value import Value

LEAST_YIELD = 0.5
"""Once the minimum number of starts is reached, a treatment is not waited for if less than this share of its starts
gave a value: that it fails is the result."""
SECONDS_PER_HOUR = 3600


State = Literal["too few starts", "narrowing", "too wide", "narrow enough", "not waited for"]

WAITED_FOR: tuple[State, ...] = ("too few starts", "narrowing", "too wide")

Why = Literal["least-starts", "width", "narrow", "cap", "hours"]

LEAST_WITHOUT_NOTE = 10
"""Smaller least numbers of starts, down to `model.study.LEAST_STARTS`, are allowed but cause a note."""
SIMULATED_CONFIDENCE = 0.95
SIMULATED_COVERAGE_PERCENT: dict[int, float] = {2: 87.9, 6: 92.3, 10: 93.2, 20: 94.1}
"""Minimum number of starts to the minimum share of 95% intervals that contained the truth in a study of one treatment,
whatever its CV, as simulated by `steelyard.plan.stopping_forecast`; see docs/howto/replicate-until-narrow.md. The
share is higher for treatments with equal variation that wait for one another."""


GOING_ON: tuple[Why, ...] = ("least-starts", "width")


class Rule(Value):
    """Everything that determines when a study with `[design.until]` ends, except the number of planned blocks."""

    response: str
    width_percent: float
    least_starts: int
    confidence: float
    warm_up_trials: int
    """Number of first attempts of each treatment that a start served that are left out as warm-up."""
    hours: float | None = None
    attempts: int
    """Maximum number of attempts at a voided trial, see `Limits.attempts`."""

    def same_question(self, other: Rule | None) -> bool:
        """Whether both rules evaluate the same intervals equally. Hours and attempts are budgets: they may change."""
        budgets = {"hours", "attempts"}
        return other is not None and self.model_dump(exclude=budgets) == other.model_dump(exclude=budgets)


def rule_of(study: Study) -> Rule | None:
    """The rule of a study; None if the study runs all planned blocks."""
    until = study.design.until
    if until is None:
        return None
    return Rule(
        response=study.analysis.response if until.response == "main" else until.response,
        width_percent=until.width_percent,
        least_starts=until.least_starts,
        confidence=study.analysis.confidence,
        warm_up_trials=study.analysis.warm_up_trials,
        hours=until.hours,
        attempts=study.limits.attempts,
    )


def coverage_percent(least_starts: int) -> float:
    """Lower bound of the coverage with this many starts: the simulated figure for the next smaller number."""
    known = [starts for starts in SIMULATED_COVERAGE_PERCENT if starts <= max(least_starts, 2)]
    return SIMULATED_COVERAGE_PERCENT[max(known)]


def plus_minus(percent: float) -> str:
    """`±1.93%`, `±14.2%`, `±212%`: enough digits to show progress."""
    return f"±{percent:.{0 if percent >= 100 else 1 if percent >= 10 else 2}f}%"


class Narrowing(Value):
    """Precision of the mean of one treatment."""

    treatment: dict[str, Level]
    n: int
    """Number of start means, the unit of replication of the interval."""
    mean: float | None = None
    """Mean over start means, in the response's unit; None without any."""
    half_width_percent: float | None = None
    """Half of the t interval over start means, in percent of their mean; None below three starts, or for a mean of
    0."""
    faults: int = 0
    """Trials in which the system under test failed."""
    state: State
    """too few starts: below the minimum number; narrowing, and once the study has stopped too wide: wider than the
    target; not waited for: fewer than half of its starts gave a value."""


class Decision(Value):
    """Decision of the rule after the last whole block."""

    rule: Rule
    go_on: bool
    why: Why
    """Continuing: least-starts (too few blocks or starts), width (an interval is too wide). Stopping: narrow (all are
    narrow enough), cap (all planned blocks are done), hours (the next block would exceed the budget)."""
    blocks: int
    """Number of whole blocks that were evaluated, up to the stop."""
    cap: int
    """Number of planned blocks."""
    needed: int
    """Number of blocks needed so far: the block of the stop, or the minimum number to continue to."""
    hours: float
    """Hours of measuring in these blocks."""
    cells: tuple[Narrowing, ...]
    """One per treatment, in the order of the factors' levels."""

    @property
    def wide(self) -> tuple[Narrowing, ...]:
        """Treatments that the rule waits for and whose intervals are not yet narrow enough."""
        return tuple(cell for cell in self.cells if cell.state in WAITED_FOR)

    @property
    def target(self) -> str:
        """The rule's condition in words."""
        return f"half of each {self.rule.confidence:.0%} interval is within {self.rule.width_percent:g}% of its mean"

    @property
    def sentence(self) -> str:
        """The decision in one sentence, in lower case."""
        done = f"{self.blocks} of at most {self.cap} blocks"
        wide = self._wide()
        if self.why == "narrow":
            cells = [cell for cell in self.cells if cell.state == "narrow enough"]
            if not cells:
                return f"stopped after {done}: no treatment is left to wait for; most starts of each gave no value"
            widest = max(cell.half_width_percent or 0.0 for cell in cells)
            return f"stopped after {done}: every interval is narrow enough, the widest {plus_minus(widest)}"
        if self.why == "cap":
            return f"stopped after all {self.cap} planned blocks, {wide}"
        if self.why == "hours":
            spent = f"{self.hours:.2g} of {self.rule.hours or 0:g} hours"
            return f"stopped after {done}: {spent} are spent and one more block would exceed them, {wide}"
        least = self.rule.least_starts
        if self.why == "least-starts":
            return f"continues after {done}: no interval is judged before {least} starts"
        return f"continues after {done}, {wide}"

    def _wide(self) -> str:
        judged = [cell for cell in self.wide if cell.state != "too few starts"]
        known = [cell.half_width_percent for cell in judged if cell.half_width_percent is not None]
        clauses = []
        if judged:
            worst = f", the widest {plus_minus(max(known))}" if known else ""
            clauses.append(
                f"{len(judged)} of {len(self.cells)} intervals wider than ±{self.rule.width_percent:g}%{worst}"
            )
        if few := len(self.wide) - len(judged):
            clauses.append(f"{few} of {len(self.cells)} not judged, of fewer than {self.rule.least_starts} starts")
        return "; ".join(clauses)


@dataclass
class _Cell:
    """One treatment: the mean of each start with its block, and the blocks where it was planned."""

    treatment: dict[str, Level]
    planned: list[int] = field(default_factory=list)
    """Blocks of its planned starts."""
    means: list[tuple[int, float]] = field(default_factory=list)
    faults: list[int] = field(default_factory=list)
    """Blocks with trials in which the system failed."""


def decision_of(plan: Plan | None, records: Sequence[TrialRecord], study: Study) -> Decision | None:
    """Decision of the study's stopping rule; None without one, or without a plan."""
    rule = rule_of(study)
    return decide(plan, records, rule) if plan is not None and rule is not None else None


def decide(plan: Plan, records: Sequence[TrialRecord], rule: Rule) -> Decision:
    """Decide whether the study continues after its last whole block, and if not, after which block it stopped.

    A block is whole when all its trials are settled (`judging.attempts.settled`). Records that are not in the plan are
    ignored; the order of records does not matter.
    """
    planned = {trial.id: trial for trial in plan.trials}
    known = sorted(
        (record for record in records if record.id in planned),
        key=lambda record: (record.begun_s, record.id, record.attempt),
    )
    cells = _cells(plan, planned, known, rule)
    spans = _spans_h(planned, known)
    cap = plan.blocks
    whole = whole_blocks(plan.trials, known, rule.attempts)
    spent = 0.0
    for block in range(1, whole + 1):
        spent += sum(hours for at, hours in spans if at == block)
        why = _stop(cells, rule, block, cap, spent)
        if why is not None:
            return _decision(rule, cells, why, (block, cap, block), spent)
    needed = min(cap, max(whole + 1, rule.least_starts))
    return _decision(rule, cells, _go_on(cells, rule, whole), (whole, cap, needed), spent)


def needed_trials(plan: Plan, decision: Decision) -> tuple[PlannedTrial, ...]:
    """Trials of the blocks that the decision needs."""
    return tuple(trial for trial in plan.trials if trial.block <= decision.needed)


def not_needed(plan: Plan, records: Iterable[TrialRecord], decision: Decision) -> tuple[PlannedTrial, ...]:
    """Planned trials after the stop that were not done; none while the study continues."""
    if decision.go_on:
        return ()
    by_id, limit = attempts_by_id(records), decision.rule.attempts
    beyond = (trial for trial in plan.trials if trial.block > decision.blocks)
    return tuple(trial for trial in beyond if not settled(by_id.get(trial.id, ()), limit))


def _stop(cells: Sequence[_Cell], rule: Rule, block: int, cap: int, spent_h: float) -> Why | None:
    """Reason why the study stops after this block: intervals narrow, no more blocks planned, or no time left; None:
    continue."""
    # One treatment that is still too wide is enough to continue: `any` stops there.
    if block >= rule.least_starts and not any(_narrowing(cell, rule, block).state in WAITED_FOR for cell in cells):
        return "narrow"
    if block == cap:
        return "cap"
    return "hours" if rule.hours is not None and spent_h + spent_h / block > rule.hours else None


def _go_on(cells: Sequence[_Cell], rule: Rule, block: int) -> Why:
    wide = block >= rule.least_starts and any(_narrowing(cell, rule, block).state == "narrowing" for cell in cells)
    return "width" if wide else "least-starts"


def _decision(rule: Rule, cells: Sequence[_Cell], why: Why, blocks: tuple[int, int, int], hours: float) -> Decision:
    block, cap, needed = blocks
    return Decision(
        rule=rule, go_on=why in GOING_ON, why=why, blocks=block, cap=cap, needed=needed, hours=hours,
        cells=tuple(_ended(_narrowing(cell, rule, block), why) for cell in cells),
    )  # fmt: skip


def _ended(cell: Narrowing, why: Why) -> Narrowing:
    """State of a treatment after the stop: `narrowing` becomes `too wide`."""
    going = why in GOING_ON or cell.state != "narrowing"
    return cell if going else cell.model_copy(update={"state": "too wide"})


def _narrowing(cell: _Cell, rule: Rule, block: int) -> Narrowing:
    means = [mean for at, mean in cell.means if at <= block]
    n = len(means)
    centre = math.fsum(means) / n if n else None
    percent: float | None = None
    if n >= FEWEST_STARTS and centre:
        percent = 100 * float(half_width(deviation(means), n, rule.confidence)) / abs(centre)
    return Narrowing(
        treatment=cell.treatment, n=n, mean=centre, half_width_percent=percent,
        faults=sum(at <= block for at in cell.faults),
        state=_state(n, sum(at <= block for at in cell.planned), percent, rule),
    )  # fmt: skip


def _state(n: int, starts: int, percent: float | None, rule: Rule) -> State:
    """State of a treatment. `starts`: planned starts so far, of which `n` gave a value (or a few more, if a start was
    interrupted)."""
    if starts >= rule.least_starts and n < LEAST_YIELD * starts:
        return "not waited for"
    if n < rule.least_starts:
        return "too few starts"
    return "narrow enough" if percent is not None and percent <= rule.width_percent else "narrowing"


def _cells(
    plan: Plan, planned: Mapping[str, PlannedTrial], records: Sequence[TrialRecord], rule: Rule
) -> tuple[_Cell, ...]:
    """Treatments in plan order, without control trials: the trials that the analysis uses."""
    cells: dict[str, _Cell] = {}
    seen: set[tuple[str, str]] = set()
    for trial in plan.trials:
        if trial.control:
            continue
        key = json.dumps(trial.treatment, sort_keys=True)
        cell = cells.setdefault(key, _Cell(trial.treatment))
        if (key, trial.start) not in seen:
            seen.add((key, trial.start))
            cell.planned.append(trial.block)
    values: dict[tuple[str, int, str], list[float]] = {}
    for record, order in zip(records, orders_of_treatment(records, plan.factors), strict=True):
        trial = planned[record.id]
        if trial.control:
            continue
        key = json.dumps(trial.treatment, sort_keys=True)
        if record.verdict.system_fault:
            cells[key].faults.append(trial.block)
        value = response_of(record, rule.response)
        if order is not None and order > rule.warm_up_trials and value is not None:
            values.setdefault((key, trial.block, record.start), []).append(float(value))
    for (key, block, _), of_start in values.items():
        cells[key].means.append((block, math.fsum(of_start) / len(of_start)))
    return tuple(sorted(cells.values(), key=lambda cell: _place(cell.treatment, plan)))


def _place(treatment: Mapping[str, Level], plan: Plan) -> tuple[int, ...]:
    known = ((name, levels) for name, levels in plan.factors.items() if treatment.get(name) in levels)
    return tuple(levels.index(treatment[name]) for name, levels in known)


def whole_blocks(trials: Sequence[PlannedTrial], records: Iterable[TrialRecord], attempts: int) -> int:
    """Number of blocks, from the first, whose trials are all settled."""
    by_id = attempts_by_id(records)
    open_blocks = [trial.block for trial in trials if not settled(by_id.get(trial.id, ()), attempts)]
    last = max((trial.block for trial in trials), default=0)
    return min(open_blocks) - 1 if open_blocks else last


def _spans_h(planned: Mapping[str, PlannedTrial], records: Sequence[TrialRecord]) -> list[tuple[int, float]]:
    """(block, hours) of each start, from its first phase (they are in its first trial) to the end of its last trial."""
    spans: dict[tuple[int, str], tuple[float, float]] = {}
    for record in records:
        key = (planned[record.id].block, record.start)
        begun = min([record.begun_s, *(phase.entered_s for phase in record.phases)])
        ended = record.ended_s if record.ended_s is not None else record.begun_s
        low, high = spans.get(key, (begun, ended))
        spans[key] = (min(low, begun), max(high, ended))
    return [(block, (high - low) / SECONDS_PER_HOUR) for (block, _), (low, high) in spans.items()]
