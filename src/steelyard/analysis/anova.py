"""Analysis of variance with the right error: a factor that varied over starts is held against starts.

A study is a split plot. Hard-to-change factors are randomised over starts (whole plots), the others over trials within
a start (sub-plots), so there are two error terms (F. Yates, Complex experiments, Supplement to the Journal of the Royal
Statistical Society 2, 1935). Block and start are random: a block effect is taken out of the starts, and a start's own
effect out of what is compared within it. With one start of each combination there is no error term for hard factors,
and none is made up.

Sums of squares are of type II, each term after all terms that do not contain it, by least squares on an
orthogonal basis of indicator columns; in a balanced study any other type gives the same.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from scipy import linalg, stats

from steelyard.analysis import effects
from steelyard.analysis.compare import WORKLOADS
from steelyard.analysis.decide import holm
from steelyard.analysis.findings import AnovaTerm, OneWay, Over
from steelyard.analysis.frame import TrialFrame
from steelyard.analysis.results import UNITS, Treatment

MOST_FACTORS_CROSSED = 3
"""Interactions of more factors than this are left in the error: nobody can read them."""
TINY = 1e-12
"""A sum of squares below this share of the whole is rounding."""

Numbers = np.ndarray[Any, Any]
Term = tuple[str, ...]


@dataclass(frozen=True)
class Line:
    """One term: degrees of freedom and sum of squares; F and p if there is an error to hold it against."""

    term: Term
    df: int
    squares: float
    f: float | None = None
    p: float | None = None


@dataclass(frozen=True)
class Table:
    """An analysis of variance: its terms, its error."""

    n: int
    lines: tuple[Line, ...]
    error_df: int
    error_squares: float


def table(y: Sequence[float], columns: Mapping[str, Sequence[object]], terms: Sequence[Term]) -> Table:
    """Type II analysis of variance of `y` over `terms`, tuples of names of `columns`.

    A term's columns are the indicators of its combinations of levels, so unequal numbers are no matter; a term without
    degrees of freedom of its own is left out. F is None without degrees of freedom for the error or without error.
    """
    values = np.asarray(y, dtype=float)
    values = values - values[0]
    values = values - values.mean()
    blocks = {term: _indicators([columns[name] for name in term]) for term in terms}
    whole_ss, whole_df = _residual(values, list(blocks.values()))
    total = float(values @ values)
    if whole_ss < TINY * total:
        whole_ss = 0.0
    lines = []
    for term in terms:
        without = [blocks[one] for one in terms if not set(term) <= set(one)]
        less_ss, less_df = _residual(values, without)
        more_ss, more_df = _residual(values, [*without, blocks[term]])
        df = less_df - more_df
        if df < 1:
            continue
        squares = max(less_ss - more_ss, 0.0)
        f = p = None
        if whole_df > 0 and whole_ss > 0:
            f = squares / df / (whole_ss / whole_df)
            p = float(stats.f.sf(f, df, whole_df))
        lines.append(Line(term, df, squares, f, p))
    return Table(len(values), tuple(lines), whole_df, whole_ss)


def _indicators(columns: Sequence[Sequence[object]]) -> Numbers:
    """One column of 0 and 1 for each combination of levels that occurs."""
    keys = list(zip(*columns, strict=True))
    order = {key: place for place, key in enumerate(dict.fromkeys(keys))}
    found = np.zeros((len(keys), len(order)))
    found[np.arange(len(keys)), [order[key] for key in keys]] = 1.0
    return found


def _residual(y: Numbers, blocks: Sequence[Numbers]) -> tuple[float, int]:
    """(residual sum of squares, its degrees of freedom) of least squares on a constant and these columns."""
    basis = linalg.orth(np.hstack([np.ones((len(y), 1)), *blocks]))
    rest = y - basis @ (basis.T @ y)
    return float(rest @ rest), len(y) - basis.shape[1]


def crossed(names: Sequence[str]) -> list[Term]:
    """Main effects, then interactions of two and three factors."""
    most = min(len(names), MOST_FACTORS_CROSSED)
    return [term for size in range(1, most + 1) for term in itertools.combinations(names, size)]


def anova(frame: TrialFrame, response: str, confidence: float = 0.95) -> tuple[AnovaTerm, ...]:
    """The split plot's two levels (`honest`), and trials counted as independent (`published`), over all factors.

    p-values of each form are corrected together (Holm).
    """
    rows = frame.values(response)
    names = [name for name in frame.names if rows[name].n_unique() > 1]
    if not names:
        return ()
    rows = rows.filter(pl.all_horizontal(pl.col(name).is_not_null() for name in names))
    hard = [name for name in names if name in frame.hard]
    easy = [name for name in names if name not in frame.hard]
    honest: list[AnovaTerm] = []
    if hard:
        honest += _between_starts(rows, response, hard, easy, confidence)
    if easy:
        honest += _within_starts(rows, response, hard, easy, confidence)
    published = _terms(
        table([float(value) for value in rows[response]], _columns(rows, names), crossed(names)),
        response, confidence, "published", "trials", "trials are counted as independent",
    )  # fmt: skip
    return (*_corrected(honest), *_corrected(published))


def _columns(rows: pl.DataFrame, names: Sequence[str]) -> dict[str, list[object]]:
    return {name: rows[name].to_list() for name in names}


def _between_starts(
    rows: pl.DataFrame, response: str, hard: Sequence[str], easy: Sequence[str], confidence: float
) -> Iterator[AnovaTerm]:
    """Hard factors against starts; the mean of a start is over the cells of the other factors, each counted once."""
    cells = _cell_means(rows, response, hard, easy)
    wanted = cells.select(easy).n_unique() if easy else 1
    starts = cells.group_by("start", "block", *hard, maintain_order=True).agg(pl.col(response).mean(), pl.len())
    kept = starts.filter(pl.col("len") == wanted)
    dropped = starts.height - kept.height
    per_cell = kept.group_by(hard).len()["len"].to_list() if kept.height else []
    if max(per_cell, default=0) < 2:
        yield _refused(response, "starts", hard, kept.height, (
            f"each combination of {' and '.join(hard)} was started once, so there is no error term: what one start "
            "differs from another cannot be told from what the levels differ"
        ))  # fmt: skip
        return
    columns = _columns(kept, hard)
    terms = crossed(hard)
    note = f"{dropped} starts without every combination of {' and '.join(easy)} are left out" if dropped else ""
    if _complete_blocks(kept, hard):
        columns["block"] = kept["block"].to_list()
        terms = [("block",), *terms]
    else:
        note = "; ".join(part for part in (note, "blocks are not complete: their effect stays in the error") if part)
    found = table([float(value) for value in kept[response]], columns, terms)
    yield from _terms(found, response, confidence, "honest", "starts", note)


def _complete_blocks(starts: pl.DataFrame, hard: Sequence[str]) -> bool:
    """Every block has every combination of hard factors once, and there are two blocks or more."""
    combinations, blocks = starts.select(hard).n_unique(), starts["block"].n_unique()
    once = starts.select("block", *hard).n_unique() == starts.height
    return blocks > 1 and combinations > 1 and once and starts.height == combinations * blocks


def _within_starts(
    rows: pl.DataFrame, response: str, hard: Sequence[str], easy: Sequence[str], confidence: float
) -> Iterator[AnovaTerm]:
    """The other factors, and their interactions with hard ones, against start x treatment."""
    cells = _cell_means(rows, response, hard, easy)
    terms: list[Term] = [term for term in crossed([*hard, *easy]) if any(name in easy for name in term)]
    columns = {**_columns(cells, [*hard, *easy]), "start": cells["start"].to_list()}
    found = table([float(value) for value in cells[response]], columns, [("start",), *terms])
    if found.error_df < 1:
        yield _refused(response, "within starts", easy, cells.height, (
            "each combination of hard-to-change factors was started once, so there is no error term: how a difference "
            "changes from start to start is not known"
        ))  # fmt: skip
        return
    kept = Table(
        found.n, tuple(line for line in found.lines if line.term != ("start",)), found.error_df, found.error_squares
    )
    yield from _terms(kept, response, confidence, "honest", "within starts", "means of the trials of a start are cells")


def _cell_means(rows: pl.DataFrame, response: str, hard: Sequence[str], easy: Sequence[str]) -> pl.DataFrame:
    """One row per start and combination of the other factors."""
    keys = ["start", "block", *hard, *easy]
    return rows.group_by(keys, maintain_order=True).agg(pl.col(response).cast(pl.Float64).mean())


def _refused(response: str, stratum: Any, names: Sequence[str], n: int, why: str) -> AnovaTerm:
    return AnovaTerm(
        form="honest", stratum=stratum, term=" x ".join(names), response=response, unit=UNITS[response], n=n, note=why
    )


def _terms(found: Table, response: str, confidence: float, form: Any, stratum: Any, note: str) -> Iterator[AnovaTerm]:
    common = {"form": form, "stratum": stratum, "response": response, "unit": UNITS[response], "n": found.n}
    for line in found.lines:
        eta = None
        if line.f is not None:
            eta = effects.eta_squared(line.f, line.df, found.error_df, confidence, found.n)
        yield AnovaTerm(
            **common, term=" x ".join(line.term), df=line.df, error_df=found.error_df, sum_of_squares=line.squares,
            mean_square=line.squares / line.df, f=line.f, p=line.p, eta_squared=eta, note=note,
        )  # fmt: skip
    if found.error_df > 0:
        yield AnovaTerm(
            **common, term="error", df=found.error_df, sum_of_squares=found.error_squares,
            mean_square=found.error_squares / found.error_df, note=note,
        )  # fmt: skip


def _corrected(terms: Sequence[AnovaTerm] | Iterator[AnovaTerm]) -> tuple[AnovaTerm, ...]:
    """With Holm's p over the terms of one form; blocks are no question and do not count."""
    listed = list(terms)
    p_holm = holm([None if one.term == "block" else one.p for one in listed])
    return tuple(one.model_copy(update={"p_holm": p}) for one, p in zip(listed, p_holm, strict=True))


