"""Comparison of two sides: two treatments of one study, or the same treatments of two studies.

The unit is the start of a cluster, as everywhere: a side with one start has neither interval nor verdict. Sides of
two studies share nothing; sides of one study share their blocks, and their starts where no factor between them needs a
new cluster (`level_pairs.pair_of`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from steelyard.analysis.comparisons import forecast, side_trends
from steelyard.analysis.comparisons.identical_systems import Floors, of_two
from steelyard.analysis.comparisons.judgement import Judged, judgement
from steelyard.analysis.comparisons.level_pairs import LevelPair
from steelyard.analysis.comparisons.level_ratios import (
    Compared,
    ComparisonVerdict,
    compare_means,
    no_verdict,
    ratio_of,
    verdict_sentence,
)
from steelyard.analysis.frame import TrialFrame
from steelyard.analysis.inference import estimates, power
from steelyard.analysis.inference.effect_sizes import cliffs_delta, hedges_g
from steelyard.analysis.statistics.trend import Trend
from steelyard.analysis.treatments import Treatment, label
from steelyard.analysis.wording import change_text
from steelyard.format import confidence_text, number
from steelyard.judging.t_interval import FEWEST_STARTS
from steelyard.model.errors import StudyError
from steelyard.model.estimate import Estimate
from steelyard.model.look import Look
from steelyard.model.named_level import Level
from steelyard.model.value import Value

WORDS_OF_EFFECT = ((0.2, "negligible"), (0.5, "small"), (0.8, "medium"), (math.inf, "large"))
"""Cohen 1988, Statistical Power Analysis, section 2.2: small from 0.2, medium from 0.5, large from 0.8."""


@dataclass(frozen=True)
class Side:
    """One side: a study's trials, and the levels that it is fixed to."""

    name: str
    frame: TrialFrame
    fixed: Mapping[str, Level] = field(default_factory=dict)
    trends: Sequence[Trend] = ()
    """Trends of the response that is compared, within the starts of the study."""


class Contrast(Judged):
    """Side b against side a in one cell."""

    cell: Treatment
    """The levels that both sides have in common, of the factors that vary."""
    a: Treatment
    b: Treatment
    response: str
    unit: str
    mean_a: Estimate
    """Geometric mean of the start means of side a, over the starts that the comparison rests on."""
    mean_b: Estimate
    """The same of side b; `mean_b` / `mean_a` is the ratio."""
    ratio: Estimate
    """Ratio b / a."""
    change_percent: Estimate
    effect: Estimate | None = None
    """Hedges' g over start means; None if they have no standard deviation."""
    delta: Estimate | None = None
    """Cliff's delta over start means: the share of pairs in which b is above a, less that in which it is below."""
    effect_words: str = ""
    verdict: ComparisonVerdict
    sentence: str
    why: str = ""
    """Reason why there is no verdict, or None."""
    margin_percent: float | None = None
    equivalence_percent: Estimate | None = None
    """The interval of the change that lies within the margin if the sides are equivalent: confidence 1 - 2 alpha, which
    makes two one-sided tests at alpha of it (Schuirmann 1987)."""
    more: power.More | None = None
    """If undecided: further starts per side that would decide with power 80%, if change and spread stay."""
    advice: str = ""
    """The same in short, and whether it requires a new study: `for 3% 14 more blocks (about 2 h 50 min)`."""
    to_decide: str = ""
    """The same for a column: `+14 blocks, 2.8 h` of the study, `24 blocks, 5 h` of a new one."""
    cheaper: str = ""
    """If undecided without a margin: the blocks that would show that the change lies within 10%, if these are fewer."""
    more_s: float | None = None
    """Duration of these at the pace of the stores, seconds: one more block of each for one more start per side."""
    p: float | None = None
    """Two-sided p that the ratio is 1, by the test whose interval `ratio` has; None with fewer than three starts per
    side."""
    p_holm: float | None = None
    """The same with Holm's correction over the `family`: all comparisons of this command that have a p."""
    tost_p: float | None = None
    """The greater p of the two one-sided tests; None without a margin, with fewer than three starts per side, or if
    nothing varies."""
    tost_p_holm: float | None = None
    """The same with Holm's correction over the family."""
    family: int = 0
    survives_holm: bool | None = None
    """Whether the verdict would still be given at the corrected p of its own test: `p_holm` for a difference,
    `tost_p_holm` for equivalence; None for the other verdicts."""
    floor_source: str = ""
    """Where `floor_percent` comes from; of two stores it is the greater one."""
    paired: bool
    n_a: int
    n_b: int
    starts_a: int
    starts_b: int
    excluded: int
    """Trials (attempts) of both sides left out."""

    @property
    def change(self) -> Estimate:
        """What the verdict rests on: stores are compared by their ratio, whatever the response."""
        return self.ratio


