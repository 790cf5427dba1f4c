"""YCSB's output: the final block in each exporter's format, and status lines. Pure."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from steelyard.dropin.ycsb.export_options import HDR, HISTOGRAM, TIME_SERIES, Display
from steelyard.dropin.ycsb.measures import STATUSES, Measure, Measures
from steelyard.wire.record import Connected

Row = tuple[str, str, int | float]
"""Metric, measurement, value."""
Points = Mapping[str, Sequence[tuple[int, float]]]
"""Measurement to its time series: (milliseconds since the start, mean in microseconds)."""


def overall(runtime_ms: int, operations: int) -> list[Row]:
    """The rows about the whole run. There is no JVM: no rows for individual collectors, and sums of 0."""
    throughput = 1000.0 * operations / runtime_ms if runtime_ms else math.inf if operations else math.nan
    return [
        ("OVERALL", "RunTime(ms)", runtime_ms),
        ("OVERALL", "Throughput(ops/sec)", throughput),
        ("TOTAL_GCs", "Count", 0),
        ("TOTAL_GC_TIME", "Time(ms)", 0),
        ("TOTAL_GC_TIME_%", "Time(%)", 0.0),
    ]


def lacking(unsent: int, connected: Connected | None) -> list[Row]:
    """Rows that YCSB does not have, only where there is something to say: operations that were due and not sent, and
    contacts that were left out."""
    absent = len(connected.absent) if connected is not None else 0
    rows: list[Row] = [("OVERALL", "DueAndNotSent", unsent), ("OVERALL", "ContactsLeftOut", absent)]
    return [row for row in rows if row[2]]


def measured(measures: Measures, display: Display, points: Points) -> list[Row]:
    """The rows of all measurements."""
    rows: list[Row] = []
    for name, measure in measures.items():
        if display.kind == TIME_SERIES:
            rows += _time_series(name, measure, points.get(name, ()))
        elif display.kind == HISTOGRAM:
            rows += _histogram(name, measure, display, measure.statuses)
        elif display.kind == HDR:
            rows += _hdr(name, measure, display)
        else:
            rows += _hdr("Hdr" + name, measure, display)
            rows += _histogram("Bucket" + name, measure, display, {})
    return rows


def _statuses(name: str, statuses: Mapping[str, int]) -> list[Row]:
    return [(name, f"Return={status}", statuses[status]) for status in STATUSES if status in statuses]


def _hdr(name: str, measure: Measure, display: Display) -> list[Row]:
    rows: list[Row] = [
        (name, "Operations", measure.n),
        (name, "AverageLatency(us)", measure.mean_us),
        (name, "MinLatency(us)", measure.min_us),
        (name, "MaxLatency(us)", measure.max_us),
    ]
    for percentile in display.percentiles:
        rows.append((name, f"{ordinal(percentile)}PercentileLatency(us)", measure.upper_percentile_us(percentile)))
    rows += _statuses(name, measure.statuses)
    if display.verbose:
        rows += [(name, str(value), float(count)) for value, count in _joined(measure.counts_us())]
    return rows


def _histogram(name: str, measure: Measure, display: Display, statuses: Mapping[str, int]) -> list[Row]:
    """The measurement type `histogram`: buckets of 1 ms; percentiles are lower ends of buckets."""
    cells, beyond = [0] * display.buckets, 0
    squares = 0.0
    for value, count in measure.counts_us():
        squares += float(value) * value * count
        if value // 1000 >= display.buckets:
            beyond += count
        else:
            cells[value // 1000] += count
    mean = measure.mean_us
    rows: list[Row] = [
        (name, "Operations", measure.n),
        (name, "AverageLatency(us)", mean),
        (name, "LatencyVariance(us)", max(squares / measure.n - mean * mean, 0.0) if measure.n else math.nan),
        (name, "MinLatency(us)", measure.min_us if measure.n else -1),
        (name, "MaxLatency(us)", measure.max_us if measure.n else -1),
    ]
    for percentile in (95, 99):
        seen = 0
        for number, count in enumerate(cells):
            seen += count
            if measure.n and seen / measure.n >= percentile / 100:
                rows.append((name, f"{percentile}thPercentileLatency(us)", number * 1000))
                break
    rows += _statuses(name, statuses)
    if display.verbose:
        rows += [(name, str(number), count) for number, count in enumerate(cells)]
        rows.append((name, f">{display.buckets}", beyond))
    return rows


def _time_series(name: str, measure: Measure, points: Sequence[tuple[int, float]]) -> list[Row]:
    rows: list[Row] = [
        (name, "Operations", measure.n),
        (name, "AverageLatency(us)", measure.mean_us),
        (name, "MinLatency(us)", measure.min_us if measure.n else -1),
        (name, "MaxLatency(us)", measure.max_us if measure.n else -1),
    ]
    return [*rows, *_statuses(name, measure.statuses), *((name, str(at_ms), average) for at_ms, average in points)]


def _joined(counts: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    sums: dict[int, int] = {}
    for value, count in counts:
        sums[value] = sums.get(value, 0) + count
    return sorted(sums.items())


def ordinal(percentile: float) -> str:
    """An ordinal such as `95th` or `1st`; a fraction is left as it is."""
    if percentile % 1:
        return str(percentile)
    whole = int(percentile)
    endings = {1: "st", 2: "nd", 3: "rd"}
    return f"{whole}{'th' if whole % 100 in (11, 12, 13) else endings.get(whole % 10, 'th')}"


def export(rows: Iterable[Row], exporter: str) -> str:
    """The rows as written by the YCSB exporter with that name (`Text`, `JSON`, `JSONArray`)."""
    if exporter == "Text":
        return "".join(f"[{metric}], {name}, {_text(value)}\n" for metric, name, value in rows)
    objects = [
        {"metric": metric, "measurement": name, "value": value if math.isfinite(value) else _text(value)}
        for metric, name, value in rows
    ]
    texts = [json.dumps(one, indent=2, separators=(",", " : ")) for one in objects]
    return "[ " + ", ".join(texts) + " ]" if exporter == "JSONArray" else " ".join(texts)


def _text(value: float) -> str:
    """A number, NaN or Infinity."""
    return json.dumps(value)


def status(
    display: Display,
    at: datetime,
    measures: Measures,
    *,
    elapsed_s: float,
    done: int,
    current_per_s: float,
    todo: int,
) -> str:
    """One status line. `done` operations so far, `current_per_s` since the last line, `todo` left; `measures`:
    measurements since the last line."""
    text = (
        f"{display.label}{at:%Y-%m-%d %H:%M:%S}:{at.microsecond // 1000:03d} {int(elapsed_s)} sec: {done} operations; "
    )
    if done:
        text += f"{_text(round(current_per_s, 2))} current ops/sec; "
    if todo > 0 and done and elapsed_s > 0:
        text += f"est completion in {remaining(math.ceil(todo / (done / elapsed_s)))}"
    return text + "".join(f"{_summary(name, measure, display)} " for name, measure in measures.items())


def remaining(seconds: int) -> str:
    """A duration in YCSB's format, with a trailing blank; only a single digit of seconds is `second`."""
    days, rest = divmod(seconds, 86_400)
    hours, rest = divmod(rest, 3600)
    minutes, rest = divmod(rest, 60)
    parts = [(days, "day"), (hours, "hour"), (minutes if not days else 0, "minute")]
    text = "".join(f"{number} {unit}{'' if number == 1 else 's'} " for number, unit in parts if number)
    if text:
        return text
    return f"{rest} second{'' if rest < 10 else 's'} "


def _summary(name: str, measure: Measure, display: Display) -> str:
    older = f"[{name} AverageLatency(us)={_text(round(measure.mean_us, 2))}]" if measure.n else ""
    if display.kind in (HISTOGRAM, TIME_SERIES):
        return older
    both = display.kind != HDR
    percentiles = "".join(f", {p:g}={measure.upper_percentile_us(p)}" for p in (90, 99, 99.9, 99.99))
    text = (
        f"[{'Hdr' if both else ''}{name}: Count={measure.n}, Max={measure.max_us}, Min={measure.min_us}, "
        f"Avg={_text(round(measure.mean_us, 2))}{percentiles}]"
    )
    return f"{text}\n{older.replace('[', '[Bucket', 1)}" if both else text
