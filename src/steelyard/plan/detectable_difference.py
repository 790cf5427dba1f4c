"""Minimum detectable difference of a design: the smallest relative difference that the report would likely find.

Significance 0.05 two-sided, power 0.8 (Cohen, Statistical Power Analysis for the Behavioral Sciences, 2nd ed., 1988,
section 2.4). Levels are compared in pairs (`analysis.comparisons.level_pairs`). The effect d solves P(|T| > t(1 -
alpha/2, f)) = power for noncentral T with noncentrality d sqrt(n) and f = n - 1 degrees of freedom:

* a factor that needs a new cluster is compared block by block: n blocks, and the difference of logarithms is d sqrt(2)
  times the deviation of the starts' means within blocks; with six or more blocks the place takes a degree of freedom;
* a factor that varies within starts is compared start by start: n starts with k trials of each level, and the
  difference of logarithms is d times the deviation of trials times sqrt(2 / k).

In a fraction a factor is judged over all treatments: there are n of them per level and start, and the degrees of
freedom are those within the blocks, or within the combinations of hard levels.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence

from steelyard.heavy import optimize
from steelyard.judging.attempts import orders_of_treatment
from steelyard.judging.looks import later
from steelyard.judging.noise_floor import KeptFloor
from steelyard.judging.settings_hash import canonical
from steelyard.judging.t_interval import FEWEST_FOR_PLACE, POWER, chance_of_change, chance_of_equivalence
from steelyard.judging.trial_responses import response_of
from steelyard.model.plan import Plan
from steelyard.model.study import Study
from steelyard.model.trial import TrialRecord
from steelyard.model.value import Value

ALPHA = 0.05
ASSUMED_CV = 0.05
ASSUMED = "assumed"
LARGEST_EFFECT = 1000.0
LEAST_VALUES = 2


class Resolution(Value):
    """Minimum detectable difference of one factor."""

    factor: str
    hard: bool
    n: int
    """Units per level, at fixed levels of the other factors: starts, or pairs within starts; in a fraction, over all
    treatments."""
    cv: float
    """Coefficient of variation of the starts' means within blocks for a hard factor, of trials within a start for an
    easy one."""
    cv_source: str
    """`assumed`, how many trials in the store it comes from, or this machine's noise floor."""
    difference: float | None
    """Smallest rise, as a fraction, detected with a power of 0.8; None if nothing can be detected: n is 1, or the
    confidence asks for too much of so few."""
    equal_passes: float | None = None
    """Chance that equal levels are called equivalent within the study's margin; None without a margin."""


def detectable_effect(n: int, alpha: float = ALPHA, power: float = POWER, degrees: int | None = None) -> float | None:
    """Mean difference over n pairs that is detected with the given power, in standard deviations of the differences;
    None if there are no degrees of freedom, or beyond LARGEST_EFFECT."""
    freedom = n - 1 if degrees is None else degrees
    if freedom < 1:
        return None

    def lacking(effect: float) -> float:
        return chance_of_change(effect, n**-0.5, freedom, 1 - alpha) - power

    return None if lacking(LARGEST_EFFECT) < 0 else float(optimize.brentq(lacking, 0.0, LARGEST_EFFECT))


def resolution(
    study: Study, plan: Plan, history: Sequence[TrialRecord] = (), floor: KeptFloor | None = None
) -> tuple[Resolution, ...]:
    """Smallest detectable difference of each factor that varies. The CV comes from the history if that suffices,
    otherwise from this machine's noise floor, otherwise it is assumed."""
    kept = max(1, study.design.trials - study.analysis.warm_up_trials)
    study = later(study, 1)
    return tuple(
        _resolved(study, plan, factor, kept, *_cv(history, floor, study, factor in plan.hard, kept))
        for factor, levels in plan.factors.items()
        if len(levels) > 1
    )


