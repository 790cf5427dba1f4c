"""Integrity of files: existence, checksum, format.

Files are read again without the store's own reader, so that a bug in that reader is found too.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from steelyard import no_links
from steelyard.heavy import pl
from steelyard.model.file_format import READS
from steelyard.model.trial import TrialRecord
from steelyard.store import layout
from steelyard.store.plain_file import MOST_RECORD_BYTES, loaded, problem_of, sha256_of, text_of
from steelyard.store.plausible_rows import plausible
from steelyard.store.tables import problem_in, table
from steelyard.verify.checklist import Book


def sealed_folders(store: Path) -> list[Path]:
    """Folders of sealed attempts, sorted by name."""
    folders = (name for name, kind in _listed(store / layout.TRIALS, store).items() if kind is no_links.Kind.FOLDER)
    return [store / layout.TRIALS / name for name in folders if not name.startswith(layout.PARTIAL_PREFIX)]


def _listed(folder: Path, store: Path) -> Mapping[str, no_links.Kind]:
    """Names in a folder; none if it is not the store's own: other checks report what is missing from it."""
    try:
        return no_links.entries(folder, store)
    except OSError:
        return {}


def read_record(store: Path, folder: Path, book: Book) -> TrialRecord | None:
    """The record as stored on disk; None, with a finding, if it cannot be read."""
    path = folder / layout.TRIAL_JSON
    where = no_links.name_below(path, store)
    try:
        read = loaded(text_of(path, store, MOST_RECORD_BYTES))
        form = read.get("format") if isinstance(read, dict) else None
        if not book.equal("format", where, "format", form, READS):
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
    there = set(no_links.files(folder, store)) - {layout.TRIAL_JSON}
    for name in sorted(there | set(record.checksums)):
        where = no_links.name_below(folder / name, store)
        wanted = record.checksums.get(name)
        if name not in there:
            book.check("checksum", False, where, "file", "missing", f"SHA-256 {wanted}")
        elif wanted is None:
            book.check("checksum", False, where, "file", "present", "not listed in the record")
        else:
            try:
                read = sha256_of(folder / name, store)
            except OSError as error:
                read = problem_of(error)
            book.equal("checksum", where, "SHA-256", read, wanted)


def frames(store: Path, folder: Path, part: str, book: Book) -> pl.DataFrame | None:
    """All Parquet files of one part of a trial, with checked columns; None if one cannot be read."""
    schema: layout.Columns = layout.INTERVAL_SCHEMA if part == layout.INTERVALS else layout.SAMPLE_SCHEMA
    tables = [pl.DataFrame(schema={"node": pl.String, **schema})]
    whole = True
    for name in _listed(folder / part, store):
        path = folder / part / name
        if path.suffix != ".parquet":
            continue
        what, odd = problem_in(path, store, part)
        where = no_links.name_below(path, store)
        if what:
            problem, _, why = what.partition(": ")
            whole = book.check("format", False, where, problem, why)
        else:
            book.equal("format", where, "rows with a number that is not a measurement", odd, 0)
            rows = plausible(table(path, store), part)
            tables.append(rows.select(pl.lit(path.stem).alias("node"), *schema))
    return pl.concat(tables) if whole else None


def facts(
    store: Path, folder: Path, record: TrialRecord, book: Book
) -> tuple[dict[str, dict[str, str]], list[dict[str, Any]]] | None:
    """Check that facts and links are JSON of the expected form. Returns facts by name, and links; None if any is
    unreadable or listed in the record but missing."""
    known: dict[str, dict[str, str]] = {}
    links: list[dict[str, Any]] = []
    named = (name for name in record.checksums if name == layout.LINKS_JSON or name.startswith(f"{layout.FACTS}/"))
    whole = all(no_links.is_file(folder / name, store) for name in named)
    there = [folder / layout.FACTS / name for name in _listed(folder / layout.FACTS, store) if name.endswith(".json")]
    for path in [*there, folder / layout.LINKS_JSON]:
        if not no_links.is_file(path, store):
            # A listed one that is missing, or is not a regular file, is reported by `checksums`.
            continue
        form = list if path.name == layout.LINKS_JSON else dict
        content: Any = None
        try:
            content = loaded(text_of(path, store, MOST_RECORD_BYTES))
            read = type(content).__name__
        except (OSError, ValueError, RecursionError) as error:
            read = problem_of(error)
        if not book.equal("format", no_links.name_below(path, store), "JSON", read, form.__name__):
            whole = False
        elif isinstance(content, dict):
            known[layout.facts_name(path.stem)] = {
                name: value for name, value in content.items() if isinstance(value, str)
            }
        else:
            links = [link for link in content if isinstance(link, dict)]
    return (known, links) if whole else None
