"""Two levels of a factor, in every form that a paper prints: effects, differentials, speed-up, all pairs.

Each form stands at two levels of replication. Over start means it holds for another start. Over trials it is what the
published studies printed: trials of one start are repeated measures of it, so such intervals are too narrow.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from scipy import stats

from steelyard.analysis import decide, effects, estimates, spreads
from steelyard.analysis.compare import FEWEST_STARTS, MORE_IS_FASTER, WORKLOADS, baseline_of
from steelyard.analysis.decide import holm
from steelyard.analysis.findings import Differential, Effect, EffectLine, Equivalence, Over, PostHoc, Speedup
from steelyard.analysis.frame import TrialFrame
from steelyard.analysis.regression import line
from steelyard.analysis.results import UNITS, Treatment
from steelyard.analysis.summary import start_means
from steelyard.model.estimate import Estimate
from steelyard.model.study import Level


@dataclass(frozen=True)
class Samples:
    """One number per unit of two levels; pairs stand at the same place."""

    over: Over
    paired: bool
    baseline: tuple[float, ...]
    level: tuple[float, ...]

    @property
    def fewest(self) -> int:
        """Units of the smaller side."""
        return min(len(self.baseline), len(self.level))

    @property
    def positive(self) -> bool:
        """All values are above 0, so that ratios and logarithms exist."""
        return min(*self.baseline, *self.level) > 0

    def __str__(self) -> str:
        return f"{self.over}, counted as independent" if self.over == "trials" else self.over


def samples(
    frame: TrialFrame, response: str, factor: str, baseline: Level, level: Level, others: Treatment
) -> tuple[Samples, ...]:
    """The two levels over start means (where each has two) and over trials; empty if either has no used trial.

    Levels of a factor that does not need a new cluster are tried within the same starts: their start means are paired,
    and a start that has only one of them is left out of that form.
    """
    rows_b = frame.values(response, {**others, factor: baseline})
    rows_l = frame.values(response, {**others, factor: level})
    if not rows_b.height or not rows_l.height:
        return ()
    means_b, means_l = ({start: mean for start, mean, _ in start_means(rows, response)} for rows in (rows_b, rows_l))
    both = [start for start in means_b if start in means_l]
    found = []
    if factor not in frame.hard and len(both) >= FEWEST_STARTS:
        pairs = tuple(means_b[start] for start in both), tuple(means_l[start] for start in both)
        found.append(Samples("start means", True, *pairs))
    elif min(len(means_b), len(means_l)) >= FEWEST_STARTS:
        found.append(Samples("start means", False, tuple(means_b.values()), tuple(means_l.values())))
    trials = (tuple(float(value) for value in rows[response]) for rows in (rows_b, rows_l))
    return (*found, Samples("trials", False, *trials))


def pairs_of_levels(frame: TrialFrame) -> Iterator[tuple[str, Level, Level, Treatment]]:
    """Every (factor, baseline, level, other factors) that `compare.comparisons` looks at, in its order."""
    for factor in [name for name in frame.names if name not in WORKLOADS] or list(frame.names):
        levels = frame.factors[factor]
        base = baseline_of(levels) if levels else ""
        for others in frame.others(factor):
            for level in levels:
                if level != base:
                    yield factor, base, level, others


def effects_of(
    frame: TrialFrame, response: str, rng: np.random.Generator, confidence: float = 0.95,
    margin_percent: float | None = None,
) -> tuple[Effect, ...]:  # fmt: skip
    """Every level against its baseline in absolute, relative and standardised form, over start means and over trials.

    `margin_percent` is the change of the ratio that the study calls equivalent.
    """
    return tuple(
        _effect(found, response, rng, confidence, margin_percent, (factor, base, level, others))
        for factor, base, level, others in pairs_of_levels(frame)
        for found in samples(frame, response, factor, base, level, others)
    )


def _effect(
    found: Samples, response: str, rng: np.random.Generator, confidence: float, margin_percent: float | None,
    of: tuple[str, Level, Level, Treatment],
) -> Effect:  # fmt: skip
    factor, baseline, level, others = of
    a, b, over, paired = found.baseline, found.level, str(found), found.paired
    verdict, p = equivalence(found, margin_percent, confidence)
    return Effect(
        factor=factor, baseline=baseline, level=level, others=others, response=response, unit=UNITS[response],
        over=found.over, paired=paired, n_baseline=len(a), n_level=len(b),
        difference=effects.difference(a, b, UNITS[response], confidence, over, paired),
        cohens_d=effects.cohens_d(a, b, confidence, over, paired),
        hedges_g=effects.hedges_g(a, b, confidence, over, paired),
        cliffs_delta=effects.cliffs_delta(a, b, confidence, over),
        ratio_fieller=effects.fieller(a, b, confidence, over, paired),
        ratio_bootstrap=effects.bootstrap_ratio(a, b, rng, confidence, over, paired),
        margin_percent=margin_percent, equivalence=verdict, tost_p=p,
        more_starts=more_starts(found, margin_percent, confidence) if found.over == "start means" else None,
    )  # fmt: skip


def equivalence(
    found: Samples, margin_percent: float | None, confidence: float = 0.95
) -> tuple[Equivalence, float | None]:
    """Two one-sided t tests that the ratio lies within 1 / (1 + m) and 1 + m (Schuirmann 1987), and the greater p.

    On logarithms: Welch's for two samples, else of pairs (`effects.p_of_equivalence`). Equivalent: p below 1 -
    confidence. "not shown" is no proof of a difference.
    """
    if margin_percent is None:
        return "no margin declared", None
    if found.fewest < FEWEST_STARTS or not found.positive:
        return "too few starts", None
    bound = math.log1p(margin_percent / 100)
    a, b = np.log(found.baseline), np.log(found.level)
    if (float(np.ptp(b - a)) if found.paired else float(np.ptp(a)) + float(np.ptp(b))) == 0:
        inside = abs(float(b.mean() - a.mean())) < bound
        return ("equivalent", 0.0) if inside else ("not shown", 1.0)
    p = effects.p_of_equivalence([float(one) for one in a], [float(one) for one in b], bound, found.paired)
    return ("equivalent" if p < 1 - confidence else "not shown"), p


def more_starts(found: Samples, margin_percent: float | None, confidence: float = 0.95) -> int | None:
    """Further starts a level that would decide (`decide.more_starts`); 0 where the interval or the margin has decided.

    None where nothing up to `decide.MOST_STARTS` would.
    """
    p = decide.p_of_change(found.baseline, found.level, found.paired)
    if p is None:
        return None
    if p < 1 - confidence or equivalence(found, margin_percent, confidence)[0] == "equivalent":
        return 0
    more = decide.more_starts(found.baseline, found.level, found.paired, margin_percent, confidence)
    return None if more is None else more.starts


def effect_lines(frame: TrialFrame, response: str, confidence: float = 0.95) -> tuple[EffectLine, ...]:
    """Least squares over 0 (baseline) and 1 (level), over start means and over trials; none below three units."""
    found = []
    for factor, base, level, others in pairs_of_levels(frame):
        for sample in samples(frame, response, factor, base, level, others):
            x = [0.0] * len(sample.baseline) + [1.0] * len(sample.level)
            fit = line(x, [*sample.baseline, *sample.level], UNITS[response], confidence, str(sample))
            if fit is not None:
                found.append(
                    EffectLine(
                        factor=factor, baseline=base, level=level, others=others, response=response,
                        unit=UNITS[response], over=sample.over, n=fit.n, slope=fit.slope, intercept=fit.intercept,
                        r=fit.r, p=fit.p, std_err=fit.std_err,
                    )
                )  # fmt: skip
    return tuple(found)


def differentials(frame: TrialFrame, response: str, confidence: float = 0.95) -> tuple[Differential, ...]:
    """Level minus baseline, paired by start number and by place among the trials of the treatment."""
    found = []
    for factor, base, level, others in pairs_of_levels(frame):
        keys = ["start_replicate", "order_of_treatment"]
        rows_b, rows_l = (
            frame.values(response, {**others, factor: one}).select(*keys, pl.col(response).cast(pl.Float64))
            for one in (base, level)
        )
        joined = rows_b.join(rows_l, on=keys, how="inner", suffix="_level").sort(keys)
        gaps = [float(gap) for gap in joined[f"{response}_level"] - joined[response]]
        if gaps:
            found.append(_differential(gaps, response, confidence, (factor, base, level, others)))
    return tuple(found)


def _differential(
    gaps: Sequence[float], response: str, confidence: float, of: tuple[str, Level, Level, Treatment]
) -> Differential:
    factor, baseline, level, others = of
    unit = UNITS[response]
    return Differential(
        factor=factor, baseline=baseline, level=level, others=others, response=response, unit=unit, n=len(gaps),
        mean=estimates.mean(gaps, unit, confidence, "pairs of trials, counted as independent"),
        sd=spreads.standard_deviation(gaps, unit, confidence, "pairs"),
        min=min(gaps), q1=spreads.quartile(gaps, 0.25, unit, confidence, "pairs"),
        median=estimates.median(gaps, unit, confidence),
        q3=spreads.quartile(gaps, 0.75, unit, confidence, "pairs"), max=max(gaps), greatest=max(gaps, key=abs),
    )  # fmt: skip


def speedups(frame: TrialFrame, response: str, confidence: float = 0.95) -> tuple[Speedup, ...]:
    """How many times faster each level is: times as baseline over level, rates as level over baseline; over trials."""
    found = []
    for factor, base, level, others in pairs_of_levels(frame):
        for sample in samples(frame, response, factor, base, level, others):
            if sample.over == "trials" and sample.positive:
                found.append(_speedup(sample, response, confidence, (factor, base, level, others)))
    return tuple(found)


def _speedup(found: Samples, response: str, confidence: float, of: tuple[str, Level, Level, Treatment]) -> Speedup:
    factor, baseline, level, others = of
    below, above = (found.baseline, found.level) if response in MORE_IS_FASTER else (found.level, found.baseline)
    n = len(below) + len(above)
    over = str(found)

    def plain(value: float, name: str) -> Estimate:
        return Estimate(
            value=value, confidence=confidence, n=n, unit="", method=f"ratio of {name} over {over}: no interval"
        )

    means = plain(float(np.mean(above)) / float(np.mean(below)), "means")
    medians = plain(float(np.median(above)) / float(np.median(below)), "medians")
    return Speedup(
        factor=factor, baseline=baseline, level=level, others=others, response=response,
        n_baseline=len(found.baseline), n_level=len(found.level),
        ratio_max_to_min=plain(max(above) / min(below), "greatest to least"),
        ratio_min_to_max=plain(min(above) / max(below), "least to greatest"),
        ratio_means=effects.fieller(below, above, confidence, over) or means,
        ratio_medians=effects.ratio_of_medians(below, above, confidence, over) or medians,
        ratio_sds=effects.ratio_of_deviations(below, above, confidence, over),
    )  # fmt: skip


def post_hoc(frame: TrialFrame, response: str, confidence: float = 0.95) -> tuple[PostHoc, ...]:
    """All pairs of levels of every factor with three levels or more, other factors fixed, with Holm's correction.

    Over start means where every level that has trials has two starts, else over trials. t is Welch's or of pairs; ranks
    are Mann-Whitney's or Wilcoxon's.
    """
    found: list[PostHoc] = []
    for factor in [name for name in frame.names if name not in WORKLOADS] or list(frame.names):
        for others in frame.others(factor):
            found += _all_pairs(frame, response, factor, others, confidence)
    return tuple(found)


def _all_pairs(
    frame: TrialFrame, response: str, factor: str, others: Treatment, confidence: float
) -> Sequence[PostHoc]:
    levels = [level for level in frame.factors[factor] if frame.values(response, {**others, factor: level}).height > 1]
    if len(levels) < 3:
        return ()
    pairs = list(itertools.combinations(levels, 2))
    by_pair = [
        {one.over: one for one in samples(frame, response, factor, base, level, others)} for base, level in pairs
    ]
    over: Over = "start means" if all("start means" in forms for forms in by_pair) else "trials"
    chosen = [forms[over] for forms in by_pair]
    tests = [_tests(one) for one in chosen]
    p_holm, rank_holm = (holm([test[place] for test in tests]) for place in (0, 1))
    found = []
    for place, ((base, level), sample) in enumerate(zip(pairs, chosen, strict=True)):
        gap = effects.difference(sample.baseline, sample.level, UNITS[response], confidence, str(sample), sample.paired)
        if gap is None:
            continue
        found.append(
            PostHoc(
                factor=factor, baseline=base, level=level, others=others, response=response, unit=UNITS[response],
                over=over, n_baseline=len(sample.baseline), n_level=len(sample.level), pairs=len(pairs), difference=gap,
                p=tests[place][0], p_holm=p_holm[place], rank_p=tests[place][1], rank_p_holm=rank_holm[place],
            )
        )  # fmt: skip
    return found


def _tests(found: Samples) -> tuple[float | None, float | None]:
    """(p of the t test, p of the rank test); None where nothing varies."""
    if found.paired:
        gaps = np.subtract(found.level, found.baseline)
        rank = stats.wilcoxon(found.level, found.baseline).pvalue if bool(np.any(gaps)) else math.nan
    else:
        rank = stats.mannwhitneyu(found.level, found.baseline).pvalue
    t = effects.p_of_difference(found.baseline, found.level, found.paired)
    return _or_none(t), _or_none(float(rank))


def _or_none(p: float) -> float | None:
    return None if math.isnan(p) else p
