"""Audit of pooled rows against their cells: count, mean, standard deviation, order statistics."""

from __future__ import annotations

import math
from collections.abc import Sequence

from steelyard.reference.audit import bounds
from steelyard.reference.audit.finding import Ledger
from steelyard.reference.audit.single_cell import Cell, Conventions, sd_of, ss_of, stretches_of
from steelyard.reference.rounding import Interval, total


def check(whole: Cell, parts: Sequence[Cell], how: Conventions, ledger: Ledger, *, complete: bool) -> None:
    """Make every check that the numbers in the pooled row and in all its cells allow.

    `complete`: there are no other parts. Otherwise an overall row that counts more than its parts is not checked.
    """
    counts = [part.n for part in parts]
    exact = [n for n in counts if n is not None]
    if not parts:
        ledger.skip("an overall row that pools no row of the table")
        return
    if len(exact) < len(counts):
        ledger.skip("an overall row whose cells have no exact counts")
        return
    n = sum(exact)
    printed = whole.get("count")
    if printed is None and not complete:
        ledger.skip("an overall row without a count")
        return
    if printed is not None and printed.low > n and not complete:
        ledger.skip("an overall row that pools more than the cells of the file")
        return
    if printed is not None:
        because = f"sum of the cells' counts {' + '.join(map(str, exact))}"
        shown = whole.numbers["count"].counted()
        if not ledger.weigh("pooled count", whole.place, whole.label("count"), shown, Interval(n, n), because):
            ledger.skip("mean, standard deviation and quartiles of an overall row that pools other cells")
            return
    _design(whole, exact, how, ledger)
    _moments(whole, parts, exact, how, ledger)
    _order(whole, parts, how, ledger)


def _design(whole: Cell, counts: Sequence[int], how: Conventions, ledger: Ledger) -> None:
    """The overall count against the design; a wrong cell count explains a wrong overall count."""
    if how.design_count is None or "count" not in whole.numbers:
        return
    n = how.design_count * len(counts)
    follows = "; it is the sum of the cells' counts, so it follows from theirs" if sum(counts) != n else ""
    because = f"{len(counts)} cells of {how.design_count}{follows}"
    printed = whole.numbers["count"].counted()
    ledger.weigh("count", whole.place, whole.label("count"), printed, Interval(n, n), because)


def _moments(whole: Cell, parts: Sequence[Cell], counts: Sequence[int], how: Conventions, ledger: Ledger) -> None:
    n = sum(counts)
    means = [mean for part in parts if (mean := part.get("mean")) is not None]
    if len(means) < len(parts):
        return
    shown = ", ".join(f"{part.numbers['mean'].text} ({k})" for part, k in zip(parts, counts, strict=True))
    if "mean" in whole.numbers:
        should = total((k / n, mean) for k, mean in zip(counts, means, strict=True))
        because = f"the cells' means (and counts) {shown}"
        ledger.weigh("pooled mean", whole.place, whole.label("mean"), whole.numbers["mean"], should, because)
    sds = [sd for part in parts if (sd := part.get("sd")) is not None]
    if "sd" not in whole.numbers or len(sds) < len(parts) or n < 2 or min(counts) <= max(how.sd_divisors):
        return
    should = pooled_sd(counts, means, sds, how)
    because = (
        f"the cells' means (and counts) {shown} and standard deviations "
        f"{', '.join(part.numbers['sd'].text for part in parts)}: sum of squares within and between the cells"
    )
    printed, largest = whole.numbers["sd"], max(part.largest for part in parts)
    ledger.weigh("pooled deviation", whole.place, whole.label("sd"), printed, should, because, values=largest)


def pooled_sd(counts: Sequence[int], means: Sequence[Interval], sds: Sequence[Interval], how: Conventions) -> Interval:
    """The standard deviation of all values of the cells together."""
    within = [ss_of(sd, k, how.sd_divisors) for k, sd in zip(counts, sds, strict=True)]
    between = bounds.ss_bounds(means, [float(k) for k in counts])
    ss = Interval(sum(one.low for one in within) + between.low, sum(one.high for one in within) + between.high)
    return sd_of(ss, sum(counts), how.sd_divisors)


def _order(whole: Cell, parts: Sequence[Cell], how: Conventions, ledger: Ledger) -> None:
    for name, pick in (("min", min), ("max", max)):
        ends = [end for part in parts if (end := part.get(name)) is not None]
        if name in whole.numbers and len(ends) == len(parts):
            should = Interval(pick(end.low for end in ends), pick(end.high for end in ends))
            because = f"the cells' {whole.label(name)}: {', '.join(part.numbers[name].text for part in parts)}"
            ledger.weigh("pooled order", whole.place, whole.label(name), whole.numbers[name], should, because)
    known = [stretches for part in parts if part.n is not None and (stretches := stretches_of(part, how)) is not None]
    if len(known) < len(parts):
        return
    stretches = bounds.merged(known)
    for name, share in whole.order.items():
        if not 0 < share < 1:
            continue
        should = bounds.quantile_bounds(stretches, share, how.quartiles)
        if math.isinf(should.low) and math.isinf(should.high):
            continue
        because = "the cells' counts and order statistics, which bound where each of all the values lies"
        ledger.weigh("pooled order", whole.place, whole.label(name), whole.numbers[name], should, because)
