"""Plain files of a store, whoever put them there: content, text, checksum.

A store may come from anybody: to open a pipe or a device in the place of a file would block, or never end.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
from pathlib import Path

from pydantic import ValidationError

HASH_CHUNK_BYTES = 1 << 20
LONGEST_PROBLEM = 200
OF_TABLES = ("polars", "pyo3_runtime")
"""Libraries whose errors speak of their own insides when a table is torn."""


def content_of(path: Path) -> bytes:
    """Content of a regular file. Raises OSError for anything else."""
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as handle:
        if not stat.S_ISREG(os.fstat(handle.fileno()).st_mode):
            raise OSError(errno.EINVAL, "it is no regular file")
        return handle.read()


def text_of(path: Path) -> str:
    """Text of a regular file. Raises OSError for anything else, UnicodeDecodeError if it is not UTF-8."""
    return content_of(path).decode("utf-8")


def sha256_of(path: Path) -> str:
    """Hex SHA-256 of a file."""
    digest = hashlib.sha256()
    with path.open("rb") as handle:
        while chunk := handle.read(HASH_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def problem_of(error: Exception) -> str:  # noqa: PLR0911 - one a kind of error
    """Why a file cannot be read or understood, in a few words of one line."""
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
