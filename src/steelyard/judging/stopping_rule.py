"""Stopping rule and its decision: whether more blocks are needed, why, and how narrow each interval is.

Values only; `steelyard.judging.stopping` makes the decision. Measuring, verification and report use the same values.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import field_validator

from steelyard.model import former_words
from steelyard.model.study import Level, Study
from steelyard.model.value import Value

State = Literal["too few starts", "narrowing", "too wide", "narrow enough", "not waited for"]

WAITED_FOR: tuple[State, ...] = ("too few starts", "narrowing", "too wide")

Why = Literal["least-starts", "width", "narrow", "cap", "hours"]

LEAST_WITHOUT_NOTE = 10
"""Smaller least numbers of starts, down to `LEAST_STARTS`, are allowed but cause a note."""
SIMULATED_CONFIDENCE = 0.95
SIMULATED_COVERAGE_PERCENT: dict[int, float] = {2: 87.9, 6: 92.3, 10: 93.2, 20: 94.1}
"""Least number of starts to the minimum share of 95% intervals that contained the truth in a study of one treatment,
whatever its CV, as simulated by `steelyard.plan.stopping_simulation`; see docs/howto/replicate-until-narrow.md. The
share is higher for treatments with equal variation that wait for one another."""


GOING_ON: tuple[Why, ...] = ("least-starts", "width")


class Rule(Value):
    """Everything that determines when a study with `[design.until]` ends, except the number of planned blocks."""

    response: str
    width_percent: float
    least_starts: int
    confidence: float
    warm_up_trials: int
    """Number of first valid trials of each treatment within a start that are left out as warm-up."""
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
    """Half of the t interval over start means, in per cent of their mean; None below two starts, or for a mean of 0."""
    faults: int = 0
    """Trials in which the system under test failed."""
    state: State
    """too few starts: below the least number; narrowing, and once the study has stopped too wide: wider than the
    target; not waited for: fewer than half of its starts gave a value."""

    @field_validator("treatment")
    @classmethod
    def _levels_of_today(cls, treatment: dict[str, Level]) -> dict[str, Level]:
        return former_words.treatment(treatment)


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
    """Number of blocks needed so far: the block of the stop, or the least number to continue to."""
    hours: float
    """Hours of measuring in these blocks."""
    cells: tuple[Narrowing, ...]
    """One per treatment, in the order of the factors' levels."""

    @field_validator("why", mode="before")
    @classmethod
    def _word_of_today(cls, why: Any) -> Any:
        return "least-starts" if why == "floor" else why

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
