"""Output lines of cassandra-stress 3.11: header, rows, results. Scripts parse them; every space matters."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from steelyard.dropin.stress.run.interval_stats import Span

LABELS = (
    "type",
    "total ops",
    "op/s",
    "pk/s",
    "row/s",
    "mean",
    "med",
    ".95",
    ".99",
    ".999",
    "max",
    "time",
    "stderr",
    "errors",
    "gc: #",
    "max ms",
    "sum ms",
    "sdv ms",
    "mb",
)
WIDTHS = (10, 8, 8, 8, 8, 8, 8, 8, 8, 8, 7, 9, 7, 7, 8, 8, 8, 8)
"""Width of every column but the first."""
DIGITS = (0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 5, 0, 0, 0, 0, 0, 0)
"""Decimals of every column but the first."""
TYPE_WIDTH = 10
QUANTILES = (0.5, 0.95, 0.99, 0.999)
GC_UNKNOWN = (0.0, 0.0, 0.0, 0.0, 0.0)
"""Collections, longest and total ms, deviation, MB: cassandra-stress reads them over JMX, and prints 0 if it cannot."""


def number(value: float, digits: int, grouped: bool = False) -> str:
    """A number in the format of Java's %f, including NaN and Infinity."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return f"{value:{',' if grouped else ''}.{digits}f}"


def header(prefix: str = "") -> str:
    """The header line above the rows."""
    cells = (f"{label:>{width}}" for label, width in zip(LABELS[1:], WIDTHS, strict=True))
    return prefix + f"{LABELS[0]:<{TYPE_WIDTH}}" + ",".join(cells)


def row(name: str, span: Span, whole: Span, uncertainty: float, prefix: str = "") -> str:
    """The row of one operation in one interval; `whole`: the totals of the operation so far."""
    values = (
        whole.operations,
        span.operations_per_s,
        span.partitions_per_s,
        span.rows_per_s,
        span.mean_ms,
        *(span.upper_quantile_ms(share) for share in QUANTILES),
        span.max_ms,
        int(whole.seconds * 1000) / 1000,
        uncertainty,
        span.errors,
        *GC_UNKNOWN,
    )
    cells = (f"{number(v, d):>{w}}" for v, d, w in zip(values, DIGITS, WIDTHS, strict=True))
    return prefix + f"{name + ',':<{TYPE_WIDTH}}" + ",".join(cells)


def clock(seconds: float) -> str:
    """Seconds as `HH:mm:ss`."""
    whole = int(seconds)
    return f"{whole // 3600:02d}:{whole // 60 % 60:02d}:{whole % 60:02d}"


def results(whole: Span, spans: Mapping[str, Span], unsent: int = 0) -> list[str]:
    """The results block at the end of a load. `spans`: the totals of each operation; `unsent`: operations that were due
    and not sent, a line of ours where there are any."""

    def each(values: Mapping[str, str], unit: str) -> str:
        listed = (f"{name}: {value}{' ' + unit if unit else ''}" for name, value in values.items())
        return "[" + ", ".join(listed) + "]"

    def rate(label: str, attribute: str, unit: str, gap: str) -> str:
        values = {name: number(getattr(span, attribute), 0, True) for name, span in spans.items()}
        return f"{label:<26}: {number(getattr(whole, attribute), 0, True):>8} {unit}{gap}{each(values, unit)}"

    def time(label: str, share: float | None) -> str:
        def of(span: Span) -> float:
            return span.mean_ms if share is None else span.upper_quantile_ms(share) if share <= 1 else span.max_ms

        values = {name: number(of(span), 1, True) for name, span in spans.items()}
        return f"{'Latency ' + label:<26}: {number(of(whole), 1):>6} ms {each(values, 'ms')}"

    def count(label: str, attribute: str) -> str:
        values = {name: f"{int(getattr(span, attribute)):,}" for name, span in spans.items()}
        return f"{label:<26}: {int(getattr(whole, attribute)):>10,} {each(values, '')}"

    return [
        "",
        "",
        "Results:",
        rate("Op rate", "operations_per_s", "op/s", "  "),
        rate("Partition rate", "partitions_per_s", "pk/s", "  "),
        rate("Row rate", "rows_per_s", "row/s", " "),
        time("mean", None),
        time("median", 0.5),
        time("95th percentile", 0.95),
        time("99th percentile", 0.99),
        time("99.9th percentile", 0.999),
        time("max", 2),
        count("Total partitions", "partitions"),
        count("Total errors", "errors"),
        *([f"{'Due and not sent':<26}: {unsent:>10,}"] if unsent else []),
        f"{'Total GC count':<26}: 0",
        f"{'Total GC memory':<26}: 0.000 KiB",
        f"{'Total GC time':<26}:    0.0 seconds",
        f"{'Avg GC time':<26}:    NaN ms",
        f"{'StdDev GC time':<26}:    0.0 ms",
        f"{'Total operation time':<26}: {clock(whole.seconds)}",
        "",
    ]


def without_rows(reads: Mapping[str, Span]) -> list[str]:
    """The queries that got answers, and no row in any of them."""
    return [name for name, span in reads.items() if span.operations > span.errors and not span.rows]


def found_nothing(reads: Mapping[str, Span]) -> list[str]:
    """A warning for each query that found no row in all its operations: its latencies are those of misses."""
    return [
        f"WARNING: {name} found 0 rows in all of its {reads[name].operations:,} operations"
        for name in without_rows(reads)
    ]


@dataclass(frozen=True)
class Finished:
    """The load of one thread count, for the table at the end of `auto`."""

    name: str
    whole: Span
    spans: Mapping[str, Span]
    uncertainty: float


def summary(finished: Sequence[Finished]) -> list[str]:
    """The table that compares thread counts."""
    width = max((len(one.name) for one in finished), default=0)
    lines = [header(f"{'id':>{width}}, ")]
    for load in finished:
        prefix = f"{load.name:>{width}}, "
        lines += [row(name, span, span, load.uncertainty, prefix) for name, span in load.spans.items()]
        lines.append(row("total", load.whole, load.whole, load.uncertainty, prefix))
    return lines
