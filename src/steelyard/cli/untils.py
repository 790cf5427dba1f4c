"""What `check` says of a study that ends when its intervals are narrow: how long it would take, by how much starts
vary."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from steelyard.format import forecast
from steelyard.judging.stopping_rule import LEAST_WITHOUT_NOTE, Rule, coverage_percent, rule_of
from steelyard.model.plan import Plan
from steelyard.model.study import Study
from steelyard.model.trial import TrialRecord
from steelyard.plan.detectable_difference import between_starts_cv
from steelyard.plan.estimate import PlanEstimate
from steelyard.plan.stopping_simulation import CVS, Expected, expected

SECONDS_PER_HOUR = 3600
ASSUMED = "assumed"
MOSTLY = 0.5


def foreseen(study: Study, plan: Plan, history: Sequence[TrialRecord]) -> tuple[Expected, ...]:
    """Blocks that the study would need for some coefficients of variation between starts, and for that of the store
    where it is known; none without a stopping rule."""
    rule = rule_of(study)
    if rule is None:
        return ()
    cv, source = between_starts_cv(history, rule.response, rule.warm_up_trials)
    cvs = CVS if source == ASSUMED or not cv else tuple(sorted({*CVS, cv}))
    cells = len({tuple(trial.treatment.items()) for trial in plan.trials if not trial.control})
    return expected(rule, cap=_cap(plan), cells=cells, cvs=cvs)


def rows(
    found: Sequence[Expected], study: Study, plan: Plan, cost: PlanEstimate
) -> Iterator[tuple[str, str, float, float, str]]:
    """CV, blocks, seconds from and to, remark, of each line. Seconds: of the whole study, by the estimate's mean."""
    rule = rule_of(study)
    a_block_s = cost.whole_s / _cap(plan)
    most_s = float("inf") if rule is None or rule.hours is None else rule.hours * SECONDS_PER_HOUR
    for one in found:
        known = "" if one.cv in CVS else ", as in this store"
        low_s, high_s = (min(most_s, blocks * a_block_s) for blocks in (one.low, one.high))
        reached = "" if one.unreached < MOSTLY else f"{one.unreached:.0%} reach the cap, wider than asked"
        if one.low * a_block_s > most_s:
            reached = "out of hours, wider than asked"
        blocks = f"{one.middle}" if one.low == one.high else f"{one.middle} ({one.low} to {one.high})"
        yield f"{one.cv:.1%}{known}", blocks, low_s, high_s, reached


def notes(study: Study, plan: Plan, cost: PlanEstimate) -> Iterator[str]:
    """What the author of a stopping rule should know."""
    rule = rule_of(study)
    if rule is None:
        return
    yield from _few_starts(rule)
    if rule.hours is not None:
        least_s = cost.whole_s / _cap(plan) * rule.least_starts
        if least_s > rule.hours * SECONDS_PER_HOUR:
            yield (
                f"the least {rule.least_starts} starts take about {forecast(least_s)}, design.until.hours is "
                f"{rule.hours:g}: the study will end without a judged interval"
            )
    if any(item for item in plan.factors.values() if len(item) > 1):
        yield (
            "what can be told apart is said for all planned starts; the study ends after fewer if its intervals are "
            f"within ±{rule.width_percent:g}% before (a ratio of two such means is known to about "
            f"±{rule.width_percent * 2**0.5:.2g}%)"
        )


def _few_starts(rule: Rule) -> Iterator[str]:
    if rule.least_starts < LEAST_WITHOUT_NOTE:
        yield (
            f"at least {rule.least_starts} starts: t intervals that end a study cover less the fewer starts they are "
            f"judged by; in simulated studies {int(coverage_percent(rule.least_starts))}% or more of the 95% intervals "
            f"held the truth, with {LEAST_WITHOUT_NOTE} starts {int(coverage_percent(LEAST_WITHOUT_NOTE))}%"
        )


def as_data(found: Sequence[Expected], study: Study) -> dict[str, Any] | None:
    """The same for `--json`; None without a stopping rule."""
    rule = rule_of(study)
    if rule is None:
        return None
    return {"rule": rule.model_dump(mode="json"), "expected": [vars(one) for one in found]}


def title(study: Study, plan: Plan) -> str:
    """The rule in words."""
    rule = rule_of(study)
    if rule is None:
        return ""
    hours = f", {rule.hours:g} hours at most" if rule.hours else ""
    return (
        f"Until half of each {rule.confidence:.0%} interval of the mean is within {rule.width_percent:g}% of it: "
        f"from {rule.least_starts} to {_cap(plan)} starts{hours}"
    )


def _cap(plan: Plan) -> int:
    return max((trial.block for trial in plan.trials), default=1)
