"""HdrHistogram log format with three significant digits, as other tools write and read it in `.hdr` files.

A line is `start_s,length_s,max,histogram`; the histogram is in the library's V2 encoding, deflated, in base64.
Source of the lines: the library's HistogramLogWriter.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

from hdrh.histogram import HdrHistogram

DIGITS = 3
LEAST_RANGE = 2047
"""Initial upper end of the library's range, which doubles until it holds the highest value."""
LEGEND = '"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"'

Counts = Iterable[tuple[int, int]]
"""Pairs of value (in any unit) and count."""


def text(counts: Counts) -> str:
    """The encoded histogram of a log line."""
    kept = list(counts)
    highest = max((value for value, _ in kept), default=0)
    histogram = HdrHistogram(1, max(LEAST_RANGE, (1 << highest.bit_length()) - 1), DIGITS)
    for value, count in kept:
        histogram.record_value(value, count)
    encoded: bytes = histogram.encode()
    return encoded.decode("ascii")


def head(comment: str, start_s: float, version: str = "1.1") -> str:
    """The header of a log. `start_s`: seconds since the epoch, to which the times of the lines are relative."""
    day = time.strftime("%a %b %d %H:%M:%S UTC %Y", time.gmtime(start_s))
    lines = [f"#[{comment}]", f"#[Histogram log format version {version}]"]
    lines += [f"#[StartTime: {start_s:.3f} (seconds since epoch), {day}]", LEGEND]
    return "\n".join(lines) + "\n"


def line(start_s: float, length_s: float, counts: Counts, *, unit_ratio: float = 1e6, tag: str = "") -> str:
    """The line of one interval that starts `start_s` after the log; its maximum is divided by `unit_ratio`."""
    kept = list(counts)
    greatest = max((value for value, _ in kept), default=0) / unit_ratio
    before = f"Tag={tag}," if tag else ""
    return f"{before}{start_s:.3f},{length_s:.3f},{greatest:.3f},{text(kept)}\n"
