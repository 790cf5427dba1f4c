"""Speed-up and efficiency over sizes, against a stated base: the smallest size that has trials.

Speed-up S(n) = T(base) / T(n) of times, X(n) / X(base) of throughput; efficiency E(n) = S(n) / (n / base). The interval
of the efficiency is that of the speed-up over a constant. Sizes are compared by start means (`compare.ratio_between`).
"""

from __future__ import annotations

from collections.abc import Sequence

from steelyard.analysis.compare import MORE_IS_FASTER, NOTHING_VARIES, ratio_between
from steelyard.analysis.frame import TrialFrame
from steelyard.analysis.merits import Scaling
from steelyard.analysis.results import Treatment, label, part
from steelyard.analysis.summary import start_means
from steelyard.format import NODES
from steelyard.model.estimate import Estimate
from steelyard.model.study import Level

SPEEDS = ("execution_time_ms", "throughput_per_s")
"""Responses of which a quotient is a speed-up."""


def scaling(
    frame: TrialFrame, response: str, factor: str | None, *, is_open: bool = False, confidence: float = 0.95
) -> tuple[Scaling, ...]:
    """Every size against the base, for each combination of the other factors.

    Of throughput where the main response is no speed. `is_open`: the schedule sets the throughput, so there is neither
    number, only the sentence that says so.
    """
    if factor not in NODES or factor is None:
        return ()
    response = response if response in SPEEDS else "throughput_per_s"
    found: list[Scaling] = []
    for others in frame.others(factor):
        levels = sorted(
            (
                one
                for one in frame.factors[factor]
                if float(one) > 0 and frame.values(response, {**others, factor: one}).height
            ),
            key=float,
        )
        found += [
            _one(frame, response, factor, (levels[0], level), others, is_open, confidence) for level in levels[1:]
        ]
    return tuple(found)


def _one(
    frame: TrialFrame, response: str, factor: str, of: tuple[Level, Level], others: Treatment, is_open: bool,
    confidence: float,
) -> Scaling:  # fmt: skip
    base, level = of
    below, above = (
        {start: mean for start, mean, _ in start_means(frame.values(response, {**others, factor: one}), response)}
        for one in of
    )
    slow, fast = (below, above) if response in MORE_IS_FASTER else (above, below)
    speedup = None if is_open else ratio_between(slow, fast, factor not in frame.hard, confidence)
    ideal = float(level) / float(base)
    efficiency = None if speedup is None else scaled(speedup, 1 / ideal)
    return Scaling(
        factor=factor, base=base, level=level, others=others, response=response, starts_base=len(below),
        starts_level=len(above), speedup=speedup, ideal=ideal, efficiency=efficiency,
        sentence=_sentence(factor, of, others, speedup, efficiency, "cpu" in frame.shares),
    )  # fmt: skip


def scaled(one: Estimate, by: float) -> Estimate:
    """An estimate times a constant above 0."""
    return one.model_copy(
        update={
            "value": one.value * by,
            "low": None if one.low is None else one.low * by,
            "high": None if one.high is None else one.high * by,
        }
    )


def _sentence(
    factor: str, of: Sequence[Level], others: Treatment, speedup: Estimate | None, efficiency: Estimate | None,
    shared: bool,
) -> str:  # fmt: skip
    base, level = of
    head = f"{label(others)}, {part(factor, level)}" if others else part(factor, level)
    if speedup is None or efficiency is None:
        why = "the schedule sets the rate, not the cluster, or a mean is 0"
        return f"{head}: no speed-up over {part(factor, base)}: {why}"
    told = (
        f"{head}: {speedup.value:.2f}{_ends(speedup, 1, '.2f')} times as fast as {part(factor, base)}, an efficiency "
        f"of {100 * efficiency.value:.0f}%{_ends(efficiency, 100, '.0f')}"
    )
    if speedup.low is None:
        why = NOTHING_VARIES if NOTHING_VARIES in speedup.method else "fewer than two starts a size"
        told += f"; {why}: no interval"
    return told + ("; the nodes share one processor: nothing is said of separate machines" if shared else "")


def _ends(one: Estimate, times: float, form: str) -> str:
    if one.low is None or one.high is None:
        return ""
    return f" [{times * one.low:{form}}, {times * one.high:{form}}]"
