"""Audit of numbers that follow from others of their row or of its baseline: throughput, speed-up, efficiency, shares.

What a column means is often said by its heading alone. Where a unit, a baseline or a whole is left open, every usual
reading is accepted; where none can be made out, the check is listed as not made.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from steelyard.reference.audit import two_groups
from steelyard.reference.audit.finding import Ledger, Place
from steelyard.reference.audit.headings import Heading
from steelyard.reference.printed import Printed
from steelyard.reference.rounding import EVERYTHING, Interval, exactly

FEWEST_OPERATIONS: Final = 100
"""A column `n` or `count` below this may count runs: it is not divided by a time, and of another quantity the least."""
FAR: Final = 3.0
"""Factor by which a number may miss every reading of an open unit before it is taken for something else."""
OPEN_UNITS: Final = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "min": 60.0, "h": 3600.0}
MOST_BASES: Final = 8
OPPOSITES: Final = ({"failure", "success"}, {"hit", "miss"})
APART: Final = frozenset(("failure", "timeout", "loss"))
"""Parts that a count of operations may leave out."""
TRIED: Final = re.compile(r"(?<![a-z])(?:sent|issued|submitted|attempts?|attempted)(?![a-z])", re.IGNORECASE)
"""Headings of a count of operations that includes those that failed."""
BASE: Final = re.compile(r"\bt[\s_]*[1s]\b|serial|seq|base|before|single|\bone\b|\bold\b|reference|orig", re.IGNORECASE)
"""Headings of the time that a speed-up has above the line."""


COUNTED: Final = frozenset(("count", "operations", "part", "whole", "workers", ""))
"""Numbers that are whole."""


class Number(NamedTuple):
    """A number of a row, with what its heading says."""

    label: str
    heading: Heading
    printed: Printed
    real: Interval | None
    """Its interval in seconds, or without unit; None if no number was printed."""

    @property
    def text(self) -> str:
        """Name and digits as printed."""
        return f"{self.label} {self.printed.text}"

    @classmethod
    def of(cls, label: str, heading: Heading, printed: Printed) -> Number:
        """A number as printed; a count that can only be one whole number is that."""
        counted = printed.counted() if heading.statistic in COUNTED else printed
        return cls(label, heading, printed, None if counted.interval is None else counted.interval.times(heading.scale))


class Row(NamedTuple):
    """One cell of a table, with all its numbers."""

    place: Place
    numbers: Sequence[Number]

    def of(self, *statistics: str) -> list[Number]:
        """Its numbers of these kinds that were printed."""
        return [one for one in self.numbers if one.heading.statistic in statistics and one.real is not None]

    @property
    def level(self) -> float:
        """Its nodes, threads or cores; infinite without."""
        return min((one.real.high for one in self.of("workers") if one.real is not None), default=math.inf)

    @property
    def group(self) -> tuple[tuple[str, str], ...]:
        """The levels that it has in common with its baseline."""
        names = {one.label for one in self.of("workers")}
        return tuple((name, text) for name, text in self.place.cell.items() if name not in names)


class Table:
    """All rows, and what is found out of them once: baselines, columns."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows = rows
        self.columns: dict[str, list[Number]] = {}
        for number in (number for row in rows for number in row.numbers):
            self.columns.setdefault(number.label, []).append(number)
        ranked = sorted((row for row in rows if math.isfinite(row.level)), key=lambda row: row.level)
        self.fewest: dict[tuple[tuple[str, str], ...], list[Row]] = {}
        for row in ranked:
            known = self.fewest.setdefault(row.group, [row])
            if known[0] is not row and row.level == known[0].level and len(known) < MOST_BASES:
                known.append(row)
        ones = (row for row in rows if any(number.printed.value == 1 for number in row.of("speedup", "efficiency")))
        self.ones = list(itertools.islice(ones, MOST_BASES))
        self._readings: dict[str, bool | None] = {}
        self._wholes: dict[tuple[str, str], Interval | None] = {}
        self._parts: dict[tuple[str, ...], bool] = {}

    def bases(self, row: Row) -> list[Row]:
        """The rows that may be its baseline: the fewest workers of its group, and every speed-up of 1."""
        fewest = self.fewest.get(row.group, [])
        return [*fewest, *(other for other in self.ones if not any(other is one for one in fewest))]

    def is_base(self, row: Row) -> bool:
        """Whether it may be a baseline itself."""
        return any(row is other for other in self.bases(row))

    def is_part(self, label: str, wholes: Sequence[Number]) -> bool:
        """Whether a column that nothing explains holds whole numbers, each within a whole of its row."""
        names = tuple(whole.label for whole in wholes)
        known = self._parts.get((label, *names))
        if known is None:
            known = self._parts[label, *names] = all(_holds_part(row, label, names) for row in self.rows)
        return known

    def reading(self, share: Number) -> bool | None:
        """Whether a column of shares without a unit is in percent: the reading that fits more of its rows; None if
        both fit as many."""
        if share.label not in self._readings:
            fits = [0, 0]
            for row in self.rows:
                for number in (number for number in row.of("share") if number.label == share.label):
                    ways, _ = _parts_of_wholes(row, number, self)
                    meant = number.printed.interval or EVERYTHING
                    for percent, factor in enumerate((1, 100)):
                        fits[percent] += any(meant.meets(way.times(factor)) for way in ways.values())
            self._readings[share.label] = None if fits[0] == fits[1] else fits[1] > fits[0]
        return self._readings[share.label]

    def whole_of(self, label: str, share: str) -> Interval | None:
        """The sum of a column, if two thirds of these shares or more, of three at least, are its shares."""
        if (label, share) not in self._wholes:
            self._wholes[label, share] = _sum_by(self.columns[label], self.columns[share])
        return self._wholes[label, share]


