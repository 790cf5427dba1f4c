"""Audit of one cell: count, mean, standard deviation, order statistics, range."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import NamedTuple

from steelyard.reference.audit import bounds
from steelyard.reference.audit.bounds import Quartiles, Stretch
from steelyard.reference.audit.finding import Ledger, Place, figure, words
from steelyard.reference.printed import Printed
from steelyard.reference.rounding import EVERYTHING, Interval

FRACTIONS = {"min": 0.0, "q1": 0.25, "median": 0.5, "q3": 0.75, "max": 1.0}
"""Order statistics with a name; any other is a percentile, `p95`, `p99.9`."""
MOST_SUMS = 10_000
"""With more possible sums than this, the check of whole numbers is skipped: it excludes almost nothing."""
FEWEST_FOR_GROUPS = 20
VALLEY_RATIO = 5.0


def fraction_of(name: str) -> float | None:
    """The fraction of the values below this order statistic; None for another statistic."""
    if name in FRACTIONS:
        return FRACTIONS[name]
    return float(name[1:]) / 100 if name[:1] == "p" and name[1:2].isdigit() else None


class Conventions(NamedTuple):
    """Conventions behind the printed numbers; the defaults allow every usual one."""

    quartiles: Quartiles = "any"
    sd_divisors: tuple[int, ...] = (0, 1)
    """Possible k in the divisor n - k of the standard deviation."""
    whole_numbers: bool = False
    """Whether the summarised values are whole numbers."""
    design_count: int | None = None


class Cell(NamedTuple):
    """One group's printed summary. `labels`: the table's own names where they differ."""

    place: Place
    numbers: Mapping[str, Printed]
    labels: Mapping[str, str] = {}
    pooled: bool = False
    """Whether it pools other cells."""
    counted: int | None = None
    """The count, if it is known more precisely than from its printed digits."""
    positive: bool = False
    """Whether the values are durations, none of which is below 0."""

    def get(self, name: str) -> Interval | None:
        """The interval of the printed number; None if there is none."""
        printed = self.numbers.get(name)
        return None if printed is None else printed.interval

    def label(self, name: str) -> str:
        """The table's own name of a statistic."""
        return self.labels.get(name, name)

    def text(self, name: str) -> str:
        """Name and digits as printed."""
        return f"{self.label(name)} {self.numbers[name].text}"

    def texts(self, *names: str) -> str:
        """Names and digits of those of these statistics that were printed."""
        return ", ".join(self.text(name) for name in names if self.get(name) is not None)

    @property
    def n(self) -> int | None:
        """The number of values; None if the printed digits allow several."""
        printed = self.numbers.get("count")
        return self.counted if printed is None or self.counted is not None else printed.whole

    @property
    def fewest(self) -> tuple[int, bool]:
        """The smallest number of values that the printed count allows, and whether it is the only one; without a count
        2, the fewest that a summary is worth."""
        if self.n is not None:
            return self.n, True
        printed = self.get("count")
        return (2 if printed is None else max(2, math.ceil(printed.low))), False

    @property
    def order(self) -> dict[str, float]:
        """The order statistics that were printed, in their order, with their fractions."""
        known = {name: at for name in self.numbers if (at := fraction_of(name)) is not None and self.get(name)}
        return dict(sorted(known.items(), key=lambda pair: pair[1]))

    @property
    def largest(self) -> float:
        """The largest absolute value, as far as order statistics and mean show it."""
        known = [value.size().high for name in (*self.order, "mean") if (value := self.get(name)) is not None]
        return max(known, default=0.0)

    def spread(self) -> Interval:
        """Interval of the range, from range, maximum and minimum together."""
        known = self.get("range") or EVERYTHING
        least, most = self.get("min"), self.get("max")
        if least is not None and most is not None:
            known = known.within(most.minus(least))
        return known.within(Interval(0.0, math.inf))


def sd_of(ss: Interval, n: int, divisors: tuple[int, ...]) -> Interval:
    """Standard deviations of n values with these sums of squared deviations, for every divisor n - k."""
    return Interval(
        math.sqrt(max(ss.low, 0.0) / (n - min(divisors))), math.sqrt(max(ss.high, 0.0) / (n - max(divisors)))
    )


