"""Audit of comparisons of two groups: effect sizes, ratios, differences, percentages, copied rows."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from steelyard.reference.audit.finding import DUST, Ledger, Place, words
from steelyard.reference.audit.single_cell import sd_otherwise
from steelyard.reference.printed import Printed
from steelyard.reference.rounding import Interval, hull

FEWEST_DIGITS = 3
FEWEST_COPIES = 4


class Side(NamedTuple):
    """One of the two groups that are compared, as printed."""

    mean: Printed
    sd: Printed | None = None
    n: int | None = None


Pooling = Literal[
    "root mean square", "pooled by n - 1", "pooled by n", "the first group's", "the second group's", "Hedges' g"
]


def effect_sizes(first: Side, second: Side, divisors: tuple[int, ...]) -> dict[str, Interval]:
    """|Cohen's d| by every usual denominator that the numbers allow.

    `root mean square`: sqrt((s1^2 + s2^2) / 2). `pooled by n - 1`: sqrt(((n1-1) s1^2 + (n2-1) s2^2) / (n1+n2-2))
    (Cohen 1988, chapter 2); `pooled by n`: the same over n1 + n2. `the first group's`, `the second group's`: Glass
    1976. `Hedges' g`: the pooled one times the correction of Hedges 1981, exact or as 1 - 3 / (4 df - 1). `divisors`:
    possible k in the divisor n - k of the standard deviations. Denominators that need a missing count, or are 0, are
    left out; one that may be 0 gives no upper end.
    """
    if first.sd is None or second.sd is None:
        return {}
    means, sds = (first.mean.interval, second.mean.interval), (first.sd.interval, second.sd.interval)
    if means[0] is None or means[1] is None or sds[0] is None or sds[1] is None:
        return {}
    away = means[0].minus(means[1]).size()
    n1, n2 = first.n, second.n
    squares = tuple(
        sd_otherwise(sd.size(), n, divisors).squared() for sd, n in ((sds[0], n1), (sds[1], n2)) if sd is not None
    )
    below = {
        "root mean square": squares[0].plus(squares[1]).times(0.5).root(),
        "the first group's": squares[0].root(),
        "the second group's": squares[1].root(),
    }
    degrees = 0
    if n1 is not None and n2 is not None and n1 + n2 > 3 and min(n1, n2) >= 1:
        degrees = n1 + n2 - 2
        within = squares[0].times(n1 - 1).plus(squares[1].times(n2 - 1))
        below["pooled by n - 1"] = within.times(1 / degrees).root()
        below["pooled by n"] = within.times(1 / (n1 + n2)).root()
    dust = DUST * max(mean.size().high for mean in means if mean is not None)
    sizes = {
        name: away.over(sd) if sd.low > dust else Interval(away.low / sd.high, math.inf)
        for name, sd in below.items()
        if sd.high > dust
    }
    if "pooled by n - 1" in sizes:
        sizes["Hedges' g"] = sizes["pooled by n - 1"].by(_hedges(degrees))
    return sizes


def _hedges(degrees: int) -> Interval:
    """Hedges' correction for these degrees of freedom (2 or more): exact, and its usual approximation."""
    exact = math.exp(math.lgamma(degrees / 2) - math.lgamma((degrees - 1) / 2)) / math.sqrt(degrees / 2)
    near = 1 - 3 / (4 * degrees - 1)
    return Interval(min(exact, near), max(exact, near))


def check_effect(
    place: Place,
    column: str,
    printed: Printed,
    sides: tuple[Side, Side],
    pooling: Pooling | None,
    divisors: tuple[int, ...],
    ledger: Ledger,
) -> None:
    """The printed effect size against means and standard deviations; the sign is free.

    With `pooling` None any usual denominator is accepted. The finding gives the result of each, and the difference
    of means that the printed number would need.
    """
    first, second = sides
    sizes = effect_sizes(first, second, divisors)
    if printed.interval is None:
        return
    if not sizes or (pooling is not None and pooling not in sizes):
        ledger.skip("an effect size without the two means and standard deviations above 0")
        return
    size = printed.interval.size()
    accepted = sizes if pooling is None else {pooling: sizes[pooling]}
    ledger.holds("effect size")
    if any(size.meets(allowed) for allowed in accepted.values()):
        return
    shown = ", ".join(f"{words(allowed)} by {name}" for name, allowed in sizes.items())
    fits = [name for name, allowed in sizes.items() if size.meets(allowed)]
    others = f"; it would be right by {', '.join(fits)}" if fits else "; no usual denominator gives the printed one"
    sd1, sd2 = first.sd, second.sd
    below = _root_mean_square(first, second)
    because = (
        f"means {first.mean.text} and {second.mean.text}, standard deviations {sd1.text if sd1 else ''} and "
        f"{sd2.text if sd2 else ''}: |d| is {shown}{others}"
    )
    if below is not None:
        because += f"; the printed one needs means that differ by {words(size.by(below))}"
    should = hull(accepted.values())
    ledger.add("effect size", "contradiction", place, column, printed, should, because)


def _root_mean_square(first: Side, second: Side) -> Interval | None:
    sd1 = None if first.sd is None else first.sd.interval
    sd2 = None if second.sd is None else second.sd.interval
    return None if sd1 is None or sd2 is None else sd1.squared().plus(sd2.squared()).times(0.5).root()


def check_ratio(place: Place, column: str, printed: Printed, over: Printed, under: Printed, ledger: Ledger) -> None:
    """printed = over / under."""
    top, bottom = over.interval, under.interval
    if top is None or bottom is None:
        return
    if bottom.low <= 0 <= bottom.high:
        ledger.skip("a ratio whose divisor may be 0")
        return
    ledger.weigh("ratio", place, column, printed, top.over(bottom), f"{over.text} / {under.text}")


