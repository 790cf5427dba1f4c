"""Every table of the results as a data frame, and what each of its columns means: for `--json` and CSV.

A table is a list of columns; a column is its name, its meaning with unit, and how to read it from a result. So no
column can be without a description.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import polars as pl

from steelyard.analysis import stopping
from steelyard.analysis.columns import ESTIMATE, Column
from steelyard.analysis.columns import OF_RESPONSE as _OF_RESPONSE
from steelyard.analysis.columns import OF_UNIT as _OF_UNIT
from steelyard.analysis.effect_tables import NO_FACTORS, TITLES, more_tables
from steelyard.analysis.results import LABELS, Results
from steelyard.model.estimate import Estimate

Row = Mapping[str, Any]


def _value_of(name: str) -> Callable[[Any], Any]:
    """The bare number of an estimate that never has an interval."""
    return lambda one: None if getattr(one, name) is None else getattr(one, name).value


def _summary() -> tuple[Column, ...]:
    return (
        Column("response", "response, as named in the store", pl.String),
        Column("unit", "unit of the response", pl.String),
        Column("n", "used trials", pl.Int64),
        Column("starts", "starts of a cluster that the used trials came from", pl.Int64),
        Column("excluded", "trials (attempts) left out", pl.Int64),
        Column("excluded_because", "reasons and their trials", pl.String, lambda one: _reasons(one.exclusions)),
        Column("system_faults", "trials in which the system under test failed", pl.Int64),
        Column("mean", f"mean over trials, {_OF_UNIT}", ESTIMATE),
        Column("mean_z", f"the same mean with a normal interval, {_OF_UNIT}", ESTIMATE),
        Column("mean_of_starts", f"mean over start means, {_OF_UNIT}", ESTIMATE),
        Column("sd", f"standard deviation over trials (n - 1), {_OF_UNIT}", ESTIMATE),
        Column("min", f"least value, {_OF_UNIT}", pl.Float64, _value_of("min")),
        Column("q1", f"first quartile, {_OF_UNIT}", ESTIMATE),
        Column("median", f"median, {_OF_UNIT}", ESTIMATE),
        Column("q3", f"third quartile, {_OF_UNIT}", ESTIMATE),
        Column("max", f"greatest value, {_OF_UNIT}", pl.Float64, _value_of("max")),
        Column("range", f"greatest minus least value, {_OF_UNIT}", pl.Float64, _value_of("range")),
    )


def _fit(kind: str, about: str) -> tuple[Column, ...]:
    def read(name: str) -> Callable[[Any], Any]:
        return lambda one: None if getattr(one, kind) is None else getattr(getattr(one, kind), name)

    return (
        Column(f"{kind}_slope", f"{about}: slope, {_OF_UNIT} per step of the factor", ESTIMATE, read("slope")),
        Column(f"{kind}_intercept", f"{about}: intercept, {_OF_UNIT}", ESTIMATE, read("intercept")),
        Column(f"{kind}_r", f"{about}: Pearson's correlation, without unit", pl.Float64, read("r")),
        Column(f"{kind}_p", f"{about}: two-sided p-value of slope 0, without unit", pl.Float64, read("p")),
        Column(
            f"{kind}_std_err", f"{about}: standard error of the slope, unit of the slope", pl.Float64, read("std_err")
        ),
        Column(f"{kind}_n", f"{about}: points fitted", pl.Int64, read("n")),
    )


_REGRESSION = (
    Column("factor", "numeric factor on the x axis", pl.String),
    *_OF_RESPONSE,
    Column("n", "used trials", pl.Int64),
    Column("starts", "starts of a cluster", pl.Int64),
    Column("excluded", "trials (attempts) left out", pl.Int64),
    *_fit("published", "over trials, as richardson2017 printed it"),
    *_fit("honest", "over start means"),
    Column("note", "why a form is missing", pl.String),
)

_SIZE = (
    *_OF_RESPONSE,
    Column("n", "used trials", pl.Int64),
    Column("starts", "starts of a cluster", pl.Int64),
    Column("median", f"median over trials, {_OF_UNIT}", ESTIMATE),
    Column("mean", f"mean over start means, or over trials with one start, {_OF_UNIT}", ESTIMATE),
)

_POINT = (
    Column("trial_id", "trial", pl.String),
    Column("attempt", "attempt of the trial, from 1", pl.Int64),
    Column("value", "main response, in its unit", pl.Float64),
    Column("start", "start that the trial was made on", pl.String),
    Column("start_replicate", "which start of these hard-to-change levels, from 1", pl.Int64),
    Column("block", "block, from 1", pl.Int64),
    Column("order_in_start", "place among the trials of the start, from 1", pl.Int64),
    Column("order_of_treatment", "place among the valid trials of its treatment in the start, from 1", pl.Int64),
    Column("position", "place in the plan, from 0", pl.Int64),
    Column("used", "valid and no warm-up trial", pl.Boolean),
    Column("warm_up", "dropped by the fixed count", pl.Boolean),
    Column("control", "control trial", pl.Boolean),
    Column("outcome", "verdict on the trial", pl.String),
    Column("begun_s", "begin, seconds since the epoch", pl.Float64),
    Column("elapsed_h", "hours since the first trial of the study began", pl.Float64),
)

_WARM_UP = (
    Column("start", "start of a cluster", pl.String),
    *_OF_RESPONSE,
    Column("n", "valid trials in the series", pl.Int64),
    Column("fixed_cut", "trials dropped by the fixed count", pl.Int64),
    Column("detected_cut", "trials that MSER-5 drops", pl.Int64),
    Column("verdict", "warm-up, steady, drifting or none", pl.String),
    Column("detail", "the sentence behind the verdict", pl.String),
    Column("mean_all", f"mean of all valid trials, {_OF_UNIT}", ESTIMATE),
    Column("mean_fixed", f"mean after the fixed count, {_OF_UNIT}", ESTIMATE),
    Column("mean_detected", f"mean after the detected cut, {_OF_UNIT}", ESTIMATE),
    Column("change_fixed", "change of the mean by the fixed count, as a fraction", pl.Float64),
    Column("change_detected", "change of the mean by the detected cut, as a fraction", pl.Float64),
)

_COMPARISON = (
    Column("factor", "factor whose levels are compared", pl.String),
    Column("baseline", "level compared with", pl.String, lambda one: str(one.baseline)),
    Column("level", "level compared", pl.String, lambda one: str(one.level)),
    *_OF_RESPONSE,
    Column("ratio", "level over baseline, without unit", ESTIMATE),
    Column("change_percent", "100 (ratio - 1), per cent of the baseline", ESTIMATE),
    Column("verdict", "slower, faster, higher, lower, undecided or descriptive", pl.String),
    Column("sentence", "the comparison in words", pl.String),
    Column("n_baseline", "used trials of the baseline", pl.Int64),
    Column("n_level", "used trials of the level", pl.Int64),
    Column("starts_baseline", "starts of the baseline", pl.Int64),
    Column("starts_level", "starts of the level", pl.Int64),
    Column("excluded", "trials (attempts) of both that were left out", pl.Int64),
    Column("more_starts", "where undecided: further starts a level that would decide, starts", pl.Int64),
    Column("more_s", "how long these would take by the study's pace, seconds", pl.Float64),
    Column("p", "two-sided p of the test that the ratio is 1, without unit", pl.Float64),
    Column("p_holm", "the same, Holm's correction over the family, without unit", pl.Float64),
    Column("family", "comparisons of the family of Holm's correction", pl.Int64),
    Column("survives_holm", "whether a verdict of a difference survives Holm's correction", pl.Boolean),
    Column("within_noise", "the interval leaves 1 out but lies within the noise floor: undecided", pl.Boolean),
    Column(
        "floor_percent",
        "change that comparisons of identical systems, of as many starts and trials, stay below, %",
        ESTIMATE,
    ),
    Column("floor_source", "where that floor comes from", pl.String),
)

_LAW = (
    Column("law", "usl, amdahl or linear", pl.String),
    Column("load", "saturated: throughput is fitted; single: time per operation", pl.String),
    Column("factor", "factor of sizes", pl.String),
    *_OF_RESPONSE,
    Column("n", "start means fitted", pl.Int64),
    Column("sizes", "different sizes", pl.Int64),
    Column("base", f"the law's value at one node, {_OF_UNIT}", ESTIMATE, lambda one: one.parameters.get("base")),
    Column("sigma", "contention, without unit", ESTIMATE, lambda one: one.parameters.get("sigma")),
    Column("kappa", "coherency, without unit", ESTIMATE, lambda one: one.parameters.get("kappa")),
    Column("peak_nodes", "size of the greatest throughput, nodes", ESTIMATE),
    Column("residual_sd", "standard deviation of residuals of the logarithm, without unit", ESTIMATE),
    Column("aicc", "corrected Akaike criterion, without unit; smaller is better", pl.Float64),
    Column("weight", "Akaike's weight among the laws of the same points, 0 to 1", pl.Float64),
    Column("lack_of_fit_p", "p of the test that the sizes' means lie on the law, without unit", pl.Float64),
    Column("refusal", "why nothing was fitted", pl.String),
)

_CURVE = (
    Column("law", "usl, amdahl or linear", pl.String),
    Column("unit", "unit of value, low and high", pl.String),
    Column("size", "nodes", pl.Float64),
    Column("value", f"fitted value, {_OF_UNIT}", pl.Float64),
    Column("low", f"low end of the pointwise interval of the fitted value, {_OF_UNIT}", pl.Float64),
    Column("high", f"high end of the pointwise interval of the fitted value, {_OF_UNIT}", pl.Float64),
)

_VALIDITY = (
    Column("n", "trials looked at, control trials included", pl.Int64, lambda one: one.drift.n),
    Column("drift_per_hour", "change of the response, % an hour", ESTIMATE, lambda one: one.drift.per_hour_percent),
    Column(
        "drift_per_position", "change within a start, % a trial", ESTIMATE, lambda one: one.drift.per_position_percent
    ),
    Column("control_trials", "valid control trials", pl.Int64, lambda one: one.noise_floor.control_trials),
    Column("noise_floor", "coefficient of variation of identical trials of a start, as a fraction", ESTIMATE,
           lambda one: one.noise_floor.cv),
)  # fmt: skip

_EXCLUSION = (
    Column("reason", "why the trials were left out", pl.String),
    Column("trials", "trials (attempts)", pl.Int64),
)


class _Curve(NamedTuple):
    """One point of a fitted curve beside the law that it belongs to."""

    law: str
    unit: str
    size: float
    value: float
    low: float | None
    high: float | None


def _plan(results: Results) -> dict[str, tuple[tuple[Column, ...], list[tuple[Row, Any]]]]:
    """Table to its columns and its (levels, result) rows."""
    by_size: list[tuple[Row, Any]] = [
        ({**line.others, line.factor: point.level}, _Sized(line.response, line.unit, point))
        for line in results.size_lines
        for point in line.points
    ]
    curves: list[tuple[Row, Any]] = [
        (law.others, _Curve(law.law, law.unit, point.level, point.value, point.low, point.high))
        for law in results.laws
        for point in law.curve
    ]
    every_summary = (*results.summaries, *results.other_summaries)
    return {
        "summary": (_summary(), [(one.treatment, one) for one in every_summary]),
        "medians": (_SIZE, by_size),
        "regression": (_REGRESSION, [(one.others, one) for one in results.regressions]),
        "other_regression": (_REGRESSION, [(one.others, one) for one in results.other_regressions]),
        "comparison": (_COMPARISON, [(one.others, one) for one in results.comparisons]),
        "warm_up": (_WARM_UP, [(one.treatment, one) for one in results.warm_ups]),
        "law": (_LAW, [(one.others, one) for one in results.laws]),
        "law_curve": (_CURVE, curves),
        "trials": (_POINT, [(one.treatment, one) for one in results.points]),
        **more_tables(results),
        "stopping": (stopping.COLUMNS, stopping.rows(results.stopping)),
        "exclusions": (_EXCLUSION, [({}, one) for one in results.exclusions]),
        "validity": (_VALIDITY, [({}, results)]),
    }


class _Sized:
    """A point of a size line with its line's response and unit."""

    def __init__(self, response: str, unit: str, point: Any) -> None:
        self.response, self.unit = response, unit
        self.n, self.starts, self.median, self.mean = point.n, point.starts, point.median, point.mean


