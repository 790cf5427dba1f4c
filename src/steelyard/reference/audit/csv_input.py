"""Audit of CSV files: the content of each column, the numbers of each cell, and all checks on them.

A column that is not understood is reported as not checked, and so is one whose numbers took part in no check: silence
would suggest that it is correct.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from steelyard.reference.audit import derived_columns, headings, pooled_rows, regression_rows, single_cell, two_groups
from steelyard.reference.audit.csv_file import (
    Field,
    Sheet,
    Style,
    allowed,
    cell_text,
    is_number,
    number_text,
    style_of,
    wrong,
)
from steelyard.reference.audit.csv_file import read as read_file
from steelyard.reference.audit.derived_columns import FEWEST_OPERATIONS, Number, Row
from steelyard.reference.audit.finding import Audit, Ledger, Place
from steelyard.reference.audit.headings import SIDES, SUMMARIES, TIME_S, Heading
from steelyard.reference.audit.regression_rows import Group, Line
from steelyard.reference.audit.single_cell import Cell, Conventions, fraction_of
from steelyard.reference.audit.two_groups import Side
from steelyard.reference.printed import Printed, Rounding, parse

OVERALL: Final = ("overall", "total", "pooled")
"""Levels that pool all others in their column. Not `all`: that is a consistency level."""
CELL: Final = "which cell"
NOT_UNDERSTOOD: Final = "not checked: heading not understood"
COUNTS: Final = ("count", "operations", "part", "whole")
LINE: Final = ("slope", "intercept", "r", "p", "std_err")


class Entry(NamedTuple):
    """One cell of the file and the line of its first number."""

    line: int
    key: dict[str, str]
    numbers: list[Number]
    lines: dict[str, int]
    """Line of each number by its label."""


def audit(path: Path, how: Conventions, rounding: Rounding) -> Audit:
    """Audit a file. Raises TableError if it is not a table with at least one number."""
    ledger = Ledger()
    sheet, roles, entries = read(path, rounding)
    cells: list[tuple[str, Cell]] = []
    for entry in entries:
        cells.extend(_row(path.name, entry, how, ledger))
    for quantity, whole in cells:
        if whole.pooled:
            pooled_rows.check(whole, _parts(whole, [one for name, one in cells if name == quantity]), how, ledger,
                              complete=False)  # fmt: skip
    derived_columns.check(
        [Row(Place(path.name, entry.line, entry.key, entry.lines), entry.numbers) for entry in entries], ledger
    )
    _name_unchecked(sheet, roles, entries, ledger)
    columns = {label: _role_words(heading) for label, heading in roles.items()}
    key = {name: CELL for record in sheet.records for name in record.key}
    return ledger.audit(str(path)).model_copy(update={"columns": key | columns, "form": sheet.form})


def _role_words(heading: Heading) -> str:
    if heading.statistic in ("level", "workers"):
        return CELL
    words = f"{heading.statistic}{heading.side}" or NOT_UNDERSTOOD
    return f"{words} of {heading.quantity}" if heading.quantity and heading.statistic else words


def _name_unchecked(sheet: Sheet, roles: Mapping[str, Heading], entries: Sequence[Entry], ledger: Ledger) -> None:
    """Report every column whose numbers took part in no check."""
    printed = {one.label for entry in entries for one in entry.numbers if one.printed.interval is not None}
    for label in sheet.labels:
        heading = roles[label]
        if label not in printed or label in ledger.used or heading.statistic in ("level", "workers"):
            continue
        why = "no other number of its row bounds it" if heading.known else "its heading is not understood"
        ledger.skip(f"column {label!r}: {why}")


def _read_labels(labels: Sequence[str]) -> dict[str, Heading]:
    """The heading of each label alone, except that `size 50%` is a median if two other statistics are of sizes."""
    named = headings.numbered(labels)
    roles = {label: Heading("", label) if label in named else headings.read(label) for label in labels}
    statistics: dict[str, set[str]] = {}
    for heading in roles.values():
        if (heading.statistic in SUMMARIES and heading.statistic != "count") or fraction_of(heading.statistic):
            statistics.setdefault(heading.quantity, set()).add(heading.statistic)
    for label in set(labels) - named:
        again = headings.read(label, summarised=True)
        if not roles[label].known and again.quantity and len(statistics.get(again.quantity, ())) > 1:
            roles[label] = again
    return roles


def _roles(sheet: Sheet) -> dict[str, Heading]:
    """The content of each label. A heading without a statistic above text names the cell, as a level does."""
    texts = {label: [one.fields[label].text for one in sheet.records if label in one.fields] for label in sheet.labels}
    roles = _read_labels(sheet.labels)
    under = ""
    for label in sheet.labels:  # cassandra-stress: `gc: #`, followed by `max ms` of the same
        under = label.partition(":")[0].lower() if ":" in label.rstrip(":") else under
        if under and roles[label].known:
            roles[label] = roles[label]._replace(quantity=under)
    statistics = {heading.statistic for heading in roles.values()}
    for label, heading in roles.items():
        plain = label.lower().strip()
        if statistics & {"speedup", "efficiency"} and "workers" not in statistics and plain in ("n", "p", "#"):
            roles[label] = Heading("workers")
        elif re.search(r"[(\[]min[)\]]$", plain) and headings.read(label[:-5]).statistic == "duration":
            if not any(other.lower().startswith(plain[:-5]) and other != label for other in sheet.labels):
                roles[label] = headings.read(label[:-5])._replace(dimension="time", scale=TIME_S["minutes"])
        elif plain == "#" and _are_row_numbers(texts[label]):
            roles[label] = Heading("level", plain)
        elif heading.statistic == "std_err" and not statistics & {"slope", "r"}:
            roles[label] = heading._replace(statistic="se")
        elif heading.statistic not in SUMMARIES and fraction_of(heading.statistic) is None:
            numeric = any(is_number(text) for text in texts[label])
            odd = any(not is_number(text) for text in texts[label] if text.strip())
            if not numeric or (odd and not heading.known):
                roles[label] = Heading("level", plain)
    if not any(heading.statistic not in ("", "level", "workers") for heading in roles.values()):
        _refuse(sheet)
    if sheet.wide:
        _refuse_twins(sheet, roles)
    return roles


def _are_row_numbers(texts: Sequence[str]) -> bool:
    return len(texts) > 1 and [text.strip() for text in texts] in (
        [str(at) for at in range(len(texts))],
        [str(at) for at in range(1, len(texts) + 1)],
    )


def _refuse(sheet: Sheet) -> None:
    """Raise TableError because no label is a statistic."""
    if sheet.wide:
        what = f"no column is a statistic: {', '.join(sheet.labels)}"
        raise wrong(sheet.path, sheet.line, "", what, allowed(sheet.labels))
    field = next(iter(sheet.records[0].fields.values()))
    column = next(name for name in ("statistic", field.column) if name)
    raise wrong(sheet.path, field.line, column, f"{sheet.labels[0]!r} is not a statistic", allowed(sheet.labels[:1]))


def _refuse_twins(sheet: Sheet, roles: Mapping[str, Heading]) -> None:
    """Raise TableError if two columns hold the same statistic, unless it is an order statistic: they check each
    other."""
    first: dict[tuple[str, str, str, str], str] = {}
    for label, heading in roles.items():
        name = heading.statistic
        if (name not in SUMMARIES and name not in headings.WHOLE) or name in ("part", "share", "whole", "count"):
            continue
        if fraction_of(name) is None and first.setdefault((*heading[:3], heading.side), label) != label:
            what = f"the same statistic as column {first[*heading[:3], heading.side]!r}"
            raise wrong(sheet.path, sheet.line, label, what, "keep one of them")


def read(path: Path, rounding: Rounding) -> tuple[Sheet, dict[str, Heading], list[Entry]]:
    """The table, the content of each label, and the cells with their numbers. Raises TableError if the file is missing
    or not CSV, has no statistic or no number, or has a cell twice."""
    sheet = read_file(path)
    roles = _roles(sheet)
    return sheet, roles, _entries(sheet, roles, rounding)


def _entries(sheet: Sheet, roles: Mapping[str, Heading], rounding: Rounding) -> list[Entry]:
    numeric = [label for label, heading in roles.items() if heading.statistic != "level"]
    fields = {label: [one.fields[label] for one in sheet.records if label in one.fields] for label in numeric}
    style = style_of(
        (field.text for label in numeric for field in fields[label]),
        (
            field.text
            for label in numeric
            if roles[label].statistic in ("count", "operations")
            for field in fields[label]
        ),
        sheet.separator,
    )
    distinct = {
        label for label in numeric
        if not roles[label].known and len(fields[label]) > 1
        and any("." in one.text or "," in one.text for one in fields[label])
        and len({one.text for one in fields[label]}) == len(fields[label])
    }  # fmt: skip
    entries, seen = [], dict[tuple[str, ...], int]()
    for record in sheet.records:
        key = record.key | {
            label: record.fields[label].text for label, heading in roles.items()
            if label in record.fields and heading.statistic in ("", "level", "workers") and label not in distinct
            and sheet.wide
        }  # fmt: skip
        whole = key | {
            label: record.fields[label].text for label in numeric
            if label in record.fields and (label in distinct or roles[label].statistic in headings.ROLES)
        }  # fmt: skip
        first = seen.setdefault(tuple(whole.values()), record.line)
        if first != record.line and whole:
            problem = f"the same cell as in line {first}: {cell_text(whole)}"
            raise wrong(sheet.path, record.line, "", problem, "add a column that distinguishes them")
        numbers = [
            _number(sheet.path, label, record.fields[label], roles[label], style, rounding)
            for label in numeric if label in record.fields
            and (roles[label].statistic != "workers" or is_number(record.fields[label].text))  # `overall`, `all`
        ]  # fmt: skip
        lines = {label: field.line for label, field in record.fields.items()}
        entries.append(Entry(record.line, key, numbers, lines))
    return entries


def _number(path: Path, label: str, field: Field, heading: Heading, style: Style, rounding: Rounding) -> Number:
    """The number in a field; its own unit takes precedence over the heading's."""
    try:
        text, unit = number_text(field.text, style)
        printed = parse(text, rounding)
    except ValueError as error:
        hint = "write it as 1234.5 or 1.2e+03, without a unit or thousands separators; leave unknown values blank"
        if style.unsure:
            hint = f"{style.unsure} may have a decimal comma or a thousands separator: write 1234.5"
        raise wrong(path, field.line, field.column, str(error), hint) from error
    printed = printed.model_copy(update={"text": field.text.strip()})
    if heading.statistic in ("count", "sd", "se", "range", "iqr") and printed.value is not None and printed.value < 0:
        raise wrong(path, field.line, field.column, f"{printed.text} is below 0", "counts and spreads are not")
    if "/" in unit:
        per = unit.rpartition("/")[2]
        return Number.of(label, heading._replace(scale=1 / TIME_S[per]) if per in TIME_S else heading, printed)
    unit = unit or ("" if heading.dimension not in ("", "latency") else field.unit.strip().lower().replace("µ", "u"))
    if unit in ("%", "percent"):
        heading = heading._replace(dimension="percent")
    elif unit in TIME_S and heading.statistic not in (*COUNTS, "throughput", "level", "workers", "share"):
        heading = heading._replace(dimension="time", scale=TIME_S[unit])
    elif unit in headings.SCALES or unit == "m":
        heading = heading._replace(scale=headings.SCALES.get(unit, 1e6))
    if heading.statistic in COUNTS and heading.scale != 1.0:
        heading, printed = heading._replace(scale=1.0), _scaled(printed, heading.scale, printed.text)
    return Number.of(label, heading, printed)


