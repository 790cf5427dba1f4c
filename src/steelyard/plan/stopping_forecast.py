"""Forecast of a stopping rule: blocks and hours until the intervals are narrow enough."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

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


def blocks_needed(study: Study, plan: Plan, history: Sequence[TrialRecord]) -> tuple[Expected, ...]:
    """Blocks that the study would need for several coefficients of variation between starts, including the store's own
    if known; empty without a stopping rule."""
    rule = rule_of(study)
    if rule is None:
        return ()
    cv, source = between_starts_cv(history, rule.response, rule.warm_up_trials)
    cvs = CVS if source == ASSUMED or not cv else tuple(sorted({*CVS, cv}))
    cells = len({tuple(trial.treatment.items()) for trial in plan.trials if not trial.control})
    return expected(rule, cap=cap(plan), cells=cells, cvs=cvs)


class Row(NamedTuple):
    """Forecast for one coefficient of variation between starts."""

    expected: Expected
    of_the_store: bool
    """Whether the coefficient was estimated from this store's trials."""
    low_s: float
    """Seconds of the whole study, based on the estimate's mean."""
    high_s: float
    remark: str


def rows(needed: Sequence[Expected], study: Study, plan: Plan, cost: PlanEstimate) -> Iterator[Row]:
    """Blocks and hours for each coefficient of variation between starts."""
    rule = rule_of(study)
    a_block_s = cost.whole_s / cap(plan)
    most_s = float("inf") if rule is None or rule.hours is None else rule.hours * SECONDS_PER_HOUR
    for expectation in needed:
        low_s, high_s = (min(most_s, blocks * a_block_s) for blocks in (expectation.low, expectation.high))
        remark = (
            "" if expectation.unreached < MOSTLY else f"{expectation.unreached:.0%} reach the cap, wider than asked"
        )
        if expectation.low * a_block_s > most_s:
            remark = "out of hours, wider than asked"
        yield Row(expectation, expectation.cv not in CVS, low_s, high_s, remark)


def notes(study: Study, plan: Plan, cost: PlanEstimate) -> Iterator[str]:
    """What the author of a stopping rule should know."""
    rule = rule_of(study)
    if rule is None:
        return
    yield from _few_starts(rule)
    if rule.hours is not None:
        least_s = cost.whole_s / cap(plan) * rule.least_starts
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


def as_data(forecasts: Sequence[Expected], study: Study) -> dict[str, Any] | None:
    """The forecast for `--json`; None without a stopping rule."""
    rule = rule_of(study)
    if rule is None:
        return None
    return {"rule": rule.model_dump(mode="json"), "expected": [vars(one) for one in forecasts]}


def cap(plan: Plan) -> int:
    """Largest number of blocks of the study."""
    return max((trial.block for trial in plan.trials), default=1)
