"""Speed-up and efficiency over cluster sizes, against the smallest size that has trials.

Speed-up S(n) = T(base) / T(n) of times, X(n) / X(base) of throughput; efficiency E(n) = S(n) / (n / base). The interval
of the efficiency is that of the speed-up over a constant. Sizes are compared by start means (`level_ratios.ratio_of`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from steelyard.analysis.comparisons.level_pairs import NOTHING_VARIES, TOO_FEW, pair_of
from steelyard.analysis.comparisons.level_ratios import ratio_of
from steelyard.analysis.frame import TrialFrame
from steelyard.analysis.row import NO_UNIT, Column, FractionOrNone, Levels, RatioOrNone, Row
from steelyard.analysis.statistic import Section, Statistic
from steelyard.analysis.treatments import NODES, Treatment, label, part
from steelyard.model import responses
from steelyard.model.estimate import Estimate
from steelyard.model.named_level import Level
from steelyard.model.response import Direction
from steelyard.model.responses.capacity import CAPACITY


class Scaling(Row):
    """Speed-up and efficiency of a size against a stated base, other factors fixed."""

    factor: str
    """Factor of sizes."""
    base: Level
    """Size compared with: the smallest with trials."""
    level: Level
    """Size."""
    others: Levels
    response: str
    """Response, as named in the store."""
    starts_base: int
    """Starts of the base."""
    starts_level: int
    """Starts of the size."""
    speedup: RatioOrNone = None
    """How many times faster than the base; times as base over size, throughput as size over base."""
    ideal: Annotated[float, Column(unit=NO_UNIT)]
    """Size over base: the speed-up of a system that scales without loss."""
    efficiency: FractionOrNone = None
    """Speed-up over ideal."""
    sentence: str
    """The speed-up in words."""


SPEEDS = ("execution_time_ms", "throughput_per_s", CAPACITY)
"""Responses whose quotient is a speed-up."""


def scaling(
    frame: TrialFrame, response: str, factor: str | None, *, is_open: bool = False, confidence: float = 0.95
) -> tuple[Scaling, ...]:
    """Every size against the base, for each combination of the other factors.

    Throughput is used if the main response is not a speed. `is_open`: the schedule sets the throughput, so there are no
    numbers, only a sentence that says so.
    """
    if factor not in NODES or factor is None:
        return ()
    response = response if response in SPEEDS else "throughput_per_s"
    rows: list[Scaling] = []
    for others in frame.others(factor):
        levels = sorted(
            (
                one
                for one in frame.factors[factor]
                if float(one) > 0 and frame.values(response, {**others, factor: one}).height
            ),
            key=float,
        )
        rows += [_row(frame, response, factor, (levels[0], level), others, is_open, confidence) for level in levels[1:]]
    return tuple(rows)


def _row(
    frame: TrialFrame, response: str, factor: str, of: tuple[Level, Level], others: Treatment, is_open: bool,
    confidence: float,
) -> Scaling:  # fmt: skip
    base, level = of
    below, above = ((frame, {**others, factor: one}) for one in of)
    more_is_faster = responses.of(response).direction is Direction.MORE_IS_FASTER
    pair = pair_of(below, above, response) if more_is_faster else pair_of(above, below, response)
    speedup = None if is_open or pair is None else ratio_of(pair, confidence)
    starts = (0, 0) if pair is None else tuple(len(side) for side in pair.trials)[:: 1 if more_is_faster else -1]
    ideal = float(level) / float(base)
    efficiency = None if speedup is None else scaled(speedup, 1 / ideal)
    return Scaling(
        factor=factor, base=base, level=level, others=others, response=response, starts_base=starts[0],
        starts_level=starts[1], speedup=speedup, ideal=ideal, efficiency=efficiency,
        sentence=_sentence(factor, of, others, speedup, efficiency, _about_machines(frame)),
    )  # fmt: skip


def scaled(estimate: Estimate, by: float) -> Estimate:
    """An estimate times a constant above 0."""
    return estimate.mapped(lambda one: one * by, estimate.unit)


def _sentence(
    factor: str, of: Sequence[Level], others: Treatment, speedup: Estimate | None, efficiency: Estimate | None,
    about_machines: str,
) -> str:  # fmt: skip
    base, level = of
    head = f"{label(others)}, {part(factor, level)}" if others else part(factor, level)
    if speedup is None or efficiency is None:
        why = "the schedule sets the rate, not the cluster, or a mean is 0"
        return f"{head}: no speed-up over {part(factor, base)}: {why}"
    text = (
        f"{head}: {speedup.value:.2f}{_ends(speedup, 1, '.2f')} times as fast as {part(factor, base)}, an efficiency "
        f"of {100 * efficiency.value:.0f}%{_ends(efficiency, 100, '.0f')}"
    )
    if speedup.low is None:
        why = next((one for one in (NOTHING_VARIES, TOO_FEW) if one in speedup.method), "a mean is not above 0")
        text += f"; {why}: no interval"
    return text + about_machines


def _about_machines(frame: TrialFrame) -> str:
    if "cpu" not in frame.shares:
        return ""
    if frame.own_limits:
        return "; the nodes share one processor: each adds at most the time of its own limit"
    return "; the nodes share one processor: nothing is said of separate machines"


def _ends(estimate: Estimate, times: float, form: str) -> str:
    if estimate.low is None or estimate.high is None:
        return ""
    return f" [{times * estimate.low:{form}}, {times * estimate.high:{form}}]"


STATISTIC = Statistic(
    name="scaling",
    row=Scaling,
    title="Speed-up and efficiency against the smallest size",
    section=Section.SIZE,
    least_sizes=3,
    compute=lambda context: scaling(
        context.sized,
        context.response,
        context.size,
        is_open=context.is_open and context.response != CAPACITY,
        confidence=context.confidence,
    ),
    order=80,
)
