"""Ratio or difference of two levels with a confidence interval over start means, and a verdict in words.

Levels that were tried in the same blocks or starts are compared within them (`level_pairs.LevelPair`), so that what
hours and neighbours do to a whole block is in neither the ratio nor its interval. The interval was chosen by simulation
with few starts: t over trials, or a percentile bootstrap over starts, calls identical systems different in 12 to 33% of
studies; t on logarithms of start means stays near 5%, with and without differences between blocks
(docs/explanation/coverage.md).

A response that a control has none of, such as lost operations, has no ratio to it, or one that says how small the
control's was: levels are then compared by the difference of the means of their starts, t on these (`difference_of`).
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
from steelyard.judging.t_interval import FEWEST_STARTS
from steelyard.model.estimate import Estimate
from steelyard.model.look import Look
from steelyard.model.response import Compared as How
from steelyard.model.response import Direction
from steelyard.model.responses import label_of, of, unit_of

ComparisonVerdict = Literal["slower", "faster", "higher", "lower", "equivalent", "undecided", "descriptive"]


@dataclass(frozen=True)
class Compared:
    """Two levels or sides, compared by their start means, before noise floor and trends are asked."""

    response: str
    pair: LevelPair
    change: Estimate
    """Their ratio, or their difference where the pair is compared so."""
    verdict: ComparisonVerdict
    would: Forecast
    """Forecast of what would decide, if it is undecided."""
    fields: Mapping[str, Any]
    """Common fields of every row of a comparison; those of one side end with its name, such as `mean_a`."""


def compare_means(
    sides: Mapping[str, tuple[TrialFrame, Treatment]], response: str, confidence: float, margin_percent: float | None,
    look: Look, block_s: float | None, how: How = "ratio",
) -> Compared | None:  # fmt: skip
    """The second of two sides against the first; None if either has no used trial or, of ratios, the first one's mean
    is 0. Of differences there is neither a forecast nor equivalence, as margins are of ratios.

    `sides`: by the names that they have in the row's fields. t on logarithms of start means, paired where they share
    blocks or starts, otherwise Welch's (`level_pairs.pair_of`). Fewer than three starts per side: no interval, no
    verdict. Equivalent within a declared margin, which needs an interval, too; else by the interval of their ratio.
    """
    a, b = sides.values()
    pair, unit = pair_of(a, b, response, how), unit_of(response)
    change = None if pair is None else change_of(pair, unit, confidence)
    if pair is None or change is None:
        return None
    tost_p, verdict = pair.tost_p(margin_percent), judge(response, change, equal=1.0 if how == "ratio" else 0.0)
    if tost_p is not None and tost_p < 1 - confidence:
        verdict = "equivalent"
    more = smaller = None
    forecasts = verdict == "undecided" and pair.gap is not None and how == "ratio"
    if forecasts and pair.gap is not None:
        planning = look.planning_confidence(confidence)
        more = power.more_starts(pair.gap, margin_percent, planning)
        if margin_percent is None:
            smaller = power.more_starts(pair.gap, USUAL_MARGIN_PERCENT, planning)
    would = Forecast(more, block_s, pair.most, look)
    cheaper = (
        "" if smaller is None or smaller.shows == "change" else replace(would, more=smaller).brief().partition(": ")[2]
    )
    fields: dict[str, Any] = {
        "response": response, "unit": unit, "verdict": verdict, "margin_percent": margin_percent,
        "p": pair.p, "tost_p": tost_p, "to_decide": would.brief() if forecasts else "", "cheaper": cheaper,
        "more_s": None if more is None else would.seconds(more.starts),
        "excluded": sum(sum(frame.exclusions(response, treatment).values()) for frame, treatment in (a, b)),
    }  # fmt: skip
    fields |= (
        {"ratio": change, "change_percent": estimates.percent(change)} if how == "ratio" else {"difference": change}
    )
    for name, means, trials in zip(sides, (pair.baseline, pair.level), pair.trials, strict=True):
        fields[f"mean_{name}"] = (centre if how == "ratio" else arithmetic)(means, unit, confidence)
        fields[f"n_{name}"], fields[f"starts_{name}"] = sum(trials), len(trials)
    return Compared(response, pair, change, verdict, would, fields)


def verdict_sentence(head: str, response: str, changed: str, verdict: str, why: str) -> str:
    """A comparison in words. `changed`: the ratio or difference as people read it; `why`: why there is no verdict, or
    why it is undecided."""
    change = f"{label_of(response)} {changed}"
    if verdict == "descriptive":
        return f"{head}: {change} in these trials; {why}"
    return f"{head}: undecided: {why}" if verdict == "undecided" else f"{head}: {verdict}: {change}"


def no_verdict(change: Estimate) -> str:
    """Why a ratio or difference without an interval gives no verdict."""
    why = next((one for one in (TOO_FEW, NOTHING_VARIES) if one in change.method), "a value is not above 0")
    return f"{why}, so there is neither interval nor verdict"


def centre(means: Sequence[float], unit: str, confidence: float | None) -> Estimate:
    """The value of a level: the geometric mean of its start means, t interval on logarithms with three or more starts;
    none where `confidence` is None.

    Two such values over the starts that a comparison rests on have its ratio as their quotient.
    """
    return estimates.geometric_mean(means, unit, confidence, "start means", FEWEST_STARTS)


def level_value(means: Sequence[float], response: str, confidence: float | None) -> Estimate:
    """The value of a level as its response is compared: the geometric mean of its start means, or their mean."""
    return (centre if of(response).compared == "ratio" else arithmetic)(means, unit_of(response), confidence)


def arithmetic(means: Sequence[float], unit: str, confidence: float | None) -> Estimate:
    """The mean of the start means of a quantity that cannot be below 0; no interval below three starts, where nothing
    varies, or where `confidence` is None, for which no heavy library is loaded."""
    n, why = len(means), "not asked for" if confidence is None else NOTHING_VARIES
    if confidence is None or (n >= FEWEST_STARTS and max(means) - min(means) <= estimates.ROUNDING):
        method = f"mean over start means; {why}: no interval"
        return Estimate.of(math.fsum(means) / n, None, unit, confidence or 0.95, n, method)
    return estimates.mean_over_starts(means, unit, confidence)


def change_of(pair: LevelPair, unit: str, confidence: float) -> Estimate | None:
    """Ratio, or difference in this unit, as the pair is compared; see `ratio_of`, `difference_of`."""
    return ratio_of(pair, confidence) if pair.compared == "ratio" else difference_of(pair, unit, confidence)


def difference_of(pair: LevelPair, unit: str, confidence: float) -> Estimate:
    """Difference of the means of start means, level minus baseline, in this unit: paired t where the sides share starts
    or blocks, otherwise Welch's; no interval below three starts a side, or where nothing varies."""
    assert pair.gap is not None
    half = None if pair.lacks else pair.gap.half(confidence)
    method = _method(pair, "difference of means", "t on start means")
    return Estimate.around(pair.gap.value, half, unit, confidence, _units(pair), method)


