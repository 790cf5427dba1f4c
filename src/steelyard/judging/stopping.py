"""Sequential stopping rule: whether a study needs another block, from its sealed trials alone.

The plan extends to the cap (`design.starts` blocks), so ids, seeds and orders are fixed beforehand and do not depend on
what is measured. `decide` goes through the whole blocks in order and checks after each, from the trials of the blocks
so far and nothing else, whether to stop. So the same trials always give the same decision, however often the study was
interrupted, and trials after the stop do not change it.

Reason for a least number of starts: an interval that is narrow by chance stops the study, one that is wide by chance
does not, so the rule prefers samples whose spread came out too small. The fewer the values, the stronger this effect
(`plan.stopping_simulation` simulates it).
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from steelyard.judging.attempts import attempts_by_id, settled
from steelyard.judging.stopping_rule import GOING_ON, WAITED_FOR, Decision, Narrowing, Rule, State, Why, rule_of
from steelyard.judging.t_interval import deviation, half_width
from steelyard.judging.trial_responses import response_of
from steelyard.judging.warm_up_cut import orders_of_treatment
from steelyard.model.plan import Plan, PlannedTrial
from steelyard.model.study import Level, Study
from steelyard.model.trial import TrialRecord

LEAST_YIELD = 0.5
"""Once the least number of starts is reached, a treatment is not waited for if less than this share of its starts gave
a value: that it fails is the result."""
SECONDS_PER_HOUR = 3600
FEWEST_STARTS = 3
"""Start means below which there is no interval over starts."""


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
    """What the study's stopping rule says; None without one, or without a plan."""
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
    cap = max((trial.block for trial in plan.trials), default=0)
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
        rule=rule,
        go_on=why in GOING_ON,
        why=why,
        blocks=block,
        cap=cap,
        needed=needed,
        hours=hours,
        cells=tuple(_ended(_narrowing(cell, rule, block), why) for cell in cells),
    )


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
        treatment=cell.treatment,
        n=n,
        mean=centre,
        half_width_percent=percent,
        faults=sum(at <= block for at in cell.faults),
        state=_state(n, sum(at <= block for at in cell.planned), percent, rule),
    )


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
    """Number of blocks, from the first on, whose trials are all settled."""
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