def ss_of(sd: Interval, n: int, divisors: tuple[int, ...]) -> Interval:
    """Sums of squared deviations of n values with these standard deviations, for every divisor n - k."""
    return Interval(max(sd.low, 0.0) ** 2 * (n - max(divisors)), sd.high**2 * (n - min(divisors)))


def sd_otherwise(sd: Interval, n: int | None, divisors: tuple[int, ...]) -> Interval:
    """The standard deviation by any allowed divisor: statistics derived from it may have used another one.

    sem and pandas divide by n - 1 where numpy's std divides by n. Without a count above 1 it is left as it is.
    """
    if n is None or n < 2:
        return sd
    factor = math.sqrt((n - min(divisors)) / (n - max(divisors)))
    return Interval(min(sd.low / factor, sd.low * factor), max(sd.high / factor, sd.high * factor))


def check(cell: Cell, how: Conventions, ledger: Ledger) -> None:
    """Make every check that this cell's numbers allow."""
    _count(cell, how, ledger)
    if not _order(cell, ledger):
        ledger.skip("percentiles out of order: they bound neither mean nor standard deviation of their row")
        cell = _ends_only(cell)
    _range(cell, ledger)
    _mean_and_deviation(cell, how, ledger)
    _derived(cell, how, ledger)
    _two_groups(cell, ledger)
    if how.whole_numbers:
        _whole_numbers(cell, how, ledger)


def _ends_only(cell: Cell) -> Cell:
    """The cell without order statistics, but for minimum and maximum if these two are in order."""
    least, most = cell.get("min"), cell.get("max")
    kept = () if least is not None and most is not None and least.low > most.high else ("min", "max")
    numbers = {name: value for name, value in cell.numbers.items() if fraction_of(name) is None or name in kept}
    return cell._replace(numbers=numbers)


def _count(cell: Cell, how: Conventions, ledger: Ledger) -> None:
    if how.design_count is None or cell.pooled or "count" not in cell.numbers:
        return
    n, printed = how.design_count, cell.numbers["count"].counted()
    times = round((printed.value or 0.0) / n)
    because = (
        f"the design's count; {printed.text} is {times} times that" if printed.value == times * n else "the design"
    )
    ledger.weigh("count", cell.place, cell.label("count"), printed, Interval(n, n), because)


def _order(cell: Cell, ledger: Ledger) -> bool:
    """Each order statistic against every one before it; a finding names all that it lies below."""
    fine = True
    names = list(cell.order)
    for at, after in enumerate(names):
        printed = cell.numbers[after]
        above = []
        for before in names[:at]:
            low = cell.get(before) or EVERYTHING
            ledger.holds("order", cell.label(before), cell.label(after))
            if printed.interval is not None and not printed.interval.meets(Interval(low.low, math.inf)):
                above.append((low.low, before))
        if above:
            fine = False
            highest = max(above)[0]
            because = (
                f"{cell.texts(*(name for _, name in above))}, and {cell.label(above[-1][1])} <= {cell.label(after)}"
            )
            ledger.add("order", "contradiction", cell.place, cell.label(after), printed,
                       Interval(highest, math.inf), because)  # fmt: skip
    return fine


def _range(cell: Cell, ledger: Ledger) -> None:
    for name, low, high in (("range", "min", "max"), ("iqr", "q1", "q3")):
        least, most = cell.get(low), cell.get(high)
        if least is not None and most is not None and name in cell.numbers:
            because = f"{cell.texts(high, low)}: {cell.label(name)} = {cell.label(high)} - {cell.label(low)}"
            should, printed = most.minus(least), cell.numbers[name]
            ledger.weigh("range", cell.place, cell.label(name), printed, should, because, values=cell.largest)


def stretches_of(cell: Cell, how: Conventions) -> list[Stretch] | None:
    """The bounds of the cell's sorted values, for its count and, if that is not exact, every greater one. None without
    an order statistic, or if these are out of order."""
    n, exact = cell.fewest
    quantiles = {share: value for name, share in cell.order.items() if (value := cell.get(name)) is not None}
    if cell.positive and 0.0 not in quantiles:
        quantiles[0.0] = Interval(0.0, math.inf)
    if n < 1 or not quantiles:
        return None
    stretches = bounds.order_bounds(n, quantiles, how.quartiles, exact=exact)
    return None if any(stretch.box.empty for stretch in stretches) else stretches


