"""Interaction contrasts: how a level's change against its baseline depends on a level of another factor.

Both scales are given, because an interaction depends on the scale: a cost of 1 ms on top of 1 ms, then of 2 ms on top
of 4 ms, has grown as a difference and shrunk as a ratio (VanderWeele and Knol, A tutorial on interaction, Epidemiologic
Methods 3(1), 2014). With y the mean of a treatment, l and b level and baseline, 1 and 0 level and baseline of the other
factor:

    ratio of ratios = (y_l1 / y_b1) / (y_l0 / y_b0)        difference of differences = (y_l1 - y_b1) - (y_l0 - y_b0)
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Annotated, Final, Literal, NamedTuple

from steelyard.analysis.comparisons import contrasts, side_trends
from steelyard.analysis.comparisons.contrasts import Cells, Key, WeightedSum
from steelyard.analysis.comparisons.identical_systems import Floors, floor_of_levels
from steelyard.analysis.frame import TrialFrame
from steelyard.analysis.inference import multiplicity
from steelyard.analysis.narrative.answer_table import factor_asked, levels_of
from steelyard.analysis.row import IN_UNIT, NO_UNIT, Column, InUnit, MeasuredLevels, P, RatioOrNone
from steelyard.analysis.statistic import Context, Section, Statistic
from steelyard.analysis.statistics.comparison import Comparison
from steelyard.analysis.statistics.trend import Trend
from steelyard.analysis.treatments import Treatment, label, pair_label, part
from steelyard.analysis.wording import change_of, quantities
from steelyard.format import with_interval
from steelyard.judging.t_interval import FEWEST_STARTS
from steelyard.model.named_level import Level
from steelyard.model.responses import unit_of

NOISE: Final = "it lies within the noise of this machine"
TRENDS: Final = "trends within starts may be all of it"
Verdict = Literal["higher", "lower", "undecided", "descriptive"]
Ps = Annotated[float | None, Column(unit=NO_UNIT, head="p (Holm)", is_p=True)]


class Interaction(MeasuredLevels):
    """A level against its baseline at one level of another factor, against the same at that factor's baseline."""

    by: str
    """Factor that the change may depend on."""
    by_baseline: Level
    """The level of it that others are compared with."""
    by_level: Level
    """Level of it."""
    starts: int
    """Starts that the contrast rests on."""
    ratio_by_baseline: Annotated[float | None, Column(unit=NO_UNIT, head="ratio at its baseline")] = None
    """Level over baseline, at the other factor's baseline; geometric means of start means."""
    ratio_by_level: Annotated[float | None, Column(unit=NO_UNIT, head="ratio at its level")] = None
    """Level over baseline, at the other factor's level; geometric means of start means."""
    ratio_of_ratios: RatioOrNone = None
    """The second over the first; none if a value is not above 0."""
    verdict: Verdict
    """Higher, lower: the interval of the ratio of ratios leaves out 1. Undecided: it does not, or lies within the noise
    floor or trends. Descriptive: there is none."""
    why: str = ""
    """Why it is undecided although its interval leaves out 1; else empty."""
    p: P = None
    """Two-sided p that the ratio of ratios is 1."""
    p_holm: Ps = None
    """p that the ratio of ratios is 1, with Holm's correction over those of this table."""
    difference_by_baseline: Annotated[float, Column(unit=IN_UNIT, head="difference at its baseline")]
    """Level minus baseline, at the other factor's baseline; arithmetic means of start means."""
    difference_by_level: Annotated[float, Column(unit=IN_UNIT, head="difference at its level")]
    """Level minus baseline, at the other factor's level; arithmetic means of start means."""
    difference_of_differences: InUnit
    """The second minus the first."""
    verdict_of_differences: Verdict
    """As the verdict, of the difference of differences; the noise floor is one of ratios, and not asked."""
    why_of_differences: str = ""
    """Why it is undecided although its interval leaves out 0; else empty."""
    p_of_differences: P = None
    """Two-sided p that the difference of differences is 0."""
    p_holm_of_differences: Ps = None
    """p that the difference of differences is 0, with Holm's correction over those of this table."""
    floor_percent: Annotated[float | None, Column(unit="%")] = None
    """Change of a ratio of ratios that identical systems stay below: of the noise floors of both ratios, in quadrature;
    none if none is known."""
    trend: str = ""
    """Which of the four still warmed up or slowed down within its starts, and by how much; empty if none did."""
    sentence: str
    """Both contrasts in words."""


