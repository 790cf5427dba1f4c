"""CSV files of summary tables: separators, layouts (wide, long, transposed) and the way numbers are written.

Wide: a row is a cell, each statistic a column. Long: a row is one number, with the columns `statistic` and `value`.
Transposed, as pandas' `describe()` writes it: the first column names the statistics, each other column is a cell.
Errors name line and column. What may be read in two ways (`1,234`) is refused with both.
"""

from __future__ import annotations

import csv
import difflib
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from steelyard.model.errors import StudyError
from steelyard.reference.audit import headings

MOST_BYTES: Final = 20_000_000
SEPARATORS: Final = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
STATISTIC: Final = frozenset(("statistic", "stat", "statistics", "metric", "measure", "measurement", "summary"))
BLANK: Final = frozenset(("", "nan", "-", "–", "—", "n/a", "na", "null", "none", "?", "inf", "+inf", "-inf"))
PERCENTILES: Final = frozenset(("percentile", "percentiles", "quantile", "quantiles"))
"""Columns that give a percentile as a number: 99.9, or 0.999."""
COMPARISONS: Final = frozenset(("change_percent", "ratio", "difference", "speedup"))
UNIT_COLUMNS: Final = frozenset(("unit", "units"))
"""Columns of a long table that differ between the numbers of one cell."""

Line = tuple[int, list[str]]
"""Line number and fields of a row."""


class TableError(StudyError):
    """The file cannot be audited; names line, column and the text read."""


class Field(NamedTuple):
    """One text of the file, its place, and its unit where that is in another column."""

    line: int
    column: str
    text: str
    unit: str = ""


class Record(NamedTuple):
    """One cell of the table: its texts by their labels (headings, or names of statistics), and the line of the first.

    `key`: the columns that certainly identify it; of a wide table it is to be found out from its labels."""

    line: int
    key: dict[str, str]
    fields: dict[str, Field]


class Sheet(NamedTuple):
    """A table, whatever its layout."""

    path: Path
    line: int
    """Line of the heading."""
    form: str
    """Description of how it was read."""
    separator: str
    wide: bool
    labels: list[str]
    records: list[Record]


def read(path: Path) -> Sheet:
    """The file as cells. Raises TableError: no file, no CSV, no heading."""
    separator, lines = _lines(path)
    if _has_no_heading(lines):
        lines = [(lines[0][0], ["operation", "statistic", "value"]), *lines]
    (line, heading), rows = lines[0], lines[1:]
    words = f"separated by {SEPARATORS[separator]}"
    lowered = [text.lower() for text in heading]
    value = next((at for at, text in enumerate(lowered) if re.match(r"values?(?![a-z])", text)), None)
    named = next((at for at, text in enumerate(lowered) if text in STATISTIC or text in PERCENTILES), None)
    share = next((at for at, text in enumerate(lowered) if text in PERCENTILES), None)
    if share is not None:
        names = headings.percentile_labels([fields[share] for _, fields in rows])
        rows = [(at, [*fields[:share], name, *fields[share + 1 :]])
                for (at, fields), name in zip(rows, names, strict=True)]  # fmt: skip
    if named is not None and value is not None:
        records = _long(path, heading, named, value, rows)
        labels = list(dict.fromkeys(label for record in records for label in record.fields))
        return Sheet(path, line, f"long, {words}", separator, False, labels, records)
    if _is_transposed(heading, rows):
        records = [
            Record(line, {heading[0] or "column": name}, {
                fields[0]: Field(at, name, fields[column], headings.unit_of(name)) for at, fields in rows
            })
            for column, name in enumerate(heading) if column
        ]  # fmt: skip
        return Sheet(path, line, f"transposed, {words}", separator, False, [fields[0] for _, fields in rows],
                     records)  # fmt: skip
    records = [
        Record(at, {}, {name: Field(at, name, field) for name, field in zip(heading, fields, strict=True)})
        for at, fields in rows
    ]
    return Sheet(path, line, f"wide, {words}", separator, True, heading, records)


def _has_no_heading(lines: Sequence[Line]) -> bool:
    """Whether it is YCSB's output: `[READ], AverageLatency(us), 231.5`."""
    return all(len(fields) == 3 and re.fullmatch(r"\[.+\]", fields[0]) for _, fields in lines)


def _is_transposed(heading: Sequence[str], rows: Sequence[Line]) -> bool:
    """Whether the first column names statistics, each once, and the heading does not."""
    first = [fields[0] for _, fields in rows]
    known = sum(headings.read(text).known for text in set(first) - headings.numbered(first))
    above = [headings.read(text) for text in heading]
    return (
        len(heading) > 1
        and known >= 2
        and known >= len(first) / 2
        and len(set(first)) == len(first)
        and not any(one.statistic in headings.SUMMARIES or one.statistic in COMPARISONS or one.side for one in above)
        and not any(re.fullmatch(r"[\d.,]+", text) and not headings.read(text).known for text in first)
    )


