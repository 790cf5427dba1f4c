"""Forecast of a gate: how often it will find a slowdown, how often it will pass an equal build, and the blocks needed.

The gate (`analysis/gate.py`) is red if the interval of the ratio lies entirely beyond the margin. With d the distance
of the true change from the margin, in logarithms, s the standard deviation of the differences of n pairs (blocks, or
starts that served both levels), the chance is P(T > t(n - 1)), T noncentral t with noncentrality d sqrt(n) / s: exact
for normal logarithms. `tools.gate_rates` draws studies and counts.

Each further response of the study adds its comparisons to the family; the spread is that of the main response.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from steelyard.heavy import optimize
from steelyard.judging import t_interval
from steelyard.judging.looks import later
from steelyard.judging.t_interval import FEWEST_STARTS
from steelyard.model.plan import Plan
from steelyard.model.study import Study
from steelyard.model.value import Value
from steelyard.plan.detectable_difference import Resolution

POWER = 0.95
"""Chance that a gate should find the slowdown with."""
MOST_BLOCKS, MOST_CHANGE = 1000, 10.0
"""Most blocks, and the largest distance from the margin in logarithms, that are looked at."""


class GateForecast(Value):
    """Forecast of a gate over one factor of a plan."""

    factor: str
    comparisons: int
    """Cells of the other factors times the responses that the study analyses: each is a case of the gate."""
    margin_percent: float
    change_percent: float
    """The slowdown that it should find."""
    blocks: int
    """Blocks of the plan."""
    cv: float
    """Coefficient of variation of the ratios of pairs that are compared."""
    cv_source: str
    power: float
    """Chance that the plan's gate is red if the main response of one cell is worse by `change_percent`."""
    blocks_needed: int | None
    """Blocks for a chance of 0.95; None beyond 1,000."""
    found_percent: float | None
    """The slowdown that the plan's gate finds with a chance of 0.95; None below three blocks, or beyond
    `MOST_CHANGE`."""
    equal_passes: float
    """Chance that one comparison is green if nothing differs."""
    blocks_to_pass: int | None
    """Blocks for a chance of 0.95 of that; None beyond 1,000."""


def chance_beyond(n: int, distance: float, spread: float, confidence: float) -> float:
    """Chance that the interval of a ratio lies entirely on one side of a value.

    `distance`: of the true ratio from the value, as a logarithm; `spread`: standard deviation of the logarithms of n
    ratios of pairs. scipy's far tails, which are nan, are 1: the value is far beyond.
    """
    if n < FEWEST_STARTS or distance <= 0:
        return 0.0
    return t_interval.chance_beyond(distance, spread / math.sqrt(n), n - 1, confidence)


def forecasts(
    study: Study, plan: Plan, resolutions: Sequence[Resolution], change_percent: float, margin_percent: float
) -> tuple[GateForecast, ...]:
    """A forecast for each factor that varies; none in a fraction, whose cells are not compared one by one."""
    if study.design.kind == "fractional":
        return ()
    kept = max(1, study.design.trials - study.analysis.warm_up_trials)
    confidence = later(study, 1).analysis.confidence
    rows = []
    for item in resolutions:
        spread = item.cv * math.sqrt(2 if item.hard else 2 / kept)
        cells = {
            tuple(level for factor, level in trial.treatment.items() if factor != item.factor) for trial in plan.trials
        }
        comparisons = len(cells) * len(study.analysis.every_response)
        rows.append(
            _forecast(item.factor, comparisons, study.design.starts, spread, confidence,
                      change_percent, margin_percent, item.cv_source)
        )  # fmt: skip
    return tuple(rows)


def _forecast(
    factor: str, comparisons: int, blocks: int, spread: float, confidence: float, change_percent: float,
    margin_percent: float, source: str,
) -> GateForecast:  # fmt: skip
    margin, change = math.log1p(margin_percent / 100), math.log1p(change_percent / 100)
    simultaneous = 1 - (1 - confidence) / comparisons

    def red(n: int, distance: float) -> float:
        return chance_beyond(n, distance, spread, simultaneous)

    def green(n: int) -> float:
        return chance_beyond(n, margin, spread, confidence)

    smallest_percent = None
    if blocks >= FEWEST_STARTS and red(blocks, MOST_CHANGE) > POWER:
        smallest_percent = 100 * math.expm1(
            margin + optimize.brentq(lambda distance: red(blocks, distance) - POWER, 0.0, MOST_CHANGE)
        )
    return GateForecast(
        factor=factor, comparisons=comparisons, margin_percent=margin_percent, change_percent=change_percent,
        blocks=blocks, cv=spread, cv_source=source, power=red(blocks, change - margin),
        blocks_needed=_blocks_needed(lambda n: red(n, change - margin)), found_percent=smallest_percent,
        equal_passes=green(blocks), blocks_to_pass=_blocks_needed(green),
    )  # fmt: skip


def _blocks_needed(chance: Callable[[int], float]) -> int | None:
    """The fewest blocks with a chance of POWER; None beyond MOST_BLOCKS."""
    return t_interval.fewest(lambda n: chance(n) >= POWER, MOST_BLOCKS, FEWEST_STARTS)
