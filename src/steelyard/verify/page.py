"""Verification of a report: its tables cell by cell, and the numbers in its text, against a newly generated report."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from steelyard import no_links
from steelyard.format import FORM, FORM_NAME
from steelyard.report.basics import embedded_data
from steelyard.store import layout
from steelyard.store.plain_file import MOST_PAGE_BYTES, loaded, problem_of, text_of
from steelyard.verify.checklist import Book

DATA_ID = "data"
"""Id of the script element that carries the tables."""
UNSEEN = frozenset({"script", "style"})
MOST_LINES = 20
"""Maximum number of differing places on a page that become findings; further ones are counted."""
TRIALS = "trials"
BEGAN = ("trial_id", "attempt", "begun_s")
_NUMBER = re.compile(r"[−+-]?\d[\d,]*\.?\d*")

Tables = Mapping[str, Mapping[str, Any]]


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.data: list[str] = []
        self.lines: list[str] = []
        self.form = ""
        self._inside: list[str] = []
        self._is_data = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        if tag == "meta" and attributes.get("name") == FORM_NAME:
            self.form = attributes.get("content") or ""
        if tag in UNSEEN:
            self._inside.append(tag)
            self._is_data = ("id", DATA_ID) in attrs

    def handle_endtag(self, tag: str) -> None:
        if self._inside and self._inside[-1] == tag:
            self._inside.pop()
            self._is_data = False

    def handle_data(self, data: str) -> None:
        if self._is_data:
            self.data.append(data)
        elif not self._inside and data.strip():
            self.lines.append(" ".join(data.split()))


def read(path: Path, where: str, book: Book) -> tuple[Tables | None, list[str]]:
    """Tables and lines of text of a report: a page, or the output of `report --json`. Without tables: a finding."""
    lines: list[str] = []
    try:
        text = text_of(*no_links.place_of(path), most_bytes=MOST_PAGE_BYTES)
        if text.lstrip().startswith("{"):
            tables = loaded(text)
        else:
            page = _Page()
            page.feed(text)
            if page.form == str(FORM):
                lines = page.lines
            else:
                form = f"in form {page.form or 'unsaid'}, this version writes {FORM}: not compared"
                book.remark("report", where, "text of the page", form)
            tables = embedded_data.unpack("".join(page.data))
    except (OSError, ValueError, RecursionError) as error:
        book.check("format", False, where, "the report's tables cannot be read", problem_of(error))
        return None, lines
    fits = isinstance(tables, dict) and all(isinstance(one, dict) and "rows" in one for one in tables.values())
    book.check("format", fits, where, "the report's tables", "tables" if fits else "something else", "tables")
    return (tables if fits else None), lines


def older(tables: Tables, again: Tables) -> int:
    """Number of trials that were sealed after the report was made; 0 if unknown."""
    rows, now = ([tuple(row[:2]) for row in one.get(TRIALS, {}).get("rows", ())] for one in (tables, again))
    return len(now) - len(rows) if set(rows) < set(now) else 0


def other_measurements(tables: Tables, again: Tables) -> frozenset[str]:
    """Folders of attempts that began at another time in one of the two, or that only one of them has."""
    sheets = [one.get(TRIALS, {}) for one in (tables, again)]
    began = [{_folder(row): row[-1] for row in _picked(sheet, BEGAN) if isinstance(row[1], int)} for sheet in sheets]
    return frozenset(key for key in began[0].keys() | began[1].keys() if began[0].get(key) != began[1].get(key))


def _picked(table: Mapping[str, Any], columns: Sequence[str]) -> list[list[Any]]:
    known = list(table.get("columns", ()))
    if any(column not in known for column in columns):
        return []
    whole = [row for row in table["rows"] if isinstance(row, list) and len(row) == len(known)]
    return [[row[known.index(column)] for column in columns] for row in whole]


def _folder(row: Sequence[Any]) -> str:
    return layout.trial_folder(str(row[0]), int(row[1]))


def same_form(reported: Tables, again: Tables) -> bool:
    """Whether both have the same tables and columns; if not, another version made the report."""
    forms = [{name: list(one["columns"]) for name, one in tables.items()} for tables in (reported, again)]
    return forms[0] == forms[1]


def compare_tables(reported: Tables, again: Tables, where: str, book: Book) -> None:
    """Check that all cells are equal in the tables that both have."""
    for name in sorted({*reported, *again}):
        if name not in reported or name not in again:
            book.remark(
                "report", where, f"table {name}", "only in the report" if name in reported else "not in the report"
            )
            continue
        table, other = reported[name], again[name]
        columns = [column for column in table["columns"] if column in other["columns"]]
        if list(table["columns"]) != list(other["columns"]):
            odd = sorted(set(table["columns"]) ^ set(other["columns"]))
            book.remark("report", where, f"table {name}: columns of another version", ", ".join(odd))
        if not book.equal("report", where, f"table {name}: rows", len(table["rows"]), len(other["rows"])):
            continue
        places = [(column, table["columns"].index(column), other["columns"].index(column)) for column in columns]
        for number, (mine, theirs) in enumerate(zip(table["rows"], other["rows"], strict=True), start=1):
            for column, at, there in places:
                what = f"table {name}, row {number}, {column}"
                book.equal("report", where, what, mine[at], theirs[there])


def compare_lines(reported: Sequence[str], again: Sequence[str], where: str, book: Book) -> None:
    """Compare the numbers in the page's text, in order; words are not compared."""
    mine, theirs = ([" ".join(_NUMBER.findall(line)) for line in lines] for lines in (reported, again))
    if not mine and not theirs:
        return
    places = 0
    for tag, a, b, c, d in difflib.SequenceMatcher(None, mine, theirs, autojunk=False).get_opcodes():
        if tag == "equal":
            book.made["report"] += sum(len(numbers.split()) for numbers in mine[a:b])
            continue
        if not any(mine[a:b]) and not any(theirs[c:d]):
            continue
        places += 1
        if places <= MOST_LINES:
            read, should = (" / ".join(lines) or "nothing" for lines in (reported[a:b], again[c:d]))
            book.check("report", False, where, "text of the page", _short(read), _short(should))
    if places > MOST_LINES:
        book.check("report", False, where, "further places of the page's text", f"{places - MOST_LINES} differ", "none")


def lines_of(page: str) -> list[str]:
    """Text lines of an HTML page."""
    parser = _Page()
    parser.feed(page)
    return parser.lines


def _short(text: str) -> str:
    return text if len(text) <= 160 else f"{text[:159]}…"
