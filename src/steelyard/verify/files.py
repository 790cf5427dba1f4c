"""Integrity of files: existence, checksum, format.

Files are read a second time, without the store's own reader, so that a mistake of the reader is found too.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from steelyard.heavy import pl
from steelyard.model.plausible import read_json
from steelyard.model.trial import TrialRecord
from steelyard.store import layout
from steelyard.store.plain_file import problem_of, sha256_of, text_of
from steelyard.store.plausible_rows import plausible
from steelyard.store.read import unreadable_table
from steelyard.verify.checklist import Book


def sealed_folders(store: Path) -> list[Path]:
    """Folders of sealed attempts, by name."""
    trials = store / layout.TRIALS
    entries = trials.iterdir() if trials.is_dir() else ()
    return sorted(path for path in entries if path.is_dir() and not path.name.startswith(layout.PARTIAL_PREFIX))


def read_record(store: Path, folder: Path, book: Book) -> TrialRecord | None:
    """The record as on disk; None, and a finding, if it cannot be read."""
    path = folder / layout.TRIAL_JSON
    where = str(path.relative_to(store))
    try:
        read = read_json(text_of(path))
        form = read.get("format") if isinstance(read, dict) else None
        if not book.equal("format", where, "format", form, layout.FORMAT):
            return None
        record = TrialRecord.model_validate(read)
        record.settings.check()
    except (OSError, ValueError, RecursionError) as error:
        book.check("format", False, where, "the record cannot be read", problem_of(error))
        return None
    name = layout.trial_folder(record.id, record.attempt)
    book.equal("format", where, "the folder of this id and attempt", folder.name, name)
    return record


def checksums(store: Path, folder: Path, record: TrialRecord, book: Book) -> None:
    """Check every file of the trial against the record, and the record against the files."""
    there = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()} - {layout.TRIAL_JSON}
    for name in sorted(there | set(record.checksums)):
        where = str((folder / name).relative_to(store))
        wanted = record.checksums.get(name)
        if name not in there:
            book.check("checksum", False, where, "a file that the record names", "no such file", f"SHA-256 {wanted}")
        elif wanted is None:
            book.check("checksum", False, where, "a file", "there", "the record names none")
        else:
            book.equal("checksum", where, "SHA-256", sha256_of(folder / name), wanted)


def frames(store: Path, folder: Path, part: str, book: Book) -> pl.DataFrame | None:
    """All Parquet files of a part of a trial, with their columns checked; None if one cannot be read."""
    schema: layout.Columns = layout.INTERVAL_SCHEMA if part == layout.INTERVALS else layout.SAMPLE_SCHEMA
    tables = [pl.DataFrame(schema={"node": pl.String, **schema})]
    whole = True
    for path in sorted((folder / part).glob("*.parquet")):
        where = str(path.relative_to(store))
        try:
            if not path.is_file():
                raise OSError("it is no regular file")
            frame = pl.read_parquet(path)
        except unreadable_table() as error:
            whole = book.check("format", False, where, "the table cannot be read", problem_of(error))
            continue
        columns = {name: str(dtype) for name, dtype in frame.schema.items()}
        wanted = {name: str(dtype) for name, dtype in pl.DataFrame(schema=schema).schema.items()}
        if book.equal("format", where, "columns", columns, wanted):
            rows = plausible(frame, part)
            book.equal("format", where, "rows without a number that is no measurement", rows.height, frame.height)
            tables.append(rows.select(pl.lit(path.stem).alias("node"), *schema))
        else:
            whole = False
    return pl.concat(tables) if whole else None


def facts(
    store: Path, folder: Path, record: TrialRecord, book: Book
) -> tuple[dict[str, dict[str, str]], list[dict[str, Any]]] | None:
    """Check that facts and links are JSON of the expected form. Gives facts by name, and links; None if one of them
    cannot be read, or is named by the record and not there."""
    known: dict[str, dict[str, str]] = {}
    links: list[dict[str, Any]] = []
    named = (name for name in record.checksums if name == layout.LINKS_JSON or name.startswith(f"{layout.FACTS}/"))
    whole = all((folder / name).is_file() for name in named)
    for path in [*sorted((folder / layout.FACTS).glob("*.json")), folder / layout.LINKS_JSON]:
        if not path.is_file():
            # A file that is named and not there is a finding of the checksums.
            continue
        form = list if path.name == layout.LINKS_JSON else dict
        content: Any = None
        try:
            content = read_json(text_of(path))
            read = type(content).__name__
        except (OSError, ValueError, RecursionError) as error:
            read = problem_of(error)
        if not book.equal("format", str(path.relative_to(store)), "JSON", read, form.__name__):
            whole = False
        elif isinstance(content, dict):
            known[layout.facts_name(path.stem)] = {
                name: value for name, value in content.items() if isinstance(value, str)
            }
        else:
            links = [link for link in content if isinstance(link, dict)]
    return (known, links) if whole else None