def one_ways(frame: TrialFrame, response: str) -> tuple[OneWay, ...]:
    """All levels of each factor at once, other factors fixed: over start means where possible, and over trials."""
    found: list[OneWay] = []
    for factor in [name for name in frame.names if name not in WORKLOADS] or list(frame.names):
        for others in frame.others(factor):
            rows = frame.values(response, others).filter(pl.col(factor).is_not_null())
            if rows[factor].n_unique() < 2:
                continue
            found.append(_over_starts(rows, response, factor, others, factor in frame.hard))
            found.append(_independent(rows, response, factor, others, "trials"))
    return tuple(found)


def _over_starts(rows: pl.DataFrame, response: str, factor: str, others: Treatment, hard: bool) -> OneWay:
    means = rows.group_by(factor, "start", maintain_order=True).agg(pl.col(response).cast(pl.Float64).mean())
    if hard:
        return _independent(means, response, factor, others, "start means")
    levels = means[factor].n_unique()
    complete = means.filter(pl.len().over("start") == levels).sort("start", maintain_order=True)
    starts = complete["start"].n_unique()
    common = {"factor": factor, "others": others, "response": response, "unit": UNITS[response], "levels": levels,
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
         "rank_statistic": statistic, "rank_p": p, "note": "the start is a block"}
    )  # fmt: skip