def _lines(path: Path) -> tuple[str, list[Line]]:
    """The separator; then line numbers and fields, the heading first. Comment lines (#) and empty ones are omitted."""
    try:
        if path.stat().st_size > MOST_BYTES:
            raise wrong(path, 0, "", f"larger than {MOST_BYTES // 1_000_000} MB", "a summary table is smaller")
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise wrong(path, 0, "", f"byte {error.start} is not UTF-8", "save it as CSV in UTF-8") from error
    except OSError as error:
        raise wrong(path, 0, "", error.strerror or str(error), "") from error
    given = re.match(r"sep=(.)\r?\n", text)
    separators = [given[1]] if given and given[1] in SEPARATORS else list(SEPARATORS)
    if given:
        text = "\n" + text[given.end() :]
    separator, rows = _split(path, text, separators)
    if len(rows) < 2:
        raise wrong(path, 0, "", "a heading and at least one row are needed", allowed([]))
    rows = _one_heading([(line, [field.strip() for field in fields]) for line, fields in rows])
    line, heading = rows[0]
    for at, fields in rows[1:]:
        if len(fields) != len(heading):
            hint = "a comma too many or too few? Decimal commas need semicolons between the fields, or quotes"
            what = f"{len(fields)} fields where the heading has {len(heading)}"
            raise wrong(path, at, "", what, hint if separator == "," else "a separator too many or too few?")
    kept = [at for at in range(len(heading)) if heading[at] or any(fields[at] for _, fields in rows)]
    rows = [(at, [fields[column] for column in kept]) for at, fields in rows]
    heading = rows[0][1]
    twice = [text for text in heading if heading.count(text) > 1]
    if twice:
        raise wrong(path, line, twice[0], "this column is given more than once", "")
    return separator, rows


def _split(path: Path, text: str, separators: Sequence[str]) -> tuple[str, list[Line]]:
    """The separator that gives every row as many fields as the heading, the most of them; else the first."""
    best: tuple[int, str, list[Line]] | None = None
    failure: TableError | None = None
    for separator in separators:
        try:
            rows = _rows(path, text, separator)
        except TableError as error:
            failure = failure or error
            continue
        width = len(rows[0][1]) if rows else 0
        even = all(len(fields) == width for _, fields in rows)
        score = width if even or len(separators) == 1 else 1 if width > 1 else 0
        if best is None or score > best[0]:
            best = (score, separator, rows)
    if best is None or (failure is not None and best[0] < 2):
        raise failure or wrong(path, 0, "", "it is empty", "")
    return best[1], best[2]


def _rows(path: Path, text: str, separator: str) -> list[Line]:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True, delimiter=separator)
    every: list[Line] = []
    try:
        every.extend((reader.line_num, fields) for fields in reader if any(field.strip() for field in fields))
    except csv.Error as error:
        hint = "put fields with a comma or a quote in quotes"
        raise wrong(path, reader.line_num, "", str(error), hint) from error
    rows: list[Line] = []
    for at, (line, fields) in enumerate(every):
        # `# Samples,Average` is a heading: it has the fields of the line below it.
        heads = not rows and len(fields) > 1 and at + 1 < len(every) and len(every[at + 1][1]) == len(fields)
        if not fields[0].lstrip().startswith("#") or (heads and any(headings.read(one).known for one in fields[1:])):
            rows.append((line, fields))
    return rows


def _one_heading(rows: list[Line]) -> list[Line]:
    """The heading in one line: a first line of groups above one of statistics (merged cells, pandas' groupby) is put
    before it, and a line of which only the first field is there names the first column."""
    (line, upper), (_, lower), rest = rows[0], rows[1], rows[2:]
    numbers = [text for text in lower if re.match(r"[-+]?[.,]?\d", text) and not headings.read(text).known]
    known = sum(headings.read(text).statistic in headings.SUMMARIES or text.startswith("p9") for text in lower)
    if not rest or len(upper) != len(lower) or numbers or known < 2:
        return rows
    if sum(headings.read(text).known for text in upper if text) > known / 2:
        return rows
    names, group = [], ""
    for above, below in zip(upper, lower, strict=True):
        group = above or group
        names.append(f"{group} {below}" if below and group else below or group)
    names[0] = lower[0] or upper[0]
    if len(rest) > 1 and rest[0][1][0] and not any(rest[0][1][1:]):
        names[0], rest = rest[0][1][0], rest[1:]
    return [(line, names), *rest]


def _long(path: Path, heading: Sequence[str], named: int, value: int, rows: Sequence[Line]) -> list[Record]:
    records: dict[tuple[str, ...], Record] = {}
    unit = next((at for at, text in enumerate(heading) if text.lower() in UNIT_COLUMNS), None)
    whole = headings.unit_of(heading[value])
    for line, fields in rows:
        key = {text: fields[at] for at, text in enumerate(heading) if at not in (named, value, unit)}
        label = fields[named]
        record = records.setdefault(tuple(key.values()), Record(line, key, {}))
        if label in record.fields:
            raise wrong(path, line, heading[named], f"{label!r} a second time for {cell_text(key)}", "")
        record.fields[label] = Field(line, heading[value], fields[value], fields[unit] if unit is not None else whole)
    return list(records.values())


