"""Plain files of a store from any source: content, text, checksum.

A store may come from anywhere. No link in it is followed, nothing but a regular file is opened (a pipe or a device
would block, or never end), and none is read that is larger than any of a real study.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from steelyard import no_links
from steelyard.model.plausible import read_json

HASH_CHUNK_BYTES = 1 << 20
HALF: Final = re.compile(r"\\u[dD]")
"""Begins half of a character in JSON; two halves make one."""
LONGEST_PROBLEM = 200
OF_TABLES = ("polars", "pyo3_runtime")
"""Libraries whose errors speak of their own insides when a table is torn."""
MOST_RECORD_BYTES: Final = 8 << 20
"""Limit of a record, facts, links, a noise floor, a live file. Links grow most: 100 nodes have 10,000 paths of 150
B."""
MOST_TEXT_BYTES: Final = 64 << 20
"""Limit of a study, a plan or a journal: 40,000 trials of 1.5 KB; at 1 min each they would take a month."""
MOST_PAGE_BYTES: Final = 256 << 20
"""Limit of a report to verify; our own pages are kept under 30 MB."""
MOST_FILE_BYTES: Final = 1 << 30
"""Of a file whose checksum is computed: of logs a node is read 64 MiB, and see `tables.MOST_ROWS`."""


def content_of(path: Path, below: Path | None = None, most_bytes: int = MOST_TEXT_BYTES) -> bytes:
    """Content of a regular file of at most `most_bytes`, reached without a link below `below` (else below its own
    folder). Raises OSError for anything else."""
    return no_links.content(path, below or path.parent, most_bytes)


def text_of(path: Path, below: Path | None = None, most_bytes: int = MOST_TEXT_BYTES) -> str:
    """Text of a regular file, as `content_of`; raises UnicodeDecodeError if it is not UTF-8."""
    return content_of(path, below, most_bytes).decode("utf-8")


def sha256_of(path: Path, below: Path | None = None, most_bytes: int = MOST_FILE_BYTES) -> str:
    """Hex SHA-256 of a file of the store `below`, as `content_of`; without a store, of any file of the user's own."""
    digest = hashlib.sha256()
    with path.open("rb") if below is None else no_links.opened(path, below, most_bytes) as handle:
        while chunk := handle.read(HASH_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def loaded(content: bytes | str, read_json: Callable[[bytes | str], Any] = read_json) -> Any:
    """JSON from any source. Raises ValueError, RecursionError; also for half of a character, which nothing can print,
    and for numbers that `read_json` refuses."""
    read = read_json(content)
    if HALF.search(content if isinstance(content, str) else content.decode("latin-1")):
        try:
            json.dumps(read, ensure_ascii=False).encode("utf-8")
        except UnicodeEncodeError as error:
            raise ValueError("a text in it has half of a character") from error
    return read


def json_of(path: Path, below: Path | None = None, most_bytes: int = MOST_TEXT_BYTES) -> tuple[Any, str]:
    """JSON of a regular file, and the hex SHA-256 of the content that was read; errors as `content_of` and `loaded`."""
    content = content_of(path, below, most_bytes)
    return loaded(content), hashlib.sha256(content).hexdigest()


def problem_of(error: Exception) -> str:  # noqa: PLR0911 - one a kind of error
    """Reason why a file cannot be read or understood, in a few words of one line."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror[:1].lower() + error.strerror[1:]
    if isinstance(error, UnicodeDecodeError):
        return f"not UTF-8 at byte {error.start}"
    if isinstance(error, RecursionError):
        return "nested too deeply"
    if isinstance(error, json.JSONDecodeError):
        return f"not JSON at line {error.lineno} column {error.colno}"
    if isinstance(error, ValidationError):
        return _first_fault(error)
    if type(error).__module__.partition(".")[0] in OF_TABLES:
        return "no whole Parquet file"
    text = " ".join(str(error).split())
    return text if len(text) <= LONGEST_PROBLEM else f"{text[:LONGEST_PROBLEM]}…"


def _first_fault(error: ValidationError) -> str:
    faults = error.errors(include_url=False, include_input=False, include_context=False)
    where = ".".join(str(part) for part in faults[0]["loc"])
    text = faults[0]["msg"]
    more = f", and {len(faults) - 1} more" if len(faults) > 1 else ""
    return f"{where}{': ' if where else ''}{text[:1].lower()}{text[1:]}{more}"[:LONGEST_PROBLEM]
