"""Looks at a study: the confidence that each has, and which one trials give.

A reader who looks at the end of the plan, adds blocks because the answer is undecided, and looks again has more than
one chance to call identical systems different. A study with one look has the whole error then, and no final verdict
beyond its plan. With several, look k has the error alpha / 2^k, so that all together have alpha (Bonferroni; a sequence
of alpha spending: Lan and DeMets 1983, Biometrika 70(3)). Equal shares would not do: docs/decisions/0020-looks.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from steelyard.judging.attempts import attempts_by_id, settled
from steelyard.judging.stopping import Decision, not_needed, whole_blocks
from steelyard.model.look import Look
from steelyard.model.plan import Plan
from steelyard.model.study import Study
from steelyard.model.trial import TrialRecord


def later(study: Study, looks: int) -> Study:
    """The study with the confidence that it has this many looks later: each has half of the error of the one before."""
    analysis = study.analysis
    if analysis.looks == "one" or not looks:
        return study
    confidence = 1 - math.ldexp(1 - analysis.confidence, -looks)
    return study.model_copy(update={"analysis": analysis.model_copy(update={"confidence": confidence})})


def look_of(
    plan: Plan | None, records: Sequence[TrialRecord], study: Study, number: int = 1, decision: Decision | None = None
) -> Look:
    """The look that these trials give. `study`: with the confidence of this look, see `later`; `number`: which look it
    is, as the store records; `decision`: that of the study's stopping rule, if it has one."""
    about = {"number": number, "several": study.analysis.looks == "several", "confidence": study.analysis.confidence}
    if plan is None:
        return Look.model_validate(about)
    limit, by_id = study.limits.attempts, attempts_by_id(records)
    spared = set() if decision is None else {trial.id for trial in not_needed(plan, records, decision)}
    open_trials = [one for one in plan.trials if not settled(by_id.get(one.id, ()), limit)]
    return Look(
        **about,
        done=whole_blocks(plan.trials, records, limit),
        planned=plan.blocks,
        at_most=study.design.until is not None,
        missing=sum(one.id not in spared for one in open_trials),
    )
