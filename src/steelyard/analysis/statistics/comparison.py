"""Comparison of levels with their baseline: a ratio or a difference with its interval, and a verdict in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated

from steelyard.analysis.comparisons import forecast, side_trends
from steelyard.analysis.comparisons.identical_systems import Floors, floor_of_levels
from steelyard.analysis.comparisons.judgement import Judged, judgement
from steelyard.analysis.comparisons.level_pairs import pair_of_levels, pairs_of_levels
from steelyard.analysis.comparisons.level_ratios import ComparisonVerdict, compare_means, no_verdict, verdict_sentence
from steelyard.analysis.frame import TrialFrame
from steelyard.analysis.inference import multiplicity
from steelyard.analysis.row import NO_UNIT, Column, InUnit, InUnitOrNone, MeasuredLevels, P, RatioOrNone
from steelyard.analysis.statistic import Context, Section, Statistic
from steelyard.analysis.statistics.trend import Trend
from steelyard.analysis.treatments import Treatment, label, pair_label
from steelyard.analysis.wording import change_or_difference
from steelyard.format import confidence_text, number
from steelyard.model.estimate import Estimate
from steelyard.model.named_level import Level
from steelyard.model.responses import of


class Comparison(Judged, MeasuredLevels):
    """Two levels of a factor: level against baseline, all else equal."""

    mean_baseline: InUnit
    """Geometric mean of the start means of the baseline, over the starts that the comparison rests on; of a response
    that is compared by differences, their mean."""
    mean_level: InUnit
    """The same of the level; `mean_level` / `mean_baseline` is the ratio, or their difference the difference."""
    ratio: RatioOrNone = None
    """Level over baseline, each the geometric mean of its start means; none of a response that is compared by
    differences."""
    change_percent: Annotated[Estimate | None, Column(unit="% of the baseline")] = None
    """100 (ratio - 1)."""
    difference: InUnitOrNone = None
    """Level minus baseline, each the mean of its start means, of a response that a control has none of, such as lost
    operations; the verdict is then that of its interval."""
    verdict: ComparisonVerdict
    """Slower, faster (higher, lower where neither is better): the interval leaves out no change. Equivalent: two
    one-sided tests put the ratio within the margin. Undecided: neither, or within the noise floor or a trend of its
    starts, or a cold level against a warm one. Descriptive: too few starts for an interval."""
    sentence: str
    """The comparison in words."""
    n_baseline: int
    """Used trials of the baseline, in the starts that the comparison rests on."""
    n_level: int
    """Used trials of the level, in the starts that the comparison rests on."""
    starts_baseline: int
    """Starts of the baseline that the comparison rests on: those in starts or blocks that served both levels."""
    starts_level: int
    """Starts of the level that the comparison rests on."""
    excluded: int
    """Trials (attempts) of both that were left out."""
    more_starts: int | None = None
    """Where undecided: further starts per level that would decide with a chance of 80%, if difference and spread stayed
    as they are."""
    more_s: Annotated[float | None, Column(unit="seconds")] = None
    """Time that these would take at the study's own pace."""
    advice: str = ""
    """How many blocks would decide, in this study or a new one, and what they cost, in words."""
    to_decide: str = ""
    """The same in short: `+14 blocks, 2.8 h` of this study, `24 blocks, 5 h` of a new one."""
    cheaper: str = ""
    """Where undecided in a study without a margin: the blocks that would show that the change lies within 10%, if
    these are fewer."""
    p: P = None
    """Two-sided p that nothing changes, by the test whose interval the ratio or difference has; none below three starts
    per level."""
    p_holm: Annotated[float | None, Column(unit=NO_UNIT, head="p (Holm)", is_p=True)] = None
    """The same p with Holm's correction over the family."""
    family: int = 0
    """Comparisons of the family of Holm's correction: all that have a p, of every response that the study names."""
    survives_holm: bool | None = None
    """Whether the verdict would still be given at the corrected p of its own test; none if it decides nothing."""
    tost_p: Annotated[float | None, Column(unit=NO_UNIT, head="p of equivalence", is_p=True)] = None
    """Greater p of the two one-sided tests of equivalence; none without a margin."""
    tost_p_holm: Annotated[float | None, Column(unit=NO_UNIT, head="p of equivalence (Holm)", is_p=True)] = None
    """p of equivalence, with Holm's correction over the family."""
    margin_percent: Annotated[float | None, Column(unit="%", head="margin, %")] = None
    """Change that the study calls too small to matter."""
    floor_source: str = ""
    """Where that floor comes from."""

    @property
    def change(self) -> Estimate:
        """Ratio or difference: what the verdict rests on."""
        change = self.difference if self.ratio is None else self.ratio
        assert change is not None, self.sentence
        return change

    @property
    def change_text(self) -> str:
        """The change as people read it, with its interval where it has one."""
        return change_or_difference(self.change, self.response)


