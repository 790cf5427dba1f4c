"""Monte Carlo simulation of a stopping rule: its cost, its coverage, and the blocks that a real study still needs.

A study that stops when its intervals look narrow prefers samples whose spread came out too small by chance, so its 95%
intervals contain the truth less often than 95% of the time. By how much depends on the least number of starts;
`stopped` measures it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from steelyard.judging.stopping_rule import Decision, Rule
from steelyard.judging.t_interval import half_width, t_quantile

Shape = Literal["normal", "log-normal"]
CVS: Final = (0.01, 0.02, 0.05, 0.1)
"""Coefficients of variation between starts for which `check` says how long a study would take."""
DRAWS: Final = 400
"""Studies that `check` simulates for each CV."""
MOST_NUMBERS: Final = 4_000_000
"""Maximum number of start means that one simulation draws: fewer studies are simulated if they are large."""
LEAST_DRAWS: Final = 40
LOW, HIGH = 0.1, 0.9
"""Quantiles of the blocks that simulated studies needed."""


@dataclass(frozen=True)
class Stopped:
    """Results of many simulated studies with the same rule and the same truth."""

    blocks: Any
    """Blocks of each study: an array of integers."""
    narrow: Any
    """Whether each study stopped because all its intervals were narrow enough, not at the cap."""
    held: Any
    """Whether the interval of each study's first treatment contained the true mean."""

    @property
    def coverage(self) -> float:
        """Share of the intervals that contained the truth."""
        return float(self.held.mean())

    def quantile(self, fraction: float) -> int:
        """Number of blocks that this share of the studies did not exceed."""
        ordered = sorted(int(one) for one in self.blocks)
        return ordered[min(len(ordered) - 1, math.ceil(fraction * len(ordered)) - 1)]


def stopped(
    rule: Rule, *, cap: int, cv: float, cells: int = 1, studies: int = DRAWS, seed: int = 1, shape: Shape = "normal"
) -> Stopped:
    """Simulate `studies` studies of `cells` treatments whose start means vary with this coefficient of variation.

    The true mean is 1. Each study stops after the first block, from the least number of starts on, in which every
    treatment's interval is narrow enough, as `judging.stopping.decide` does, or after `cap` blocks.
    """
    import numpy as np

    rng = np.random.default_rng(seed)
    narrow = np.ones((studies, cap), dtype=bool)
    narrow[:, : rule.least_starts - 1] = False
    held = np.zeros((studies, cap), dtype=bool)
    n = np.arange(2, cap + 1)
    of_sd_1 = np.array([half_width(1.0, int(one), rule.confidence) for one in n])
    for cell in range(cells):
        # Deviations from the truth, so that the running sums stay exact.
        off = _deviations(rng, shape, cv, (studies, cap))
        mean = off.cumsum(axis=1)[:, 1:] / n
        variance = np.maximum((off**2).cumsum(axis=1)[:, 1:] - n * mean**2, 0.0) / (n - 1)
        half = np.sqrt(variance) * of_sd_1
        narrow[:, 1:] &= 100 * half <= rule.width_percent * np.abs(1 + mean)
        if cell == 0:
            held[:, 1:] = np.abs(mean) <= half
    reached = narrow.any(axis=1)
    last = np.where(reached, narrow.argmax(axis=1), cap - 1)
    return Stopped(blocks=last + 1, narrow=reached, held=held[np.arange(studies), last])


def _deviations(rng: Any, shape: Shape, cv: float, size: tuple[int, int]) -> Any:
    if shape == "normal":
        return cv * rng.standard_normal(size)
    sigma = math.sqrt(math.log1p(cv**2))
    return rng.lognormal(-(sigma**2) / 2, sigma, size) - 1


@dataclass(frozen=True)
class Expected:
    """Number of blocks that a study is likely to need if its start means vary by `cv`."""

    cv: float
    low: int
    """One study in ten needs no more than this."""
    middle: int
    high: int
    """Nine in ten need no more than this."""
    unreached: float
    """Share of the studies that the cap stops before every interval is narrow enough."""


def expected(rule: Rule, *, cap: int, cells: int, cvs: Sequence[float] = CVS) -> tuple[Expected, ...]:
    """Blocks that a study of `cells` treatments needs, for several coefficients of variation."""
    studies = max(LEAST_DRAWS, min(DRAWS, MOST_NUMBERS // max(1, cap * cells)))
    forecasts = []
    for cv in cvs:
        many = stopped(rule, cap=cap, cv=cv, cells=cells, studies=studies)
        low, middle, high = (many.quantile(fraction) for fraction in (LOW, 0.5, HIGH))
        forecasts.append(Expected(cv, low, middle, high, 1 - float(many.narrow.mean())))
    return tuple(forecasts)


def starts_for(cv: float, rule: Rule, cap: int) -> int:
    """The fewest starts, from the least number up to `cap`, whose interval is narrow enough if the spread is `cv`."""
    for n in range(rule.least_starts, cap):
        if 100 * half_width(cv, n, rule.confidence) <= rule.width_percent:
            return n
    return cap


def likely_blocks(decision: Decision) -> int:
    """Number of blocks that the study will have at its end if the spreads stay as they are: between the number needed
    so far and the cap. The least number while no treatment has two starts."""
    if not decision.go_on:
        return decision.blocks
    rule, needed = decision.rule, decision.needed
    for cell in decision.wide:
        if cell.half_width_percent is not None:
            cv = cell.half_width_percent / 100 * math.sqrt(cell.n) / t_quantile(rule.confidence, cell.n - 1)
            missed = max(0, decision.blocks - cell.n)
            needed = max(needed, starts_for(cv, rule, decision.cap) + missed)
    return min(needed, decision.cap)
