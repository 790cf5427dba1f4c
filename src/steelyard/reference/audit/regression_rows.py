"""Audit of printed regression lines, against their cells and for internal consistency."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from steelyard.heavy import special
from steelyard.reference.audit import bounds
from steelyard.reference.audit.finding import DUST, Ledger, Place, words
from steelyard.reference.audit.single_cell import Conventions, ss_of
from steelyard.reference.printed import Printed
from steelyard.reference.rounding import EVERYTHING, Interval, total

MOST_CELLS = 60


class Group(NamedTuple):
    """The values at one x: count, intervals of mean and standard deviation, and a name."""

    x: float
    n: int
    mean: Interval
    sd: Interval
    name: str


class Line(NamedTuple):
    """A printed line; names of `numbers`: slope, intercept, r, p, std_err. `labels`: the table's names."""

    place: Place
    numbers: Mapping[str, Printed]
    labels: Mapping[str, str] = {}

    def get(self, name: str) -> Interval | None:
        """The interval of the printed number; None if there is none."""
        printed = self.numbers.get(name)
        return None if printed is None else printed.interval

    def label(self, name: str) -> str:
        """The table's own name of a number."""
        return self.labels.get(name, name)

    def texts(self, *names: str) -> str:
        """Names and digits as printed."""
        return ", ".join(f"{self.label(name)} {self.numbers[name].text}" for name in names)


class Fitted(NamedTuple):
    """Ranges of the line through all values of the cells."""

    slope: Interval
    intercept: Interval
    r: Interval
    std_err: Interval


def fitted(groups: Sequence[Group], divisors: tuple[int, ...]) -> Fitted:
    """The least-squares line through all values of the groups, from their summaries alone.

    Slope and intercept are weighted sums of the means. With Sxx = sum of n (x - xbar)^2: r^2 = SSR / (SSR + SSE),
    SSR = slope^2 Sxx, SSE = sum of squares within the groups + misfit of their means; standard error =
    sqrt(SSE / (n - 2) / Sxx). Raises ValueError for fewer than two different x or fewer than three values.
    """
    n = sum(group.n for group in groups)
    centre = sum(group.n * group.x for group in groups) / n
    sxx = sum(group.n * (group.x - centre) ** 2 for group in groups)
    if n < 3 or sxx <= 0:
        raise ValueError("a line needs three values and two different x")
    slopes = [group.n * (group.x - centre) / sxx for group in groups]
    means = [group.mean for group in groups]
    slope = total(zip(slopes, means, strict=True))
    intercept = total((group.n / n - centre * share, group.mean) for group, share in zip(groups, slopes, strict=True))
    within = [ss_of(group.sd, group.n, divisors) for group in groups]
    misfit = bounds.misfit_ss([group.x for group in groups], [group.n for group in groups], means)
    sse = Interval(sum(one.low for one in within) + misfit.low, sum(one.high for one in within) + misfit.high)

    def correlation(a: float, rest: float) -> float:
        whole = a * a * sxx + rest
        return a * math.sqrt(sxx / whole) if whole > 0 else 0.0

    ends = [correlation(a, rest) for a in slope for rest in sse]
    std_err = Interval(math.sqrt(sse.low / (n - 2) / sxx), math.sqrt(sse.high / (n - 2) / sxx))
    return Fitted(slope, intercept, Interval(min(ends), max(ends)), std_err)