def compare(
    frame: TrialFrame, response: str, factor: str, baseline: Level, level: Level, others: Treatment,
    confidence: float = 0.95, margin_percent: float | None = None, block_s: float | None = None,
) -> Comparison | None:  # fmt: skip
    """Level against baseline, other factors fixed; None if either has no used trial or, of ratios, the baseline's mean
    is 0.

    See `level_ratios.compare_means`. Below three starts per level: no interval, no verdict.
    """
    sides = {"baseline": (frame, {**others, factor: baseline}), "level": (frame, {**others, factor: level})}
    how = of(response).compared
    compared = compare_means(sides, response, confidence, margin_percent, frame.look, block_s, how)
    if compared is None:
        return None
    more = compared.would.more
    would = compared.would.words() if compared.verdict == "undecided" and how == "ratio" else ""
    about = head(factor, baseline, level, others)
    return Comparison(
        **compared.fields, factor=factor, baseline=baseline, level=level, others=others,
        sentence=sentence(about, response, compared.change, compared.verdict, would, margin_percent),
        more_starts=None if more is None else more.starts, advice=would,
    )  # fmt: skip


def head(factor: str, baseline: Level, level: Level, others: Treatment) -> str:
    """Head of the sentence: `workload A, 3 nodes against 1 node`."""
    about = pair_label(factor, level, baseline, others)
    return f"{label(others, [factor])}, {about}" if others else about


def sentence(
    about: str, response: str, change: Estimate, verdict: ComparisonVerdict, would: str = "",
    margin_percent: float | None = None,
) -> str:  # fmt: skip
    """The comparison in words. `would`: what would decide, if undecided; `margin_percent`: that of an equivalence."""
    text = change_or_difference(change, response)
    why = f"{text} includes no change" + (f"; {would}" if would else "")
    if verdict == "descriptive":
        why = no_verdict(change)
    within = f" within {number(margin_percent or 0, digits=2)}%" if verdict == "equivalent" else ""
    return verdict_sentence(about, response, text, f"{verdict}{within}", why)


def comparisons(
    frame: TrialFrame, response: str, confidence: float = 0.95, margin_percent: float | None = None,
    further: Sequence[str] = (), whole: TrialFrame | None = None,
) -> tuple[Comparison, ...]:  # fmt: skip
    """Every level of every factor against its baseline, for each combination of the other factors.

    Workloads are compared only if nothing else is a factor, because they are different questions. The family of Holm's
    correction is all of them, and the same comparisons by the `further` responses, whose baselines are by `whole`.
    """
    pace_s = forecast.block_s(frame)
    every = [compare(frame, response, *of, confidence, margin_percent, pace_s) for of in pairs_of_levels(frame)]
    beside_these = [
        (pair.p, pair.tost_p(margin_percent))
        for name in further
        for of in pairs_of_levels((whole or frame).compared_by(name))
        if (pair := pair_of_levels(frame, name, *of)) is not None
    ]
    return multiplicity.adjusted([one for one in every if one is not None], beside_these)


def judged(
    comparisons: Sequence[Comparison], frame: TrialFrame, floors: Floors, trends: Sequence[Trend] = ()
) -> tuple[Comparison, ...]:
    """Add the noise floor and the trends of both levels to every comparison.

    One whose whole interval lies within the floor becomes undecided, and one that a trend may explain.
    """
    rows = []
    for row in comparisons:
        levels, about = (row.baseline, row.level), head(row.factor, row.baseline, row.level, row.others)
        floor = None
        if row.ratio is not None:
            floor = floor_of_levels(frame, floors, row.response, row.factor, levels, row.others)
        sides = side_trends.of_levels(frame, row.response, row.factor, levels, trends, row.others)
        known = judgement(row.ratio, row.verdict, row.response, floor, sides, final=frame.look.final)
        update = known.known | {"sentence": known.after(about, row.sentence)}
        update |= {"floor_source": "" if floor is None else floor.words}
        rows.append(row.model_copy(update=update | ({"survives_holm": None} if known.reason else {})))
    return tuple(rows)


def _judged_comparisons(context: Context) -> tuple[Comparison, ...]:
    margin_percent = context.study.analysis.equivalence_margin_percent
    about = (context.response, context.confidence, margin_percent, context.further_responses)
    unjudged = comparisons(context.frame, *about, context.whole)
    return judged(unjudged, context.frame, context.floors, context.of(Trend))


def after_holm(comparisons: Sequence[Comparison], response: str) -> Iterator[str]:
    """Sentence on the number of comparisons, and of differences that survive Holm's correction."""
    judged = sum(one.verdict != "descriptive" for one in comparisons)
    if judged < 2:
        return
    decided = [one for one in comparisons if one.survives_holm is not None]
    family = max(one.family for one in comparisons)
    more = f" over the {family} of all responses" if family > sum(one.p is not None for one in comparisons) else ""
    lost = sum(one.survives_holm is False for one in decided)
    shown = "a difference or equivalence" if any(one.verdict == "equivalent" for one in decided) else "a difference"
    if not decided:
        remain = "none of them shows a difference"
    elif not lost:
        survive = "the one that shows" if len(decided) == 1 else f"all {len(decided)} that show"
        remain = f"{survive} {shown} would still do so with Holm's correction{more}"
    else:
        remain = f"with Holm's correction{more} {len(decided) - lost} of {len(decided)} would still show {shown}"
    yield (
        f"Each of the {judged} comparisons has its own {confidence_text(comparisons[0].change.confidence)} interval, "
        f"not adjusted for their number; {remain}."
    )


STATISTIC = Statistic(
    name="comparison",
    row=Comparison,
    title="Levels of a factor against their baseline, by {response}",
    section=Section.ANSWER,
    compute=_judged_comparisons,
    sentences=after_holm,
    order=10,
    sentence_order=70,
)
