"""Looks at a study: which one its trials give, whether verdicts are final at it, and the confidence that it has.

Somebody who looks at the end of the plan, adds blocks because the answer is undecided, and looks again has more than
one chance to call identical systems different. With `analysis.looks = "one"` the first look at the end of the plan has
the whole error, and no verdict is final beyond it. With "several" look k has the error alpha / 2^k, so that all looks
together have alpha however many they are (Bonferroni; the pattern of an alpha-spending function, K. K. G. Lan, D. L.
DeMets, Biometrika 70(3), 1983). Equal shares would not do: the number of further blocks follows the trials, which makes
a look err more than its share (M. A. Proschan, S. A. Hunsberger, Biometrics 51(4), 1995); docs/decisions/0020-looks.md
has the counts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from steelyard.judging.attempts import attempts_by_id, settled
from steelyard.judging.stopping import not_needed, whole_blocks
from steelyard.judging.stopping_rule import Decision
from steelyard.model.plan import Plan
from steelyard.model.study import Study
from steelyard.model.trial import TrialRecord
from steelyard.model.value import Value


class Look(Value):
    """One look at a study, or at two of them."""

    number: int = 1
    """From 1; a further look is one after trials were added to a plan that was finished."""
    several: bool = False
    """Whether the study has said beforehand that it may go on."""
    confidence: float = 0.95
    """Confidence of the intervals at this look."""
    done: int = 0
    """Whole blocks."""
    planned: int = 0
    """Planned blocks; 0 where the plan is not known."""
    at_most: bool = False
    """Whether a stopping rule may end the study before its last block."""
    missing: int = 0
    """Trials that the plan still needs."""

    @property
    def final(self) -> bool:
        """Whether its verdicts are final."""
        return not self.missing and (self.several or self.number == 1)

    @property
    def next_confidence(self) -> float:
        """Confidence at the look that follows this one."""
        return (1 + self.confidence) / 2 if self.several else self.confidence

    def planning_confidence(self, confidence: float) -> float:
        """Confidence to plan further blocks with, after an interval with `confidence`: that of the next look if these
        blocks are one, else the same (of the end of the plan, or of a new study)."""
        return (1 + confidence) / 2 if self.several and not self.missing else confidence

    def beyond(self, more: int) -> bool:
        """Whether so many further blocks are more than the plan still has."""
        return more > self.planned - self.done

    @property
    def sentence(self) -> str:
        """What a reader must know first; empty at the only look of a finished study."""
        if self.missing:
            blocks = f"{'at most ' if self.at_most else ''}{self.planned} block{'' if self.planned == 1 else 's'}"
            return f"unfinished: {self.done} of {blocks}; no verdict is final"
        if self.several:
            return f"look {self.number}, at {100 * self.confidence:.4g}%"
        if self.number > 1:
            return (
                f'look {self.number} of a study with one look (analysis.looks = "one"), which has spent its error; no '
                "verdict is final: measure a new study"
            )
        return ""


ONE_LOOK = Look()


def later(study: Study, looks: int) -> Study:
    """The study with the confidence that it has so many looks later: each has half of the error of the one before."""
    analysis = study.analysis
    if analysis.looks == "one" or not looks:
        return study
    confidence = 1 - math.ldexp(1 - analysis.confidence, -looks)
    return study.model_copy(update={"analysis": analysis.model_copy(update={"confidence": confidence})})


def look_of(
    plan: Plan | None, records: Sequence[TrialRecord], study: Study, number: int = 1, decision: Decision | None = None
) -> Look:
    """The look that these trials give. `study`: with the confidence of this look, see `later`; `number`: which look it
    is, as the store tells; `decision`: that of the study's stopping rule, if it has one."""
    about = {"number": number, "several": study.analysis.looks == "several", "confidence": study.analysis.confidence}
    if plan is None:
        return Look.model_validate(about)
    limit, by_id = study.limits.attempts, attempts_by_id(records)
    spared = set() if decision is None else {trial.id for trial in not_needed(plan, records, decision)}
    open_trials = [one for one in plan.trials if not settled(by_id.get(one.id, ()), limit)]
    return Look(
        **about,
        done=whole_blocks(plan.trials, records, limit),
        planned=max((trial.block for trial in plan.trials), default=0),
        at_most=study.design.until is not None,
        missing=sum(one.id not in spared for one in open_trials),
    )
