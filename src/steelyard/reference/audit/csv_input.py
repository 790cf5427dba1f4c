"""CSV input of the audit: reads a table of summaries, own or copied from a paper, and audits it.

Wide: a row is a cell, each statistic a column. Long: a row is one number, with the columns `statistic` and `value`. All
other columns are the key of the cell. Errors name line and column.
"""

from __future__ import annotations

import csv
import difflib
import io
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from steelyard.model.errors import StudyError
from steelyard.reference.audit import pooled_rows, regression_rows, single_cell, two_groups
from steelyard.reference.audit.finding import Audit, Ledger, Place
from steelyard.reference.audit.regression_rows import Group, Line
from steelyard.reference.audit.single_cell import Cell, Conventions
from steelyard.reference.audit.two_groups import Side
from steelyard.reference.printed import Printed, Rounding, parse

ALIASES: Mapping[str, tuple[str, ...]] = {
    "count": ("n", "count"),
    "mean": ("mean", "average"),
    "sd": ("sd", "std", "stddev"),
    "min": ("min",),
    "q1": ("q1", "25%", "p25"),
    "median": ("median", "50%", "p50"),
    "q3": ("q3", "75%", "p75"),
    "max": ("max",),
    "range": ("range",),
    "se": ("se", "sem"),
    "cv_percent": ("cv_percent",),
    "slope": ("slope",),
    "intercept": ("intercept",),
    "r": ("r", "r_value"),
    "p": ("p", "p_value"),
    "std_err": ("std_err",),
    "cohens_d": ("cohens_d", "d"),
    "hedges_g": ("hedges_g",),
    "ratio": ("ratio",),
    "difference": ("difference",),
    "change_percent": ("change_percent",),
}
"""Statistics of the audit, and their accepted column names, in any case."""

NAMES = {alias: name for name, aliases in ALIASES.items() for alias in aliases}
SIDES = (("_baseline", "_treatment"), ("_before", "_after"), ("_1", "_2"))
"""Suffixes of the two groups of a comparison: `mean_before`, `mean_after`."""
OF_A_SIDE = ("count", "mean", "sd", "min", "q1", "median", "q3", "max", "range", "se", "cv_percent")
OVERALL = ("overall", "total", "pooled")
"""Levels that pool all others in their column. Not `all`: that is a consistency level."""
CELL = "which cell"
MOST_BYTES = 20_000_000

Fields = tuple[int, list[str]]
"""Line number and fields of a row."""


class TableError(StudyError):
    """The file cannot be audited; names line, column and the text read."""


class Numbers(NamedTuple):
    """One cell of the file: its numbers by the audit's names, and the line of the first."""

    line: int
    key: dict[str, str]
    numbers: dict[str, Printed]
    labels: dict[str, str]


def audit(path: Path, how: Conventions, rounding: Rounding) -> Audit:
    """Audit a file. Raises TableError if it cannot be read as a table with at least one number."""
    ledger = Ledger()
    sheet = read(path, rounding)
    cells: list[Cell] = []
    for entry in sheet:
        cells.extend(_row(path.name, entry, how, ledger))
    for whole in cells:
        if whole.pooled:
            pooled_rows.check(whole, _parts(whole, cells), how, ledger, complete=False)
    return ledger.audit(str(path)).model_copy(update={"columns": _read_as(sheet)})


def _read_as(sheet: Sequence[Numbers]) -> dict[str, str]:
    """The role of each column, or of each statistic of a long table."""
    roles = {column: CELL for entry in sheet for column in entry.key}
    return roles | {label: name for entry in sheet for name, label in entry.labels.items()}


def _row(name: str, entry: Numbers, how: Conventions, ledger: Ledger) -> Iterator[Cell]:
    """All checks of one row; yields its cells."""
    place = Place(name, entry.line, entry.key)
    pooled = any(text.strip().lower() in OVERALL for text in entry.key.values())
    named: dict[str, Cell] = {}
    for ending in ("", *(ending for both in SIDES for ending in both)):
        numbers = {base: entry.numbers[base + ending] for base in OF_A_SIDE if base + ending in entry.numbers}
        if numbers:
            labels = {base: entry.labels[base + ending] for base in numbers}
            named[ending] = Cell(place, numbers, labels, pooled)
            single_cell.check(named[ending], how, ledger)
    if "" in named:
        yield named[""]
    pairs = [(named[one], named[other]) for one, other in SIDES if one in named and other in named]
    line = Line(place, {name: entry.numbers[name] for name in LINE if name in entry.numbers}, entry.labels)
    if line.get("slope") is not None or line.get("r") is not None:
        _line(line, entry, pairs, how, ledger)
    if len(pairs) == 1:
        _compared(place, entry, *pairs[0], how, ledger)
    elif pairs:
        ledger.skip("comparisons of a row with more than two groups")


