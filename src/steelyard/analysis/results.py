"""What the analysis says: frozen values, every uncertain number an `Estimate`, every table with its n and exclusions.

The report and the command line read these and nothing else of this package.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from steelyard.analysis.findings import (
    AnovaTerm,
    ChangePoint,
    Coefficient,
    Course,
    Differential,
    Effect,
    EffectLine,
    NoiseFloor,
    OneWay,
    PartMean,
    PostHoc,
    Shape,
    Speedup,
    Steady,
    VarianceComponents,
)
from steelyard.analysis.merits import MainEffect, Merit, Overall, Scaling, TrialPercentile
from steelyard.format import level_label, treatment_label
from steelyard.judging.stopping_rule import Decision
from steelyard.model.estimate import Estimate
from steelyard.model.study import Level
from steelyard.model.value import Value

UNITS: dict[str, str] = {
    "execution_time_ms": "ms",
    "operations": "operations",
    "errors": "operations",
    "not_found": "operations",
    "throughput_per_s": "operations/s",
    "response_ms_mean": "ms",
    "response_ms_p50": "ms",
    "response_ms_p95": "ms",
    "response_ms_p99": "ms",
    "response_ms_max": "ms",
    "service_ms_mean": "ms",
    "service_ms_p50": "ms",
    "service_ms_p95": "ms",
    "service_ms_p99": "ms",
    "lag_ms_p99": "ms",
    "generator_cpu_us_per_operation": "µs/operation",
}
"""Unit of each response."""

LABELS: dict[str, str] = {
    "execution_time_ms": "execution time",
    "operations": "operations",
    "errors": "errors",
    "not_found": "reads not found",
    "throughput_per_s": "throughput",
    "response_ms_mean": "mean response time",
    "response_ms_p50": "median response time",
    "response_ms_p95": "95th percentile of response time",
    "response_ms_p99": "99th percentile of response time",
    "response_ms_max": "longest response time",
    "service_ms_mean": "mean service time",
    "service_ms_p50": "median service time",
    "service_ms_p95": "95th percentile of service time",
    "service_ms_p99": "99th percentile of service time",
    "lag_ms_p99": "99th percentile of lag",
    "generator_cpu_us_per_operation": "generator's CPU per operation",
}
"""What people call each response."""

Treatment = dict[str, Level]


class Exclusion(Value):
    """Trials left out for one reason."""

    reason: str
    trials: int


class Summary(Value):
    """One response of one treatment, over its used trials."""

    treatment: Treatment
    response: str
    unit: str
    n: int
    """Used trials."""
    starts: int
    """Cluster starts that these trials came from."""
    excluded: int
    """Trials (attempts) left out."""
    exclusions: tuple[Exclusion, ...] = ()
    system_faults: int = 0
    """Trials (of those left out) in which the system under test failed: a result, shown as such."""
    mean: Estimate | None = None
    """Mean over trials, t interval over trials: speaks for these starts only."""
    mean_z: Estimate | None = None
    """The same mean with the normal interval, as chekkilla2016 printed it."""
    mean_of_starts: Estimate | None = None
    """Mean of start means, t interval with starts - 1 degrees of freedom: speaks for new starts too. None with one
    start."""
    sd: Estimate | None = None
    """Standard deviation over trials (n - 1), chi-squared interval; None below two trials."""
    min: Estimate | None = None
    """As `max` and `range` without an interval: what was measured, not what would be measured again."""
    q1: Estimate | None = None
    """As `q3` with an order-statistic interval; None ends below 13 trials."""
    median: Estimate | None = None
    """Its interval is the order-statistic interval; None ends below six trials."""
    q3: Estimate | None = None
    max: Estimate | None = None
    range: Estimate | None = None
    start_means: tuple[float, ...] = ()
    notes: tuple[str, ...] = ()


class Fit(Value):
    """One least-squares line."""

    slope: Estimate
    """Unit: the response's unit per step of the factor."""
    intercept: Estimate
    r: float | None = None
    """Pearson's correlation; None where the response does not vary."""
    p: float | None = None
    """Two-sided p-value of slope = 0, Wald with t of n - 2 degrees of freedom."""
    std_err: float
    """Standard error of the slope."""
    intercept_std_err: float
    n: int
    """Points that were fitted."""


class Regression(Value):
    """The response over a numeric factor, for one combination of the other factors."""

    factor: str
    others: Treatment
    response: str
    unit: str
    n: int
    starts: int
    excluded: int
    published: Fit | None = None
    """Over trials, as richardson2017 printed it: repeated measures are counted as independent, so p and std_err come
    out too small."""
    honest: Fit | None = None
    """Over start means: the unit at which the factor was randomised. None where there is no error term."""
    note: str = ""
    """Why a form is missing, in a sentence."""


