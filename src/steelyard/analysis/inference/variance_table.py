"""Analysis of variance with type II sums of squares: each term after all terms that do not contain it.

By least squares on an orthogonal basis of indicator columns, so numbers may be unequal; in a balanced study all
types agree. Of several contrasts of the same units the squares are added up, and p has both degrees of freedom times
epsilon: by how much the contrasts differ in spread or go together (G. E. P. Box, Annals of Mathematical Statistics
25(3), 1954), estimated from the errors (S. W. Greenhouse, S. Geisser, On methods in the analysis of profile data,
Psychometrika 24(2), 1959), of few units rather too small than too large.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from steelyard.heavy import linalg, np, special

MOST_FACTORS_CROSSED = 3
"""Interactions of more factors are left in the error."""
TINY = 1e-12
"""A sum of squares below this share of the whole is rounding."""
Numbers: TypeAlias = "np.ndarray[Any, Any]"
Term = tuple[str, ...]
CONSTANT: Term = ()
"""The term of the mean itself: whether contrasts differ from 0."""


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
    """An analysis of variance: its terms and its error."""

    n: int
    lines: tuple[Line, ...]
    error_df: int
    error_squares: float
    epsilon: float | None = None
    """Factor by which p multiplies both degrees of freedom; None for a single contrast."""

    def degrees(self, df: int) -> tuple[float, float]:
        """Degrees of freedom of F of a term with this number of them, and of its error, as p has them."""
        epsilon = 1.0 if self.epsilon is None else self.epsilon
        return epsilon * df, epsilon * self.error_df


def table(
    y: Sequence[float] | Numbers, columns: Mapping[str, Sequence[Any]], terms: Sequence[Term],
    covariates: Sequence[str] = (),
) -> Table:  # fmt: skip
    """Type II analysis of variance of `y` over `terms`, tuples of names of `columns`.

    `y`: a value per row of the columns, or several orthonormal contrasts of it, shape (rows, contrasts). `covariates`:
    columns of numbers that are fitted before every term, as a straight line with one degree of freedom each. A term's
    columns are the indicators of its combinations of levels, so numbers may be unequal; a term without degrees of
    freedom of its own is left out. F is None without degrees of freedom for the error or without error.
    """
    values = np.asarray(y, dtype=float).reshape(len(y), -1)
    base = [np.asarray([columns[name]], dtype=float).T for name in covariates]
    if CONSTANT not in terms:
        base.append(np.ones((len(values), 1)))
        values = values - values[0]
        values = values - values.mean(axis=0)
    blocks = {term: _indicators([columns[name] for name in term], len(values)) for term in terms}
    error, whole_df = _residual(values, [*base, *blocks.values()])
    whole_ss = _squares(error)
    if whole_ss < TINY * _squares(values):
        whole_ss = 0.0
    whole = Table(len(values), (), whole_df, whole_ss, _epsilon(error) if values.shape[1] > 1 and whole_ss else None)
    lines = []
    for term in terms:
        without = [*base, *(blocks[one] for one in terms if not set(term) <= set(one))]
        (less, less_df), (more, more_df) = _residual(values, without), _residual(values, [*without, blocks[term]])
        df = less_df - more_df
        if df < 1:
            continue
        squares = max(_squares(less) - _squares(more), 0.0)
        f = p = None
        if whole_df > 0 and whole_ss > 0:
            f = squares / df / (whole_ss / whole_df)
            p = float(special.fdtrc(*whole.degrees(df), f))
        lines.append(Line(term, df, squares, f, p))
    return replace(whole, lines=tuple(lines))


def _indicators(columns: Sequence[Sequence[Any]], rows: int) -> Numbers:
    """One column of 0 and 1 for each combination of levels that occurs."""
    keys = list(zip(*columns, strict=True)) if columns else [()] * rows
    order = {key: place for place, key in enumerate(dict.fromkeys(keys))}
    indicators = np.zeros((rows, len(order)))
    indicators[np.arange(rows), [order[key] for key in keys]] = 1.0
    return indicators


def _residual(y: Numbers, blocks: Sequence[Numbers]) -> tuple[Numbers, int]:
    """(residuals, their degrees of freedom) of least squares on these columns."""
    if not blocks:
        return y, y.size
    basis = linalg.orth(np.hstack(blocks))
    return y - basis @ (basis.T @ y), (len(y) - basis.shape[1]) * y.shape[1]


def _squares(y: Numbers) -> float:
    return float(np.sum(y**2))


def _epsilon(error: Numbers) -> float:
    """(sum of eigenvalues)^2 / (contrasts x sum of squares of eigenvalues), of the contrasts' covariances."""
    products = error.T @ error
    return float(np.trace(products) ** 2 / (len(products) * np.sum(products**2)))


def contrasts(columns: Mapping[str, Sequence[Any]], term: Term, terms: Sequence[Term]) -> Numbers:
    """Orthonormal contrasts of treatments that belong to a term, after all of `terms` that do not contain it: shape
    (treatments, degrees of freedom). `columns`: the levels of each treatment."""
    rows = len(next(iter(columns.values())))
    blocks = {one: _indicators([columns[name] for name in one], rows) for one in terms}
    without = [np.ones((rows, 1)), *(blocks[one] for one in terms if not set(term) <= set(one))]
    added, _ = _residual(blocks[term], without)
    return np.asarray(linalg.orth(added, rcond=1e-9)) if _squares(added) > TINY else np.empty((rows, 0))


def crossed(names: Sequence[str]) -> list[Term]:
    """Main effects, then interactions of two and three factors."""
    most = min(len(names), MOST_FACTORS_CROSSED)
    return [term for size in range(1, most + 1) for term in itertools.combinations(names, size)]