LINE = ("slope", "intercept", "r", "p", "std_err")


def _line(line: Line, entry: Numbers, pairs: Sequence[tuple[Cell, Cell]], how: Conventions, ledger: Ledger) -> None:
    """A regression; in a row with two groups, the slope is the one on their 0/1 indicator."""
    count = entry.numbers.get("count")
    n = None if count is None else count.whole
    if len(pairs) == 1 and line.get("slope") is not None:
        groups = [group for x, one in enumerate(pairs[0]) if (group := _group(float(x), one)) is not None]
        if len(groups) == 2:
            n = groups[0].n + groups[1].n
            regression_rows.check_cells(line, groups, how, ledger)
    regression_rows.check_itself(line, n, ledger)


def _group(x: float, cell: Cell) -> Group | None:
    mean, sd, count = cell.get("mean"), cell.get("sd"), cell.n
    if mean is None or sd is None or count is None or count < 2:
        return None
    return Group(x, count, mean, sd, cell.label("mean"))


def _side(cell: Cell) -> Side:
    return Side(cell.numbers["mean"], cell.numbers.get("sd"), cell.n)


def _compared(place: Place, entry: Numbers, first: Cell, second: Cell, how: Conventions, ledger: Ledger) -> None:
    """Effect size, ratio, difference and change between the two groups: of means, or of medians if they fit better."""
    if "mean" in first.numbers and "mean" in second.numbers:
        sides = (_side(first), _side(second))
        for name in ("cohens_d", "hedges_g"):
            if name in entry.numbers:
                pooling: two_groups.Pooling | None = "Hedges' g" if name == "hedges_g" else None
                label, printed = entry.labels[name], entry.numbers[name]
                two_groups.check_effect(place, label, printed, sides, pooling, how.sd_divisors, ledger)
    both = [
        (first.numbers[name], second.numbers[name])
        for name in ("mean", "median")
        if first.get(name) is not None and second.get(name) is not None
    ]
    for name, check in (
        ("difference", two_groups.check_difference),
        ("ratio", two_groups.check_any_ratio),
        ("change_percent", two_groups.check_change),
    ):
        if both and name in entry.numbers:
            check(place, entry.labels[name], entry.numbers[name], both, ledger)


def _parts(whole: Cell, cells: Sequence[Cell]) -> list[Cell]:
    """The cells that an overall row pools: those with the same levels as its own."""
    fixed = {name: text for name, text in whole.place.cell.items() if text.strip().lower() not in OVERALL}
    return [
        one for one in cells if not one.pooled and all(one.place.cell.get(name) == text for name, text in fixed.items())
    ]


def read(path: Path, rounding: Rounding) -> list[Numbers]:
    """The cells in a file. Raises TableError: no file, no CSV, no statistic, no number, a duplicate cell."""
    lines = _lines(path)
    heading, rows = lines[0][1], lines[1:]
    names = [_name(text) for text in heading]
    lowered = [text.strip().lower() for text in heading]
    value = next((at for at, text in enumerate(lowered) if text == "value" or text.startswith("value_")), None)
    if "statistic" in lowered and value is not None:
        cells = _long(path, heading, lowered.index("statistic"), value, rows, rounding)
    else:
        cells = _wide(path, lines[0][0], heading, names, rows, rounding)
    seen: dict[tuple[str, ...], int] = {}
    for cell in cells:
        first = seen.setdefault(tuple(cell.key.values()), cell.line)
        if first != cell.line and cell.key:
            problem = f"the same cell as in line {first}: {_cell(cell.key)}"
            raise _wrong(path, cell.line, "", problem, "name it by one more column")
    return cells


def _lines(path: Path) -> list[tuple[int, list[str]]]:
    """Line numbers and fields; comment lines (#) and empty ones are omitted."""
    try:
        if path.stat().st_size > MOST_BYTES:
            raise _wrong(path, 0, "", f"larger than {MOST_BYTES // 1_000_000} MB", "a summary table is smaller")
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise _wrong(path, 0, "", f"byte {error.start} is not UTF-8", "save it as CSV in UTF-8") from error
    except OSError as error:
        raise _wrong(path, 0, "", error.strerror or str(error), "") from error
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    rows: list[tuple[int, list[str]]] = []
    try:
        for fields in reader:
            if any(field.strip() for field in fields) and not fields[0].lstrip().startswith("#"):
                rows.append((reader.line_num, fields))
    except csv.Error as error:
        raise _wrong(path, reader.line_num, "", str(error), "put fields with a comma or a quote in quotes") from error
    if len(rows) < 2:
        raise _wrong(path, 0, "", "a heading and at least one row are needed", _allowed([]))
    heading = [text.strip() for text in rows[0][1]]
    twice = [text for text in heading if heading.count(text) > 1]
    if twice:
        raise _wrong(path, rows[0][0], twice[0], "this column stands there twice", "")
    for line, fields in rows[1:]:
        if len(fields) != len(heading):
            raise _wrong(
                path,
                line,
                "",
                f"{len(fields)} fields where the heading has {len(heading)}",
                "a comma too many or too few?",
            )
    return [(rows[0][0], heading), *rows[1:]]