def _scaled(printed: Printed, factor: float, text: str) -> Printed:
    if printed.interval is None or printed.value is None:
        return printed
    low, high = printed.interval.times(factor)
    return Printed(text=text, value=printed.value * factor, low=low, high=high)


def _groups(entry: Entry, ledger: Ledger) -> Iterator[tuple[str, str, list[Number]]]:
    """The summaries of a row, grouped by what they summarise: (quantity and dimension, side, numbers). Numbers without
    a unit join those of their quantity that have one, if all of these are times."""
    known: dict[tuple[str, str, str], list[Number]] = {}
    for number in entry.numbers:
        name = number.heading.statistic
        if (name in SUMMARIES and name != "count") or fraction_of(name) is not None:
            dimension = "time" if number.heading.dimension == "latency" else number.heading.dimension
            known.setdefault((number.heading.quantity, number.heading.side, dimension), []).append(number)
    for quantity, side, dimension in list(known):
        others = [key for key in known if key[:2] == (quantity, side) and key[2] != dimension]
        if not dimension and [key[2] for key in others] == ["time"]:
            known[quantity, side, "time"] += known.pop((quantity, side, dimension))
        elif not dimension and others:
            ledger.skip("numbers that may belong to either of two quantities of their row")
    counts = [number for number in entry.numbers if number.heading.statistic == "count"]
    for (quantity, side, dimension), numbers in known.items():
        groups = sum(key[1] == side for key in known)
        count = _count_for(
            entry, numbers, [number for number in counts if number.heading.side == side], quantity, groups, ledger
        )
        yield f"{quantity} {dimension}".strip(), side, [*([count] if count else []), *numbers]