def _mean_and_deviation(cell: Cell, how: Conventions, ledger: Ledger) -> None:
    stretches, (n, exact) = stretches_of(cell, how), cell.fewest
    inner = [name for name, share in cell.order.items() if 0 < share < 1]
    if (
        cell.get("count") is None
        and not exact
        and inner
        and (cell.get("mean") is not None or cell.get("sd") is not None)
    ):
        ledger.skip("mean and standard deviation against percentiles without a count of values")
    mean = cell.get("mean")
    order = cell.texts("count", *cell.order, "range")
    used = [cell.label(name) for name in ("count", *(cell.order if exact else ("min", "max"))) if cell.get(name)]
    if mean is not None and stretches is not None:
        allowed = bounds.mean_bounds(stretches)
        because = f"{order}: the mean of values that have these order statistics"
        printed = cell.numbers["mean"]
        if allowed == (Interval(0.0, math.inf) if cell.positive else EVERYTHING):
            ledger.skip("a mean without minimum, maximum or percentiles that bound it")
        elif not ledger.weigh("mean", cell.place, cell.label("mean"), printed, allowed, because, values=cell.largest,
                              by=used):  # fmt: skip
            mean = None
    if cell.get("sd") is None:
        return
    if n < 2:
        ledger.skip("the standard deviation of fewer than two values")
        return
    should = sd_of(possible_ss(cell, stretches, mean or EVERYTHING), n, how.sd_divisors)
    if should == Interval(0.0, math.inf):
        ledger.skip("a standard deviation without a range, minimum and maximum, or percentiles that bound it")
        return
    because = (
        f"{order}{', ' + cell.text('mean') if mean else ''}: least and greatest standard deviation that such "
        "values can have (von Szokefalvi Nagy; Popoviciu; Bhatia and Davis)"
    )
    used += [cell.label(name) for name in ("range", "mean") if cell.get(name)]
    printed = cell.numbers["sd"]
    ledger.weigh("deviation", cell.place, cell.label("sd"), printed, should, because, values=cell.largest, by=used)


def possible_ss(cell: Cell, stretches: list[Stretch] | None, mean: Interval) -> Interval:
    """The sums of squared deviations allowed by everything except the printed standard deviation; for a count that is
    not exact, of the smallest one."""
    n, exact = cell.fewest
    ss = Interval(0.0, math.inf)
    if stretches is not None:
        ss = ss.within(bounds.stretches_ss(stretches, mean, exact=exact))
    spread = cell.spread()
    if not spread.empty and spread.low >= 0:
        ss = ss.within(bounds.range_ss(n, spread, exact=exact))
    least, most = cell.get("min"), cell.get("max")
    if mean != EVERYTHING and least is not None and most is not None:
        ss = ss.within(Interval(0.0, bounds.mean_ss(n, mean, least, most)))
    return ss


def _derived(cell: Cell, how: Conventions, ledger: Ledger) -> None:
    """Standard error and coefficient of variation."""
    sd, n, mean = cell.get("sd"), cell.n, cell.get("mean")
    if sd is None:
        return
    sd = sd_otherwise(sd, n, how.sd_divisors)
    if n is not None and n > 0 and "se" in cell.numbers:
        because = f"{cell.texts('sd', 'count')}: standard error = standard deviation / sqrt(count)"
        should, printed = sd.times(1 / math.sqrt(n)), cell.numbers["se"]
        used = (cell.label("sd"), cell.label("count"))
        ledger.weigh("standard error", cell.place, cell.label("se"), printed, should, because,
                     values=cell.largest, by=used)  # fmt: skip
    for name in ("cv_percent", "cv"):
        if mean is None or mean.size().low <= 0 or name not in cell.numbers:
            continue
        should, printed = sd.over(mean.size()).times(100.0), cell.numbers[name]
        if name == "cv" and printed.interval is not None and not printed.interval.meets(should):
            should = should.times(0.01)  # printed as a fraction
        because = f"{cell.texts('sd', 'mean')}: {'100 ' if should.high > 1 else ''}standard deviation / mean"
        used = (cell.label("sd"), cell.label("mean"))
        ledger.weigh("variation", cell.place, cell.label(name), printed, should, because, values=1.0, by=used)


