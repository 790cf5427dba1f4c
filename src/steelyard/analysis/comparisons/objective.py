"""Judgement of a level by the study's objective: met, not met or undecided, by the interval over starts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from steelyard.analysis.comparisons.level_pairs import FEWEST_STARTS
from steelyard.analysis.comparisons.level_ratios import centre
from steelyard.analysis.inference import estimates
from steelyard.model.estimate import Estimate
from steelyard.model.objective import Limit

ObjectiveVerdict = Literal["met", "not met", "undecided"]


def value_of(start_means: Sequence[float], unit: str, confidence: float) -> Estimate:
    """The value of a level, as the answer has it: the geometric mean of its start means; the mean, with a t interval,
    where one of them is not above 0. Raises ValueError for none."""
    if min(start_means) <= 0 and len(start_means) >= FEWEST_STARTS and len(set(start_means)) > 1:
        return estimates.mean(start_means, unit, confidence, "start means")
    return centre(start_means, unit, confidence)


def judged(value: Estimate, limit: Limit) -> tuple[ObjectiveVerdict, str]:
    """Verdict and, where it is undecided, why. Met: every value of the interval meets the limit; not met: none does."""
    if value.low is None or value.high is None:
        return "undecided", f"{value.method.rpartition('; ')[2]}"
    ends = {limit.is_met(end) for end in (value.low, value.high)}
    if len(ends) > 1:
        return "undecided", "the limit lies within the interval"
    return ("met", "") if ends.pop() else ("not met", "")