def _name(text: str) -> str | None:
    """The audit's name of a column, with its ending; None for a key column."""
    lowered = text.strip().lower()
    for ending in (ending for both in SIDES for ending in both):
        base = NAMES.get(lowered.removesuffix(ending))
        if lowered.endswith(ending) and base in OF_A_SIDE:
            return base + ending
    return NAMES.get(lowered)


def _allowed(read: Sequence[str]) -> str:
    """The known statistics, and the nearest names to those read."""
    near = [(text, match) for text in read for match in difflib.get_close_matches(text.lower(), NAMES, n=1, cutoff=0.7)]
    best = max(near, key=lambda pair: difflib.SequenceMatcher(None, *pair).ratio(), default=None)
    return f"{f'did you mean {best[1]!r}? ' if best else ''}there are: {', '.join(NAMES)}"


def _wide(
    path: Path,
    line_of_heading: int,
    heading: Sequence[str],
    names: Sequence[str | None],
    rows: Sequence[tuple[int, list[str]]],
    rounding: Rounding,
) -> list[Numbers]:
    if not any(names):
        hint = "separate the fields with commas, not semicolons" if ";" in heading[0] else _allowed(heading)
        raise _wrong(path, line_of_heading, "", f"no column is a statistic: {', '.join(heading)}", hint)
    first: dict[str, str] = {}
    for text, name in zip(heading, names, strict=True):
        if name and first.setdefault(name, text) != text:
            what = f"the same statistic as column {first[name]!r}"
            raise _wrong(path, line_of_heading, text, what, "keep one of them")
    cells = []
    for line, fields in rows:
        key = {text: field.strip() for text, name, field in zip(heading, names, fields, strict=True) if not name}
        numbers = {
            name: _number(path, line, text, field, name, rounding)
            for text, name, field in zip(heading, names, fields, strict=True)
            if name
        }
        labels = {name: text for text, name in zip(heading, names, strict=True) if name}
        cells.append(Numbers(line, key, numbers, labels))
    return cells


def _long(
    path: Path,
    heading: Sequence[str],
    statistic: int,
    value: int,
    rows: Sequence[tuple[int, list[str]]],
    rounding: Rounding,
) -> list[Numbers]:
    cells: dict[tuple[str, ...], Numbers] = {}
    for line, fields in rows:
        key = {text: fields[at].strip() for at, text in enumerate(heading) if at not in (statistic, value)}
        label = fields[statistic].strip()
        name = _name(label)
        if name is None:
            raise _wrong(path, line, heading[statistic], f"{label!r} is no statistic", _allowed([label]))
        cell = cells.setdefault(tuple(key.values()), Numbers(line, key, {}, {}))
        if name in cell.numbers:
            raise _wrong(path, line, heading[statistic], f"{label!r} a second time for {_cell(key)}", "")
        cell.numbers[name] = _number(path, line, heading[value], fields[value], name, rounding)
        cell.labels[name] = label
    return list(cells.values())


def _number(path: Path, line: int, column: str, text: str, name: str, rounding: Rounding) -> Printed:
    try:
        printed = parse(text, rounding)
    except ValueError as error:
        hint = "write it as 1234.5 or 1.2e+03, without unit and thousands separator; leave blank what is not known"
        raise _wrong(path, line, column, str(error), hint) from error
    base = name.partition("_")[0]
    if base in ("count", "sd", "se", "range") and printed.value is not None and printed.value < 0:
        raise _wrong(path, line, column, f"{printed.text} is below 0", "counts and spreads are not")
    return printed


def _cell(key: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {text}" for name, text in key.items()) or "the only cell"


def _wrong(path: Path, line: int, column: str, what: str, hint: str) -> TableError:
    where = f"{path}:{line}" if line else str(path)
    named = f" column {column!r}:" if column else ""
    return TableError(f"{where}:{named} {what}", hint, path=str(path), line=line, key=column)