def _sum_by(column: Sequence[Number], shares: Sequence[Number]) -> Interval | None:
    values = [one.real for one in column if one.real is not None and one.real.low >= 0]
    if len(values) < 3 or len(values) != len(column) or len(shares) != len(values):
        return None
    whole = Interval(sum(value.low for value in values), sum(value.high for value in values))
    if whole.low <= 0:
        return None
    fits = sum(
        any(share.printed.interval.meets(way) for way in _in_percent({"": value.over(whole)}, share).values())
        for share, value in zip(shares, values, strict=True)
        if share.printed.interval is not None
    )
    return whole if fits * 3 >= 2 * len(values) else None


def _holds_part(row: Row, label: str, wholes: Sequence[str]) -> bool:
    values = {one.label: one.printed.value for one in row.numbers}
    mine, most = values.get(label), max((values.get(name) or 0.0 for name in wholes), default=0.0)
    return mine is not None and mine == math.floor(mine) and 0 <= mine <= most


Ways = dict[str, Interval]
"""Formula, with the printed digits, to what it gives."""


def check(rows: Sequence[Row], ledger: Ledger) -> None:
    """Every check of numbers that follow from others."""
    latest: dict[tuple[str, ...], Row] = {}
    for row in rows:
        series = tuple(text for text in row.place.cell.values() if not text[:1].isdigit())
        _throughput(row, latest.get(series), ledger)
        latest[series] = row
    table = Table(rows)
    for row in rows:
        _speed_up(row, table, ledger)
        _efficiency(row, table, ledger)
        _shares(row, table, ledger)


def _weigh(kind: str, row: Row, one: Number, ways: Ways, by: Sequence[Number], ledger: Ledger, *, sure: bool) -> None:
    """Check a number against the nearest reading; where a unit is open, one that is far from all is left alone."""
    mine = one.real
    if mine is None:
        return
    shown = {name: way.times(1 / one.heading.scale) for name, way in ways.items() if way.finite}
    if ways and not shown:
        ledger.skip(two_groups.MAY_BE_ZERO)
        return
    near = {name: way for name, way in shown.items() if _close(ways[name], mine)}
    if near or (shown and sure):
        labels = [other.label for other in by]
        two_groups.nearest(kind, row.place, one.label, one.printed, near or shown, ledger, by=labels)
    elif shown:
        ledger.skip(f"{one.label}: no usual unit makes it follow from {', '.join(dict.fromkeys(o.label for o in by))}")


