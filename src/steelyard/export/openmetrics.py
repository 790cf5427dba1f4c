"""Samples of probes and seconds of load as OpenMetrics text with time stamps, for Prometheus and Grafana.

Labels: study, cell (the treatment), trial (its folder's name), node, phase. In this format all samples of a metric
are together; trials are read one at a time, and each metric is collected in a nameless temporary file next to the
output. Format: OpenMetrics 1.0.
"""

from __future__ import annotations

import contextlib
import math
import shutil
import tempfile
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final

from steelyard import no_links
from steelyard.atomic_file import output, writes_in_place
from steelyard.export import metric_names
from steelyard.export.attempts import attempt_name, dilation_of
from steelyard.export.metric_names import Family
from steelyard.format import treatment_label
from steelyard.heavy import pl
from steelyard.model.named_level import level_key
from steelyard.model.outcome import ANSWERED
from steelyard.model.percentiles import quantiles_ns, supported
from steelyard.model.trial import PhaseTime, TrialRecord
from steelyard.shown_text import visible
from steelyard.store.read import Store

BOUNDS_S: Final = (1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
"""Upper bounds of the buckets: a bucket of the store counts where its upper end lies at or below them."""
QUANTILES: Final = (0.5, 0.95, 0.99)
TRIAL: Final = Family(
    "steelyard_trial", "info", "", "Outcome, block and start of an attempt, and its level of each factor."
)
LIMIT: Final = Family("steelyard_limit", "info", "", "What limits the answer of the study, most important first.")
OPERATIONS: Final = Family(
    "steelyard_operations", "counter", "", "Operations by outcome since the beginning of the phase."
)
MEASURES: Final = {"response": "response time (done - due)", "service": "service time (done - sent)"}


@dataclass(frozen=True)
class _Times:
    """Families of one measure of answered operations."""

    within: Family
    """Counters with the label `le`, for `histogram_quantile`. They are not a family of type histogram: the reference
    parser (prometheus_client 0.26) loses samples of a histogram that has several time stamps."""
    total: Family
    quantile: Family

    @classmethod
    def of(cls, measure: str, what: str) -> _Times:
        """The families of `response` or `service`."""
        since = "since the beginning of the phase"
        return cls(
            Family(
                f"steelyard_operations_by_{measure}_time", "counter", "",
                f"Answered operations with a {what} of at most le seconds, {since}.",
            ),
            Family(
                f"steelyard_{measure}_time_seconds", "counter", "seconds",
                f"Sum of the {what} of answered operations {since}.",
            ),
            Family(
                f"steelyard_{measure}_time_quantile_seconds", "gauge", "seconds",
                f"Quantile of the {what} within one interval, where it has enough operations for it.",
            ),
        )  # fmt: skip


TIMES: Final = {measure: _Times.of(measure, what) for measure, what in MEASURES.items()}
END: Final = "# EOF\n"
Labels = Mapping[str, str]


def write(store: Store, records: Iterable[TrialRecord], path: Path, limits: Sequence[str] = ()) -> int:
    """Write the samples and seconds of these trials, and the `limits` of the study's answer; gives the number of
    metrics. Raises OSError that names the path."""
    folder = None if writes_in_place(path) else no_links.place_of(path)[0].parent
    with output(path) as file, _Families(folder) as families:
        for index, record in enumerate(records):
            labels = {
                "study": record.study,
                "cell": treatment_label(record.treatment, full=True),
                "trial": attempt_name(record),
            }
            ends_s = [t_s for t_s in (record.begun_s, record.ended_s) if t_s is not None]
            for limit in () if index else limits:
                families.add(LIMIT, f"{LIMIT.name}_info", {"study": record.study, "limit": limit}, ends_s[:1], [1])
            families.add(TRIAL, f"{TRIAL.name}_info", {**labels, **_about(record)}, ends_s, [1] * len(ends_s))
            intervals = store.intervals(record)
            _seconds(intervals, labels, families)
            _samples(store.samples(record), _phases(record, intervals), labels, families)
        families.copy_to(file)
        file.write(END.encode())
        return families.count


def _about(record: TrialRecord) -> Labels:
    factors = {f"factor_{metric_names.word(name)}": level_key(level) for name, level in record.treatment.items()}
    return {
        "outcome": record.verdict.outcome,
        "block": str(record.block),
        "start": record.start,
        **factors,
        **dilation_of(record),
    }


class _Families:
    """Lines of each metric, in temporary files without a name, so that a kill leaves nothing behind."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._files: dict[str, tuple[Family, IO[str]]] = {}
        self._open = contextlib.ExitStack()

    def __enter__(self) -> _Families:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._open.close()

    @property
    def count(self) -> int:
        """Metrics that have a sample."""
        return len(self._files)

    def add(self, family: Family, name: str, labels: Labels, times_s: Iterable[float], values: Iterable[float]) -> None:
        """Samples of one series; `name` is that of the metric, with the suffix that its type demands."""
        if family.name not in self._files:
            file = tempfile.TemporaryFile("w+", encoding="utf-8", dir=self._folder)  # noqa: SIM115
            self._files[family.name] = family, self._open.enter_context(file)
        written = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items())
        series = f"{name}{{{written}}}"
        self._files[family.name][1].writelines(
            f"{series} {_number(value)} {t_s:.3f}\n" for t_s, value in zip(times_s, values, strict=True)
        )

    def copy_to(self, file: Any) -> None:
        """Every metric with its head, one after another."""
        for family, lines in self._files.values():
            file.write(family.head().encode("utf-8"))
            lines.flush()
            lines.seek(0)
            shutil.copyfileobj(lines.buffer, file)  # type: ignore[attr-defined]


@dataclass(frozen=True)
class _Span:
    """A phase from its beginning to its end, seconds since the epoch."""

    name: str
    begun_s: float
    ended_s: float


def _phases(record: TrialRecord, intervals: pl.DataFrame) -> Sequence[_Span]:
    """Phases of the trial, and those of its load, the innermost last. A reading at time t describes the interval that
    ends then."""
    spans = [_Span(phase.phase.value, phase.entered_s, _left_s(phase)) for phase in record.phases]
    bounds = intervals.group_by("phase").agg(
        pl.col("t_s").min().alias("begun_s"), (pl.col("t_s") + pl.col("seconds")).max().alias("ended_s")
    )
    loads = (_Span(str(name), float(begun_s), float(ended_s)) for name, begun_s, ended_s in bounds.iter_rows())
    return (*sorted(spans, key=lambda span: span.begun_s), *sorted(loads, key=lambda span: span.begun_s))


def _left_s(phase: PhaseTime) -> float:
    return math.inf if phase.left_s is None else phase.left_s


def _samples(samples: pl.DataFrame, phases: Sequence[_Span], labels: Labels, families: _Families) -> None:
    ordered = samples.sort("node", "metric", "t_s").unique(("node", "metric", "t_s"), keep="last", maintain_order=True)
    for (node, metric), rows in ordered.group_by("node", "metric", maintain_order=True):
        family, scale = metric_names.family_of(str(metric))
        for phase, times_s, values in _by_phase(rows, phases):
            own = {**labels, "phase": phase, "node": str(node)}
            families.add(family, family.name, own, times_s, (value * scale for value in values))


def _by_phase(rows: pl.DataFrame, phases: Sequence[_Span]) -> Iterator[tuple[str, Sequence[float], Sequence[float]]]:
    """The readings of one metric by phase: all of a phase together, as the format wants it."""
    grouped: dict[str, tuple[list[float], list[float]]] = {}
    for t_s, value in rows.select("t_s", "value").iter_rows():
        name = next((span.name for span in reversed(phases) if span.begun_s < t_s <= span.ended_s), "")
        times_s, values = grouped.setdefault(name, ([], []))
        times_s.append(t_s)
        values.append(value)
    for name, (times_s, values) in grouped.items():
        yield name, times_s, values


def _seconds(intervals: pl.DataFrame, labels: Labels, families: _Families) -> None:
    """Counters, histograms and quantiles of every load node and phase."""
    measure = "response" if (intervals["measure"] == "response").any() else "service"
    ordered = intervals.sort("node", "phase", "t_s")
    for (node, phase), rows in ordered.group_by("node", "phase", maintain_order=True):
        own = {**labels, "phase": str(phase), "node": str(node)}
        ends_s = _ends(rows)
        for (operation, outcome), counted in rows.filter(pl.col("measure") == measure).group_by(
            "operation", "outcome", maintain_order=True
        ):
            _counter(counted, ends_s, {**own, "operation": str(operation), "outcome": str(outcome)}, families)
        answered = rows.filter(pl.col("outcome").is_in(ANSWERED))
        for name, times in TIMES.items():
            of_measure = answered.filter(pl.col("measure") == name)
            for (operation,), buckets in of_measure.group_by("operation", maintain_order=True):
                _distribution(times, buckets, ends_s, {**own, "operation": str(operation)}, families)
            _quantiles(times.quantile, of_measure, own, families)


def _ends(rows: pl.DataFrame) -> Sequence[float]:
    """The beginning of a load node's phase, and the end of each of its intervals."""
    spans = rows.select("t_s", "seconds").unique().sort("t_s").rows()
    return (spans[0][0], *(t_s + seconds for t_s, seconds in spans))


def _counter(rows: pl.DataFrame, ends_s: Sequence[float], labels: Labels, families: _Families) -> None:
    counts = dict(rows.group_by(_end()).agg(pl.col("count").sum()).iter_rows())
    totals = accumulate(counts.get(end_s, 0) for end_s in ends_s)
    families.add(OPERATIONS, f"{OPERATIONS.name}_total", labels, ends_s, totals)


def _end() -> pl.Expr:
    return (pl.col("t_s") + pl.col("seconds")).alias("end_s")


def _distribution(
    times: _Times, rows: pl.DataFrame, ends_s: Sequence[float], labels: Labels, families: _Families
) -> None:
    """Counters of one operation: those within each bound, and the sum of its times."""
    seconds = {
        end_s: of_second for (end_s,), of_second in rows.with_columns(_end()).group_by("end_s", maintain_order=True)
    }
    counts, sum_s = [0] * (len(BOUNDS_S) + 1), 0.0
    within: list[list[int]] = []
    sums_s: list[float] = []
    for end_s in ends_s:
        of_second = seconds.get(end_s)
        if of_second is not None:
            for low_ns, high_ns, amount in of_second.select("bucket_low_ns", "bucket_high_ns", "count").iter_rows():
                counts[bisect_left(BOUNDS_S, high_ns / 1e9)] += amount
                sum_s += amount * (low_ns + high_ns) / 2e9
        within.append(list(accumulate(counts)))
        sums_s.append(sum_s)
    families.add(times.total, f"{times.total.name}_total", labels, ends_s, sums_s)
    for place, bound_s in enumerate((*BOUNDS_S, math.inf)):
        own = {**labels, "le": "+Inf" if math.isinf(bound_s) else repr(bound_s)}
        families.add(times.within, f"{times.within.name}_total", own, ends_s, (counted[place] for counted in within))


def _quantiles(family: Family, rows: pl.DataFrame, labels: Labels, families: _Families) -> None:
    merged = rows.group_by(_end(), "bucket_low_ns", "bucket_high_ns").agg(pl.col("count").sum())
    ordered = merged.sort("end_s", "bucket_low_ns").group_by("end_s", maintain_order=True)
    points: dict[float, list[tuple[float, float]]] = {quantile: [] for quantile in QUANTILES}
    for (end_s,), of_second in ordered:
        buckets = of_second.select("bucket_low_ns", "bucket_high_ns", "count").rows()
        operations = int(of_second["count"].sum())
        for quantile, value_ns in zip(QUANTILES, quantiles_ns(buckets, QUANTILES), strict=True):
            if value_ns is not None and supported(quantile, operations):
                points[quantile].append((float(end_s), value_ns / 1e9))
    for quantile, of_quantile in points.items():
        if of_quantile:
            times_s, values = zip(*of_quantile, strict=True)
            families.add(family, family.name, {**labels, "quantile": repr(quantile)}, times_s, values)


def _number(value: float) -> str:
    """A number as the format has it, with all its digits: `12`, `0.25`, `NaN`, `+Inf`."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if float(value).is_integer() and abs(value) < 2**53 else repr(float(value))


def _escaped(text: str) -> str:
    return visible(text, lines=True).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
