"""Tables of a trial, judged before anything rests on them: size, columns, and values that can be computed with.

The checksum of a table says that it is as it was sealed. In a store of somebody else it may have been sealed to do
harm: a few hundred kilobytes that need all memory, or a time that is no time.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from steelyard import no_links
from steelyard.format import count, data_size
from steelyard.heavy import pl
from steelyard.model.value import MOST_S
from steelyard.store import layout
from steelyard.store.parquet_size import size_of
from steelyard.store.plain_file import problem_of

MOST_ROWS: Final = 1 << 25
"""Of a table. The largest of a real study: an hour (`limits.trial_timeout_s`) of two operations, with 500 occupied
buckets in each of four measures every second, has 14.4 million."""
MOST_UNPACKED_BYTES: Final = 1 << 30
"""Of a table's pages; those 14.4 million rows have 0.3 GB."""
ROWS_AT_ONCE: Final = 1 << 18
"""Above, a table is looked through in parts."""
MOST_NS: Final = 10**18
"""Of a bucket: 31 years."""
MOST_COUNT: Final = 10**15
"""Of a bucket, so that sums of all stay whole numbers."""
RANGES: Final = {
    "t_s": (-MOST_S, MOST_S),
    "seconds": (1e-9, MOST_S),
    "bucket_low_ns": (0, MOST_NS),
    "bucket_high_ns": (0, MOST_NS),
    "count": (0, MOST_COUNT),
}
"""Column to the least and the largest value that a measurement can have."""


def unreadable_table() -> tuple[type[Exception], ...]:
    """What reading a damaged Parquet file raises."""
    return (OSError, ValueError, pl.exceptions.PolarsError, pl.exceptions.PanicException)


def problem_in(path: Path, below: Path, schema: layout.Columns) -> str:
    """Why a table cannot be used, in a few words; empty if it can. No link is followed below `below`."""
    try:
        handle = no_links.open_file(path, below)
        try:
            size = size_of(handle)
        finally:
            os.close(handle)
        if size.rows > MOST_ROWS:
            return f"the table has {count(size.rows, 'row')}, and at most {MOST_ROWS:,} are read"
        if size.unpacked_bytes > MOST_UNPACKED_BYTES:
            most = data_size(MOST_UNPACKED_BYTES)
            return f"the table unpacks to {data_size(size.unpacked_bytes)}, and at most {most} are read"
        columns = pl.read_parquet_schema(path)
        if lacking := ", ".join(name for name, dtype in schema.items() if columns.get(name) != dtype):
            return f"the table lacks columns or has others: {lacking}"
        return _odd_value(path, schema, size.rows)
    except unreadable_table() as error:
        return f"the table cannot be read: {problem_of(error)}"


def _odd_value(path: Path, schema: layout.Columns, rows: int) -> str:
    """The first column with a value that no measurement has. Everything is unpacked once for it."""
    wrong = []
    for name, dtype in schema.items():
        column = pl.col(name)
        odd = column.is_null()
        if name in RANGES:
            odd |= ~column.is_between(*RANGES[name])
            odd |= column.is_nan() if dtype == pl.Float64 else pl.lit(False)
        wrong.append(odd.any().alias(name))
    if rows > ROWS_AT_ONCE:
        found = pl.scan_parquet(path, use_statistics=False).select(wrong).collect(engine="streaming")
    else:
        found = pl.read_parquet(path, columns=list(schema)).select(wrong)
    named = [name for name in schema if rows and found[name].item()]
    return f"a value in column {named[0]} is none that a measurement has" if named else ""
