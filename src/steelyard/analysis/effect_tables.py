"""The tables of effects, differentials, speed-up, analysis of variance and parts of a trial: their columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import polars as pl

from steelyard.analysis.columns import ESTIMATE, OF_RESPONSE, OF_UNIT, Column
from steelyard.analysis.course import told
from steelyard.analysis.merit_tables import FACTORLESS, MERIT_TITLES, merit_tables
from steelyard.analysis.results import Results
from steelyard.model.estimate import Estimate

NO_FACTORS = frozenset({"anova", "coefficient", "noise_floor", *FACTORLESS})
"""Tables whose rows are not of a treatment."""

TITLES: Mapping[str, str] = {
    "effect": "Effect sizes of each level against its baseline, by {response}",
    "effect_line": "Straight lines of {response} over 0 (baseline) and 1 (level)",
    "differential": "Differences of {response}, trial by trial, of each level from its baseline",
    "speedup": "How many times faster each level is than its baseline, by {response}",
    "anova": "Analysis of variance of {response}",
    "one_way": "All levels of a factor at once, by {response}",
    "post_hoc": "All pairs of levels of a factor, by {response}",
    "shape": "Outliers, modes and normality of {response}",
    "coefficient": "All factors at once: coefficients for {response}",
    "law_choice": "Which scalability law the data prefer",
    "variance": "Where the spread comes from: blocks, starts, trials of a start",
    "noise_floor": "What identical systems differ by: the noise floor of every response",
    "course": "Level of {response} over the study: change points, MSER-5",
    "change": "Changes of the level of {response}",
    "steady": "Steady state within each trial",
    "parts": "Means over equal parts of a trial",
    **MERIT_TITLES,
}
"""Table to caption; `{response}` is the main response."""

_LEVELS = (
    Column("factor", "factor whose levels are compared", pl.String),
    Column("baseline", "level compared with", pl.String, lambda one: str(one.baseline)),
    Column("level", "level compared", pl.String, lambda one: str(one.level)),
)
_UNITS = (
    Column("n_baseline", "units of the baseline: start means, or trials", pl.Int64),
    Column("n_level", "units of the level: start means, or trials", pl.Int64),
)
_OVER = Column("over", "what counts as one unit: start means, or trials counted as independent", pl.String)

EFFECT = (
    *_LEVELS,
    *OF_RESPONSE,
    _OVER,
    Column("paired", "the levels are compared start by start", pl.Boolean),
    *_UNITS,
    Column("difference", f"mean of the level minus mean of the baseline, {OF_UNIT}", ESTIMATE),
    Column("cohens_d", "Cohen's d, standard deviations", ESTIMATE),
    Column("hedges_g", "Hedges' g, standard deviations", ESTIMATE),
    Column("cliffs_delta", "Cliff's delta, from -1 to 1", ESTIMATE),
    Column("ratio_fieller", "ratio of means, level over baseline, Fieller's interval, without unit", ESTIMATE),
    Column("ratio_bootstrap", "the same ratio, bootstrap interval, without unit", ESTIMATE),
    Column("margin_percent", "change that the study calls too small to matter, %", pl.Float64),
    Column("equivalence", "equivalent, not shown, no margin declared or too few starts", pl.String),
    Column("tost_p", "greater p of the two one-sided tests, without unit", pl.Float64),
    Column("more_starts", "further starts a level that would decide, starts", pl.Int64),
)

_STRATUM = (
    Column("form", "honest: the error of the level that was randomised; published: over trials", pl.String),
    Column("stratum", "where the error comes from: starts, within starts, trials", pl.String),
)

EFFECT_LINE = (
    *_LEVELS,
    *OF_RESPONSE,
    _OVER,
    Column("n", "units: start means, or trials", pl.Int64),
    Column("slope", f"difference of means, {OF_UNIT}", ESTIMATE),
    Column("intercept", f"mean of the baseline, {OF_UNIT}", ESTIMATE),
    Column("r", "Pearson's correlation of response and indicator, without unit", pl.Float64),
    Column("std_err", f"standard error of the slope, {OF_UNIT}", pl.Float64),
    Column("p", "two-sided p-value of slope 0, without unit", pl.Float64),
)

DIFFERENTIAL = (
    *_LEVELS,
    *OF_RESPONSE,
    Column("n", "pairs of trials", pl.Int64),
    Column("mean", f"mean of level minus baseline, {OF_UNIT}", ESTIMATE),
    Column("sd", f"standard deviation of the differences (n - 1), {OF_UNIT}", ESTIMATE),
    Column("min", f"least difference, {OF_UNIT}", pl.Float64),
    Column("q1", f"first quartile, {OF_UNIT}", ESTIMATE),
    Column("median", f"median difference, {OF_UNIT}", ESTIMATE),
    Column("q3", f"third quartile, {OF_UNIT}", ESTIMATE),
    Column("max", f"greatest difference, {OF_UNIT}", pl.Float64),
    Column("greatest", f"difference farthest from 0, with its sign, {OF_UNIT}", pl.Float64),
)

SPEEDUP = (
    *_LEVELS,
    Column("response", "response, as named in the store", pl.String),
    *_UNITS,
    Column("ratio_max_to_min", "speed-up at most: greatest to least, without unit", ESTIMATE),
    Column("ratio_min_to_max", "speed-up at least: least to greatest, without unit", ESTIMATE),
    Column("ratio_means", "speed-up by means, without unit", ESTIMATE),
    Column("ratio_medians", "speed-up by medians, without unit", ESTIMATE),
    Column("ratio_sds", "standard deviations in the same order, without unit", ESTIMATE),
)

ANOVA = (
    *_STRATUM,
    Column("term", "factors of the term, block, or error", pl.String),
    *OF_RESPONSE,
    Column("n", "values: start means, means of a treatment in a start, or trials", pl.Int64),
    Column("df", "degrees of freedom", pl.Int64),
    Column("error_df", "degrees of freedom of its error", pl.Int64),
    Column("sum_of_squares", "sum of squares (type II), squared unit of column `unit`", pl.Float64),
    Column("mean_square", "sum of squares / df, squared unit of column `unit`", pl.Float64),
    Column("f", "mean square / mean square of the error, without unit", pl.Float64),
    Column("eta_squared", "partial eta squared, without unit", ESTIMATE),
    Column("p", "p-value of F, without unit", pl.Float64),
    Column("p_holm", "the same, Holm's correction over the terms of the form, without unit", pl.Float64),
    Column("method", "how the statistics of the tests and their p were computed", pl.String),
    Column("note", "why a term is missing, or what was left out", pl.String),
)

ONE_WAY = (
    Column("factor", "factor whose levels are compared", pl.String),
    *OF_RESPONSE,
    _OVER,
    Column("n", "units: start means, or trials", pl.Int64),
    Column("levels", "levels with used trials", pl.Int64),
    Column("df", "degrees of freedom", pl.Int64),
    Column("error_df", "degrees of freedom of the error", pl.Int64),
    Column("f", "F of the one-way analysis of variance, without unit", pl.Float64),
    Column("p", "p-value of F, without unit", pl.Float64),
    Column("rank_test", "rank test beside it", pl.String),
    Column("rank_statistic", "its statistic (H, U, chi-squared or W), without unit", pl.Float64),
    Column("rank_p", "its p-value, without unit", pl.Float64),
    Column("method", "how the statistics of the tests and their p were computed", pl.String),
    Column("note", "why a form is missing, or what it takes for granted", pl.String),
)

POST_HOC = (
    *_LEVELS,
    *OF_RESPONSE,
    _OVER,
    *_UNITS,
    Column("pairs", "pairs that the correction is over", pl.Int64),
    Column("difference", f"mean of the level minus mean of the baseline, {OF_UNIT}", ESTIMATE),
    Column("p", "p-value of t, without unit", pl.Float64),
    Column("p_holm", "the same, Holm's correction over the pairs, without unit", pl.Float64),
    Column("rank_p", "p-value of the rank test, without unit", pl.Float64),
    Column("rank_p_holm", "the same, Holm's correction over the pairs, without unit", pl.Float64),
    Column("method", "how the statistics of the tests and their p were computed", pl.String),
)

SHAPE = (
    *OF_RESPONSE,
    Column("n", "used trials", pl.Int64),
    Column("starts", "starts of a cluster", pl.Int64),
    Column("outliers", "trials beyond Tukey's fences; none is removed", pl.Int64),
    Column("outlying", "these trials and their values", pl.String),
    Column("skewness", "sample skewness, without unit", pl.Float64),
    Column("normality_p", "p-value of Shapiro and Wilk's test, without unit", pl.Float64),
    Column("unimodality_p", "p-value of Silverman's test of one mode, without unit", pl.Float64),
    Column("verdict", "what is pointed out", pl.String),
)

COEFFICIENT = (
    *_STRATUM,
    Column("term", "intercept, a numeric factor, or a level against the first of its factor", pl.String),
    *OF_RESPONSE,
    Column("n", "values fitted: start means, means of a treatment in a start, or trials", pl.Int64),
    Column("value", f"coefficient, {OF_UNIT} per step of the factor, or from level to level", ESTIMATE),
    Column("std_err", "standard error of the coefficient, in its unit", pl.Float64),
    Column("p", "p-value of t, without unit", pl.Float64),
    Column("error_df", "degrees of freedom of the error", pl.Int64),
    Column("r_squared", "share of the stratum's sum of squares that all its factors explain, 0 to 1", pl.Float64),
    Column("note", "why there is none, or what was taken out", pl.String),
)

LAW_CHOICE = (
    Column("load", "saturated: throughput is fitted; single: time per operation", pl.String),
    Column("factor", "factor of sizes", pl.String),
    Column("response", "response, as named in the store", pl.String),
    Column("n", "start means fitted", pl.Int64),
    Column("sizes", "different sizes", pl.Int64),
    Column("law", "the preferred law: usl, amdahl or linear; none where the data do not decide", pl.String),
    Column("sentence", "the preference in words, or why there is none", pl.String),
)

VARIANCE = (
    Column("together", "all treatments at once, each about its own mean", pl.Boolean),
    Column("response", "response, as named in the store", pl.String),
    Column("n", "used trials", pl.Int64),
    Column("starts", "starts of a cluster", pl.Int64),
    Column("blocks", "blocks", pl.Int64),
    Column("between_blocks", "coefficient of variation between blocks, as a fraction", ESTIMATE),
    Column("between_starts", "coefficient of variation between starts, as a fraction", ESTIMATE),
    Column("within_starts", "coefficient of variation between the trials of a start, as a fraction", ESTIMATE),
    Column("icc", "variance between starts / (it + that within starts), without unit", ESTIMATE),
    Column("advice", "what would narrow the interval of a mean", pl.String),
    Column("note", "why a component is missing", pl.String),
)

NOISE_FLOOR = (
    *OF_RESPONSE,
    Column("source", "where the floor comes from: this study, control cells, kept floor", pl.String),
    Column("starts", "starts of identical systems that it rests on", pl.Int64),
    Column("trials", "used trials of them", pl.Int64),
    Column("between_cv", "coefficient of variation between starts, as a fraction", ESTIMATE),
    Column("within_cv", "coefficient of variation between the trials of a start, as a fraction", ESTIMATE),
    Column("level_starts", "starts a level that the next two hold for", pl.Int64),
    Column("level_trials", "used trials of a start that they hold for", pl.Int64),
    Column("floor_percent", "change that comparisons of identical systems stay below, levels on starts of their own, %",
           ESTIMATE),
    Column("floor_paired_percent", "the same of levels tried within the same starts, %", ESTIMATE),
    Column("pairs", "blocks with a start of both labels, in a study of identical systems", pl.Int64),
    Column("pair_ratio", "label B over label A, without unit", ESTIMATE),
    Column("pair_greatest_percent", "greatest change between the two starts of a block, %", pl.Float64),
)  # fmt: skip

COURSE = (
    Column("together", "all treatments at once, each less its own mean", pl.Boolean),
    *OF_RESPONSE,
    Column("over", "what a value is: start means, or the trials of a single start", pl.String),
    Column("n", "values", pl.Int64),
    Column("starts", "starts of a cluster", pl.Int64),
    Column("fixed_cut", "trials of each start dropped before by the fixed count", pl.Int64),
    Column("detected_cut", "values that MSER-5 drops", pl.Int64),
    Column("verdict", "warm-up, steady, drifting or none", pl.String),
    Column("detail", "the sentence behind the verdict", pl.String),
)

CHANGE = (
    Column("series", "study (as in table course), or the start whose trials they are", pl.String),
    Column("together", "all treatments at once, each less its own mean", pl.Boolean),
    Column("after", "values before the change", pl.Int64),
    Column("at_h", "hours since the first trial, of the first value after the change", pl.Float64),
    Column("change_percent", "level after the change less level before it, % of the latter", ESTIMATE),
    Column("p", "how rare so great a difference is in a series without a change, without unit", pl.Float64),
)

STEADY = (
    Column("trial_id", "trial", pl.String),
    Column("attempt", "attempt of the trial, from 1", pl.Int64),
    *OF_RESPONSE,
    Column("n", "seconds with an answered operation", pl.Int64),
    Column("detected_cut", "seconds that MSER-5 drops", pl.Int64),
    Column("verdict", "warm-up, steady, drifting or none", pl.String),
    Column("detail", "the sentence behind the verdict", pl.String),
    Column("change_detected", "change of the mean by the detected cut, as a fraction", pl.Float64),
    Column("likeness", "correlation of neighbours that the verdict allows for, without unit", pl.Float64),
    Column("changes", "changes of level: after how many seconds, by how much, p", pl.String,
           lambda one: told(one.changes)),
)  # fmt: skip

PARTS = (
    *OF_RESPONSE,
    Column("parts", "equal parts that each trial was cut into", pl.Int64),
    Column("part", "which part, from 1", pl.Int64),
    Column("n", "trials", pl.Int64),
    Column("mean", f"mean over trials of the part's mean, {OF_UNIT}", ESTIMATE),
    Column("mean_z", f"the same with a normal interval, {OF_UNIT}", ESTIMATE),
)


class _Changed(NamedTuple):
    """A change beside the series that it belongs to."""

    series: str
    together: bool
    after: int
    at_h: float | None
    change_percent: Estimate | None
    p: float


def _changes(results: Results) -> list[tuple[Mapping[str, Any], Any]]:
    """Changes over the study, then those within starts."""
    over = [(one.treatment, "study", one.together, change) for one in results.courses for change in one.changes]
    within = [(one.treatment, one.start, False, change) for one in results.warm_ups for change in one.changes]
    return [
        (treatment, _Changed(series, together, change.after, change.at_h, change.change_percent, change.p))
        for treatment, series, together, change in (*over, *within)
    ]


def more_tables(results: Results) -> dict[str, tuple[tuple[Column, ...], list[tuple[Mapping[str, Any], Any]]]]:
    """Table to its columns and its (levels, result) rows."""
    return {
        "effect": (EFFECT, [(one.others, one) for one in results.effects]),
        "effect_line": (EFFECT_LINE, [(one.others, one) for one in results.effect_lines]),
        "differential": (DIFFERENTIAL, [(one.others, one) for one in results.differentials]),
        "speedup": (SPEEDUP, [(one.others, one) for one in results.speedups]),
        "anova": (ANOVA, [({}, one) for one in results.anova]),
        "one_way": (ONE_WAY, [(one.others, one) for one in results.one_ways]),
        "post_hoc": (POST_HOC, [(one.others, one) for one in results.post_hoc]),
        "shape": (SHAPE, [(one.treatment, one) for one in results.shapes]),
        "coefficient": (COEFFICIENT, [({}, one) for one in results.coefficients]),
        "law_choice": (LAW_CHOICE, [(one.others, one) for one in results.law_choices]),
        "variance": (VARIANCE, [(one.treatment, one) for one in results.variance]),
        "noise_floor": (NOISE_FLOOR, [({}, one) for one in results.noise_floor.floors]),
        "course": (COURSE, [(one.treatment, one) for one in results.courses]),
        "change": (CHANGE, _changes(results)),
        "steady": (STEADY, [(one.treatment, one) for one in results.steady]),
        "parts": (PARTS, [(one.treatment, one) for one in results.parts]),
        **merit_tables(results),
    }