def _resolved(study: Study, plan: Plan, factor: str, kept: int, cv: float, source: str) -> Resolution:
    hard, starts = factor in plan.hard, study.design.starts
    n, degrees = starts, None
    if study.design.kind == "fractional":
        first = {trial.id.partition("-")[0]: trial for trial in plan.trials if not trial.control}
        combinations = {tuple(trial.treatment[one] for one in plan.hard) for trial in first.values()}
        units = combinations if hard else first.values()
        n = starts * len(units) // len(plan.factors[factor])
        degrees = (len(combinations) - hard) * (starts - 1)
    elif hard and starts >= FEWEST_FOR_PLACE:
        degrees = starts - 2  # the place within the block takes one
    freedom, confidence = n - 1 if degrees is None else degrees, study.analysis.confidence
    effect, margin = detectable_effect(n, 1 - confidence, degrees=freedom), study.analysis.equivalence_margin_percent
    spread, passes = math.sqrt(math.log1p(cv**2) * (2 if hard else 2 / kept)), None
    if effect is not None and margin is not None:
        passes = chance_of_equivalence(0.0, math.log1p(margin / 100), spread / math.sqrt(n), freedom, confidence)
    difference = None if effect is None else math.expm1(effect * spread)
    about = {"factor": factor, "hard": hard, "n": n, "cv": cv, "cv_source": source}
    return Resolution.model_validate({**about, "difference": difference, "equal_passes": passes})


def _cv(
    history: Sequence[TrialRecord], floor: KeptFloor | None, study: Study, hard: bool, kept: int
) -> tuple[float, str]:
    """Coefficient of variation of starts' means or of trials within a start, and where it comes from."""
    response = study.analysis.response
    measured = (between_starts_cv if hard else within_starts_cv)(history, response, study.analysis.warm_up_trials)
    if measured[1] != ASSUMED or floor is None:
        return measured
    spread = next((one for one in floor.spreads if one.response == response), None)
    if spread is None or spread.within_mean_square is None or (hard and spread.between_mean_square is None):
        return measured
    variance = spread.within_mean_square
    if hard:
        of_starts = spread.in_block_mean_square or spread.between_mean_square or 0.0
        variance = max(0.0, (of_starts - variance) / spread.trials_a_start) + variance / kept
    return variance**0.5, f"noise floor of this machine, {floor.pairs} pairs of starts"


def within_starts_cv(history: Sequence[TrialRecord], response: str, warm_up_trials: int = 0) -> tuple[float, str]:
    """Median over (treatment, start) of the trials' coefficient of variation, and where it comes from. Excludes trials
    that the analysis drops as warm-up."""
    groups = _groups(history, response, warm_up_trials)
    return _median_cv([values for starts in groups.values() for values in starts.values()], "trials")


def between_starts_cv(history: Sequence[TrialRecord], response: str, warm_up_trials: int = 0) -> tuple[float, str]:
    """Median over pairs of treatments of the coefficient of variation of the starts' means within blocks, and where it
    comes from; over treatments, of all their starts, where no two had their own starts in the same blocks."""
    groups = _groups(history, response, warm_up_trials)
    means = [{start: statistics.fmean(values) for start, values in starts.items()} for starts in groups.values()]
    block = {record.start: record.block for record in history}
    in_blocks = [{block[start]: (start, math.log(mean)) for start, mean in one.items() if mean > 0} for one in means]
    gaps = [
        [b[at][1] - a[at][1] for at in a if at in b and a[at][0] != b[at][0]]
        for a, b in itertools.combinations(in_blocks, 2)
    ]
    spreads = [statistics.stdev(each) / math.sqrt(2) for each in gaps if len(each) >= LEAST_VALUES]
    if not spreads:
        return _median_cv([list(one.values()) for one in means], "starts")
    return statistics.median(spreads), f"{sum(len(one) for one in means)} starts of this store"


def _groups(history: Sequence[TrialRecord], response: str, warm_up_trials: int) -> dict[str, dict[str, list[float]]]:
    """Responses of used trials by treatment and start."""
    names = sorted({name for record in history for name in record.treatment})
    groups: dict[str, dict[str, list[float]]] = {}
    for record, order in zip(history, orders_of_treatment(history, names), strict=True):
        value = response_of(record, response)
        if order is not None and order > warm_up_trials and value:
            groups.setdefault(canonical(record.treatment), {}).setdefault(record.start, []).append(value)
    return groups


def _median_cv(groups: Sequence[Sequence[float]], units: str) -> tuple[float, str]:
    enough = [values for values in groups if len(values) >= LEAST_VALUES]
    if not enough:
        return ASSUMED_CV, ASSUMED
    cv = statistics.median(statistics.stdev(values) / statistics.fmean(values) for values in enough)
    return cv, f"{sum(len(values) for values in enough)} {units} of this store"