def check_cells(line: Line, groups: Sequence[Group], how: Conventions, ledger: Ledger) -> None:
    """Slope, intercept, r and standard error against the cells."""
    largest = max((group.mean.size().high for group in groups), default=0.0)
    if all(group.sd.high <= DUST * largest for group in groups):
        ledger.skip("a regression of values that do not vary within its cells")
        return
    try:
        if len(groups) > MOST_CELLS:
            raise ValueError("too many cells")
        allowed = fitted(groups, how.sd_divisors)
    except ValueError:
        ledger.skip("a regression over fewer than three values, one x, or too many cells")
        return
    shown = ", ".join(f"{group.name}: {words(group.mean)} (n {group.n})" for group in groups)
    effect = [group.x for group in groups] == [0.0, 1.0]
    means = f"means by rounding {shown}"
    kinds = {
        "slope": ("slope", "difference of the means" if effect else "least squares through the cells"),
        "intercept": ("intercept", "mean of the baseline" if effect else "least squares through the cells"),
        "r": ("correlation", "sums of squares of the line, within and between the cells"),
        "std_err": ("slope's error", "sums of squares within the cells and of their misfit"),
    }
    for name, (kind, why) in kinds.items():
        if name in line.numbers:
            should: Interval = getattr(allowed, name)
            size = 0.0 if name == "r" else largest
            because = f"{means}; {why}"
            ledger.weigh(kind, line.place, line.label(name), line.numbers[name], should, because, values=size)


def t_of_r(r: Interval, degrees: int) -> Interval:
    """t = r sqrt(df / (1 - r^2)); unbounded where r may be 1 or -1."""

    def t_value(value: float) -> float:
        value = max(-1.0, min(1.0, value))
        return math.copysign(math.inf, value) if abs(value) == 1 else value * math.sqrt(degrees / (1 - value**2))

    return Interval(t_value(r.low), t_value(r.high))


def p_of_t(t: Interval, degrees: int) -> Interval:
    """Two-sided p-values of Student's t."""
    size = t.size()
    return Interval(2 * float(special.stdtr(degrees, -size.high)), 2 * float(special.stdtr(degrees, -size.low)))


def check_bounds(line: Line, ledger: Ledger) -> bool:
    """Check |r| <= 1 and 0 <= p <= 1 where printed; returns whether both hold."""
    fine = True
    for name, should, what in (("r", Interval(-1, 1), "a correlation"), ("p", Interval(0, 1), "a probability")):
        if name in line.numbers:
            printed = line.numbers[name]
            fine &= ledger.weigh("bounds", line.place, line.label(name), printed, should, what)
    return fine


def check_itself(line: Line, n: int | None, ledger: Ledger) -> None:
    """Slope, standard error, r and p against each other, given the number of values."""
    slope, std_err, r, p = (line.get(name) for name in ("slope", "std_err", "r", "p"))
    if not check_bounds(line, ledger):
        return
    if slope is not None and r is not None:
        side = Interval(0.0, math.inf) if slope.low > 0 else Interval(-math.inf, 0.0) if slope.high < 0 else EVERYTHING
        ledger.weigh("sign", line.place, line.label("r"), line.numbers["r"], side, line.texts("slope"))
    if n is None or n < 3:
        ledger.skip("t and p of a regression without a number of values above 2")
        return
    by_error = by_r = EVERYTHING
    if slope is not None and std_err is not None and std_err.low > 0:
        by_error = slope.over(std_err)
    if r is not None:
        by_r = t_of_r(r, n - 2)
    agree = True
    if EVERYTHING not in (by_error, by_r) and slope is not None:
        should = slope.size().over(by_r.size()) if by_r.size().low > 0 else Interval(0.0, math.inf)
        because = f"{line.texts('slope', 'r')}, n {n}: standard error = slope / t, t = r sqrt((n-2)/(1-r^2))"
        should = should if should.low >= 0 else Interval(0.0, math.inf)
        agree = ledger.weigh(
            "slope's error", line.place, line.label("std_err"), line.numbers["std_err"], should, because
        )
    t = by_error.size().within(by_r.size()) if agree else EVERYTHING
    if p is not None and t.low > -math.inf and not t.empty:
        known = [name for name, t_known in (("slope", by_error), ("std_err", by_error), ("r", by_r)) if
                 t_known != EVERYTHING]  # fmt: skip
        because = f"{line.texts(*known)}, n {n}: |t| = {words(t)} with {n - 2} degrees of freedom"
        ledger.weigh("p-value", line.place, line.label("p"), line.numbers["p"], p_of_t(t, n - 2), because)