def _close(way: Interval, mine: Interval) -> bool:
    return mine.low <= FAR * way.high and way.low <= FAR * mine.high


def _throughput(row: Row, before: Row | None, ledger: Ledger) -> None:
    """Throughput = operations / time; of a time series, of what was added since the previous row."""
    rates = row.of("throughput") or [number for number in row.of("mean") if number.heading.dimension == "rate"]
    times = row.of("duration")
    for number in rates:
        alike = [
            count for count in row.of("operations")
            if (count.heading.quantity, count.heading.side) == (number.heading.quantity, number.heading.side)
        ]  # fmt: skip
        counts = alike or [count for count in row.of("count") if number.heading.quantity == count.heading.quantity]
        ours = [time for time in times if time.heading.side == number.heading.side]
        if not counts or not ours or number.heading.dimension == "bandwidth":
            continue
        if not alike and all((count.real or exactly(0.0)).high < FEWEST_OPERATIONS for count in counts):
            ledger.skip(f"{number.label}: {counts[0].label} {counts[0].printed.text} may count runs, not operations")
            continue
        ways: Ways = {}
        for count, time in itertools.product(counts, ours):
            ways |= dict(_quotients(count, time, row, before))
        sure = all(time.heading.dimension == "time" for time in ours) and number.heading.dimension == "rate"
        _weigh("throughput", row, number, ways, [*counts, *ours], ledger, sure=sure)


def _quotients(count: Number, time: Number, row: Row, before: Row | None) -> Iterator[tuple[str, Interval]]:
    """Operations by time, without failures too, and their rise by its rise since the previous row."""
    units = {"": 1.0} if time.heading.dimension == "time" else {f" {name}": unit for name, unit in OPEN_UNITS.items()}
    failed = [one for one in row.of("part") if one.heading.quantity == "failure"]
    for name, unit in units.items():
        whole, under = count.real, time.real
        if whole is None or under is None:
            continue
        yield f"{count.printed.text} / {time.printed.text}{name}", whole.over(under.times(unit))
        for part in failed:
            if part.real is not None and part.real.high > 0:
                good = whole.minus(part.real)
                text = f"({count.printed.text} - {part.printed.text}) / {time.printed.text}{name}"
                yield text, good.over(under.times(unit))
        earlier = {one.label: one for one in before.numbers} if before is not None else {}
        first, begun = earlier.get(count.label), earlier.get(time.label)
        if first and begun and first.real is not None and begun.real is not None and begun.real.high < under.low:
            rise, span = whole.minus(first.real), under.minus(begun.real)
            text = f"({count.printed.text} - {first.printed.text}) / ({time.printed.text} - {begun.printed.text}){name}"
            if rise.low >= 0:
                yield text, rise.over(span.times(unit))
            text = f"{count.printed.text} / ({time.printed.text} - {begun.printed.text}){name}"
            yield text, whole.over(span.times(unit))


def _speed_up(row: Row, table: Table, ledger: Ledger) -> None:
    for number in row.of("speedup"):
        times = [*row.of("duration"), *row.of("value")]
        if len(times) > 1:
            over = [time for time in times if BASE.search(time.label)]
            under = [time for time in times if time not in over]
            pairs = [(a, b) for a in over for b in under] or list(itertools.permutations(times, 2))
            _weigh("speed-up", row, number, _ratios(pairs), times, ledger, sure=True)
            continue
        if table.is_base(row):
            continue
        ways = _against_bases(row, table)
        if ways:
            by = [*(number for number, _ in _measures(row).values()), *row.of("workers")]
            _weigh("speed-up", row, number, ways, by, ledger, sure=True)
        else:
            ledger.skip(f"{number.label}: no time or throughput of this row and of a baseline")


def _ratios(pairs: Sequence[tuple[Number, Number]]) -> Ways:
    ways: Ways = {}
    for over, under in pairs:
        if over.real is not None and under.real is not None:
            ways[f"{over.printed.text} / {under.printed.text}"] = over.real.over(under.real)
    return ways


MEASURES: Final = ("duration", "mean", "median", "throughput")
"""Sources of a speed-up."""