Both = Sequence[tuple[Printed, Printed]]
"""Pairs of numbers that the printed one may refer to (means, medians); at least one pair."""


def nearest(
    kind: str,
    place: Place,
    column: str,
    printed: Printed,
    ways: Mapping[str, Interval],
    ledger: Ledger,
    *,
    by: Sequence[str] = (),
) -> None:
    """Accept any of several formulas for the number; a finding names the nearest one, and all others. `by`: the
    columns that they come from."""
    meant = printed.interval
    if meant is None:
        return
    if not ways:
        ledger.skip(MAY_BE_ZERO)
        return
    close = min(ways.values(), key=lambda way: abs(way.gap(meant)))
    because = ", ".join(f"{way} = {words(ways[way])}" for way in ways)
    ledger.weigh(kind, place, column, printed, close, because, by=by)


def check_any_ratio(place: Place, column: str, printed: Printed, both: Both, ledger: Ledger) -> None:
    """Check a ratio of the two groups, in either direction."""
    ways = {}
    for first, second in both:
        for over, under in ((first, second), (second, first)):
            if over.interval and under.interval and not under.interval.low <= 0 <= under.interval.high:
                ways[f"{over.text} / {under.text}"] = over.interval.over(under.interval)
    least = _least_over_zero(both)
    if least is not None and printed.interval is not None and printed.interval.size().high >= least:
        ledger.skip(MAY_BE_ZERO)
        return
    nearest("ratio", place, column, printed, ways, ledger)


MAY_BE_ZERO = "a ratio or percentage whose divisor may be 0"


def _least_over_zero(both: Both) -> float | None:
    """Smallest absolute value of a quotient whose divisor may be 0, in either direction; None if no divisor may be."""
    sizes = [
        over.interval.size().low / under.interval.size().high if under.interval.size().high else 0.0
        for one, other in both
        for over, under in ((one, other), (other, one))
        if over.interval and under.interval and under.interval.low <= 0 <= under.interval.high
    ]
    return min(sizes, default=None)


def check_difference(place: Place, column: str, printed: Printed, both: Both, ledger: Ledger) -> None:
    """Check a difference of the two groups, in either direction."""
    ways = {}
    for left, right in both:
        for first, second in ((left, right), (right, left)):
            if first.interval and second.interval:
                ways[f"{first.text} - {second.text}"] = first.interval.minus(second.interval)
    nearest("difference", place, column, printed, ways, ledger)


def changes(first: Printed, second: Printed) -> dict[str, Interval]:
    """Every usual percentage from two numbers: change of either from the other as a rise and as a fall, and the share
    of one in the other. Excludes those whose divisor may be 0."""
    percentages = {}
    for over, under in ((second, first), (first, second)):
        if over.interval and under.interval and not under.interval.low <= 0 <= under.interval.high:
            share, text = over.interval.over(under.interval).times(100), f"{over.text} / {under.text}"
            percentages[f"100 ({text} - 1)"] = Interval(share.low - 100, share.high - 100)
            percentages[f"100 (1 - {text})"] = Interval(100 - share.high, 100 - share.low)
            percentages[f"100 {text}"] = share
    return percentages


def check_change(place: Place, column: str, printed: Printed, both: Both, ledger: Ledger) -> None:
    """Check a percentage of the two groups; any usual formula is accepted."""
    ways = {name: way for one, other in both for name, way in changes(one, other).items()}
    least = _least_over_zero(both)
    if least is not None and printed.interval is not None and printed.interval.size().high >= 100 * (least - 1):
        ledger.skip(MAY_BE_ZERO)
        return
    nearest("percentage", place, column, printed, ways, ledger)


def check_percent(place: Place, mean: tuple[str, Printed], sd: tuple[str, Printed] | None, ledger: Ledger) -> None:
    """A mean share lies within 0 and 100%, and its standard deviation within sqrt(m (100 - m)), twice that for n of 2.

    Bhatia and Davis 2000; the factor sqrt(n / (n - 1)) is at most sqrt 2.
    """
    ledger.weigh("bounds", place, mean[0], mean[1], Interval(0, 100), "a share lies within 0 and 100%")
    if sd is None or mean[1].interval is None:
        return
    middle = min(max(50.0, mean[1].interval.low), mean[1].interval.high)
    most = math.sqrt(2 * max(middle * (100 - middle), 0.0))
    because = f"{mean[0]} {mean[1].text}: the standard deviation of shares of this mean, sqrt(2 m (100 - m)) at most"
    ledger.weigh("deviation", place, sd[0], sd[1], Interval(0.0, most), because)


def check_copies(blocks: Mapping[str, Sequence[tuple[Place, str, Printed]]], ledger: Ledger) -> None:
    """Find copied blocks of rows: all numbers equal to another block's.

    A block is the rows of one level (its name), each number with its place. At least four numbers in the same order
    must agree, each of three digits or more, and no number of the later block may differ: by chance that is about one
    in a million even where all values lie within 10% of each other.
    """
    for (first, ours), (second, theirs) in itertools.combinations(blocks.items(), 2):
        texts = [[printed.text for _, _, printed in block] for block in (ours, theirs)]
        long = [text for text in texts[1] if len(text.replace(".", "").lstrip("0-")) >= FEWEST_DIGITS]
        if len(long) < FEWEST_COPIES or len(long) < len(texts[1]):
            continue
        ledger.holds("copied")
        width = len(texts[1])
        if any(texts[0][start : start + width] == texts[1] for start in range(len(texts[0]) - width + 1)):
            place, column, printed = theirs[0]
            because = f"all {width} numbers of {second} are those of {first}: {', '.join(texts[1])}"
            ledger.add("copied", "remark", place, column, printed, "numbers of its own", because)