class _Four(NamedTuple):
    """Subject of a row."""

    factor: str
    baseline: Level
    level: Level
    by: str
    by_baseline: Level
    by_level: Level
    others: Treatment

    def treatment(self, level: Level, by: Level) -> Treatment:
        return {**self.others, self.factor: level, self.by: by}

    def weights(self, frame: TrialFrame) -> dict[Key, float]:
        return {
            contrasts.key_of(frame, self.treatment(level, by)): sign * by_sign
            for level, sign in ((self.level, 1.0), (self.baseline, -1.0))
            for by, by_sign in ((self.by_level, 1.0), (self.by_baseline, -1.0))
        }


def interactions(
    frame: TrialFrame, response: str, factor: str, confidence: float = 0.95, floors: Floors | None = None,
    trends: Sequence[Trend] = (),
) -> tuple[Interaction, ...]:  # fmt: skip
    """How every level of `factor` against its baseline depends on the levels of each other factor, all else equal.

    Only where all four treatments have a used trial. p-values of each scale are one family of Holm's correction.
    """
    logarithms, means = contrasts.logs(frame, response), contrasts.means(frame, response)
    floors = floors or Floors()
    every = (
        _row(frame, logarithms, means, four, response, confidence, floors, trends) for four in _fours(frame, factor)
    )
    known = [row for row in every if row is not None]
    holm = multiplicity.holm([row.p for row in known])
    of_differences = multiplicity.holm([row.p_of_differences for row in known])
    return tuple(
        _corrected(row, p, q, len(known), confidence) for row, p, q in zip(known, holm, of_differences, strict=True)
    )


def _corrected(row: Interaction, p: float | None, q: float | None, family: int, confidence: float) -> Interaction:
    """Add the results of Holm's correction; the verdicts stay the intervals'."""
    tests = (("ratio", row.verdict, row.p, p), ("difference", row.verdict_of_differences, row.p_of_differences, q))
    remarks = [
        f"; the {name} {multiplicity.lost(family, alone, corrected)}"
        for name, verdict, alone, corrected in tests
        if multiplicity.survives(verdict, corrected, confidence) is False
    ]
    text = row.sentence + "".join(remarks)
    return row.model_copy(update={"p_holm": p, "p_holm_of_differences": q, "sentence": text})


def _fours(frame: TrialFrame, factor: str) -> Iterator[_Four]:
    baseline, *levels = levels_of(frame, factor) or [""]
    for by in (name for name in frame.names if name != factor and len(frame.factors[name]) > 1):
        by_baseline, *by_levels = levels_of(frame, by)
        for others, level, by_level in itertools.product(frame.others(factor, by), levels, by_levels):
            yield _Four(factor, baseline, level, by, by_baseline, by_level, others)


def _row(
    frame: TrialFrame, logarithms: Cells | None, means: Cells, four: _Four, response: str, confidence: float,
    floors: Floors, trends: Sequence[Trend],
) -> Interaction | None:  # fmt: skip
    weights = four.weights(frame)
    of_means = contrasts.contrast(means, weights, confidence, FEWEST_STARTS)
    if of_means is None:
        return None
    of_logs = None if logarithms is None else contrasts.contrast(logarithms, weights, confidence, FEWEST_STARTS)
    ratios = None if logarithms is None else [math.exp(one) for one in _both(logarithms, frame, four)]
    differences, unit = _both(means, frame, four), unit_of(response)
    trend, shift_of_ratios, shift_of_means = _trends(frame, four, response, trends)
    floor = _floor(frame, four, response, floors)
    largest = max(abs(means.mean(key) or 0.0) for key in weights)
    verdict, why = _judged(of_logs, shift_of_ratios, math.log1p((floor or 0.0) / 100))
    verdict_of_differences, why_of_differences = _judged(of_means, largest * math.expm1(shift_of_means))
    row = Interaction(
        **four._asdict(), response=response, unit=unit, starts=of_means.starts,
        ratio_by_baseline=ratios[0] if ratios else None, ratio_by_level=ratios[1] if ratios else None,
        ratio_of_ratios=None if of_logs is None else of_logs.as_ratio(confidence), verdict=verdict, why=why,
        p=None if of_logs is None else of_logs.p,
        difference_by_baseline=differences[0], difference_by_level=differences[1],
        difference_of_differences=of_means.as_difference(unit, confidence),
        verdict_of_differences=verdict_of_differences, why_of_differences=why_of_differences,
        p_of_differences=of_means.p, floor_percent=floor, trend=trend, sentence="",
    )  # fmt: skip
    return row.model_copy(update={"sentence": sentence(row)})


def _both(cells: Cells, frame: TrialFrame, four: _Four) -> tuple[float, float]:
    """Level minus baseline, at the baseline and at the level of the other factor."""

    def mean(level: Level, by: Level) -> float:
        return cells.mean(contrasts.key_of(frame, four.treatment(level, by))) or 0.0

    low, high = (mean(four.level, by) - mean(four.baseline, by) for by in (four.by_baseline, four.by_level))
    return low, high