def _measures(row: Row) -> dict[str, tuple[Number, bool | None]]:
    """Label to number, and whether more of it is faster; None if nothing says it."""
    known = {}
    for number in (*row.of(*MEASURES), *(other for other in row.of("") if other.heading.dimension == "time")):
        rate = number.heading.statistic == "throughput" or number.heading.dimension == "rate"
        timed = number.heading.statistic in ("duration", "") or number.heading.dimension in ("time", "latency")
        known[number.label] = (number, True if rate else False if timed else None)
    return known


def _against_bases(row: Row, table: Table) -> Ways:
    """Speed-up against each possible baseline, by each number that both have; times the baseline's own speed-up, if
    that is not 1."""
    ways: Ways = {}
    for base in table.bases(row):
        start = next((number.real for number in base.of("speedup")), None)
        factor = exactly(1.0) if start is None or start.low <= 1 <= start.high else start
        theirs = _measures(base)
        for label, (number, faster) in _measures(row).items():
            other = theirs.get(label, (None, None))[0]
            if base is row or other is None or number.real is None or other.real is None:
                continue
            by = "" if factor == exactly(1.0) else f" x {base.of('speedup')[0].printed.text}"
            if faster is not True:
                ways[f"{other.printed.text} / {number.printed.text}{by}"] = other.real.over(number.real).by(factor)
            if faster is not False:
                ways[f"{number.printed.text} / {other.printed.text}{by}"] = number.real.over(other.real).by(factor)
    return {text: way for text, way in ways.items() if way.finite}


def _efficiency(row: Row, table: Table, ledger: Ledger) -> None:
    """Speed-up by workers, as a fraction or in percent; relative to the workers of the baseline, if that has several.
    Where a table has no speed-up, the efficiency of weak scaling is the speed-up itself."""
    for number in row.of("efficiency"):
        printed = row.of("speedup")
        gains = {number.printed.text: number.real for number in printed if number.real is not None}
        gains = gains or _against_bases(row, table)
        weak = "weak" in number.heading.quantity or not printed
        starts = {1.0} | {base.level for base in table.bases(row) if math.isfinite(base.level)}
        ways: Ways = {}
        for (text, gain), workers in itertools.product(gains.items(), row.of("workers")):
            n = workers.real
            if n is None:
                continue
            for start in sorted(starts):
                share = gain.times(start).over(n)
                ways[f"{text}{'' if start == 1 else f' x {start:g}'} / {workers.printed.text}"] = share
        if weak:
            ways |= gains
        if not ways:
            if not table.is_base(row):
                ledger.skip(f"{number.label}: no speed-up and number of nodes, threads or cores in this row")
            continue
        by = [*(printed or (number for number, _ in _measures(row).values())), *row.of("workers")]
        _weigh("efficiency", row, number, _in_percent(ways, number), by, ledger, sure=True)


def _in_percent(ways: Mapping[str, Interval], one: Number, percent: bool | None = None) -> Ways:
    """As a fraction, in percent, or both where nothing says which. `percent`: what the rest of the column says."""
    hundred = {f"100 {text}": way.times(100) for text, way in ways.items()}
    if one.heading.dimension == "percent" or percent:
        return hundred
    return dict(ways) if percent is False else {**ways, **hundred}


def _shares(row: Row, table: Table, ledger: Ledger) -> None:
    for number in row.of("share"):
        limits = Interval(0, 100)
        if number.heading.dimension == "percent" or re.search(
            r"share|fraction|proportion|%|percent", number.label.lower()
        ):
            fine = ledger.weigh(
                "bounds", row.place, number.label, number.printed, limits, "a share lies within 0 and 100%"
            )
            if not fine:
                continue
        ways, by = _parts_of_wholes(row, number, table)
        if ways:
            sure = any(number.heading.statistic in ("part", "whole") for number in by)
            as_read = table.reading(number)
            _weigh("share", row, number, _in_percent(ways, number, as_read), by, ledger, sure=sure)
        elif not _share_of_column(row, number, table, ledger):
            ledger.skip(f"{number.label}: its part and its whole are not in the table")
    wholes = row.of("whole") or row.of("operations")
    for part in row.of("part"):
        whole = wholes[0] if len(wholes) == 1 and wholes[0].heading.side == part.heading.side else None
        if whole is not None and _is_whole(whole):
            should = Interval(-math.inf, (whole.real or exactly(math.inf)).high)
            because = f"{whole.text}: a part of it"
            ledger.weigh("share", row.place, part.label, part.printed.counted(), should, because, by=[whole.label])
        elif whole is not None:
            ledger.skip(f"{part.label}: {whole.label} may not include them, so it does not bound them")


