"""Tables of a trial, judged before anything rests on them: size, then columns, then rows.

The checksum of a table says that it is as it was sealed. In a store from elsewhere it may have been sealed to do
harm: a few hundred kilobytes that need all memory.
"""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO, Final

from steelyard import no_links
from steelyard.format import count, data_size
from steelyard.heavy import pl
from steelyard.store import layout
from steelyard.store.parquet_size import size_of
from steelyard.store.plain_file import MOST_FILE_BYTES, problem_of
from steelyard.store.plausible_rows import plausible_row

MOST_ROWS: Final = 1 << 25
"""Maximum rows of a table. The largest of a real study: an hour (`limits.trial_timeout_s`) of two operations, with 500
occupied buckets in each of four measures every second, has 14.4 million."""
MOST_UNPACKED_BYTES: Final = 1 << 30
"""Maximum unpacked bytes of a table's pages; those 14.4 million rows have 0.3 GB."""


def unreadable_table() -> tuple[type[Exception], ...]:
    """Errors of reading a damaged Parquet file."""
    return (OSError, ValueError, pl.exceptions.PolarsError, pl.exceptions.PanicException)


def problem_in(path: Path, below: Path, part: str) -> tuple[str, int]:
    """Reason why a table of a part of a trial cannot be used, in a few words; empty if it can, and then how many of its
    rows are not plausible. No link is followed below `below`."""
    try:
        with no_links.opened(path, below, MOST_FILE_BYTES) as file:
            return _problem(file, part)
    except unreadable_table() as error:
        return f"the table cannot be read: {problem_of(error)}", 0


def _problem(file: BinaryIO, part: str) -> tuple[str, int]:
    size = size_of(file.fileno())
    if size.rows > MOST_ROWS:
        return f"the table has {count(size.rows, 'row')}, and at most {MOST_ROWS:,} are read", 0
    if size.unpacked_bytes > MOST_UNPACKED_BYTES:
        most = data_size(MOST_UNPACKED_BYTES)
        return f"the table unpacks to {data_size(size.unpacked_bytes)}, and at most {most} are read", 0
    columns = pl.read_parquet_schema(file)
    schema = layout.INTERVAL_SCHEMA if part == layout.INTERVALS else layout.SAMPLE_SCHEMA
    if lacking := ", ".join(name for name, dtype in schema.items() if columns.get(name) != dtype):
        return f"the table lacks columns or has others: {lacking}", 0
    odd = pl.scan_parquet(file).select((~plausible_row(part)).sum())
    return "", odd.collect(engine="streaming").item()


def table(path: Path, below: Path) -> pl.DataFrame:
    """The rows of a table that has no problem; no link is followed below `below`. Raises OSError."""
    with no_links.opened(path, below, MOST_FILE_BYTES) as file:
        return pl.read_parquet(file)
