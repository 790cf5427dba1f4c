"""Tables of validity: every attempt, voided ones, load-generator checks and benchmarking crimes."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any

from steelyard.analysis.row import meaning
from steelyard.analysis.statistics.trials import Point
from steelyard.analysis.treatments import label
from steelyard.format import NONE, count, moment, number
from steelyard.judging.trial_responses import response_of
from steelyard.model import responses
from steelyard.model.trial import TrialRecord
from steelyard.model.verdict_reasons import Reason, ReasonKind
from steelyard.report.data.presentation import View
from steelyard.report.prose.benchmarking_crimes.crime import Crime
from steelyard.report.tables.generic import Cell, ShownColumn, Table, factor_columns, level_cells, plain

CEILING = "ceiling"


def generator(records: Sequence[TrialRecord]) -> Table | None:
    """Each check of the load generator: the finding over all attempts, and the limit."""
    if not records:
        return None
    limits = records[-1].limits
    lag = f"{number(limits.lag_p99_ms, trim=True)} ms at an offered rate"
    blamed = [one for one in records if any(reason.kind.about.of_generator for reason in one.verdict.reasons)]
    busy = [one for one in records if any(reason.kind is ReasonKind.GENERATOR_BUSY for reason in one.verdict.reasons)]
    unknown = [one for one in records if any(CEILING in note for note in one.verdict.notes)]
    lags = [one.responses.lag_ms_p99 for one in records if one.responses.lag_ms_p99 is not None]
    costs = [
        one.responses.generator_cpu_us_per_operation
        for one in records
        if one.responses.generator_cpu_us_per_operation is not None
    ]
    all_of = count(len(records), "attempt")
    rows = (
        ("attempts that it limited", f"{len(blamed)} of {all_of}", "none"),
        ("99th percentile of lag", _spread(lags, "ms"), lag),
        ("CPU for one operation", _spread(costs, "µs"), NONE),
        (
            "share of its busiest thread's core", f"above the limit in {len(busy)} of {all_of}",
            number(limits.generator_cpu_fraction, trim=True),
        ),
        (
            "share of its calibrated ceiling",
            f"not known in {len(unknown)} of {all_of}" if unknown else f"known in all {all_of}",
            number(limits.generator_ceiling_fraction, trim=True),
        ),
    )  # fmt: skip
    columns = (
        ShownColumn("check", numeric=False, term="check of the generator"),
        ShownColumn("found", numeric=False, term="check of the generator"),
        ShownColumn("limit", numeric=False, term="check of the generator"),
    )
    caption = "The load generator: whether it, and not the system, limited a trial."
    return Table("generator", caption, columns, tuple(tuple(Cell(text, tone="long") for text in row) for row in rows))


def crimes(checks: Sequence[Crime]) -> Table | None:
    """The checks for a benchmarking crime that deserve a look, with their evidence; None if there is none."""
    guilty = [crime for crime in checks if crime.guilty]
    caption = f"Benchmarking crimes, after Heiser's list: {len(guilty)} of {len(checks)} checks deserve a look."
    return _crimes("crimes", guilty, caption) if guilty else None


def clear_crimes(checks: Sequence[Crime]) -> Table | None:
    """The checks that found nothing, with their evidence; None if there is none."""
    clear = [crime for crime in checks if not crime.guilty]
    title = f"{len(clear)} of {len(checks)} checks for benchmarking crimes are clear"
    return _crimes("clear-crimes", clear, f"{title}.", title) if clear else None


def _crimes(name: str, checks: Sequence[Crime], caption: str, title: str = "") -> Table:
    rows = tuple(
        (
            Cell(crime.name, tone="long"),
            Cell(crime.evidence, tone="long"),
            Cell(crime.hint if crime.guilty else NONE, tone="long"),
        )
        for crime in checks
    )
    columns = (
        ShownColumn("crime", term="crime", numeric=False),
        ShownColumn("evidence", term="evidence of a crime", numeric=False),
        ShownColumn("fix", term="hint of a crime", numeric=False),
    )
    return Table(name, caption, columns, rows, title)


def exclusions(records: Sequence[TrialRecord]) -> Table | None:
    """Every attempt that is not valid, with each reason's number and threshold."""
    lost = [record for record in records if record.verdict.outcome != "valid"]
    if not lost:
        return None
    columns = (
        ShownColumn("trial", numeric=False, about=meaning(Point, "trial_id")),
        ShownColumn("attempt", about=meaning(Point, "attempt")),
        ShownColumn("treatment", numeric=False, term="factor"),
        ShownColumn("began", "UTC", numeric=False, term="began"),
        ShownColumn("outcome", numeric=False, term="verdict"),
        ShownColumn("blamed", numeric=False, term="blamed"),
        ShownColumn("reason", numeric=False, term="verdict"),
    )
    rows = tuple(
        (
            plain(record.id),
            plain(record.attempt),
            plain(label(record.treatment)),
            Cell(moment(record.begun_s)[5:16], repr(record.begun_s)),
            plain(record.verdict.outcome, "alert"),
            plain("the system" if record.verdict.system_fault else "the laboratory"),
            plain("; ".join(reason_text(reason) for reason in record.verdict.reasons) or "no reason recorded", "long"),
        )
        for record in lost
    )
    return Table(
        "exclusions",
        "Attempts that are not valid, each reason with its number and its threshold. A fault of the system is a "
        "result; a fault of the laboratory voids the attempt, which is repeated.",
        columns,
        rows,
    )


