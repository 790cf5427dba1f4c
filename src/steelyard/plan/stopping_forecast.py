"""Forecast of a stopping rule by Monte Carlo simulation: blocks and hours until the intervals are narrow enough.

A study that stops when its intervals look narrow prefers samples whose spread came out too small by chance, so its 95%
intervals contain the truth less often than 95% of the time. By how much depends on the minimum number of starts;
`stopped` measures it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

from steelyard.format import forecast
from steelyard.judging.stopping import LEAST_WITHOUT_NOTE, Decision, Rule, coverage_percent
from steelyard.judging.t_interval import fewest, half_width, t_quantile
from steelyard.model.plan import Plan
from steelyard.model.trial import TrialRecord
from steelyard.plan.detectable_difference import between_starts_cv
from steelyard.plan.estimate import PlanEstimate

SECONDS_PER_HOUR = 3600
ASSUMED = "assumed"
MOSTLY = 0.5
Shape = Literal["normal", "log-normal"]
CVS: Final = (0.01, 0.02, 0.05, 0.1)
"""Coefficients of variation between starts for which `check` forecasts the duration."""
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

    The true mean is 1. Each study stops after the first block, from the minimum number of starts on, in which every
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
    """The fewest starts, from the minimum number up to `cap`, whose interval is narrow enough if the spread is `cv`."""
    return (
        fewest(lambda n: 100 * half_width(cv, n, rule.confidence) <= rule.width_percent, cap, rule.least_starts) or cap
    )


def likely_blocks(decision: Decision) -> int:
    """Number of blocks that the study will have at its end if the spreads stay as they are: between the number needed
    so far and the cap. The smallest number while no treatment has two starts."""
    if not decision.go_on:
        return decision.blocks
    rule, needed = decision.rule, decision.needed
    for cell in decision.wide:
        if cell.half_width_percent is not None:
            cv = cell.half_width_percent / 100 * math.sqrt(cell.n) / t_quantile(rule.confidence, cell.n - 1)
            missed = max(0, decision.blocks - cell.n)
            needed = max(needed, starts_for(cv, rule, decision.cap) + missed)
    return min(needed, decision.cap)


def blocks_needed(rule: Rule | None, plan: Plan, history: Sequence[TrialRecord]) -> tuple[Expected, ...]:
    """Blocks that the study would need for several coefficients of variation between starts, including the store's own
    if known; empty without a stopping rule."""
    if rule is None:
        return ()
    cv, source = between_starts_cv(history, rule.response, rule.warm_up_trials)
    cvs = CVS if source == ASSUMED or not cv else tuple(sorted({*CVS, cv}))
    cells = len({tuple(trial.treatment.items()) for trial in plan.trials if not trial.control})
    return expected(rule, cap=max(1, plan.blocks), cells=cells, cvs=cvs)


class ForecastRow(NamedTuple):
    """Forecast for one coefficient of variation between starts."""

    expected: Expected
    of_the_store: bool
    """Whether the coefficient was estimated from this store's trials."""
    low_s: float
    """Seconds of the whole study, based on the estimate's mean."""
    high_s: float
    remark: str


def rows(needed: Sequence[Expected], rule: Rule | None, plan: Plan, cost: PlanEstimate) -> Iterator[ForecastRow]:
    """Blocks and hours for each coefficient of variation between starts."""
    a_block_s = cost.whole_s / max(1, plan.blocks)
    most_s = float("inf") if rule is None or rule.hours is None else rule.hours * SECONDS_PER_HOUR
    for expectation in needed:
        low_s, high_s = (min(most_s, blocks * a_block_s) for blocks in (expectation.low, expectation.high))
        remark = (
            "" if expectation.unreached < MOSTLY else f"{expectation.unreached:.0%} reach the cap, wider than requested"
        )
        if expectation.low * a_block_s > most_s:
            remark = "out of time, wider than requested"
        yield ForecastRow(expectation, expectation.cv not in CVS, low_s, high_s, remark)


def notes(rule: Rule | None, plan: Plan, cost: PlanEstimate) -> Iterator[str]:
    """Notes for the author of a stopping rule."""
    if rule is None:
        return
    yield from _few_starts(rule)
    if rule.hours is not None:
        least_s = cost.whole_s / max(1, plan.blocks) * rule.least_starts
        if least_s > rule.hours * SECONDS_PER_HOUR:
            yield (
                f"the least {rule.least_starts} starts take about {forecast(least_s)}, design.until.hours is "
                f"{rule.hours:g}: the study will end before an interval is judged"
            )
    if any(item for item in plan.factors.values() if len(item) > 1):
        yield (
            "detectable differences assume that all planned starts are run; the study ends earlier once its "
            f"intervals are within ±{rule.width_percent:g}% (a ratio of two such means is known to about "
            f"±{rule.width_percent * 2**0.5:.2g}%)"
        )


def _few_starts(rule: Rule) -> Iterator[str]:
    if rule.least_starts < LEAST_WITHOUT_NOTE:
        yield (
            f"at least {rule.least_starts} starts: t intervals that end a study cover less the fewer starts they are "
            f"judged by; in simulated studies {int(coverage_percent(rule.least_starts))}% or more of the 95% intervals "
            f"held the truth, with {LEAST_WITHOUT_NOTE} starts {int(coverage_percent(LEAST_WITHOUT_NOTE))}%"
        )


def as_data(forecasts: Sequence[Expected], rule: Rule | None) -> dict[str, Any] | None:
    """The forecast for `--json`; None without a stopping rule."""
    if rule is None:
        return None
    return {"rule": rule.model_dump(mode="json"), "expected": [vars(one) for one in forecasts]}
