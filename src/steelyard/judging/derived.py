"""Derived levels: numbers that trials of a study give for others of it (`model.derived`). Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from steelyard.judging.attempts import attempts_by_id, settled
from steelyard.judging.trial_responses import response_of
from steelyard.model.derived import Derived, DerivedLevel
from steelyard.model.plan import Plan
from steelyard.model.policy import NONE
from steelyard.model.study import Study
from steelyard.model.trial import TrialRecord
from steelyard.model.trial_settings import TrialSettings


def gives(source: TrialSettings, settings: TrialSettings) -> bool:
    """Whether trials of the first settings give the derived levels of trials of the second: only the policy differs,
    and the first have none."""
    return source.policy.name == NONE and source.without("policy") == settings.without("policy")


def sources(settings: TrialSettings, records: Iterable[TrialRecord]) -> list[TrialRecord]:
    """The valid trials that give the derived level of trials of these settings, in order of time. Extra trials of a
    control are measured later, to show drift, and give none."""
    given = [
        record
        for record in records
        if record.verdict.outcome == "valid" and not record.control and gives(record.settings, settings)
    ]
    return sorted(given, key=lambda record: record.begun_s)


def mean_over_starts(records: Sequence[TrialRecord], response: str) -> float | None:
    """Mean over starts of the mean over their trials; None if a trial has no value."""
    values: dict[str, list[float]] = {}
    for record in records:
        value = response_of(record, response)
        if value is None:
            return None
        values.setdefault(record.start, []).append(value)
    means = [math.fsum(of_start) / len(of_start) for of_start in values.values()]
    return math.fsum(means) / len(means) if means else None


def derived(
    levels: Mapping[str, DerivedLevel], settings: TrialSettings, records: Iterable[TrialRecord]
) -> Derived | str | None:
    """The derived level of trials of these settings, or why there is none; None if they need none."""
    name = settings.policy.threshold_of
    if not name:
        return None
    level, given = levels[name], sources(settings, records)
    if len(given) < level.least:
        return (
            f"{name} needs {level.least} valid trials without a policy; valid: {len(given)} (design.starts adds some)"
        )
    mean = mean_over_starts(given, level.response)
    if mean is None:
        return f"{name}: a trial without a policy has no {level.response}"
    return Derived(
        level=name, response=level.response, mean=mean, add=level.add, trials=tuple(record.key for record in given)
    )


def not_run(study: Study, plan: Plan, records: Sequence[TrialRecord]) -> dict[str, str]:
    """Trials that need a derived level which there will not be: all that could give it are settled, and too few of them
    are valid. By id, with the reason."""
    if not study.derived:
        return {}
    by_id, limit = attempts_by_id(records), study.limits.attempts
    open_trials = [trial for trial in plan.trials if not settled(by_id.get(trial.id, ()), limit)]
    reasons = {}
    for trial in open_trials:
        why = derived(study.derived, trial.settings, records)
        awaited = any(gives(other.settings, trial.settings) for other in open_trials if not other.control)
        if isinstance(why, str) and not awaited:
            reasons[trial.id] = why
    if reasons and all(trial.control or trial.id in reasons for trial in open_trials):
        # A control after the first phase has nothing to show without a second.
        reasons |= dict.fromkeys((trial.id for trial in open_trials), next(iter(reasons.values())))
    return reasons