class SizePoint(Value):
    """One size (or level of the numeric factor) on a line."""

    level: float
    median: Estimate
    mean: Estimate
    """Over start means where there are two starts or more, else over trials; its method says which."""
    n: int
    starts: int


class SizeLine(Value):
    """Medians over a numeric factor: one line of a figure."""

    factor: str
    others: Treatment
    label: str
    response: str
    unit: str
    points: tuple[SizePoint, ...]


class Box(Value):
    """What a box plot needs, with all points: quartiles, whiskers to the last point within 1.5 interquartile ranges."""

    treatment: Treatment
    response: str
    unit: str
    n: int
    starts: int
    q1: float
    median: float
    q3: float
    whisker_low: float
    whisker_high: float
    mean: float
    sd: float | None
    values: tuple[float, ...]
    """Every used trial, in order of time."""


class Point(Value):
    """One trial with a value of the main response: used, warm-up, control or not valid, as marked."""

    trial_id: str
    attempt: int
    treatment: Treatment
    value: float
    start: str
    start_replicate: int
    block: int
    order_in_start: int
    order_of_treatment: int | None
    """Which valid trial of its treatment within the start, from 1; None if not valid."""
    position: int
    used: bool
    warm_up: bool
    control: bool
    outcome: str
    begun_s: float
    """Seconds since the epoch."""
    elapsed_h: float
    """Hours since the first trial of the study began."""


WarmUpVerdict = Literal["warm-up", "steady", "drifting", "none"]


class WarmUp(Value):
    """Warm-up of one treatment within one start: the fixed count beside what detection found."""

    treatment: Treatment
    start: str
    response: str
    unit: str
    n: int
    """Valid trials in the series."""
    fixed_cut: int
    """Trials dropped by the study's fixed count."""
    detected_cut: int | None = None
    """Trials that MSER-5 would drop; None if the series is too short to say."""
    verdict: WarmUpVerdict
    """warm-up: a beginning to drop, level after it; steady: level from the first trial; drifting: a trend remains after
    the cut; none: no steady state can be shown."""
    detail: str
    changes: tuple[ChangePoint, ...] = ()
    """Change points over all valid trials of the start."""
    mean_all: Estimate
    mean_fixed: Estimate | None = None
    mean_detected: Estimate | None = None
    change_fixed: float | None = None
    """(mean_fixed - mean_all) / mean_all."""
    change_detected: float | None = None


ComparisonVerdict = Literal["slower", "faster", "higher", "lower", "undecided", "descriptive"]


class Comparison(Value):
    """Two levels of a factor: level against baseline, all else equal."""

    factor: str
    baseline: Level
    level: Level
    others: Treatment
    response: str
    unit: str
    ratio: Estimate
    """Mean of level over mean of baseline; its ends are None where the comparison is descriptive."""
    change_percent: Estimate
    """100 (ratio - 1)."""
    verdict: ComparisonVerdict
    sentence: str
    n_baseline: int
    n_level: int
    starts_baseline: int
    starts_level: int
    excluded: int
    p: float | None = None
    """Two-sided p that the ratio is 1, by the test whose interval `ratio` has; None below two starts a level."""
    p_holm: float | None = None
    """The same with Holm's correction over the `family`: all comparisons of the study's response that have a p."""
    family: int = 0
    survives_holm: bool | None = None
    """Whether a verdict that says a difference still would at `p_holm`; None where the verdict says none."""
    more_starts: int | None = None
    """Where undecided: further starts a level that would decide with a chance of 80% (`decide.more_starts`)."""
    more_s: float | None = None
    """How long these would take by the study's own pace, seconds."""
    floor_percent: Estimate | None = None
    """Change that 95% (the confidence) of comparisons of identical systems with as many starts and trials stay below;
    None where no noise floor is known."""
    floor_source: str = ""
    """Where that floor comes from, in words."""
    within_noise: bool = False
    """The interval leaves 1 out, but lies within the floor: undecided."""


class CurvePoint(Value):
    """A fitted law at one size, in the unit of what was fitted, with a pointwise interval of the fitted mean."""

    level: float
    value: float
    low: float | None = None
    high: float | None = None


class LawFit(Value):
    """A scalability law fitted over cluster sizes, or the reason why not."""

    law: Literal["usl", "amdahl", "linear"]
    load: Literal["saturated", "single"]
    """saturated: throughput over nodes; single: execution time over nodes, one closed-loop client thread."""
    factor: str
    others: Treatment
    response: str
    unit: str
    n: int
    """Points fitted: start means."""
    sizes: int
    """Different sizes."""
    parameters: dict[str, Estimate] = Field(default_factory=dict)
    """usl: base, sigma (contention), kappa (coherency); amdahl: base, sigma; linear: base. base is throughput of one
    node (saturated) or the time of one operation on one node in ms (single)."""
    residual_sd: Estimate | None = None
    """Of the logarithm."""
    aicc: float | None = None
    """Akaike's criterion, corrected for small n: compares laws fitted to the same points; smaller is better."""
    weight: float | None = None
    """Akaike's weight among the laws fitted to the same points: how far the data speak for this one, 0 to 1."""
    lack_of_fit_p: float | None = None
    """p of the F test that the sizes' means lie on the law; None where no size has two starts that differ."""
    peak_nodes: Estimate | None = None
    """Size of the greatest throughput, sqrt((1 - sigma) / kappa); None where the law has none."""
    curve: tuple[CurvePoint, ...] = ()
    refusal: str = ""
    """Why nothing was fitted; empty if something was."""