def ratio_of(pair: LevelPair, confidence: float) -> Estimate | None:
    """Ratio of the geometric means of start means, level over baseline; None if the baseline's mean is 0.

    Paired t on logarithms where the sides share starts or blocks, otherwise Welch's t; no interval below three starts a
    side. Where a mean is not positive: the ratio of arithmetic means, without an interval.
    """
    n, gap = _units(pair), pair.gap
    if gap is None:
        base = math.fsum(pair.baseline) / len(pair.baseline)
        if base == 0:
            return None
        value = math.fsum(pair.level) / len(pair.level) / base
        method = "ratio of means of start means; a mean is not above 0: no interval"
        return Estimate.of(value, None, "", confidence, n, method)
    half = None if pair.lacks else gap.half(confidence)
    method = _method(pair, "ratio of geometric means", "t on logarithms of start means")
    return estimates.exponential(gap.value, half, "", confidence, n, method)


def _units(pair: LevelPair) -> int:
    """Number of pairs, or of starts of both sides."""
    return len(pair.baseline) if pair.paired else len(pair.baseline) + len(pair.level)


def _method(pair: LevelPair, what: str, test: str) -> str:
    """How the change of a pair that has a gap was computed, or why it has no interval."""
    way = f"{test} paired by {pair.paired}" if pair.paired else f"Welch's {test}"
    if pair.lacks == NOTHING_VARIES:
        return f"{what}, {way}; no interval: {NOTHING_VARIES}"
    if pair.lacks or pair.gap is None:
        return f"{what} of start means; {pair.lacks}: no interval"
    place = ", the place in the block taken out" if pair.gap.place else ""
    return f"{what}, {way}{place}, {estimates.degrees_text(pair.gap.error()[1])} degrees of freedom"


def judge(response: str, change: Estimate, equal: float = 1.0) -> ComparisonVerdict:
    """Slower or faster (higher or lower, where neither is better) only if the interval leaves out `equal`: 1 of a
    ratio, 0 of a difference."""
    if change.low is None or change.high is None:
        return "descriptive"
    if change.low <= equal <= change.high:
        return "undecided"
    more, direction = change.low > equal, of(response).direction
    if direction is Direction.NEITHER:
        return "higher" if more else "lower"
    return "faster" if more == (direction is Direction.MORE_IS_FASTER) else "slower"