def _trends(frame: TrialFrame, four: _Four, response: str, trends: Sequence[Trend]) -> tuple[str, float, float]:
    """The trends of the four treatments in words, and the changes that they may explain: of the logarithm of the ratio
    of ratios, 0 if treatments of the same starts share their trend; and of that of a mean, as a shared trend still
    scales a difference. Trends are those of starts, so they are looked up along a factor that needs new starts."""
    along, (name, levels) = (four.factor, (four.baseline, four.level)), (four.by, (four.by_baseline, four.by_level))
    if four.factor not in frame.hard:
        along, (name, levels) = (name, levels), along
    sides = {
        part(name, level): side_trends.of_levels(frame, response, *along, trends, {**four.others, name: level})
        for level in levels
    }
    apart, shifts = name in frame.hard, [side.shift for side in sides.values()]
    words = [f"{where}: {side.words}" if apart else side.words for where, side in sides.items() if side.words]
    text, total = "; ".join(dict.fromkeys(words)), math.fsum(shifts)
    return (text, total, total) if apart else (text, 0.0, max(shifts))


def _floor(frame: TrialFrame, four: _Four, response: str, floors: Floors) -> float | None:
    """The noise floors of both ratios in quadrature, in percent."""
    if not floors.spreads(response):
        return None
    levels = (four.baseline, four.level)
    both = [
        floor_of_levels(frame, floors, response, four.factor, levels, {**four.others, four.by: by})
        for by in (four.by_baseline, four.by_level)
    ]
    logs = [math.log1p(floor.percent.value / 100) for floor in both if floor is not None]
    return 100 * math.expm1(math.hypot(*logs)) if len(logs) == len(both) else None


def _judged(effect: WeightedSum | None, shift: float, noise: float = 0.0) -> tuple[Verdict, str]:
    """Verdict, and why it is undecided: higher or lower only if the interval leaves out 0, is not all within the noise,
    and no end is within what the trends may explain."""
    if effect is None or effect.half is None:
        return "descriptive", ""
    nearer, farther = abs(effect.value) - effect.half, abs(effect.value) + effect.half
    if nearer <= 0:
        return "undecided", ""
    if farther <= noise:
        return "undecided", NOISE
    if shift and nearer <= shift:
        return "undecided", TRENDS
    return "higher" if effect.value > 0 else "lower", ""


def sentence(row: Interaction) -> str:
    """Both contrasts in words: `from 1 node to 6 nodes, link 802.11n against nodal: 5.0 times as long, then ...`."""
    where = f" ({label(row.others)})" if row.others else ""
    sides = (part(row.by, row.by_baseline), part(row.by, row.by_level))
    head = f"from {sides[0]} to {sides[1]}{where}, {pair_label(row.factor, row.level, row.baseline)}"
    texts = []
    if row.ratio_of_ratios is not None and row.ratio_by_baseline is not None and row.ratio_by_level is not None:
        before, after = (change_of(value, row.response) for value in (row.ratio_by_baseline, row.ratio_by_level))
        quotient, verdict = with_interval(row.ratio_of_ratios), _because(row.verdict, row.why)
        texts.append(f"{before}, then {after} (ratio of ratios {quotient}: {verdict})")
    before, after, more = quantities_of(row)
    verdict = _because(row.verdict_of_differences, row.why_of_differences)
    texts.append(f"as a difference {before}, then {after} ({more}: {verdict})")
    return f"{head}: {'; '.join(texts)}"


def _because(verdict: str, why: str) -> str:
    return f"{verdict}, because {why}" if why else verdict


def quantities_of(row: Interaction) -> tuple[str, str, str]:
    """Both differences, and the difference of them with its interval, in one unit."""
    gap = row.difference_of_differences
    ends = [] if gap.low is None or gap.high is None else [gap.low, gap.high]
    values = [row.difference_by_baseline, row.difference_by_level, gap.value]
    before, after, more, *shown = quantities([*values, *ends], row.unit)
    interval = f" [{', '.join(text.split(' ', 1)[0] for text in shown)}]" if shown else ""
    return before, after, f"{'+' if gap.value > 0 else ''}{more}{interval}"


def _of_context(context: Context) -> tuple[Interaction, ...]:
    factor = factor_asked(context.study, context.size, context.of(Comparison), context.frame.factors)
    if factor is None:
        return ()
    return interactions(context.frame, context.response, factor, context.confidence, context.floors, context.of(Trend))


STATISTIC = Statistic(
    name="interaction",
    row=Interaction,
    title="How the change of {response} depends on another factor",
    section=Section.INTERACTIONS,
    compute=_of_context,
    order=5,
)
