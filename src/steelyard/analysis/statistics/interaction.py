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
from steelyard.analysis.comparisons.contrasts import Cells, Key
from steelyard.analysis.comparisons.identical_systems import Floors, floor_of_levels
from steelyard.analysis.comparisons.level_pairs import FEWEST_STARTS
from steelyard.analysis.frame import TrialFrame
from steelyard.analysis.inference import multiplicity
from steelyard.analysis.narrative.answer_table import factor_asked, levels_of
from steelyard.analysis.row import IN_UNIT, NO_UNIT, Column, ComparedLevels, InUnit, P, RatioOrNone
from steelyard.analysis.statistic import Context, Section, Statistic
from steelyard.analysis.statistics.comparison import Comparison
from steelyard.analysis.statistics.trend import Trend
from steelyard.analysis.treatments import NODES, Treatment, label, part
from steelyard.analysis.wording import change_of, quantities
from steelyard.format import with_interval
from steelyard.model.estimate import Estimate
from steelyard.model.responses import unit_of
from steelyard.model.study import Level

NOISE: Final = "it lies within the noise of this machine"
TRENDS: Final = "trends within starts may be all of it"
Verdict = Literal["higher", "lower", "undecided", "descriptive"]
Ps = Annotated[float | None, Column(unit=NO_UNIT, head="p (Holm)", is_p=True)]


class Interaction(ComparedLevels):
    """A level against its baseline at one level of another factor, against the same at that factor's baseline."""

    by: str
    """Factor that the change may depend on."""
    by_baseline: Level
    """The level of it that others are compared with."""
    by_level: Level
    """Level of it."""
    response: str
    """Response, as named in the store."""
    unit: str
    """Unit of the response."""
    starts: int
    """Starts that the contrast rests on."""
    ratio_by_baseline: Annotated[float | None, Column(unit=NO_UNIT, head="ratio at its baseline")] = None
    """Level over baseline, at the other factor's baseline; geometric means of start means."""
    ratio_by_level: Annotated[float | None, Column(unit=NO_UNIT, head="ratio at its level")] = None
    """The same at the other factor's level."""
    ratio_of_ratios: RatioOrNone = None
    """The second over the first; none where a value is not above 0."""
    verdict: Verdict
    """Higher, lower: the interval of the ratio of ratios leaves out 1. Undecided: it does not, or lies within the noise
    floor or trends. Descriptive: there is none."""
    why: str = ""
    """Why it is undecided although its interval leaves out 1; else empty."""
    p: P = None
    """Two-sided p that the ratio of ratios is 1."""
    p_holm: Ps = None
    """The same with Holm's correction over the ratios of ratios of this table."""
    difference_by_baseline: Annotated[float, Column(unit=IN_UNIT, head="difference at its baseline")]
    """Level minus baseline, at the other factor's baseline; arithmetic means of start means."""
    difference_by_level: Annotated[float, Column(unit=IN_UNIT, head="difference at its level")]
    """The same at the other factor's level."""
    difference_of_differences: InUnit
    """The second minus the first."""
    verdict_of_differences: Verdict
    """As the verdict, of the difference of differences; the noise floor is one of ratios, and not asked."""
    why_of_differences: str = ""
    """Why it is undecided although its interval leaves out 0; else empty."""
    p_of_differences: P = None
    """Two-sided p that the difference of differences is 0."""
    p_holm_of_differences: Ps = None
    """The same with Holm's correction over the differences of differences of this table."""
    floor_percent: Annotated[float | None, Column(unit="%")] = None
    """Change of a ratio of ratios that identical systems stay below: of the noise floors of both ratios, in quadrature;
    none where none is known."""
    trend: str = ""
    """Which of the four still warmed up or slowed down within its starts, and by how much; empty if none did."""
    sentence: str
    """Both contrasts in words."""


class _Four(NamedTuple):
    """What a row is about."""

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
        signs = ((self.level, 1), (self.baseline, -1))
        by_signs = ((self.by_level, 1), (self.by_baseline, -1))
        return {
            contrasts.key_of(frame, self.treatment(level, by)): float(sign * by_sign)
            for level, sign in signs
            for by, by_sign in by_signs
        }


def interactions(
    frame: TrialFrame, response: str, factor: str, confidence: float = 0.95, floors: Floors | None = None,
    trends: Sequence[Trend] = (),
) -> tuple[Interaction, ...]:  # fmt: skip
    """How every level of `factor` against its baseline depends on the levels of each other factor, all else equal.

    Only where all four treatments have a used trial. p-values of each scale are one family of Holm's correction.
    """
    logarithms, means = contrasts.logs(frame, response), contrasts.means(frame, response)
    scales = (logarithms, means)
    rows = [
        _row(frame, scales, four, response, confidence, floors or Floors(), trends) for four in _fours(frame, factor)
    ]
    known = [row for row in rows if row is not None]
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
        seen: list[Treatment] = []
        for every in frame.others(factor):
            others = {name: level for name, level in every.items() if name != by}
            if others in seen:
                continue
            seen.append(others)
            for level, by_level in itertools.product(levels, by_levels):
                yield _Four(factor, baseline, level, by, by_baseline, by_level, others)


