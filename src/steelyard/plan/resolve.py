"""What a design can resolve: the smallest relative difference that it would likely find.

Two-sided two-sample t test, significance 0.05, power 0.8 (Cohen, Statistical Power Analysis for the Behavioral
Sciences, 2nd ed., 1988, section 2.4). With n units a group, df = 2n - 2 and T of the noncentral t distribution
with noncentrality d sqrt(n / 2), the effect size d solves P(|T| > t(1 - alpha/2, df)) = power; the relative
difference is d times the coefficient of variation.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence

from steelyard.model.base import Value
from steelyard.model.plan import Plan
from steelyard.model.study import Study
from steelyard.model.trial import TrialRecord
from steelyard.study.settings import canonical

ALPHA = 0.05
POWER = 0.8
ASSUMED_CV = 0.05
LARGEST_EFFECT = 1000.0
LEAST_VALUES = 2


class Resolution(Value):
    """What can be said of one factor."""

    factor: str
    hard: bool
    n: int
    """Units a level, at fixed levels of the other factors: starts for a hard factor, trials for an easy one."""
    cv: float
    """Coefficient of variation between such units."""
    cv_source: str
    """`assumed`, or how many trials of the store it comes from."""
    difference: float | None
    """Smallest relative difference found with a power of 0.8; None where n is 1, so that nothing can be."""


def detectable_effect(n: int, alpha: float = ALPHA, power: float = POWER) -> float | None:
    """Standardised difference of two means with n units each that is found with the power asked; None for n < 2."""
    if n < 2:
        return None
    from scipy import optimize, stats

    freedom = 2 * n - 2
    critical = float(stats.t.ppf(1 - alpha / 2, freedom))

    def lacking(effect: float) -> float:
        shift = effect * (n / 2) ** 0.5
        return float(stats.nct.sf(critical, freedom, shift) + stats.nct.cdf(-critical, freedom, shift)) - power

    largest = 1.0
    while lacking(largest) < 0 and largest < LARGEST_EFFECT:
        largest *= 2
    return float(optimize.brentq(lacking, largest / 2 if largest > 1 else 0.0, largest))


def resolution(study: Study, plan: Plan, history: Sequence[TrialRecord] = ()) -> tuple[Resolution, ...]:
    """What the plan can resolve for each factor that varies. The CV is the history's, where that suffices."""
    kept = study.design.trials - study.analysis.warm_up_trials
    found = []
    for factor, levels in plan.factors.items():
        if len(levels) < 2:
            continue
        hard = factor in plan.hard
        n = study.design.starts if hard else study.design.starts * kept
        cv, source = (between_starts_cv if hard else within_starts_cv)(history, study.analysis.response)
        effect = detectable_effect(n)
        difference = None if effect is None else effect * cv
        found.append(Resolution(factor=factor, hard=hard, n=n, cv=cv, cv_source=source, difference=difference))
    return tuple(found)


def within_starts_cv(history: Sequence[TrialRecord], response: str) -> tuple[float, str]:
    """Median over (treatment, start) of the trials' coefficient of variation, and where it comes from."""
    groups = _groups(history, response)
    return _median_cv([values for starts in groups.values() for values in starts.values()], "trials")


def between_starts_cv(history: Sequence[TrialRecord], response: str) -> tuple[float, str]:
    """Median over treatments of the coefficient of variation of the starts' means, and where it comes from."""
    groups = _groups(history, response)
    means = [[statistics.fmean(values) for values in starts.values()] for starts in groups.values()]
    return _median_cv(means, "starts")


def _groups(history: Iterable[TrialRecord], response: str) -> dict[str, dict[str, list[float]]]:
    """Responses of valid trials by treatment and start."""
    groups: dict[str, dict[str, list[float]]] = {}
    for record in history:
        value = getattr(record.responses, response)
        if record.verdict.outcome == "valid" and value:
            groups.setdefault(canonical(record.treatment), {}).setdefault(record.start, []).append(value)
    return groups


def _median_cv(groups: Sequence[Sequence[float]], units: str) -> tuple[float, str]:
    enough = [values for values in groups if len(values) >= LEAST_VALUES]
    if not enough:
        return ASSUMED_CV, "assumed"
    cv = statistics.median(statistics.stdev(values) / statistics.fmean(values) for values in enough)
    return cv, f"{sum(len(values) for values in enough)} {units} of this store"
