"""What contrasts and analysis of variance say, as frozen values: effects, tests, speed-up, parts of a trial."""

from __future__ import annotations

from typing import Literal

from steelyard.model.base import Value
from steelyard.model.estimate import Estimate
from steelyard.model.study import Level

Over = Literal["start means", "trials"]
"""What was counted as one unit. Start means: the level at which a hard-to-change factor was randomised. Trials: as the
published studies counted; trials of one start are repeated measures of it, so such intervals are too narrow."""

Equivalence = Literal["equivalent", "not shown", "no margin declared", "too few starts"]


class Effect(Value):
    """How large a difference between two levels is: absolute, relative, and beside the spread."""

    factor: str
    baseline: Level
    level: Level
    others: dict[str, Level]
    response: str
    unit: str
    over: Over
    paired: bool
    """The levels were tried within the same starts, and are compared start by start."""
    n_baseline: int
    """Units (start means or trials) of the baseline; `n_level` of the level."""
    n_level: int
    difference: Estimate | None = None
    """Mean of the level minus mean of the baseline; t interval (Welch, or paired by start)."""
    cohens_d: Estimate | None = None
    hedges_g: Estimate | None = None
    cliffs_delta: Estimate | None = None
    ratio_fieller: Estimate | None = None
    """Ratio of means, level over baseline, with Fieller's interval."""
    ratio_bootstrap: Estimate | None = None
    """The same ratio with a bootstrap interval over these units."""
    margin_percent: float | None = None
    """The study's margin of equivalence."""
    equivalence: Equivalence
    tost_p: float | None = None
    """The greater p of the two one-sided tests on the ratio; None without margin or with too few units."""
    more_starts: int | None = None
    """Further starts a level that would decide, if difference and spread stayed as they are; 0: decided already; None:
    not over start means, or not within `contrast.MOST_STARTS`."""


class Differential(Value):
    """Level minus baseline, trial by trial in their order: richardson2017's absolute differentials."""

    factor: str
    baseline: Level
    level: Level
    others: dict[str, Level]
    response: str
    unit: str
    n: int
    """Pairs: the same start number and the same place among the trials of its treatment."""
    mean: Estimate
    sd: float | None = None
    min: float
    q1: float
    median: Estimate
    q3: float
    max: float
    greatest: float
    """The differential farthest from 0, with its sign."""


class Speedup(Value):
    """The speed-up table of richardson2017: how many times faster the level is than the baseline."""

    factor: str
    baseline: Level
    level: Level
    others: dict[str, Level]
    response: str
    n_baseline: int
    n_level: int
    ratio_max_to_min: Estimate
    ratio_min_to_max: Estimate
    ratio_means: Estimate
    ratio_medians: Estimate
    ratio_sds: Estimate | None = None


class EffectLine(Value):
    """The response over a 0/1 indicator of the level: the intercept is the baseline's mean, the slope the difference.

    richardson2017's regressions of an effect. The same as `Effect.difference`, but for one spread common to both sides.
    """

    factor: str
    baseline: Level
    level: Level
    others: dict[str, Level]
    response: str
    unit: str
    over: Over
    n: int
    slope: Estimate
    intercept: Estimate
    r: float | None = None
    p: float | None = None
    std_err: float


class AnovaTerm(Value):
    """One line of an analysis of variance, or the reason why a level of randomisation has none."""

    form: Literal["published", "honest"]
    """published: over trials, counted as independent; honest: each term against the error of its own level."""
    stratum: Literal["starts", "within starts", "trials"]
    """Where the error comes from: differences between starts; differences of treatments within a start; trials."""
    term: str
    """Factors of the term, joined by ` x `; `block`; `error`."""
    response: str
    unit: str
    n: int
    """Values that the stratum rests on."""
    df: int | None = None
    error_df: int | None = None
    sum_of_squares: float | None = None
    mean_square: float | None = None
    f: float | None = None
    p: float | None = None
    p_holm: float | None = None
    eta_squared: Estimate | None = None
    """Partial: sum of squares / (it + that of the error)."""
    note: str = ""


class OneWay(Value):
    """All levels of one factor at once, other factors fixed: analysis of variance, and ranks beside it."""

    factor: str
    others: dict[str, Level]
    response: str
    unit: str
    over: Over
    n: int
    levels: int
    df: int | None = None
    error_df: int | None = None
    f: float | None = None
    p: float | None = None
    rank_test: str = ""
    """Kruskal-Wallis, Mann-Whitney; Friedman or Wilcoxon where the levels share their starts."""
    rank_statistic: float | None = None
    rank_p: float | None = None
    note: str = ""


class PostHoc(Value):
    """Two levels of a factor among all pairs of its levels; p-values are Holm's over those pairs."""

    factor: str
    baseline: Level
    level: Level
    others: dict[str, Level]
    response: str
    unit: str
    over: Over
    n_baseline: int
    n_level: int
    pairs: int
    """Pairs that the correction is over."""
    difference: Estimate
    p: float | None = None
    p_holm: float | None = None
    rank_p: float | None = None
    rank_p_holm: float | None = None


class Shape(Value):
    """Outliers, modes and normality of one treatment's values: pointed out, never removed."""

    treatment: dict[str, Level]
    response: str
    unit: str
    n: int
    starts: int
    outliers: int
    outlying: str
    """Trials beyond Tukey's fences with their values."""
    skewness: float | None = None
    normality_p: float | None = None
    """Shapiro and Wilk's test."""
    unimodality_p: float | None = None
    """Silverman's test that there is one mode."""
    verdict: str


class Steady(Value):
    """The steady state of one trial within itself: MSER-5 over its seconds."""

    trial_id: str
    attempt: int
    treatment: dict[str, Level]
    response: str
    unit: str
    n: int
    """Seconds with an answered operation."""
    detected_cut: int | None = None
    """Seconds that MSER-5 would drop; None below 20."""
    verdict: Literal["warm-up", "steady", "drifting", "none"]
    detail: str
    change_detected: float | None = None
    """(mean after the cut - mean of all) / mean of all."""


class PartMean(Value):
    """Mean of one of k equal parts of a trial, over trials of a treatment: mean value analysis (chekkilla2016)."""

    treatment: dict[str, Level]
    response: str
    unit: str
    parts: int
    part: int
    """From 1."""
    n: int
    """Trials."""
    mean: Estimate
    """t interval over trials."""
    mean_z: Estimate
    """The published form: 1.96 standard errors."""