def _row(
    frame: TrialFrame, scales: tuple[Cells | None, Cells], four: _Four, response: str, confidence: float,
    floors: Floors, trends: Sequence[Trend],
) -> Interaction | None:  # fmt: skip
    logarithms, means = scales
    weights = four.weights(frame)
    of_means = contrasts.contrast(means, weights, confidence, FEWEST_STARTS)
    if of_means is None:
        return None
    of_logs = None if logarithms is None else contrasts.contrast(logarithms, weights, confidence, FEWEST_STARTS)
    quotient = None if of_logs is None else contrasts.ratio_of(of_logs, confidence)
    gap = contrasts.difference_of(of_means, unit_of(response), confidence)
    shift = _trends(frame, four, response, trends)
    floor = _floor(frame, four, response, floors)
    low, high = _both(means, frame, four)
    ratios = None if logarithms is None else tuple(math.exp(one) for one in _both(logarithms, frame, four))
    largest = max(abs(means.mean(key) or 0.0) for key in weights)
    of_ratios = _of_ratio(quotient, shift.of_ratios, math.log1p((floor or 0.0) / 100))
    of_gap = _judged(gap, largest * math.expm1(shift.of_means))
    row = Interaction(
        **four._asdict(), response=response, unit=unit_of(response), starts=of_means.starts,
        ratio_by_baseline=ratios[0] if ratios else None, ratio_by_level=ratios[1] if ratios else None,
        ratio_of_ratios=quotient, verdict=of_ratios.verdict, why=of_ratios.why,
        p=None if of_logs is None else of_logs.p,
        difference_by_baseline=low, difference_by_level=high, difference_of_differences=gap,
        verdict_of_differences=of_gap.verdict, why_of_differences=of_gap.why, p_of_differences=of_means.p,
        floor_percent=floor, trend=shift.words, sentence="",
    )  # fmt: skip
    return row.model_copy(update={"sentence": sentence(row)})


def _both(cells: Cells, frame: TrialFrame, four: _Four) -> tuple[float, float]:
    """Level minus baseline, at the baseline and at the level of the other factor."""

    def gap(by: Level) -> float:
        level, baseline = (
            cells.mean(contrasts.key_of(frame, four.treatment(one, by))) or 0.0 for one in (four.level, four.baseline)
        )
        return level - baseline

    return gap(four.by_baseline), gap(four.by_level)


class _Shift(NamedTuple):
    """What the trends of the four treatments may explain."""

    words: str
    """Which of them still warmed up or slowed down; empty if none did."""
    of_ratios: float
    """Change of the logarithm of the ratio of ratios; 0 where treatments of the same starts share their trend."""
    of_means: float
    """Change of the logarithm of a mean: a shared trend still scales a difference."""


def _trends(frame: TrialFrame, four: _Four, response: str, trends: Sequence[Trend]) -> _Shift:
    """Trends are those of starts, so they are looked up along a factor that needs new starts."""
    levels, by_levels = (four.baseline, four.level), (four.by_baseline, four.by_level)
    along, other = (four.factor, levels), (four.by, by_levels)
    if four.factor not in frame.hard:
        along, other = other, along
    sides = {
        part(other[0], level): side_trends.of_levels(frame, response, *along, trends, {**four.others, other[0]: level})
        for level in other[1]
    }
    apart, shifts = other[0] in frame.hard, [side.shift for side in sides.values()]
    words = [f"{name}: {side.words}" if apart else side.words for name, side in sides.items() if side.words]
    return _Shift(
        "; ".join(dict.fromkeys(words)),
        math.fsum(shifts) if apart else 0.0,
        math.fsum(shifts) if apart else max(shifts),
    )


def _floor(frame: TrialFrame, four: _Four, response: str, floors: Floors) -> float | None:
    """The noise floors of both ratios in quadrature, in per cent."""
    if not floors.spreads(response):
        return None
    logs = []
    for by in (four.by_baseline, four.by_level):
        levels, others = (four.baseline, four.level), {**four.others, four.by: by}
        floor = floor_of_levels(frame, floors, response, four.factor, levels, others)
        if floor is None:
            return None
        logs.append(math.log1p(floor.percent.value / 100))
    return 100 * math.expm1(math.hypot(*logs))


class _Judged(NamedTuple):
    verdict: Verdict
    why: str = ""


def _of_ratio(quotient: Estimate | None, shift: float, noise: float) -> _Judged:
    if quotient is None or quotient.low is None or quotient.high is None:
        return _Judged("descriptive")
    logs = {"value": math.log(quotient.value), "low": math.log(quotient.low), "high": math.log(quotient.high)}
    return _judged(quotient.model_copy(update=logs), shift, noise)


def _judged(found: Estimate, shift: float, noise: float = 0.0) -> _Judged:
    """Higher or lower only if the interval leaves out 0, is not all within the noise, and no end is within what the
    trends may explain."""
    if found.low is None or found.high is None:
        return _Judged("descriptive")
    ends = abs(found.low), abs(found.high)
    if found.low <= 0 <= found.high:
        return _Judged("undecided")
    if max(ends) <= noise:
        return _Judged("undecided", NOISE)
    if shift and min(ends) <= shift:
        return _Judged("undecided", TRENDS)
    return _Judged("higher" if found.low > 0 else "lower")


def sentence(row: Interaction) -> str:
    """Both contrasts in words: `from 1 node to 6 nodes, link 802.11n against nodal: 5.0 times as long, then ...`."""
    where = f" ({label(row.others)})" if row.others else ""
    sides = (part(row.by, row.by_baseline), part(row.by, row.by_level))
    baseline = part(row.factor, row.baseline) if row.factor in NODES else row.baseline
    head = f"from {sides[0]} to {sides[1]}{where}, {part(row.factor, row.level)} against {baseline}"
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
    own_form=True,
)
