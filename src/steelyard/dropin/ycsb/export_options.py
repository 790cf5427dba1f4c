"""Output options: YCSB's properties of measurement and export as a value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from steelyard.dropin.ycsb.values import Values, wrong

HDR, HISTOGRAM, TIME_SERIES = "hdrhistogram", "histogram", "timeseries"
TYPES = (HDR, HISTOGRAM, TIME_SERIES, "hdrhistogram+histogram")
RAW = ("raw", "hdrhistogram+raw")
EXPORTERS = ("Text", "JSON", "JSONArray")
MOST_BUCKETS = 10_000_000


@dataclass(frozen=True)
class Display:
    """Settings of the output; the defaults are YCSB's."""

    status: bool = False
    status_interval_s: int = 10
    label: str = ""
    kind: str = HDR
    interval: str = "op"
    """`op` prints service times, `intended` response times, `both` both."""
    percentiles: tuple[float, ...] = (95.0, 99.0)
    buckets: int = 1000
    """histogram: number of buckets of 1 ms."""
    verbose: bool = False
    granularity_ms: int = 1000
    """timeseries: length of the averaged interval."""
    each_error: bool = False
    tracked: frozenset[str] = frozenset()
    """Statuses whose times are kept separate from those of other failures."""
    exporter: str = "Text"
    export_file: str = ""
    hdr_files: bool = False
    hdr_path: str = ""

    @property
    def interval_s(self) -> float:
        """Interval at which the agent must report its counts."""
        return min(1.0, self.granularity_ms / 1000) if self.kind == TIME_SERIES else 1.0


def display(properties: Mapping[str, str]) -> Display:
    """The settings in a command's properties. Raises StudyError for unsupported ones."""
    values = Values(properties)
    kind = values.text("measurementtype", HDR)
    if kind in RAW:
        raise wrong("measurementtype", kind, TYPES, "single operations are not kept")
    exporter = values.text("exporter", "site.ycsb.measurements.exporter.TextMeasurementsExporter")
    names = {
        f"{package}.measurements.exporter.{name}MeasurementsExporter": name
        for package in ("site.ycsb", "com.yahoo.ycsb")
        for name in EXPORTERS
    }
    if exporter not in names:
        raise wrong("exporter", exporter, tuple(names)[: len(EXPORTERS)])
    each_error = values.boolean("reportlatencyforeacherror", False)
    return Display(
        status=values.boolean("status", False),
        status_interval_s=values.integer("status.interval", 10, 1, 86_400),
        label=properties.get("label", ""),
        kind=values.choice("measurementtype", HDR, TYPES),
        interval=values.choice("measurement.interval", "op", ("op", "intended", "both")),
        percentiles=_percentiles(values),
        buckets=values.integer("histogram.buckets", 1000, 1, MOST_BUCKETS),
        verbose=values.boolean("measurement.histogram.verbose", False),
        granularity_ms=values.integer("timeseries.granularity", 1000, 100, 3_600_000),
        each_error=each_error,
        tracked=frozenset() if each_error else frozenset(values.listed("latencytrackederrors")),
        exporter=names[exporter],
        export_file=values.text("exportfile"),
        hdr_files=values.boolean("hdrhistogram.fileoutput", False),
        hdr_path=values.text("hdrhistogram.output.path"),
    )


def _percentiles(values: Values) -> tuple[float, ...]:
    name = "hdrhistogram.percentiles"
    words = values.listed(name, "95,99")
    try:
        read = tuple(float(word) for word in words)
    except ValueError:
        read = ()
    if not read or not all(0 < percentile <= 100 for percentile in read):
        raise wrong(name, values.text(name), ("numbers above 0, up to 100, between commas",))
    return read