class Pairing(Value):
    """The cells of both sides, and those of one side only."""

    both: tuple[tuple[Treatment, Treatment, Treatment], ...]
    """Cell, treatment of a, treatment of b."""
    only_a: tuple[Treatment, ...] = ()
    only_b: tuple[Treatment, ...] = ()


def pair(a: Side, b: Side) -> Pairing:
    """Match the treatments of two sides by the levels of every factor that neither side fixes.

    Raises StudyError where a side has several treatments for one cell, or nothing matches.
    """
    shared = [name for name in a.frame.names if name in b.frame.names and name not in {*a.fixed, *b.fixed}]
    cells_a, cells_b = (_cells(side, shared, letter) for side, letter in ((a, "a"), (b, "b")))
    both = [(dict(key), cells_a[key], cells_b[key]) for key in cells_a if key in cells_b]
    if not both:
        sides = "; ".join(f"{side.name} has {', '.join(_levels(side))}" for side in (a, b))
        raise StudyError("the two sides have no treatment in common", f"{sides}; fix others with --a and --b")
    only_a = tuple(dict(key) for key in cells_a if key not in cells_b)
    only_b = tuple(dict(key) for key in cells_b if key not in cells_a)
    return Pairing(both=tuple(both), only_a=only_a, only_b=only_b)


def _levels(side: Side) -> list[str]:
    """Each factor with its levels that have a trial, as text."""
    tried = side.frame.treatments
    return [
        f"{name} {' '.join(str(level) for level in levels if any(one.get(name) == level for one in tried))}"
        for name, levels in side.frame.factors.items()
    ]


def _cells(side: Side, shared: Sequence[str], letter: str) -> dict[tuple[tuple[str, Level], ...], Treatment]:
    """The levels of the shared factors to the treatment that the side has there."""
    cells: dict[tuple[tuple[str, Level], ...], Treatment] = {}
    for treatment in side.frame.treatments:
        if any(treatment.get(name) != level for name, level in side.fixed.items()):
            continue
        key = tuple((name, treatment.get(name, "")) for name in shared)
        if key in cells:
            free = [name for name in side.frame.names if name not in shared and name not in side.fixed]
            several = [name for name in free if cells[key].get(name) != treatment.get(name)]
            these = f"{label(cells[key])}; {label(treatment)}"
            raise StudyError(
                f"side {letter}, {side.name}, has several treatments to compare: {these}",
                f"choose one: --{letter} {several[0] if several else 'FACTOR'}=LEVEL",
                key=f"--{letter}",
            )
        cells[key] = treatment
    if not cells:
        fixed = label(dict(side.fixed))
        raise StudyError(f"side {letter}, {side.name}, has no trial of {fixed}", f"it has {', '.join(_levels(side))}")
    return cells


def contrasts(
    a: Side, b: Side, pairing: Pairing, response: str, confidence: float, margin_percent: float | None = None,
    floors: tuple[Floors, Floors] | None = None,
) -> tuple[Contrast, ...]:  # fmt: skip
    """A contrast for every cell in which both sides have used trials with a value of the response.

    `floors`: the noise floors of both sides' studies. `adjusted` adds Holm's correction.
    """
    of_block_s, floors = pace_s(a, b), floors or (Floors(), Floors())
    every = (_contrast(a, b, cell, response, confidence, margin_percent, of_block_s, floors) for cell in pairing.both)
    return tuple(one for one in every if one is not None)


