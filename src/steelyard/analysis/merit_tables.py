"""The columns of percentiles within trials, speed-up, overall ratios, effects of a fraction, cost and energy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from steelyard.analysis.columns import ESTIMATE, OF_RESPONSE, Column
from steelyard.analysis.results import Results

FACTORLESS = frozenset({"overall", "main_effect"})
"""Tables whose rows are not of a treatment."""

MERIT_TITLES: Mapping[str, str] = {
    "percentile": "Percentiles of response time within each trial",
    "scaling": "Speed-up and efficiency against the smallest size",
    "overall": "Each level against its baseline over all other factors: geometric means of ratios of {response}",
    "main_effect": "Effects of the factors of a fractional design on {response}, with their aliases",
    "merit": "Throughput, cost and energy of each treatment",
}
"""Table to caption; `{response}` is the main response."""

PERCENTILE = (
    Column("trial_id", "trial", pl.String),
    Column("attempt", "attempt of the trial, from 1", pl.Int64),
    *OF_RESPONSE,
    Column("operations", "operations answered", pl.Int64),
    Column("needed", "operations that the percentile needs to be given", pl.Int64),
    Column("percentile", "the percentile over the trial's operations, ms", ESTIMATE),
    Column("note", "why there is none, or no end of its interval", pl.String),
)

SCALING = (
    Column("factor", "factor of sizes", pl.String),
    Column("base", "size compared with", pl.String, lambda one: str(one.base)),
    Column("level", "size", pl.String, lambda one: str(one.level)),
    Column("response", "response, as named in the store", pl.String),
    Column("starts_base", "starts of the base", pl.Int64),
    Column("starts_level", "starts of the size", pl.Int64),
    Column("speedup", "how many times faster than the base, without unit", ESTIMATE),
    Column("ideal", "size over base, without unit", pl.Float64),
    Column("efficiency", "speed-up over ideal, as a fraction", ESTIMATE),
    Column("sentence", "the speed-up in words", pl.String),
)

OVERALL = (
    Column("factor", "factor whose levels are compared", pl.String),
    Column("baseline", "level compared with", pl.String, lambda one: str(one.baseline)),
    Column("level", "level compared", pl.String, lambda one: str(one.level)),
    Column("response", "response, as named in the store", pl.String),
    Column("cells", "combinations of the other factors that have both levels", pl.Int64),
    Column("left_out", "combinations that lack one of them", pl.Int64),
    Column("starts", "starts of a cluster", pl.Int64),
    Column("ratio", "geometric mean of the cells' ratios, level over baseline, without unit", ESTIMATE),
    Column("least", "least ratio of a cell, without unit", pl.Float64),
    Column("least_at", "where the least ratio is", pl.String),
    Column("greatest", "greatest ratio of a cell, without unit", pl.Float64),
    Column("greatest_at", "where the greatest ratio is", pl.String),
    Column("verdict", "slower, faster, higher, lower, undecided or descriptive", pl.String),
    Column("sentence", "the ratio in words", pl.String),
)

MAIN_EFFECT = (
    Column("factor", "factor whose levels are compared", pl.String),
    Column("baseline", "level compared with", pl.String, lambda one: str(one.baseline)),
    Column("level", "level compared", pl.String, lambda one: str(one.level)),
    Column("response", "response, as named in the store", pl.String),
    Column("n", "treatments that the effect rests on", pl.Int64),
    Column("starts", "starts of a cluster", pl.Int64),
    Column("ratio", "geometric mean of the treatments at the level over that at the baseline, without unit", ESTIMATE),
    Column("verdict", "slower, faster, higher, lower, undecided or descriptive", pl.String),
    Column("aliases", "interactions that cannot be told from it", pl.String),
    Column("sentence", "the effect in words", pl.String),
)

MERIT = (
    Column("n", "used trials", pl.Int64),
    Column("starts", "starts of a cluster", pl.Int64),
    Column("nodes", "nodes that are paid for and fed", pl.Int64),
    Column("throughput_per_s", "operations answered without error, operations/s", ESTIMATE),
    Column("cost_per_million_operations", "price of the nodes for a million operations, in the study's currency",
           ESTIMATE),
    Column("cost_basis", "declared or none", pl.String),
    Column("energy_j_per_million_operations", "energy of the nodes for a million operations, J", ESTIMATE),
    Column("energy_basis", "measured, declared or none", pl.String),
    Column("note", "why a number is missing, and what it holds", pl.String),
)  # fmt: skip


def merit_tables(results: Results) -> dict[str, tuple[tuple[Column, ...], list[tuple[Mapping[str, Any], Any]]]]:
    """Table to its columns and its (levels, result) rows."""
    return {
        "percentile": (PERCENTILE, [(one.treatment, one) for one in results.percentiles]),
        "scaling": (SCALING, [(one.others, one) for one in results.scaling]),
        "overall": (OVERALL, [({}, one) for one in results.overall]),
        "main_effect": (MAIN_EFFECT, [({}, one) for one in results.main_effects]),
        "merit": (MERIT, [(one.treatment, one) for one in results.merits]),
    }