def tables(results: Results) -> dict[str, pl.DataFrame]:
    """Every table; factors come first, in the order of the study.

    An estimate x takes four columns: x, x_low, x_high, x_method.
    """
    return {name: _frame(spec, rows, _factors(results, name)) for name, (spec, rows) in _plan(results).items()}


def sources(results: Results) -> dict[str, tuple[tuple[Column, ...], list[tuple[Row, Any]]]]:
    """Table to its columns and its rows, each the levels of factors and the result: what every table is made from."""
    return _plan(results)


def columns(results: Results) -> dict[str, dict[str, str]]:
    """For each table and column: what it means, with its unit."""
    found: dict[str, dict[str, str]] = {}
    for name, (spec, _) in _plan(results).items():
        about = {factor: f"level of the factor {factor}" for factor in _factors(results, name)}
        for column in spec:
            about[column.name] = column.about
            if column.dtype == ESTIMATE:
                about[f"{column.name}_low"] = f"low end of the interval of {column.name}, in its unit"
                about[f"{column.name}_high"] = f"high end of the interval of {column.name}, in its unit"
                about[f"{column.name}_method"] = f"how {column.name} and its interval were computed"
        found[name] = about
    return found


def _factors(results: Results, table: str) -> tuple[str, ...]:
    if table in {"exclusions", "validity", *NO_FACTORS}:
        return ()
    over_sizes = table in {"regression", "law", "law_curve", "law_choice"}
    return tuple(name for name in results.factors if not (over_sizes and name == results.size_factor))