class Style(NamedTuple):
    """Notation of a file's numbers."""

    decimal: str = "."
    unsure: str = ""
    """A text with a comma that may be either, if nothing in the file decides."""


_COMMA_GROUPS: Final = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d+)?")
_POINT_GROUPS: Final = re.compile(r"[+-]?[1-9]\d{0,2}(\.\d{3})+(,\d+)?")
_SPACED: Final = re.compile(r"(?<=\d)['’_\u00a0\u202f\u2009 ](?=\d{3}(?!\d))")
_UNIT: Final = re.compile(r"\s*((?:[a-zµμ]*/)?[a-zµμ]+|[%×])$", re.IGNORECASE)
_UNITS: Final = headings.TIME_S.keys() | headings.SCALES | headings.OTHER_UNITS | {"%", "x", "×"}
_EXPONENT: Final = re.compile(r"\d\s*[x×*]\s*10\^?\s*([+-]?\d+)$")


def style_of(texts: Iterable[str], counts: Iterable[str], separator: str) -> Style:
    """Decimal sign of a file, from all its numbers. `counts`: those that are whole, where a sign parts thousands."""
    plain = [_without_unit(text)[0] for text in texts]
    commas = [text for text in plain if "," in text]
    points = [text for text in plain if "." in text]
    whole = {_without_unit(text)[0] for text in counts}
    parted = any(
        "." in text or text.count(",") > 1 or text in whole for text in commas if _COMMA_GROUPS.fullmatch(text)
    )
    dotted = any(
        "," in text or text.count(".") > 1 or text in whole for text in points if _POINT_GROUPS.fullmatch(text)
    )
    decimal_comma = any(not _COMMA_GROUPS.fullmatch(text) for text in commas if not _POINT_GROUPS.fullmatch(text))
    decimal_point = any(not _POINT_GROUPS.fullmatch(text) for text in points if not _COMMA_GROUPS.fullmatch(text))
    if not commas:
        return Style()
    if parted or decimal_point:
        return Style(".")
    if dotted or decimal_comma or separator == ";":
        both = next((text for text in points if text not in whole and not dotted and not decimal_comma), "")
        return Style(",", both)
    return Style(".", commas[0])


def number_text(text: str, style: Style) -> tuple[str, str]:
    """The number as `1234.5`, and its unit or percent sign; raises ValueError for what may be two numbers.

    Only separators of thousands at their places are removed: `12,34` is not 1234."""
    plain, unit = _without_unit(text)
    if plain.lower() in BLANK:
        return "", ""
    if style.unsure and ("," in plain or plain == style.unsure):
        raise ValueError(f"{plain!r} is not a number")
    if style.decimal == ",":
        plain = plain.replace(".", "") if _POINT_GROUPS.fullmatch(plain) else plain
        return (plain.replace(",", ".") if "." not in plain else plain), unit
    return (plain.replace(",", "") if _COMMA_GROUPS.fullmatch(plain) else plain), unit


def _without_unit(text: str) -> tuple[str, str]:
    plain = _SPACED.sub("", text.strip().replace("\u2212", "-"))
    plain = plain if plain.lower() in BLANK else _EXPONENT.sub(lambda at: at[0][0] + "e" + at[1], plain)
    match = _UNIT.search(plain)
    unit = match[1].replace("µ", "u").replace("μ", "u").lower() if match else ""
    if not match or not match.start() or unit.rpartition("/")[2] not in _UNITS:
        return plain, ""
    return plain[: match.start()].strip(), unit


def is_number(text: str) -> bool:
    """Whether a text is a number in some style, with a unit or without."""
    return re.fullmatch(r"[+-]?[.,\d]*\d[.,\d]*(e[+-]?\d+)?", _without_unit(text)[0].lower()) is not None


def allowed(read_texts: Sequence[str]) -> str:
    """The nearest known names to those read, and examples of what is known."""
    near = [
        (text, match)
        for text in read_texts
        for match in difflib.get_close_matches(text.lower(), headings.KNOWN, n=1, cutoff=0.7)
    ]
    best = max(near, key=lambda pair: difflib.SequenceMatcher(None, *pair).ratio(), default=None)
    did = f"did you mean {best[1]!r}? " if best else ""
    return f"{did}there are: {', '.join(headings.SUMMARIES)}, percentiles (p95, 99.9%), {', '.join(headings.ROLES)}, " \
           f"share, {', '.join(name for name in headings.WHOLE if name not in ('share', 'part', 'whole'))}"  # fmt: skip


def cell_text(key: Mapping[str, str]) -> str:
    """A cell in words."""
    return ", ".join(f"{name} {text}" for name, text in key.items()) or "the only cell"


def wrong(path: Path, line: int, column: str, what: str, hint: str) -> TableError:
    """The error at this place of the file."""
    where = f"{path}:{line}" if line else str(path)
    named = f" column {column!r}:" if column else ""
    return TableError(f"{where}:{named} {what}", hint, path=str(path), line=line, key=column)
