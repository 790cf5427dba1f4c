"""Hostile tables: Parquet files that are small, and need all memory or hold what no measurement has."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import polars as pl

from steelyard.store.parquet_size import Thrift

ROWS: Final = 1_000_000
TIMES: Final = 300
LONG: Final = "x" * 50_000_000
BEGUN_S: Final = 1_790_000_000.0
Make = Callable[[Path], Any]


def _intervals(rows: int = 100, **columns: Any) -> pl.DataFrame:
    """Sound intervals, but for these columns."""
    usual = {
        "phase": "measure", "t_s": BEGUN_S, "seconds": 1.0, "operation": "read", "outcome": "ok", "measure": "response",
        "bucket_low_ns": 1_000_000, "bucket_high_ns": 1_001_000, "count": 3,
    }  # fmt: skip
    return _table(rows, {**usual, **columns})


def _table(rows: int, columns: Mapping[str, Any]) -> pl.DataFrame:
    whole = {name: pl.lit(value, pl.Int64) for name, value in columns.items() if type(value) is int}
    rest = {name: value if isinstance(value, pl.Expr) else pl.lit(value) for name, value in columns.items()}
    table = pl.select(pl.int_range(rows).alias("row")).with_columns(**{**rest, **whole})
    return table.select(*columns)


def _write(frame: pl.DataFrame, path: Path) -> None:
    frame.write_parquet(path, compression="zstd")


def _odd(path: Path, **columns: Any) -> None:
    _write(_intervals(**columns), path)


def _bomb(frame: pl.DataFrame, times: int, path: Path) -> None:
    """The table many times over: every group of rows that the footer names is the same part of the file."""
    frame.write_parquet(path, compression="zstd", row_group_size=frame.height)
    content = path.read_bytes()
    begins = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    footer, groups = content[begins:-8], Thrift(content[begins:-8])
    # Version, schema, rows, then a list of one group.
    for kind in (5, 9):
        groups.at += 1
        groups.value(kind, 0)
    rows_at = groups.at + 1
    groups.at = rows_at
    groups.value(6, 0)
    list_at = groups.at + 1
    groups.at = list_at + 1
    groups.struct()
    one = footer[list_at + 1 : groups.at]
    many = bytes([0xFC]) + _varint(times) + one * times
    rows = _varint(2 * times * frame.height)
    footer = footer[:rows_at] + rows + footer[list_at - 1 : list_at] + many + footer[groups.at :]
    path.write_bytes(content[:begins] + footer + len(footer).to_bytes(4, "little") + content[-4:])


def _long(frame: pl.DataFrame, column: str, path: Path) -> None:
    """Texts of 50 MB, which are packed into little, 40 times."""
    _bomb(frame.with_columns(pl.Series([LONG]).alias(column)), 40, path)


def _wide(path: Path) -> None:
    _write(_intervals(1).with_columns(pl.lit(0).alias(f"c{number}") for number in range(20_000)), path)


def _torn_pages(frame: pl.DataFrame, path: Path) -> None:
    """The footer is sound, what it speaks of is not."""
    _write(frame, path)
    content = bytearray(path.read_bytes())
    for at in range(60, min(len(content) - 400, 4000), 3):
        content[at] ^= 0x5A
    path.write_bytes(bytes(content))


def _understated(path: Path) -> None:
    """A footer that says 100 rows of 1,000,000."""
    _write(_intervals(1_000_000), path)
    content = path.read_bytes()
    length = int.from_bytes(content[-8:-4], "little")
    footer = content[-8 - length : -8]
    few = bytes([0x80 | 200 & 127, 0x80 | 200 >> 7, 0])
    path.write_bytes(content[: -8 - length] + footer.replace(_varint(2 * 1_000_000), few) + content[-8:])


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def _samples_of(rows: int) -> pl.DataFrame:
    return _table(rows, {"t_s": BEGUN_S, "metric": "node_cpu_user_fraction", "value": 0.5})


def samples(name: str) -> Make:
    """A table of samples that is hostile in the way of this name."""
    ways: Mapping[str, Make] = {
        "300 million rows of one value": lambda path: _bomb(_samples_of(ROWS), TIMES, path),
        "texts of 2 GB": partial(_long, _samples_of(1), "metric"),
        "values that are missing": partial(
            _write, _samples_of(9).with_columns(value=pl.lit(None, pl.Float64), t_s=pl.lit(None, pl.Float64))
        ),
        "pages that are no pages": partial(_torn_pages, _samples_of(9)),
    }
    return ways[name]


KINDS: Final[Mapping[str, Make]] = {
    "300 million rows of one value": lambda path: _bomb(_intervals(ROWS), TIMES, path),
    "texts of 2 GB": partial(_long, _intervals(1), "operation"),
    "20,000 columns": _wide,
    "a footer that understates": _understated,
    "pages that are no pages": partial(_torn_pages, _intervals(5000)),
    "another schema": partial(_odd, count="3", t_s=5),
    "no rows": partial(_odd, rows=0),
    "values that are missing": partial(_odd, t_s=pl.lit(None, pl.Float64), count=pl.lit(None, pl.Int64)),
    "times that are no numbers": partial(_odd, t_s=float("nan"), seconds=float("inf")),
    "times far apart": partial(_odd, t_s=pl.int_range(100).cast(pl.Float64) * 1e8),
    "seconds of no length": partial(_odd, seconds=0.0),
    "negative counts": partial(_odd, count=-5, bucket_low_ns=-1),
    "counts at the end of numbers": partial(_odd, count=2**63 - 1, bucket_high_ns=2**63 - 1),
    "100,000 operations": partial(_odd, rows=100_000, operation=pl.int_range(100_000).cast(pl.String)),
    "texts of control characters": partial(_odd, operation="\x1b[2J\u202e=1+1", phase="measure", outcome="ok"),
}
"""Tables of intervals."""