def _count_for(
    entry: Entry, numbers: Sequence[Number], counts: Sequence[Number], quantity: str, groups: int, ledger: Ledger
) -> Number | None:
    """The count of the values that these numbers summarise: their own count, the row's, the number of operations for
    percentiles of operations, or the number of runs as a lower bound."""
    tails = any((fraction_of(one.heading.statistic) or 0.5) not in (0.5, 0.25, 0.75, 0.0, 1.0) for one in numbers)
    timed = numbers[0].heading.dimension in ("time", "latency", "")
    counts = [one for one in counts if timed or not one.heading.dimension]
    if len({one.printed.value for one in counts if one.heading.quantity == quantity}) > 1:
        ledger.skip("values of a row with two counts")
        return None
    own = next((one for one in counts if one.heading.quantity == quantity), None)
    bare = next((one for one in counts if not one.heading.quantity), None)
    if own is not None and quantity:
        return own
    done = [one for one in entry.numbers if one.heading.statistic == "operations" and one.heading.quantity == quantity]
    if bare is not None:
        alone = groups == 1 and not done
        return bare if alone or (bare.printed.value or 0) >= FEWEST_OPERATIONS else _or_more(bare)
    if tails and len(done) == 1 and numbers[0].heading.dimension != "rate":
        return done[0]
    runs = next((one for one in counts if one.heading.quantity == "runs"), None)
    return None if runs is None else _or_more(runs)


