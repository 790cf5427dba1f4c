"""One-way analysis of variance over all levels of a factor, with rank tests."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Any

import polars as pl
from scipy import stats

from steelyard.analysis.comparisons.level_pairs import Over
from steelyard.analysis.frame import TrialFrame
from steelyard.analysis.inference.variance_table import Line, table
from steelyard.analysis.row import NO_UNIT, Column, Levels, Number, P, Row
from steelyard.analysis.statistic import Section, Statistic
from steelyard.analysis.treatments import WORKLOADS, Treatment
from steelyard.model.responses import unit_of


class OneWay(Row):
    """All levels of one factor at once, other factors fixed: analysis of variance, and ranks beside it."""

    factor: str
    """Factor whose levels are compared."""
    others: Levels
    response: str
    """Response, as named in the store."""
    unit: str
    """Unit of the response."""
    over: Over
    """What counts as one unit: start means, or trials counted as independent."""
    n: int
    """Units: start means, or trials."""
    levels: int
    """Levels with used trials."""
    df: int | None = None
    """Degrees of freedom."""
    error_df: int | None = None
    """Degrees of freedom of the error."""
    f: Annotated[float | None, Column(unit=NO_UNIT, head="F")] = None
    """F of the one-way analysis of variance."""
    p: P = None
    """p-value of F."""
    rank_test: str = ""
    """Rank test beside it: Kruskal-Wallis, Mann-Whitney; Friedman or Wilcoxon where the levels share their starts."""
    rank_statistic: Number = None
    """Its statistic (H, U, chi-squared or W)."""
    rank_p: P = None
    """Its p-value."""
    method: str = ""
    """How the statistics of the tests and their p were computed."""
    note: str = ""
    """Why a form is missing, or what it takes for granted."""


def one_ways(frame: TrialFrame, response: str) -> tuple[OneWay, ...]:
    """All levels of each factor at once, other factors fixed: over start means where possible, and over trials."""
    forms: list[OneWay] = []
    for factor in [name for name in frame.names if name not in WORKLOADS] or list(frame.names):
        for others in frame.others(factor):
            rows = frame.values(response, others).filter(pl.col(factor).is_not_null())
            if rows[factor].n_unique() < 2:
                continue
            forms.append(_over_starts(rows, response, factor, others, factor in frame.hard))
            forms.append(_independent(rows, response, factor, others, "trials"))
    return tuple(forms)


def _over_starts(rows: pl.DataFrame, response: str, factor: str, others: Treatment, hard: bool) -> OneWay:
    means = rows.group_by(factor, "start", maintain_order=True).agg(pl.col(response).cast(pl.Float64).mean())
    if hard:
        return _independent(means, response, factor, others, "start means")
    levels = means[factor].n_unique()
    complete = means.filter(pl.len().over("start") == levels).sort("start", maintain_order=True)
    starts = complete["start"].n_unique()
    common = {"factor": factor, "others": others, "response": response, "unit": unit_of(response), "levels": levels,
              "over": "start means", "n": complete.height}  # fmt: skip
    if starts < 2:
        return OneWay.model_validate({**common, "note": "fewer than two starts have every level: no error term"})
    result = table(
        [float(value) for value in complete[response]],
        {"start": complete["start"].to_list(), factor: complete[factor].to_list()},
        [("start",), (factor,)],
    )
    line = next(one for one in result.lines if one.term == (factor,))
    groups = [complete.filter(pl.col(factor) == level).sort("start")[response].to_list()
              for level in complete[factor].unique(maintain_order=True)]  # fmt: skip
    name, statistic, p = _ranks_of_blocks(groups)
    return OneWay.model_validate(
        {**common, "df": line.df, "error_df": result.error_df, "f": line.f, "p": line.p, "rank_test": name,
         "rank_statistic": statistic, "rank_p": p, "method": _method(line, result.error_df, name),
         "note": "the start is a block"}
    )  # fmt: skip


def _ranks_of_blocks(groups: Sequence[Sequence[float]]) -> tuple[str, float | None, float | None]:
    if len(groups) > 2:
        test = stats.friedmanchisquare(*groups)
        return "Friedman", _finite(test.statistic), _finite(test.pvalue)
    if groups[0] == groups[1]:
        return "Wilcoxon", None, None
    signed = stats.wilcoxon(groups[0], groups[1])
    return "Wilcoxon", _finite(signed.statistic), _finite(signed.pvalue)


def _independent(rows: pl.DataFrame, response: str, factor: str, others: Treatment, over: Over) -> OneWay:
    groups = [[float(value) for value in part[response]] for part in rows.partition_by(factor, maintain_order=True)]
    values = [value for group in groups for value in group]
    common = {"factor": factor, "others": others, "response": response, "unit": unit_of(response),
              "levels": len(groups), "over": over, "n": len(values)}  # fmt: skip
    if len(values) <= len(groups):
        note = "each level was started once: no error term" if over == "start means" else "one trial per level"
        return OneWay.model_validate({**common, "note": note})
    result = table(values, {factor: _labels(groups)}, [(factor,)])
    line = result.lines[0]
    name, statistic, p = _ranks(groups)
    note = "trials of one start are repeated measures of it, counted as independent" if over == "trials" else ""
    return OneWay.model_validate(
        {**common, "df": line.df, "error_df": result.error_df, "f": line.f, "p": line.p, "rank_test": name,
         "rank_statistic": statistic, "rank_p": p, "method": _method(line, result.error_df, name),
         "note": note}
    )  # fmt: skip


def _method(line: Line, error_df: int, rank_test: str) -> str:
    if line.f is None:
        return ""
    return f"F with {line.df} and {error_df} degrees of freedom; {rank_test}'s test, asymptotic or exact"


def _ranks(groups: Sequence[Sequence[float]]) -> tuple[str, float | None, float | None]:
    """(name, statistic, p) of Mann-Whitney's test of two groups, Kruskal and Wallis's of more."""
    if len(groups) == 2:
        test = stats.mannwhitneyu(groups[0], groups[1])
        return "Mann-Whitney", _finite(test.statistic), _finite(test.pvalue)
    if len({value for group in groups for value in group}) == 1:
        return "Kruskal-Wallis", None, None
    ranks = stats.kruskal(*groups)
    return "Kruskal-Wallis", _finite(ranks.statistic), _finite(ranks.pvalue)


def _labels(groups: Sequence[Sequence[float]]) -> list[int]:
    return [place for place, group in enumerate(groups) for _ in group]


def _finite(value: Any) -> float | None:
    number = float(value)
    return number if math.isfinite(number) else None


STATISTIC = Statistic(
    name="one_way",
    row=OneWay,
    title="All levels of a factor at once, by {response}",
    section=Section.INTERACTIONS,
    compute=lambda context: one_ways(context.frame, context.response),
    order=20,
)
