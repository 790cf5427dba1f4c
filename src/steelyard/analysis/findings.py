"""What contrasts and analysis of variance say, as frozen values: effects, tests, speed-up, parts of a trial."""

from __future__ import annotations

from typing import Literal

from steelyard.model.estimate import Estimate
from steelyard.model.study import Level
from steelyard.model.value import Value

Over = Literal["start means", "trials"]
"""What was counted as one unit. Start means: the level at which a hard-to-change factor was randomised. Trials: as the
published studies counted; trials of one start are repeated measures of it, so such intervals are too narrow."""

_AGAINST = {"starts": "what starts differ", "within starts": "start x treatment", "trials": "what trials differ"}

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
    """Further starts a level that would decide with a chance of 80%, if difference and spread stayed as they are; 0:
    decided already; None: not over start means, or not within `decide.MOST_STARTS`."""


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
    sd: Estimate | None = None
    min: float
    """As `max` and `greatest` as measured: a difference of two trials, no estimate."""
    q1: Estimate | None = None
    median: Estimate
    q3: Estimate | None = None
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

    @property
    def method(self) -> str:
        """How F and p were computed; they are statistics of a test and have no interval."""
        if self.f is None:
            return ""
        return f"F of type II sums of squares against {_AGAINST[self.stratum]}, {self.df} and {self.error_df} degrees"


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

    @property
    def method(self) -> str:
        """How F, the rank statistic and their p were computed."""
        if self.f is None:
            return ""
        return f"F with {self.df} and {self.error_df} degrees of freedom; {self.rank_test}'s test, asymptotic or exact"


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

    @property
    def method(self) -> str:
        """How p and rank_p were computed."""
        ranks = "Wilcoxon" if "paired" in self.difference.method else "Mann and Whitney"
        return f"p of {self.difference.method}; rank_p of {ranks}'s test"


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


class ChangePoint(Value):
    """A change of level within a series."""

    after: int
    """Values of the series before it."""
    at_h: float | None = None
    """Hours since the study's first trial began, of the first value after it; None within a trial."""
    change_percent: Estimate | None = None
    """From the level before it (since the change before) to the level after it (until the next)."""
    p: float
    """How rare so great a difference is in a series without a change."""


class Course(Value):
    """Whether the trials of a treatment, or of all together, kept their level over the study: change points."""

    treatment: dict[str, Level]
    together: bool
    """All treatments, each less its own mean: what happened to all of them."""
    response: str
    unit: str
    over: Over
    """Start means in order of time; trials where there is one start."""
    n: int
    starts: int
    fixed_cut: int
    """Trials at the beginning of each start that the study's fixed count drops, before anything is looked at."""
    detected_cut: int | None = None
    """Values that MSER-5 would drop; None below 20."""
    verdict: Literal["warm-up", "steady", "drifting", "none"]
    detail: str
    changes: tuple[ChangePoint, ...] = ()


class Steady(Value):
    """The steady state of one trial within itself: change points over its seconds, MSER-5 beside them."""

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
    likeness: float | None = None
    """Correlation of neighbours that the verdict allows for; of seconds, or of means of several."""
    changes: tuple[ChangePoint, ...] = ()
    """After how many seconds the level changed."""


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


class VarianceComponents(Value):
    """Where the spread of a response comes from: blocks, starts, the trials of a start.

    Coefficients of variation (fractions), on logarithms."""

    treatment: dict[str, Level]
    together: bool
    """All treatments at once, each about its own mean."""
    response: str
    n: int
    """Used trials."""
    starts: int
    blocks: int
    between_blocks: Estimate | None = None
    between_starts: Estimate | None = None
    within_starts: Estimate | None = None
    icc: Estimate | None = None
    """Intraclass correlation: share of the variance between starts in that of a trial of a block."""
    advice: str = ""
    """What would narrow the interval of a mean."""
    note: str = ""
    """Why a component is missing."""


FloorSource = Literal["this study", "control cells", "kept floor", "none"]
"""this study: it compares identical systems, and measures the floor; control cells: of this study; kept floor: of a
study of identical systems on this machine, whose floor is in the store; none."""


class ResponseFloor(Value):
    """How much identical systems differ in one response, and what a comparison of them would show by chance."""

    response: str
    unit: str
    source: FloorSource
    starts: int
    """Starts of identical systems that it rests on."""
    trials: int
    """Used trials of them."""
    between_cv: Estimate | None = None
    """Coefficient of variation between starts, as a fraction; None where it cannot be told."""
    within_cv: Estimate | None = None
    """The same between the trials of a start."""
    level_starts: int
    """Starts a level that the next two hold for: this study's."""
    level_trials: int
    """Used trials of a start that they hold for."""
    floor_percent: Estimate | None = None
    """Change that 95% (the confidence) of comparisons of two identical systems stay below, levels on starts of their
    own."""
    floor_paired_percent: Estimate | None = None
    """The same of two levels that are tried within the same starts."""
    pairs: int = 0
    """Blocks with a start of both labels, in a study of identical systems."""
    pair_ratio: Estimate | None = None
    """Label B over label A, compared as two levels are: 1 but for noise."""
    pair_greatest_percent: float | None = None
    """The greatest change between the two starts of a block, with its sign."""


class NoiseFloor(Value):
    """What verdicts were judged against: how much identical systems differ here, of every response."""

    source: FloorSource = "none"
    control_trials: int
    """Valid control trials of this study."""
    blocks: int
    """Starts of identical systems that the first source of the main response rests on."""
    cv: Estimate | None = None
    """Coefficient of variation within a start of the main response, as a fraction."""
    floors: tuple[ResponseFloor, ...] = ()
    unlike: tuple[str, ...] = ()
    """Settings that the floor was measured with and this study has nowhere."""
    sentence: str


class Coefficient(Value):
    """One coefficient of a regression over several factors at once, or the reason why there is none."""

    form: Literal["published", "honest"]
    """As in `AnovaTerm`."""
    stratum: Literal["starts", "within starts", "trials"]
    term: str
    """`intercept`, a numeric factor, or `factor = level`: that level against the first."""
    response: str
    unit: str
    n: int
    """Values fitted: start means, means of a treatment in a start, or trials."""
    value: Estimate | None = None
    """Change of the response per step of the factor, or from the first level to this one; all else equal."""
    std_err: float | None = None
    p: float | None = None
    error_df: int | None = None
    r_squared: float | None = None
    """Share of the sum of squares of the stratum that its factors explain together."""
    note: str = ""