def _or_more(count: Number) -> Number:
    """The count as a lower bound: it may count runs, each of which gave at least one value."""
    if count.printed.interval is None:
        return count
    return count._replace(printed=count.printed.model_copy(update={"high": math.inf}))


def _cell(place: Place, numbers: Sequence[Number], pooled: bool, ledger: Ledger) -> Cell:
    """The numbers of one group in one unit; duplicates of an order statistic must agree."""
    base = next((number.heading.scale for number in numbers if number.heading.dimension == "time"), 1.0)
    printed: dict[str, Printed] = {}
    labels: dict[str, str] = {}
    for number in numbers:
        name = "count" if number.heading.statistic == "operations" else number.heading.statistic
        shown = number.printed
        if number.heading.dimension == "time" and number.heading.scale != base and shown.value is not None:
            factor = number.heading.scale / base
            unit = next(unit for unit, scale in TIME_S.items() if scale == base)
            shown = _scaled(shown, factor, f"{shown.text} (= {shown.value * factor:.6g} {unit})")
        if name in printed and shown.interval is not None and (other := printed[name].interval) is not None:
            because = f"{labels[name]} {printed[name].text}: the same statistic"
            ledger.weigh("order", place, number.label, shown, other, because, by=[labels[name]])
            continue
        printed[name], labels[name] = shown, number.label
    positive = any(number.heading.dimension in ("time", "latency") for number in numbers)
    return Cell(place, printed, labels, pooled, positive=positive)


def _row(name: str, entry: Entry, how: Conventions, ledger: Ledger) -> Iterator[tuple[str, Cell]]:
    """All checks on the summaries of one row; yields what they summarise with the cells."""
    place = Place(name, entry.line, entry.key, entry.lines)
    pooled = any(text.strip().lower() in OVERALL for text in entry.key.values())
    sides: dict[str, dict[str, Cell]] = {}
    for quantity, side, numbers in _groups(entry, ledger):
        cell = _cell(place, numbers, pooled, ledger)
        single_cell.check(cell, how, ledger)
        if side:
            sides.setdefault(quantity, {})[side] = cell
        else:
            yield quantity, cell
    whole = {one.heading.statistic: one for one in entry.numbers if one.heading.statistic in headings.WHOLE}
    pairs = [
        (named[one], named[other])
        for named in sides.values()
        for one, other in SIDES
        if one in named and other in named
    ]
    _line(place, entry, whole, pairs, how, ledger)
    values = _values_of_sides(entry)
    if len(pairs) == 1:
        _compared(place, whole, *pairs[0], how, ledger)
    elif not pairs and len(values) == 1:
        checks_before = sum(ledger.made.values())
        _follow(place, whole, [(one.printed, other.printed) for one, other in values], ledger)
        ledger.used.update(one.label for one in values[0] if sum(ledger.made.values()) > checks_before)
    elif pairs:
        ledger.skip("comparisons of a row with more than two groups")


