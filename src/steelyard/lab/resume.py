"""Resumption of a study: the trials of a plan that its store still lacks. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from steelyard.judging.attempts import attempts_by_id as attempts_by_id  # noqa: PLC0414 - part of this module
from steelyard.judging.attempts import settled as settled  # noqa: PLC0414 - part of this module
from steelyard.model.plan import Plan, PlannedTrial
from steelyard.model.trial import TrialRecord


def missing(plan: Plan, records: Iterable[TrialRecord], limit: int) -> list[PlannedTrial]:
    """Trials of the plan that are still to be done, in order."""
    by_id = attempts_by_id(records)
    return [trial for trial in plan.trials if not settled(by_id.get(trial.id, ()), limit)]