def look_of_both(a: Side, b: Side) -> Look:
    """The look that limits further blocks of two sides: of the study that has one look, otherwise of side a's."""
    return min((a.frame.look, b.frame.look), key=lambda look: look.several)


def pace_s(a: Side, b: Side) -> float | None:
    """Duration of one more block of both sides, seconds; None if one of them does not say."""
    paces = {id(side.frame): forecast.block_s(side.frame) for side in (a, b)}
    return None if None in paces.values() else sum(pace for pace in paces.values() if pace is not None)


def _contrast(
    a: Side, b: Side, cell: tuple[Treatment, Treatment, Treatment], response: str, confidence: float,
    margin: float | None, of_block_s: float | None, floors: tuple[Floors, Floors],
) -> Contrast | None:  # fmt: skip
    """Side b against side a in a cell, judged by the noise floor and the trends of both by the rule of the report."""
    common, treatment_a, treatment_b = cell
    sides = {"a": (a.frame, treatment_a), "b": (b.frame, treatment_b)}
    compared = compare_means(sides, response, confidence, margin, look_of_both(a, b), of_block_s)
    if compared is None:
        return None
    pair, would, versus = compared.pair, compared.would, f"{b.name} against {a.name}"
    head = f"{label(common)}, {versus}" if common else versus
    inner = None if margin is None else ratio_of(pair, 2 * confidence - 1)
    why = _why(compared, margin)
    effect, delta = effect_of(pair, confidence)
    floor = of_two(floors, response, *pair.trials, pair.paired)
    named = [(a.name, a.frame, treatment_a, a.trends), (b.name, b.frame, treatment_b, b.trends)]
    trends = side_trends.of_two(named, response, pair.paired == "start")
    final = a.frame.look.final and b.frame.look.final
    known = judgement(compared.change, compared.verdict, response, floor, trends, final=final)
    return Contrast(
        **{**compared.fields, **known.known}, cell=common, a=treatment_a, b=treatment_b, effect=effect, delta=delta,
        effect_words=effect_words(effect), sentence=known.after(head, _sentence(head, compared, inner, margin, why)),
        why=known.reason or why, equivalence_percent=None if inner is None else estimates.percent(inner),
        more=would.more, advice=would.short(), floor_source="" if floor is None else floor.words,
        paired=bool(pair.paired),
    )  # fmt: skip


def limits_percent(margin: float) -> tuple[float, float]:
    """The changes that count as equivalent: symmetric as ratios, 1 / (1 + margin) to 1 + margin, in percent."""
    return 100 * (1 / (1 + margin / 100) - 1), margin


def effect_of(pair: LevelPair, confidence: float) -> tuple[Estimate | None, Estimate | None]:
    """Hedges' g and Cliff's delta over start means. None with fewer than three starts per side."""
    if pair.fewest < FEWEST_STARTS:
        return None, None
    return hedges_g(pair.samples, confidence), cliffs_delta(pair.samples, confidence)


def effect_words(effect: Estimate | None) -> str:
    """The size of an effect in a word."""
    return "" if effect is None else next(word for end, word in WORDS_OF_EFFECT if abs(effect.value) < end)


def _why(compared: Compared, margin: float | None) -> str:
    """Why there is no verdict, or why it is undecided; else empty."""
    if compared.verdict == "descriptive":
        return no_verdict(compared.change)
    if compared.verdict != "undecided":
        return ""
    room = "" if margin is None else f" and reaches beyond the margin of {number(margin, digits=2)}%"
    without = " without a --margin" if compared.would.more is None and margin is None else ""
    change = change_text(compared.change, compared.response)
    return f"{change} includes no change{room}; {compared.would.words()}{without}"


def _sentence(head: str, compared: Compared, within: Estimate | None, margin: float | None, why: str) -> str:
    if compared.verdict != "equivalent" or within is None:
        changed = change_text(compared.change, compared.response)
        return verdict_sentence(head, compared.response, changed, compared.verdict, why)
    inner = f"{change_text(within, compared.response)} at {confidence_text(within.confidence)}"
    return f"{head}: equivalent within {number(margin or 0, digits=2)}%: {inner} lies in the margin"
