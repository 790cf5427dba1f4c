"""Variance components: between blocks, between starts, between the trials of a start.

Each component is a standard deviation, estimated from the sums of squares of blocks, of starts within blocks and of the
rest (type I, after the treatments), set equal to their expectations: the coefficients are traces of
projections, so numbers may be unequal (C. R. Henderson, Estimation of variance and covariance components,
Biometrics 9(2), 1953, method 3). A negative estimate is set to 0.

Intervals. Within starts: chi-squared. Between starts and blocks: modified large sample (N. Ting, R. K. Burdick,
F. A. Graybill, S. Jeyaratnam, T.-F. C. Lu, Confidence intervals on linear combinations of variance components, Journal
of Statistical Computation and Simulation 35, 1990). Share of the starts: the F interval of the intraclass correlation
(R. K. Burdick, F. A. Graybill, Confidence Intervals on Variance Components, Dekker 1992, section 3.4). All three take
normal effects; the second and third are exact or nearly so for equal numbers.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from steelyard.analysis.inference import estimates
from steelyard.analysis.inference.estimates import LARGEST_LOG
from steelyard.heavy import linalg, np, special
from steelyard.judging.t_interval import FEWEST_STARTS, half_width
from steelyard.model.estimate import Estimate

HARDLY = 0.05
"""Doubling a number is not worth it if it narrows the interval by less than this fraction."""
TINY = 1e-12
"""A sum of squares below this share of the whole is rounding."""

Numbers: TypeAlias = "np.ndarray[Any, Any]"


@dataclass(frozen=True)
class Stratum:
    """One mean square: its degrees of freedom, and the coefficient of each component in its expectation."""

    df: int
    mean_square: float
    blocks: float = 0.0
    starts: float = 0.0


@dataclass(frozen=True)
class Components:
    """Standard deviations between blocks, between starts (of a block) and within starts; None if not estimable."""

    between_blocks: Estimate | None
    between_starts: Estimate | None
    within_starts: Estimate | None
    icc: Estimate | None
    """Variance between starts / (it + the variance within starts)."""
    n: int
    starts: int
    blocks: int


def components(
    values: Sequence[float], starts: Sequence[object], *, blocks: Sequence[object] | None = None,
    treatments: Sequence[object] | None = None, unit: str = "", confidence: float = 0.95,
) -> Components:  # fmt: skip
    """Components of `values`, one a trial, with the start, block and treatment of each.

    Model: value = treatment (fixed) + block + start within block + trial. Where every block has one start, or all lie
    in one block, blocks are confounded with starts, which get the variance. For coefficients of variation hand
    over logarithms and turn the result with `as_cv`. ValueError for no values, or columns of unequal length.
    """
    y = np.asarray(values, dtype=float)
    columns = [starts, *(one for one in (blocks, treatments) if one is not None)]
    if not len(y) or any(len(one) != len(y) for one in columns):
        raise ValueError(f"{len(y)} values with columns of {', '.join(str(len(one)) for one in columns)}")
    nested = tuple(starts if blocks is None else zip(blocks, starts, strict=True))
    counts = {"n": len(y), "starts": len(set(nested)), "blocks": 1 if blocks is None else len(set(blocks))}
    block, start, rest = _strata(y, treatments, blocks, nested)
    about = _About(unit, confidence, counts)
    within = _within(rest, about) if rest.df > 0 else None
    between = _difference(start, rest, start.starts, about, "between starts") if start.df > 0 and rest.df > 0 else None
    over_blocks = None
    if block is not None and block.df > 0 and start.df > 0:
        over_blocks = _difference(block, start, block.blocks, about, "between blocks", rest.mean_square)
    icc = _icc(start, rest, about) if between is not None else None
    return Components(over_blocks, between, within, icc, **counts)


def mean_squares(
    values: Sequence[float], starts: Sequence[object], blocks: Sequence[object] | None = None
) -> tuple[Stratum, Stratum]:
    """Mean squares of starts, or of starts within blocks, and of trials within starts, of one treatment: the stored
    form of a noise floor. ValueError: no values, or columns of unequal length."""
    y = np.asarray(values, dtype=float)
    if not len(y) or len(starts) != len(y):
        raise ValueError(f"{len(y)} values with a column of {len(starts)}")
    _, start, rest = _strata(y, blocks, None, tuple(starts))
    return start, rest


def of_mean_squares(start: Stratum, rest: Stratum, *, n: int, starts: int, confidence: float = 0.95) -> Components:
    """Components from stored mean squares of `n` values of `starts` starts; as `components`."""
    about = _About("", confidence, {"n": n, "starts": starts, "blocks": 1})
    within = _within(rest, about) if rest.df > 0 else None
    between = _difference(start, rest, start.starts, about, "between starts") if start.df > 0 and rest.df > 0 else None
    return Components(None, between, within, _icc(start, rest, about) if between is not None else None, n, starts, 1)


@dataclass(frozen=True)
class _About:
    unit: str
    confidence: float
    counts: dict[str, int]


def _indicators(labels: Sequence[object]) -> Numbers:
    order = {key: place for place, key in enumerate(dict.fromkeys(labels))}
    indicators = np.zeros((len(labels), len(order)))
    indicators[np.arange(len(labels)), [order[key] for key in labels]] = 1.0
    return indicators


class _Added(NamedTuple):
    """What a stratum adds: an orthonormal basis, and the coefficient of each component in its mean square."""

    basis: Numbers
    blocks: float
    starts: float

    def stratum(self, y: Numbers, total: float) -> Stratum:
        """Its mean square of values whose whole sum of squares is `total`."""
        if not (df := self.basis.shape[1]):
            return Stratum(0, 0.0)
        squares = float(np.sum((self.basis.T @ y) ** 2))
        return Stratum(df, squares / df if squares > TINY * total else 0.0, self.blocks, self.starts)


def _strata(
    y: Numbers, fixed: Sequence[object] | None, blocks: Sequence[object] | None, starts: tuple[object, ...]
) -> tuple[Stratum | None, Stratum, Stratum]:
    """Mean squares of blocks after what is fixed, of starts after both, and of the residuals."""
    of_block, of_start, basis = _design(*(None if one is None else tuple(one) for one in (fixed, blocks)), starts)
    y = y - y.mean()
    total = float(y @ y)
    left = y - basis @ (basis.T @ y)
    df, squares = len(y) - basis.shape[1], float(left @ left)
    rest = Stratum(df, squares / df if df > 0 and squares > TINY * total else 0.0)
    return None if of_block is None else of_block.stratum(y, total), of_start.stratum(y, total), rest


@functools.lru_cache(maxsize=32)
def _design(
    fixed: tuple[object, ...] | None, blocks: tuple[object, ...] | None, starts: tuple[object, ...]
) -> tuple[_Added | None, _Added, Numbers]:
    """What blocks and starts add, and the basis of all. Every response of the same trials has the same.

    E(SS of Q) = sum over components of variance x trace(Z' Q Z), Q the projection that the stratum adds.
    """
    z_start = _indicators(starts)
    z_fixed = np.ones((len(starts), 1)) if fixed is None else _indicators(fixed)
    basis, block = z_fixed / np.sqrt(z_fixed.sum(axis=0)), None
    if blocks is not None:
        z_block = _indicators(blocks)
        added = _beyond(z_block, basis)
        both = np.hstack([basis, added])
        # Some block needs several starts, else blocks and starts are confounded.
        if added.shape[1] and _beyond(z_start, both).shape[1]:
            block, basis = _added(added, z_block, z_start), both
    start = _added(_beyond(z_start, basis), None, z_start)
    return block, start, np.hstack([basis, start.basis])


def _beyond(z: Numbers, basis: Numbers) -> Numbers:
    """An orthonormal basis of the part of the columns of z that is orthogonal to a basis."""
    left = z - basis @ (basis.T @ z)
    u, sizes, _ = linalg.svd(left, full_matrices=False)
    return np.asarray(u[:, sizes > 1e-9 * math.sqrt(len(z))])


def _added(q: Numbers, z_block: Numbers | None, z_start: Numbers) -> _Added:
    blocks, starts = (
        0.0 if z is None or not q.shape[1] else float(np.sum((q.T @ z) ** 2)) / q.shape[1] for z in (z_block, z_start)
    )
    return _Added(q, blocks, starts)


def _within(rest: Stratum, about: _About) -> Estimate:
    value, (low, high) = math.sqrt(rest.mean_square), estimates.of_deviation(rest.df, about.confidence)
    method = f"standard deviation within starts, chi-squared interval with {rest.df} degrees of freedom"
    return Estimate.of(value, (value * low, value * high), about.unit, about.confidence, about.counts["n"], method)


def _difference(
    upper: Stratum, lower: Stratum, times: float, about: _About, of: str, rest: float = 0.0
) -> Estimate | None:
    """sqrt((upper - lower) / times) of two mean squares, with the interval of Ting et al.

    With unequal numbers blocks hold c times as much of the starts' variance as starts do: then it is upper - c lower -
    (1 - c) rest, `rest` the mean square within starts, whose own error the interval leaves out.
    """
    if times <= TINY:
        return None
    share = upper.starts / lower.starts if of == "between blocks" and lower.starts > TINY else 1.0
    s1, s2, n1, n2 = upper.mean_square - (1 - share) * rest, share * lower.mean_square, upper.df, lower.df
    tail = (1 - about.confidence) / 2
    f_low, f_high = float(special.fdtri(n1, n2, 1 - tail)), float(special.fdtri(n1, n2, tail))
    g1, g2 = (1 - n / float(special.chdtri(n, tail)) for n in (n1, n2))
    h1, h2 = (n / float(special.chdtri(n, 1 - tail)) - 1 for n in (n1, n2))
    g12 = ((f_low - 1) ** 2 - g1**2 * f_low**2 - h2**2) / f_low
    h12 = ((1 - f_high) ** 2 - h1**2 * f_high**2 - g2**2) / f_high
    value = s1 - s2
    down = math.sqrt(max(g1**2 * s1**2 + h2**2 * s2**2 + g12 * s1 * s2, 0.0))
    up = math.sqrt(max(h1**2 * s1**2 + g2**2 * s2**2 + h12 * s1 * s2, 0.0))
    low, centre, high = (math.sqrt(max(one, 0.0) / times) for one in (value - down, value, value + up))
    seen = "" if value > 0 else "; nothing of it is seen beyond what lies below it"
    method = f"standard deviation {of}, mean squares with {n1} and {n2} degrees of freedom"
    method = f"{method}, modified large sample interval{seen}"
    return Estimate.of(centre, (low, high), about.unit, about.confidence, n1 + 1, method)


def _icc(start: Stratum, rest: Stratum, about: _About) -> Estimate | None:
    """(F - 1) / (F - 1 + k), k the trials per start; the interval of F / F quantile in its place."""
    if rest.mean_square <= 0 or start.starts <= TINY:
        return None
    f, k = start.mean_square / rest.mean_square, start.starts
    tail = (1 - about.confidence) / 2
    upper, lower = (float(special.fdtri(start.df, rest.df, p)) for p in (1 - tail, tail))

    def share(ratio: float) -> float:
        return max(0.0, (ratio - 1) / (ratio - 1 + k)) if ratio - 1 + k > 0 else 0.0

    method = f"intraclass correlation, F interval with {start.df} and {rest.df} degrees of freedom"
    ends = share(f / upper), share(f / lower)
    return Estimate.of(share(f), ends, "", about.confidence, about.counts["starts"], method)


def as_cv(estimate: Estimate | None) -> Estimate | None:
    """A standard deviation of logarithms as the coefficient of variation of the values, sqrt(exp(s^2) - 1)."""
    if estimate is None:
        return None
    method = f"coefficient of variation: {estimate.method}, of logarithms"
    return estimate.mapped(lambda s: math.sqrt(math.expm1(min(s**2, LARGEST_LOG))), "", method)


def advice(spread: Components, trials_a_start: float, starts: int, confidence: float = 0.95) -> str:
    """Advice on narrowing the interval of a mean over `starts`: more starts, more trials per start, or both; empty if
    unknown. With twice the starts the t interval narrows by its standard error and by its quantile; with twice the
    trials of a start only by the error."""
    if spread.between_starts is None or spread.within_starts is None:
        return ""
    between, within = spread.between_starts.value**2, spread.within_starts.value**2
    now = between + within / trials_a_start
    if now <= 0:
        return "nothing varies: more trials add nothing"
    by_trials = 1 - math.sqrt((between + within / (2 * trials_a_start)) / now)
    by_starts = "gives a mean its interval"
    if starts >= FEWEST_STARTS:
        narrower = 1 - half_width(1.0, 2 * starts, confidence) / half_width(1.0, starts, confidence)
        by_starts = f"narrows the interval of a mean by {narrower:.0%}"
    text = (
        f"doubling the {starts} {'start' if starts == 1 else 'starts'} {by_starts}, doubling the trials of a start "
        f"{'narrows it ' if starts >= FEWEST_STARTS else 'would narrow one '}by {by_trials:.0%}"
    )
    if by_trials < HARDLY:
        return f"{text}: more starts help, more trials hardly do"
    if between == 0:
        return f"{text}: starts are not seen to differ, though the interval does not rule it out: more starts are safe"
    return f"{text}: both help"