def _line(
    place: Place, entry: Entry, whole: Mapping[str, Number], pairs: Sequence[tuple[Cell, Cell]], how: Conventions,
    ledger: Ledger,
) -> None:  # fmt: skip
    """Checks on a regression; in a row with two groups, its slope is over their 0/1 indicator."""
    known = {name: whole[name] for name in LINE if name in whole}
    numbers = {name: one.printed for name, one in known.items()}
    line = Line(place, numbers, {name: one.label for name, one in known.items()})
    if line.get("slope") is None and line.get("r") is None:
        return
    count = next((one for one in entry.numbers if one.heading.statistic == "count" and not one.heading.side), None)
    n = None if count is None else count.printed.whole
    if len(pairs) == 1 and line.get("slope") is not None:
        groups = [group for x, one in enumerate(pairs[0]) if (group := _group(float(x), one)) is not None]
        if len(groups) == 2:
            n = groups[0].n + groups[1].n
            regression_rows.check_cells(line, groups, how, ledger)
    checks_before = sum(ledger.made.values())
    regression_rows.check_itself(line, n, ledger)
    if n is not None and sum(ledger.made.values()) > checks_before:
        ledger.used.update(line.labels.values(), [count.label] if count else [])


def _group(x: float, cell: Cell) -> Group | None:
    mean, sd, count = cell.get("mean"), cell.get("sd"), cell.n
    if mean is None or sd is None or count is None or count < 2:
        return None
    return Group(x, count, mean, sd, cell.label("mean"))


def _side(cell: Cell) -> Side:
    return Side(cell.numbers["mean"], cell.numbers.get("sd"), cell.n)


def _compared(
    place: Place, whole: Mapping[str, Number], first: Cell, second: Cell, how: Conventions, ledger: Ledger
) -> None:
    """Checks on effect size, ratio, difference and change between two groups: by means, or by medians if they fit
    better."""
    checks_before = sum(ledger.made.values())
    if "mean" in first.numbers and "mean" in second.numbers:
        sides = (_side(first), _side(second))
        for name in ("cohens_d", "hedges_g"):
            if name in whole:
                pooling: two_groups.Pooling | None = "Hedges' g" if name == "hedges_g" else None
                number = whole[name]
                two_groups.check_effect(place, number.label, number.printed, sides, pooling, how.sd_divisors, ledger)
    both = [
        (first.numbers[name], second.numbers[name])
        for name in ("mean", "median")
        if first.get(name) is not None and second.get(name) is not None
    ]
    _follow(place, whole, both, ledger)
    if sum(ledger.made.values()) > checks_before:
        for cell in (first, second):
            ledger.used.update(cell.label(name) for name in ("count", "mean", "sd", "median") if name in cell.numbers)
            ledger.used.update(whole[name].label for name in ("cohens_d", "hedges_g") if name in whole)


def _follow(place: Place, whole: Mapping[str, Number], both: two_groups.Both, ledger: Ledger) -> None:
    """Checks on the difference, ratio and change between two numbers."""
    for name, check in (
        ("difference", two_groups.check_difference),
        ("ratio", two_groups.check_any_ratio),
        ("change_percent", two_groups.check_change),
    ):
        if both and name in whole:
            check(place, whole[name].label, whole[name].printed, both, ledger)


def _values_of_sides(entry: Entry) -> list[tuple[Number, Number]]:
    """Pairs of plain numbers in a comparison: `before` and `after`, `time before` and `time after`."""
    plain: dict[tuple[str, str], dict[str, Number]] = {}
    for number in entry.numbers:
        if (
            number.heading.side
            and number.heading.statistic in ("value", "duration", "throughput")
            and number.printed.interval
        ):
            plain.setdefault(number.heading[:2], {})[number.heading.side] = number
    return [(named[a], named[b]) for named in plain.values() for a, b in SIDES if a in named and b in named]


def _parts(whole: Cell, cells: Sequence[Cell]) -> list[Cell]:
    """The cells that an overall row pools: those with the same other levels."""
    fixed = {name: text for name, text in whole.place.cell.items() if text.strip().lower() not in OVERALL}
    return [
        one for one in cells if not one.pooled and all(one.place.cell.get(name) == text for name, text in fixed.items())
    ]
