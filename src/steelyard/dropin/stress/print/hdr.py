"""HdrHistogram log of `-log hdrfile=`: one tagged line per operation and interval."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TextIO

from steelyard import hdrlog
from steelyard.model.histogram import Bucket


class LogWriter:
    """Writer of one log; its times are relative to the second in which it began."""

    def __init__(self, out: TextIO, began_s: float) -> None:
        self._out = out
        self._base_s = float(int(began_s))
        date = datetime.fromtimestamp(self._base_s, UTC).strftime("%a %b %d %H:%M:%S UTC %Y")
        out.write("#Logging op latencies for Cassandra Stress\n")
        out.write("#[Histogram log format version 1.3]\n")
        out.write(f"#[BaseTime: {self._base_s:.3f} (seconds since epoch)]\n")
        out.write(f"#[StartTime: {self._base_s:.3f} (seconds since epoch), {date}]\n")
        out.write(hdrlog.LEGEND + "\n")

    def write(self, tag: str, began_s: float, seconds: float, buckets: tuple[Bucket, ...]) -> None:
        """Write one interval of one operation, unless it is empty. Each bucket is recorded at its middle."""
        if not buckets:
            return
        counts = [((low + high) // 2, count) for low, high, count in buckets]
        self._out.write(hdrlog.line(max(0.0, began_s - self._base_s), seconds, counts, tag=tag))
        self._out.flush()
