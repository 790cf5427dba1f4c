"""The tables of effects, differentials, speed-up, analysis of variance and parts of a trial: their columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from steelyard.analysis.columns import ESTIMATE, OF_RESPONSE, OF_UNIT, Column
from steelyard.analysis.results import Results

NO_FACTORS = frozenset({"anova"})
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
    "steady": "Steady state within each trial",
    "parts": "Means over equal parts of a trial",
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
    Column("sd", f"standard deviation of the differences (n - 1), {OF_UNIT}", pl.Float64),
    Column("min", f"least difference, {OF_UNIT}", pl.Float64),
    Column("q1", f"first quartile, {OF_UNIT}", pl.Float64),
    Column("median", f"median difference, {OF_UNIT}", ESTIMATE),
    Column("q3", f"third quartile, {OF_UNIT}", pl.Float64),
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
    Column("form", "honest: the error of the level that was randomised; published: over trials", pl.String),
    Column("stratum", "where the error comes from: starts, within starts, trials", pl.String),
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

STEADY = (
    Column("trial_id", "trial", pl.String),
    Column("attempt", "attempt of the trial, from 1", pl.Int64),
    *OF_RESPONSE,
    Column("n", "seconds with an answered operation", pl.Int64),
    Column("detected_cut", "seconds that MSER-5 drops", pl.Int64),
    Column("verdict", "warm-up, steady, drifting or none", pl.String),
    Column("detail", "the sentence behind the verdict", pl.String),
    Column("change_detected", "change of the mean by the detected cut, as a fraction", pl.Float64),
)

PARTS = (
    *OF_RESPONSE,
    Column("parts", "equal parts that each trial was cut into", pl.Int64),
    Column("part", "which part, from 1", pl.Int64),
    Column("n", "trials", pl.Int64),
    Column("mean", f"mean over trials of the part's mean, {OF_UNIT}", ESTIMATE),
    Column("mean_z", f"the same with a normal interval, {OF_UNIT}", ESTIMATE),
)


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
        "steady": (STEADY, [(one.treatment, one) for one in results.steady]),
        "parts": (PARTS, [(one.treatment, one) for one in results.parts]),
    }
