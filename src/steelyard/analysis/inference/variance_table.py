"""Analysis of variance with type II sums of squares: each term after all terms that do not contain it.

By least squares on an orthogonal basis of indicator columns, so numbers may be unequal; in a balanced study all
types agree.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from steelyard.heavy import linalg, np, stats

MOST_FACTORS_CROSSED = 3
"""Interactions of more factors are left in the error."""
TINY = 1e-12
"""A sum of squares below this share of the whole is rounding."""
Numbers: TypeAlias = "np.ndarray[Any, Any]"
Term = tuple[str, ...]


@dataclass(frozen=True)
class Line:
    """One term: degrees of freedom and sum of squares; F and p if there is an error term."""

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

    A term's columns are the indicators of its combinations of levels, so numbers may be unequal; a term without
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
    indicators = np.zeros((len(keys), len(order)))
    indicators[np.arange(len(keys)), [order[key] for key in keys]] = 1.0
    return indicators


def _residual(y: Numbers, blocks: Sequence[Numbers]) -> tuple[float, int]:
    """(residual sum of squares, its degrees of freedom) of least squares on a constant and these columns."""
    basis = linalg.orth(np.hstack([np.ones((len(y), 1)), *blocks]))
    rest = y - basis @ (basis.T @ y)
    return float(rest @ rest), len(y) - basis.shape[1]


def crossed(names: Sequence[str]) -> list[Term]:
    """Main effects, then interactions of two and three factors."""
    most = min(len(names), MOST_FACTORS_CROSSED)
    return [term for size in range(1, most + 1) for term in itertools.combinations(names, size)]
