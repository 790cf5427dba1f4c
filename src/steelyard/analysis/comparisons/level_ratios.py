"""Ratio of two levels with a confidence interval over start means, and a verdict in words.

Levels that were tried in the same blocks or starts are compared within them (`level_pairs.LevelPair`), so that what
hours and neighbours do to a whole block is in neither the ratio nor its interval. The interval was chosen by simulation
with few starts: t over trials, or a percentile bootstrap over starts, calls identical systems different in 12 to 33% of
studies; t on logarithms of start means stays near 5%, with and without differences between blocks
(docs/explanation/coverage.md).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from steelyard.analysis.comparisons.forecast import USUAL_MARGIN_PERCENT, Forecast
from steelyard.analysis.comparisons.level_pairs import NOTHING_VARIES, TOO_FEW, LevelPair, pair_of
from steelyard.analysis.frame import TrialFrame
from steelyard.analysis.inference import estimates, power
from steelyard.analysis.treatments import Treatment
from steelyard.analysis.wording import change_text
from steelyard.judging.t_interval import FEWEST_STARTS
from steelyard.model.estimate import Estimate
from steelyard.model.look import Look
from steelyard.model.response import Direction
from steelyard.model.responses import label_of, of, unit_of

ComparisonVerdict = Literal["slower", "faster", "higher", "lower", "equivalent", "undecided", "descriptive"]


@dataclass(frozen=True)
class Compared:
    """Two levels or sides, compared by their start means, before noise floor and trends are asked."""

    response: str
    pair: LevelPair
    ratio: Estimate
    verdict: ComparisonVerdict
    would: Forecast
    """Forecast of what would decide, if it is undecided."""
    fields: Mapping[str, Any]
    """Common fields of every row of a comparison; those of one side end with its name, such as `mean_a`."""


def compare_means(
    sides: Mapping[str, tuple[TrialFrame, Treatment]], response: str, confidence: float, margin_percent: float | None,
    look: Look, block_s: float | None,
) -> Compared | None:  # fmt: skip
    """The second of two sides against the first; None if either has no used trial or the first one's mean is 0.

    `sides`: by the names that they have in the row's fields. t on logarithms of start means, paired where they share
    blocks or starts, otherwise Welch's (`level_pairs.pair_of`). Fewer than three starts per side: no interval, no
    verdict. Equivalent within a declared margin, which needs an interval, too; else by the interval of their ratio.
    """
    a, b = sides.values()
    pair = pair_of(a, b, response)
    ratio = None if pair is None else ratio_of(pair, confidence)
    if pair is None or ratio is None:
        return None
    tost_p, verdict = pair.tost_p(margin_percent), judge(response, ratio)
    if tost_p is not None and tost_p < 1 - confidence:
        verdict = "equivalent"
    more = smaller = None
    if verdict == "undecided" and pair.gap is not None:
        planning = look.planning_confidence(confidence)
        more = power.more_starts(pair.gap, margin_percent, planning)
        if margin_percent is None:
            smaller = power.more_starts(pair.gap, USUAL_MARGIN_PERCENT, planning)
    would, unit = Forecast(more, block_s, pair.most, look), unit_of(response)
    cheaper = (
        "" if smaller is None or smaller.shows == "change" else replace(would, more=smaller).brief().partition(": ")[2]
    )
    fields: dict[str, Any] = {
        "response": response, "unit": unit, "ratio": ratio, "verdict": verdict,
        "change_percent": estimates.percent(ratio), "margin_percent": margin_percent, "p": pair.p, "tost_p": tost_p,
        "to_decide": would.brief() if verdict == "undecided" and pair.gap is not None else "", "cheaper": cheaper,
        "more_s": None if more is None else would.seconds(more.starts),
        "excluded": sum(sum(frame.exclusions(response, treatment).values()) for frame, treatment in (a, b)),
    }  # fmt: skip
    for name, means, trials in zip(sides, (pair.baseline, pair.level), pair.trials, strict=True):
        fields[f"mean_{name}"] = centre(means, unit, confidence)
        fields[f"n_{name}"], fields[f"starts_{name}"] = sum(trials), len(trials)
    return Compared(response, pair, ratio, verdict, would, fields)


def verdict_sentence(head: str, response: str, ratio: Estimate, verdict: str, why: str) -> str:
    """A comparison in words; `why`: why there is no verdict, or why it is undecided."""
    change = f"{label_of(response)} {change_text(ratio, response)}"
    if verdict == "descriptive":
        return f"{head}: {change} in these trials; {why}"
    return f"{head}: undecided: {why}" if verdict == "undecided" else f"{head}: {verdict}: {change}"


def no_verdict(ratio: Estimate) -> str:
    """Why a ratio without an interval gives no verdict."""
    why = next((one for one in (TOO_FEW, NOTHING_VARIES) if one in ratio.method), "a value is not above 0")
    return f"{why}, so there is neither interval nor verdict"


def centre(means: Sequence[float], unit: str, confidence: float | None) -> Estimate:
    """The value of a level: the geometric mean of its start means, t interval on logarithms with three or more starts;
    none where `confidence` is None.

    Two such values over the starts that a comparison rests on have its ratio as their quotient.
    """
    return estimates.geometric_mean(means, unit, confidence, "start means", FEWEST_STARTS)


def ratio_of(pair: LevelPair, confidence: float) -> Estimate | None:
    """Ratio of the geometric means of start means, level over baseline; None if the baseline's mean is 0.

    Paired t on logarithms where the sides share starts or blocks, otherwise Welch's t; no interval below three starts a
    side. Where a mean is not positive: the ratio of arithmetic means, without an interval.
    """
    n = len(pair.baseline) if pair.paired else len(pair.baseline) + len(pair.level)
    gap = pair.gap
    if gap is None:
        base = math.fsum(pair.baseline) / len(pair.baseline)
        if base == 0:
            return None
        value = math.fsum(pair.level) / len(pair.level) / base
        method = "ratio of means of start means; a mean is not above 0: no interval"
        return Estimate.of(value, None, "", confidence, n, method)
    on_logs = "t on logarithms of start means"
    way = f"{on_logs} paired by {pair.paired}" if pair.paired else f"Welch's {on_logs}"
    if pair.lacks == NOTHING_VARIES:
        method = f"ratio of geometric means, {way}; no interval: {NOTHING_VARIES}"
    elif pair.lacks:
        method = f"ratio of geometric means of start means; {pair.lacks}: no interval"
    else:
        place = ", the place in the block taken out" if gap.place else ""
        degrees = estimates.degrees_text(gap.error()[1])
        method = f"ratio of geometric means, {way}{place}, {degrees} degrees of freedom"
    half = None if pair.lacks else gap.half(confidence)
    return estimates.exponential(gap.value, half, "", confidence, n, method)


def judge(response: str, ratio: Estimate) -> ComparisonVerdict:
    """Slower or faster (higher or lower, where neither is better) only if the interval leaves 1 out."""
    if ratio.low is None or ratio.high is None:
        return "descriptive"
    if ratio.low <= 1 <= ratio.high:
        return "undecided"
    more, direction = ratio.low > 1, of(response).direction
    if direction is Direction.NEITHER:
        return "higher" if more else "lower"
    return "faster" if more == (direction is Direction.MORE_IS_FASTER) else "slower"