def _is_whole(one: Number) -> bool:
    """Whether a count certainly includes what failed: wrk and others count completed requests, and timeouts apart."""
    return one.heading.statistic == "whole" or TRIED.search(one.label) is not None


def _parts_of_wholes(row: Row, one: Number, table: Table) -> tuple[Ways, list[Number]]:
    """Every quotient that the share may be: its kind of part (failures of a failure rate) by each whole of the row."""
    kind = one.heading.quantity
    parts = [part for part in row.of("part") if part.heading.quantity == kind]
    wholes = row.of("whole") or row.of("operations", "count")
    if not kind and not parts:
        parts = row.of("part")
    if not kind and not parts and wholes:
        parts = [part for part in row.of("") if table.is_part(part.label, wholes)]
    if not kind and not parts and not wholes:
        plain = row.of("")
        wholes = [whole for whole in plain if all(table.is_part(part.label, [whole]) for part in plain)]
        wholes = wholes if len(plain) == 2 else []
        parts = [part for part in plain if part not in wholes] if wholes else []
    others = [part for part in row.of("part") if {kind, part.heading.quantity} in OPPOSITES]
    failed = [part for part in row.of("part") if part.heading.quantity in APART]
    ways: Ways = {}
    for whole in wholes:
        ways |= dict(_quotients_of(whole, parts, others, failed))
    for part, other in itertools.product(parts, [] if wholes else others):
        if part.real is not None and other.real is not None:
            whole_of = part.real.plus(other.real)
            ways[f"{part.printed.text} / ({part.printed.text} + {other.printed.text})"] = part.real.over(whole_of)
    return {text: way for text, way in ways.items() if way.finite}, [*parts, *others, *wholes]


def _quotients_of(
    whole: Number, parts: Sequence[Number], others: Sequence[Number], failed: Sequence[Number]
) -> Iterator[tuple[str, Interval]]:
    """Each part, and what the others leave, by this whole; by both together, where it may not include what failed.
    Where errors and timeouts are counted, a rate of errors may be that of both."""
    if whole.real is None:
        return
    amounts = {one.printed.text: one.real for one in parts if one.real is not None}
    if len(failed) > 1 and any(part.heading.quantity == "failure" for part in parts):
        total = exactly(0.0)
        for part in failed:
            total = total.plus(part.real or exactly(0.0))
        amounts["(" + " + ".join(one.printed.text for one in failed) + ")"] = total
    apart = not _is_whole(whole)
    text = whole.printed.text
    for name, amount in amounts.items():
        yield f"{name} / {text}", amount.over(whole.real)
        if apart and any(part in failed for part in parts):
            yield f"{name} / ({text} + {name})", amount.over(whole.real.plus(amount))
    for other in others:
        if other.real is not None:
            yield f"({text} - {other.printed.text}) / {text}", whole.real.minus(other.real).over(whole.real)
            if apart and other in failed:
                yield f"{text} / ({text} + {other.printed.text})", whole.real.over(whole.real.plus(other.real))


def _share_of_column(row: Row, one: Number, table: Table, ledger: Ledger) -> bool:
    """Share of the column's sum, where most rows have it: a slip is the exception."""
    for mine in row.of("count", "operations", "part", "duration", ""):
        whole = table.whole_of(mine.label, one.label)
        if whole is None or mine.real is None:
            continue
        text = f"{mine.printed.text} / {whole.high:.6g}, the sum of {mine.label}"
        _weigh("share", row, one, _in_percent({text: mine.real.over(whole)}, one), [mine], ledger, sure=True)
        return True
    return False