def reason_text(reason: Reason) -> str:
    """A reason of a verdict with its number and its threshold: `errors above the limit: 0.02 against 0.01`."""
    numbers = ""
    if reason.measured is not None:
        numbers = f" {number(reason.measured, trim=True)} {reason.unit}".rstrip()
        if reason.threshold is not None:
            numbers += f" against {number(reason.threshold, trim=True)} {reason.unit}".rstrip()
    detail = f" ({reason.detail})" if reason.detail else ""
    return f"{reason.kind.value}{':' if numbers else ''}{numbers}{detail}"


def _spread(values: Sequence[float], unit: str) -> str:
    if not values:
        return "not measured"
    return f"median {number(median(values), digits=3)} {unit}, at most {number(max(values), digits=3)} {unit}"


def trials(this: View, records: Sequence[TrialRecord]) -> Table:
    """Every attempt: its place in the order, its responses, and whether it counts."""
    points = {(point.trial_id, point.attempt): point for point in this.results.of(Point)}
    unit = this.scale.unit
    columns = (
        ShownColumn("#", about=meaning(Point, "position")),
        ShownColumn("trial", numeric=False, about=meaning(Point, "trial_id")),
        ShownColumn("attempt", about=meaning(Point, "attempt")),
        *factor_columns(this.results),
        ShownColumn("block", about=meaning(Point, "block")),
        ShownColumn("start", about=meaning(Point, "start")),
        ShownColumn("order", "in start", about=meaning(Point, "order_in_start")),
        ShownColumn("began", "UTC", numeric=False, term="began"),
        ShownColumn(this.results.response_label, unit, about=responses.of(this.results.response).definition),
        ShownColumn("throughput", "op/s", about=responses.of("throughput_per_s").definition),
        ShownColumn("p50", "ms", about=responses.of("response_ms_p50").definition),
        ShownColumn("p99", "ms", about=responses.of("response_ms_p99").definition),
        ShownColumn("errors", about=responses.of("errors").definition),
        ShownColumn("counts", numeric=False, term="counts"),
    )
    rows = []
    for place, record in enumerate(records, start=1):
        point = points.get(record.key)
        values = record.responses
        main = values.of(this.results.response)
        rows.append(
            (
                plain(place),
                plain(record.id),
                plain(record.attempt),
                *level_cells(this.results, record.treatment),
                plain(record.block),
                plain(record.start_replicate),
                plain(record.order_in_start),
                Cell(moment(record.begun_s)[5:19]),
                # Without the raw numbers, which the downloads have: there are many rows.
                *(
                    plain(number(value))
                    for value in (
                        this.scale.of(main),
                        response_of(record, "throughput_per_s"),
                        response_of(record, "response_ms_p50"),
                        response_of(record, "response_ms_p99"),
                    )
                ),
                plain(number(response_of(record, "errors"))),
                _state(record, point),
            )
        )
    return Table("trials", f"Every attempt in order of time, n = {len(records)}.", columns, tuple(rows))


def _state(record: TrialRecord, point: Any) -> Cell:
    if record.verdict.outcome != "valid":
        return Cell(record.verdict.outcome, tone="alert")
    if record.control:
        return Cell("control", tone="quiet")
    if point is not None and point.warm_up:
        return Cell("warm-up", tone="quiet")
    return Cell("used")
