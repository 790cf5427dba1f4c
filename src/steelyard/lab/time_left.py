"""Time left: when a session will have done what is missing of its plan."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from steelyard.events.shown import TimeLeft
from steelyard.judging.attempts import missing
from steelyard.judging.stopping import SECONDS_PER_HOUR, decide, rule_of
from steelyard.model.plan import Plan, PlannedTrial
from steelyard.model.study import Study
from steelyard.model.trial import TrialRecord
from steelyard.plan.abilities import Abilities
from steelyard.plan.estimate import PlanEstimate, estimate
from steelyard.plan.stopping_forecast import likely_blocks

Forecast = Callable[[Sequence[PlannedTrial], Sequence[TrialRecord]], TimeLeft]


def forecast(study: Study, plan: Plan, abilities: Abilities) -> Forecast:
    """A function of the trials to do and the sealed ones."""
    rule = rule_of(study)

    def rest(todo: Sequence[PlannedTrial], records: Sequence[TrialRecord]) -> PlanEstimate:
        return estimate(plan.model_copy(update={"trials": tuple(todo)}), study, records, abilities=abilities)

    def remaining(todo: Sequence[PlannedTrial], records: Sequence[TrialRecord]) -> TimeLeft:
        if not todo:
            return TimeLeft(0.0, 0.0, 0.0)
        least = rest(todo, records)
        if rule is None:
            return TimeLeft(least.seconds, least.low_s, least.high_s)

        def up_to(block: int) -> PlanEstimate:
            return rest([trial for trial in missing(plan, records, rule.attempts) if trial.block <= block], records)

        # At least what is needed now, likely what is needed if the spreads stay as they are, at most up to the cap.
        decision = decide(plan, records, rule)
        likely, most = up_to(likely_blocks(decision)), up_to(decision.cap)
        left_s = float("inf") if rule.hours is None else max(0.0, rule.hours - decision.hours) * SECONDS_PER_HOUR
        return TimeLeft(min(likely.seconds, left_s), min(least.low_s, left_s), min(most.high_s, left_s))

    return remaining
