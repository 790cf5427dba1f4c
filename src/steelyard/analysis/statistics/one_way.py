"""One-way analysis of variance over all levels of a factor, with rank tests."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Any

from steelyard.analysis.comparisons.level_pairs import Over
from steelyard.analysis.frame import TrialFrame
from steelyard.analysis.inference.variance_table import CONSTANT, contrasts, table
from steelyard.analysis.row import NO_UNIT, Column, Levels, MeasuredRow, Number, P
from steelyard.analysis.statistic import Section, Statistic
from steelyard.analysis.statistics.anova import PLACE, Scale, blocked, mean_on, method_of, placed, scales_of
from steelyard.analysis.treatments import WORKLOADS, Treatment
from steelyard.heavy import np, pl, stats
from steelyard.model.responses import unit_of


class OneWay(MeasuredRow):
    """All levels of one factor at once, other factors fixed: analysis of variance, and a rank test."""

    factor: str
    """Factor whose levels are compared."""
    others: Levels
    over: Over
    """Unit that is counted: start means, or trials counted as independent."""
    scale: Scale
    """Values analysed: logarithms of start means, where all are above 0, or values as measured."""
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
    """Rank test: Kruskal-Wallis, Mann-Whitney; Friedman, Wilcoxon where the levels share starts or blocks."""
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
            forms.append(_independent(rows, response, factor, others, "trials", "as measured"))
    return tuple(forms)


def _over_starts(rows: pl.DataFrame, response: str, factor: str, others: Treatment, hard: bool) -> OneWay:
    """Levels that share their starts are compared within them, those of their own starts within whole blocks."""
    scale = scales_of(rows[response])[0]
    of_start = mean_on(scale, response), pl.col(PLACE).first()
    means = rows.group_by(factor, "start", "block", maintain_order=True).agg(*of_start)
    if hard and not blocked(means, [factor]):
        return _independent(means, response, factor, others, "start means", scale)
    shared = "block" if hard else "start"
    complete = means.filter(pl.len().over(shared) == means[factor].n_unique()).sort(shared, maintain_order=True)
    groups = [part.sort(shared)[response].to_list() for part in complete.partition_by(factor, maintain_order=True)]
    common = {"factor": factor, "others": others, "response": response, "unit": unit_of(response), "scale": scale,
              "levels": means[factor].n_unique(), "over": "start means", "n": complete.height}  # fmt: skip
    if complete[shared].n_unique() < 2:
        return OneWay.model_validate({**common, "note": "fewer than two starts have every level: no error term"})
    if hard:
        columns = {name: complete[name].to_list() for name in (shared, factor, PLACE)}
        result = table(complete[response].to_list(), columns, [(shared,), (factor,)], placed(complete, [factor]))
    else:
        of_levels = contrasts({factor: range(len(groups))}, (factor,), [(factor,)])
        result = table(np.transpose(groups) @ of_levels, {}, [CONSTANT])
    line = result.lines[-1]
    name, statistic, p = _ranks_of_blocks(groups)
    return OneWay.model_validate(
        {**common, "df": line.df, "error_df": result.error_df, "f": line.f, "p": line.p, "rank_test": name,
         "rank_statistic": statistic, "rank_p": p, "note": f"what a {shared} adds to all levels is taken out",
         "method": "" if line.f is None else _method(method_of(scale, result, line.df), name)}
    )  # fmt: skip


def _ranks_of_blocks(groups: Sequence[Sequence[float]]) -> tuple[str, float | None, float | None]:
    if all(group == groups[0] for group in groups):
        return "Friedman" if len(groups) > 2 else "Wilcoxon", None, None
    if len(groups) > 2:
        test = stats.friedmanchisquare(*groups)
        return "Friedman", _finite(test.statistic), _finite(test.pvalue)
    signed = stats.wilcoxon(groups[0], groups[1])
    return "Wilcoxon", _finite(signed.statistic), _finite(signed.pvalue)


def _independent(rows: pl.DataFrame, response: str, factor: str, others: Treatment, over: Over, scale: Scale) -> OneWay:
    groups = [[float(value) for value in part[response]] for part in rows.partition_by(factor, maintain_order=True)]
    values = [value for group in groups for value in group]
    common = {"factor": factor, "others": others, "response": response, "unit": unit_of(response), "scale": scale,
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
         "rank_statistic": statistic, "rank_p": p, "note": note,
         "method": "" if line.f is None else _method(method_of(scale, result, line.df), name)}
    )  # fmt: skip


def _method(of_f: str, rank_test: str) -> str:
    return f"{of_f}; {rank_test}'s test, asymptotic or exact"


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
    section=Section.SENSITIVITY,
    compute=lambda context: one_ways(context.frame, context.response),
    order=20,
    published_form=True,
)