def _two_groups(cell: Cell, ledger: Ledger) -> None:
    """Bimodality from the summary alone: a remark only where one group could hardly give these numbers.

    Both must hold for every value that the printed digits allow: sd > range / 3 sqrt(n / (n - 1)), which no
    distribution with one mode within that range has (Jacobson 1969, *Annals of Mathematical Statistics* 40(5)); and an
    inner quarter of the values (first quartile to median, or median to third quartile) spreads over at least 5 times
    the width of some quarter below and of some quarter above it, a valley between two heaps. Of samples of 21 from a
    uniform distribution 0.1% look so, of the worst mixture of a point and a uniform distribution 1.3% (simulated).
    """
    n, sd, spread = cell.n, cell.get("sd"), cell.spread()
    marks = [cell.get(name) for name in FRACTIONS]
    known = [mark for mark in marks if mark is not None]
    if cell.pooled or n is None or n < FEWEST_FOR_GROUPS or sd is None or len(known) < len(marks):
        return
    ledger.holds("two groups")
    gaps = [Interval(max(0.0, b.low - a.high), max(0.0, b.high - a.low)) for a, b in itertools.pairwise(known)]
    narrow = [max(gap.high, spread.high * 1e-12) for gap in gaps]
    valley = max(
        min(gaps[1].low / narrow[0], max(gaps[1].low / narrow[2], gaps[1].low / narrow[3])),
        min(gaps[2].low / narrow[3], max(gaps[2].low / narrow[0], gaps[2].low / narrow[1])),
    )
    limit = spread.high / 3 * math.sqrt(n / (n - 1))
    if sd.low <= limit or valley < VALLEY_RATIO:
        return
    wide = 1 if gaps[1].low > gaps[2].low else 2
    ends = (cell.text(list(FRACTIONS)[wide]), cell.text(list(FRACTIONS)[wide + 1]))
    because = (
        f"{cell.texts('count', *FRACTIONS)}: only a quarter of the values lies between {ends[0]} and {ends[1]}, the "
        f"others lie close together below and above; a standard deviation above {figure(limit)} (a third of the "
        "range) is more than one group of values has. The mean describes no value of the cell"
    )
    should = Interval(0.0, limit)
    ledger.add("two groups", "remark", cell.place, cell.label("sd"), cell.numbers["sd"], should, because)


def _whole_numbers(cell: Cell, how: Conventions, ledger: Ledger) -> None:
    """GRIM (Brown and Heathers 2017) and GRIMMER (Anaya 2016; Allard 2018): a mean of n whole numbers is a fraction
    S / n, and their sum of squares is a whole number with the same parity as S."""
    n, mean, sd = cell.n, cell.get("mean"), cell.get("sd")
    if n is None or n < 1 or mean is None:
        return
    slack = 1e-9 * max(1.0, abs(mean.low), abs(mean.high)) * n
    sums = range(math.ceil(mean.low * n - slack), math.floor(mean.high * n + slack) + 1)
    if len(sums) > MOST_SUMS:
        ledger.skip("means of whole numbers printed too coarsely to exclude a sum")
        return
    ledger.holds("whole numbers")
    if not sums:
        middle = round((cell.numbers["mean"].value or 0.0) * n)
        nearest = " or ".join(figure(total / n) for total in sorted({middle - 1, middle, middle + 1}))
        because = f"{cell.text('count')}: the mean of {n} whole numbers is a multiple of 1/{n} (GRIM)"
        ledger.add(
            "whole numbers", "contradiction", cell.place, cell.label("mean"), cell.numbers["mean"], nearest, because
        )
        return
    if sd is not None and n > 1 and not any(_squares(total, sd, n, how) for total in sums):
        because = (
            f"{cell.texts('count', 'mean')}: no {n} whole numbers of this mean have this standard deviation (GRIMMER)"
        )
        should = f"another value than {words(sd)}"
        ledger.add("whole numbers", "contradiction", cell.place, cell.label("sd"), cell.numbers["sd"], should, because)


def _squares(total: int, sd: Interval, n: int, how: Conventions) -> bool:
    """Whether some sum of squares fits this sum and standard deviation: whole, with the sum's parity, not below
    total^2 / n."""
    for divisor in how.sd_divisors:
        if n - divisor < 1:
            continue
        ss = Interval(max(sd.low, 0.0) ** 2 * (n - divisor), sd.high**2 * (n - divisor))
        low, high = (end + total**2 / n for end in ss)
        slack = 1e-9 * max(1.0, high)
        first = math.ceil(low - slack)
        first += (first - total) % 2
        if first <= high + slack:
            return True
    return False