class LawChoice(Value):
    """Which law the data prefer on one line, in a sentence."""

    factor: str
    others: Treatment
    load: Literal["saturated", "single"]
    response: str
    n: int
    """Points fitted: start means."""
    sizes: int
    law: str | None = None
    """The preferred law; None where none was fitted, or the data do not decide."""
    sentence: str


class Drift(Value):
    """Change of the main response over the study, after each treatment's own mean is taken out."""

    n: int
    per_hour_percent: Estimate | None = None
    """Slope of log(value / treatment's geometric mean) over time of day, per cent an hour."""
    per_position_percent: Estimate | None = None
    """The same over the order within the start, per cent a trial."""
    sentence: str


class Results(Value):
    """Everything that the report and the command line show."""

    study: str
    title: str
    question: str
    response: str
    response_label: str
    unit: str
    confidence: float
    factors: dict[str, tuple[Level, ...]]
    hard: tuple[str, ...]
    size_factor: str | None
    """The numeric factor over which regressions, medians and laws run: nodes, else the first numeric hard factor."""
    trials: int
    """Attempts in the store."""
    used: int
    starts: int
    exclusions: tuple[Exclusion, ...]
    shares: tuple[str, ...]
    answer: tuple[str, ...]
    """The answer in words: two to five sentences."""
    caveats: tuple[str, ...]
    """What the answer does not say, and why."""
    summaries: tuple[Summary, ...]
    """The main response, one per treatment."""
    other_summaries: tuple[Summary, ...]
    """Every other response that some trial has, one per treatment and response."""
    regressions: tuple[Regression, ...]
    other_regressions: tuple[Regression, ...] = ()
    """Over every other numeric factor with three levels or more."""
    coefficients: tuple[Coefficient, ...] = ()
    """All factors at once, where two numeric ones vary or more."""
    size_lines: tuple[SizeLine, ...]
    boxes: tuple[Box, ...]
    points: tuple[Point, ...]
    """Every trial with a value of the main response, by time: for points beside boxes and value over trial number."""
    warm_ups: tuple[WarmUp, ...]
    comparisons: tuple[Comparison, ...]
    laws: tuple[LawFit, ...]
    law_choices: tuple[LawChoice, ...] = ()
    drift: Drift
    noise_floor: NoiseFloor
    stopping: Decision | None = None
    """Of the stopping rule, after the last whole block; None without a rule, or where the plan is not known."""
    effects: tuple[Effect, ...] = ()
    effect_lines: tuple[EffectLine, ...] = ()
    differentials: tuple[Differential, ...] = ()
    speedups: tuple[Speedup, ...] = ()
    anova: tuple[AnovaTerm, ...] = ()
    one_ways: tuple[OneWay, ...] = ()
    post_hoc: tuple[PostHoc, ...] = ()
    shapes: tuple[Shape, ...] = ()
    courses: tuple[Course, ...] = ()
    """Over the study: all treatments together, then each."""
    variance: tuple[VarianceComponents, ...] = ()
    """Of every response: all treatments together, then each."""
    steady: tuple[Steady, ...] = ()
    """Steady state within each used trial; empty as `parts`."""
    percentiles: tuple[TrialPercentile, ...] = ()
    """Percentiles within each used trial; empty as `parts`."""
    scaling: tuple[Scaling, ...] = ()
    """Speed-up and efficiency over sizes; empty where no factor is a size."""
    overall: tuple[Overall, ...] = ()
    """Geometric means of ratios over the levels of the other factors; empty with one factor."""
    main_effects: tuple[MainEffect, ...] = ()
    """Of a fractional design, which has few pairs of treatments that differ in one factor only."""
    merits: tuple[Merit, ...] = ()
    """Cost and energy beside throughput."""
    parts: tuple[PartMean, ...] = ()
    """Mean value analysis; empty where no series within trials was handed over."""


def label(treatment: Treatment) -> str:
    """A treatment as people read it: `workload A, 3 nodes`."""
    return treatment_label(treatment)


def part(name: str, level: Level) -> str:
    """One factor at one level as people read it: `3 nodes`, `workload A`, `load.threads 8`."""
    return level_label(name, level)