def _ranks_of_blocks(groups: Sequence[Sequence[float]]) -> tuple[str, float | None, float | None]:
    if len(groups) > 2:
        found = stats.friedmanchisquare(*groups)
        return "Friedman", _finite(found.statistic), _finite(found.pvalue)
    if groups[0] == groups[1]:
        return "Wilcoxon", None, None
    signed = stats.wilcoxon(groups[0], groups[1])
    return "Wilcoxon", _finite(signed.statistic), _finite(signed.pvalue)


def _independent(rows: pl.DataFrame, response: str, factor: str, others: Treatment, over: Over) -> OneWay:
    groups = [[float(value) for value in part[response]] for part in rows.partition_by(factor, maintain_order=True)]
    values = [value for group in groups for value in group]
    common = {"factor": factor, "others": others, "response": response, "unit": UNITS[response],
              "levels": len(groups), "over": over, "n": len(values)}  # fmt: skip
    if len(values) <= len(groups):
        note = "each level was started once: no error term" if over == "start means" else "one trial a level"
        return OneWay.model_validate({**common, "note": note})
    result = table(values, {factor: _labels(groups)}, [(factor,)])
    line = result.lines[0]
    name, statistic, p = _ranks(groups)
    note = "trials of one start are repeated measures of it, counted as independent" if over == "trials" else ""
    return OneWay.model_validate(
        {**common, "df": line.df, "error_df": result.error_df, "f": line.f, "p": line.p, "rank_test": name,
         "rank_statistic": statistic, "rank_p": p, "note": note}
    )  # fmt: skip


def _ranks(groups: Sequence[Sequence[float]]) -> tuple[str, float | None, float | None]:
    """(name, statistic, p) of Mann-Whitney's test of two groups, Kruskal and Wallis's of more."""
    if len(groups) == 2:
        found = stats.mannwhitneyu(groups[0], groups[1])
        return "Mann-Whitney", _finite(found.statistic), _finite(found.pvalue)
    if len({value for group in groups for value in group}) == 1:
        return "Kruskal-Wallis", None, None
    ranks = stats.kruskal(*groups)
    return "Kruskal-Wallis", _finite(ranks.statistic), _finite(ranks.pvalue)


def _labels(groups: Sequence[Sequence[float]]) -> list[int]:
    return [place for place, group in enumerate(groups) for _ in group]


def _finite(value: Any) -> float | None:
    number = float(value)
    return number if math.isfinite(number) else None
