"""Forecast of a gate: how often it will find a slowdown, how often it will pass an equal build, and the blocks needed.

The gate (`analysis/gate.py`) is red if the interval of the ratio lies wholly beyond the margin. With d the distance of
the true change from the margin, in logarithms, s the standard deviation of start means and n starts a level, the chance
is P(T > t(f)), T noncentral t with noncentrality d / (s sqrt(2 / n)). The interval is Welch's, whose degrees of freedom
f follow from the two spreads that are seen: with equal true spreads, the share u that one of them has of their sum is
Beta((n - 1) / 2, (n - 1) / 2), f = (n - 1) / (u^2 + (1 - u)^2), and T, which has the sum below it, is independent of u
with 2 n - 2 degrees of freedom. So the chance is the mean over u, without an approximation, for normal logarithms.
Pairs within starts have f = n - 1. `tools.gate_rates` draws studies and counts.

Each further response of the study adds its comparisons to the family; the spread is that of the main response.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from steelyard.judging.noise_floor import KeptFloor
from steelyard.model.plan import Plan
from steelyard.model.study import Study
from steelyard.model.trial import TrialRecord
from steelyard.model.value import Value
from steelyard.plan.detectable_difference import resolution

POWER = 0.95
"""Chance that a gate should find the slowdown with."""
FEWEST_BLOCKS, MOST_BLOCKS = 3, 1000
"""Without three starts a level there is no interval; nobody plans more than the other."""
QUADRATURE = 200
"""Places at which the degrees of freedom are taken: the mean is then exact to four digits."""
MOST_CHANGE = 10.0
"""Greatest distance from the margin that is looked at, in logarithms."""


class GateForecast(Value):
    """What a gate over one factor of a plan can find."""

    factor: str
    comparisons: int
    """Cells of the other factors times the responses that the study analyses: each is a case of the gate."""
    margin_percent: float
    change_percent: float
    """The slowdown that it should find."""
    blocks: int
    """Blocks of the plan."""
    cv: float
    """Coefficient of variation of the means that are compared."""
    cv_source: str
    power: float
    """Chance that the plan's gate is red if the main response of one cell is worse by `change_percent`."""
    blocks_needed: int | None
    """Blocks for a chance of 0.95; None beyond 1,000."""
    found_percent: float | None
    """The slowdown that the plan's gate finds with a chance of 0.95; None below three blocks."""
    equal_passes: float
    """Chance that one comparison is green if nothing differs."""
    blocks_to_pass: int | None
    """Blocks for a chance of 0.95 of that; None beyond 1,000."""


def chance_beyond(n: int, distance: float, spread: float, confidence: float, *, pairs: bool = False) -> float:
    """Chance that the interval of a ratio lies wholly on one side of a value.

    `distance`: of the true ratio from the value, as a logarithm; `spread`: standard deviation of the logarithms of n
    start means a level, or of n differences of pairs.
    """
    if n < FEWEST_BLOCKS or distance <= 0:
        return 0.0
    from scipy import stats

    tail = (1 - confidence) / 2
    if pairs:
        return _above(stats.t.isf(tail, n - 1), n - 1, distance / spread * math.sqrt(n))
    share = stats.beta.ppf([(place + 0.5) / QUADRATURE for place in range(QUADRATURE)], (n - 1) / 2, (n - 1) / 2)
    critical = stats.t.isf(tail, (n - 1) / (share**2 + (1 - share) ** 2))
    return _above(critical, 2 * n - 2, distance / spread * math.sqrt(n / 2))


def _above(critical: Any, degrees: int, shift: float) -> float:
    """Mean of P(T > critical) of noncentral t; scipy's far tails, which are nan, are 1: the shift is far beyond."""
    import numpy as np
    from scipy import stats

    chances = np.nan_to_num(stats.nct.sf(critical, degrees, shift), nan=1.0)
    return min(1.0, float(np.mean(chances)))


def forecasts(
    study: Study, plan: Plan, history: Sequence[TrialRecord], floor: KeptFloor | None, change_percent: float,
    margin_percent: float,
) -> tuple[GateForecast, ...]:  # fmt: skip
    """A forecast for each factor that varies; none in a fraction, whose cells are not compared one by one."""
    if study.design.kind == "fractional":
        return ()
    kept = max(1, study.design.trials - study.analysis.warm_up_trials)
    confidence = study.analysis.confidence
    rows = []
    for item in resolution(study, plan, history, floor):
        spread = item.cv if item.hard else item.cv * math.sqrt(2 / kept)
        cells = {
            tuple(level for factor, level in trial.treatment.items() if factor != item.factor) for trial in plan.trials
        }
        comparisons = len(cells) * len(study.analysis.every_response)
        rows.append(
            _forecast(item.factor, comparisons, study.design.starts, spread, not item.hard, confidence,
                      change_percent, margin_percent, item.cv_source)
        )  # fmt: skip
    return tuple(rows)


def _forecast(
    factor: str, comparisons: int, blocks: int, spread: float, pairs: bool, confidence: float, change_percent: float,
    margin_percent: float, source: str,
) -> GateForecast:  # fmt: skip
    margin, change = math.log1p(margin_percent / 100), math.log1p(change_percent / 100)
    simultaneous = 1 - (1 - confidence) / comparisons

    def red(n: int, distance: float) -> float:
        return chance_beyond(n, distance, spread, simultaneous, pairs=pairs)

    def green(n: int) -> float:
        return chance_beyond(n, margin, spread, confidence, pairs=pairs)

    smallest_percent = None
    if blocks >= FEWEST_BLOCKS:
        smallest_percent = 100 * math.expm1(margin + _least(lambda distance: red(blocks, distance)))
    return GateForecast(
        factor=factor, comparisons=comparisons, margin_percent=margin_percent, change_percent=change_percent,
        blocks=blocks, cv=spread, cv_source=source, power=red(blocks, change - margin),
        blocks_needed=_blocks_needed(lambda n: red(n, change - margin)), found_percent=smallest_percent,
        equal_passes=green(blocks), blocks_to_pass=_blocks_needed(green),
    )  # fmt: skip


def _blocks_needed(chance: Callable[[int], float]) -> int | None:
    """The fewest blocks with a chance of POWER; None beyond MOST_BLOCKS."""
    if chance(MOST_BLOCKS) < POWER:
        return None
    low, high = FEWEST_BLOCKS - 1, MOST_BLOCKS
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if chance(middle) >= POWER else (middle, high)
    return high


def _least(chance: Callable[[float], float]) -> float:
    """The least distance with a chance of POWER."""
    low, high = 0.0, MOST_CHANGE
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if chance(middle) >= POWER else (middle, high)
    return high