def _frame(spec: Sequence[Column], rows: Sequence[tuple[Row, Any]], factors: Sequence[str]) -> pl.DataFrame:
    data: dict[str, pl.Series] = {}
    for factor in factors:
        levels = [levels.get(factor) for levels, _ in rows]
        data[factor] = pl.Series(factor, levels, dtype=_type_of(levels), strict=False)
    for column in spec:
        read = column.read or _reader(column.name)
        values = [read(one) for _, one in rows]
        if column.dtype == ESTIMATE:
            data.update(_estimates(column.name, values))
        else:
            data[column.name] = pl.Series(column.name, values, dtype=column.dtype)
    return pl.DataFrame(data)


def _reader(name: str) -> Callable[[Any], Any]:
    return lambda one: getattr(one, name)


def _type_of(levels: Sequence[object]) -> Any:
    kinds = {type(level) for level in levels if level is not None}
    if kinds == {bool}:
        return pl.Boolean
    if kinds and kinds <= {int, float}:
        whole = all(level is None or float(str(level)).is_integer() for level in levels)
        return pl.Int64 if whole else pl.Float64
    return pl.String


def _estimates(name: str, values: Sequence[Estimate | None]) -> dict[str, pl.Series]:
    def series(suffix: str, field: str, dtype: Any) -> pl.Series:
        return pl.Series(f"{name}{suffix}", [None if v is None else getattr(v, field) for v in values], dtype=dtype)

    return {
        name: series("", "value", pl.Float64),
        f"{name}_low": series("_low", "low", pl.Float64),
        f"{name}_high": series("_high", "high", pl.Float64),
        f"{name}_method": series("_method", "method", pl.String),
    }


def _reasons(exclusions: Sequence[Any]) -> str:
    return "; ".join(f"{one.reason}: {one.trials}" for one in exclusions)


def titles(results: Results) -> dict[str, str]:
    """A caption for each table, naming the main response."""
    response = LABELS[results.response]
    return {
        "summary": "Each response of each treatment, over its used trials",
        "medians": f"Median {response} over {results.size_factor or 'sizes'}",
        "regression": f"Straight lines of {response} over {results.size_factor or 'sizes'}",
        "other_regression": f"Straight lines of {response} over the other numeric factors",
        "comparison": f"Levels of a factor against their baseline, by {response}",
        "warm_up": "Warm-up of each treatment in each start: fixed count and detection",
        "law": "Scalability laws over sizes",
        "law_curve": "Fitted scalability laws as curves",
        **{name: title.format(response=response) for name, title in TITLES.items()},
        "trials": f"Every trial with its {response}",
        "stopping": stopping.TITLE,
        "exclusions": "What was left out and why",
        "validity": "Drift and noise floor",
    }
