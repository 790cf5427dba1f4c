"""Terminal output of `steelyard load`: one line per second while it runs, tables and sentences at the end."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.table import Table

from steelyard.analysis.inference import percentile_intervals
from steelyard.cli.terminal.kept_up import kept_up
from steelyard.cli.terminal.output import Terminal, print_table, say, titled_table
from steelyard.dropin.agent_run import LoadResult, PhaseOutcome
from steelyard.dropin.shortfall import DRAIN_S
from steelyard.format import count, data_size, number
from steelyard.model import cql_statement
from steelyard.model.estimate import Estimate
from steelyard.model.outcome import Outcome, is_error
from steelyard.model.percentiles import BEYOND, needed, supported
from steelyard.wire.order import Order
from steelyard.wire.program import Program
from steelyard.wire.record import Connected, Interval
from steelyard.wire.schedule import Schedule, steady_per_s
from steelyard.wire.tables import Histogram
from steelyard.workload.base import Explanation

NS_PER_MS = 1e6
HEADER = (
    "             operations/s                 response ms              service ms        lag ms\n"
    "      s      sent      done   errors     p50     p99   p99.9     p50     p99     p99   backlog"
)
LINES_PER_HEADER = 20
QUANTILES = (0.5, 0.95, 0.99, 0.999)
LONGEST_VALUE = 48
BATCH_SHOWN = 3
TABLE_WIDTH = 132


class Lines:
    """A line a second."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.phase = ""
        self.begun_s = 0.0
        self.lines = 0
        self.courses: dict[str, percentile_intervals.HistogramSeries] = {}
        """Response times of each phase's intervals, from which the intervals of its percentiles follow."""

    def connected(self, record: Connected) -> None:
        """Destination of the load."""
        nodes = count(len(record.nodes), "node")
        text = f"{count(record.connections, 'connection')} to {nodes}, {record.server}"
        self.console.print(text, highlight=False, markup=False)
        for line in without(record):
            say(self.console, line, style="yellow")

    def interval(self, interval: Interval) -> None:
        """One interval."""
        course = self.courses.setdefault(interval.phase, percentile_intervals.HistogramSeries())
        course.add(interval.tables.histogram("response").buckets)
        if interval.phase != self.phase:
            self.phase, self.begun_s, self.lines = interval.phase, interval.t_s, 0
            say(self.console, f"\n{interval.phase}", style="bold")
        if self.lines % LINES_PER_HEADER == 0:
            say(self.console, HEADER, style="dim")
        self.lines += 1
        say(self.console, line(interval, self.begun_s))


def without(connected: Connected | None) -> list[str]:
    """Contacts that do not answer, each with its cause."""
    return [f"Left out: {cause}" for cause in connected.absent] if connected is not None else []


def line(interval: Interval, begun_s: float) -> str:
    """Counts are rates over the interval, times are of operations that ended in it."""
    response = interval.tables.histogram("response", outcomes=None)
    service = interval.tables.histogram("service", outcomes=None)
    lag = interval.tables.histogram("lag", outcomes=None)
    seconds = interval.seconds or 1.0
    times = [
        *(_ms(response, q) for q in (0.5, 0.99, 0.999)),
        *(_ms(service, q) for q in (0.5, 0.99)),
        _ms(lag, 0.99),
    ]
    counts = f"{interval.sent / seconds:>9,.0f} {interval.done / seconds:>9,.0f} {interval.errors / seconds:>8,.0f}"
    ended_s = interval.t_s + interval.seconds - begun_s
    return f"{ended_s:>7.1f} {counts} {' '.join(f'{time:>7}' for time in times)} {interval.backlog:>9,}"


def _ms(histogram: Histogram, q: float) -> str:
    """A percentile; `-` where the count does not support it."""
    ns = histogram.quantile_ns(q) if supported(q, histogram.n) else None
    return "-" if ns is None else digits(ns / NS_PER_MS)


def digits(value: float) -> str:
    """Three significant digits, also where they are zeros: columns keep their places."""
    return number(value, digits=3, trim=False)


def paper() -> Console:
    """Standard output: as wide as the terminal, and as tables need it where there is none."""
    console = Terminal()
    return console if console.is_terminal else Terminal(width=TABLE_WIDTH)


Courses = Mapping[str, percentile_intervals.HistogramSeries]
"""Phase to the response times of its intervals."""


def print_outcome(
    outcome: LoadResult, console: Console, courses: Courses | None = None, schedule: Schedule | None = None
) -> None:
    """Everything at the end, phase by phase. `schedule`: that of the order, where all phases have the same."""
    for name, phase in outcome.phases.items():
        console.print()
        print_table(_table(name, phase), console)
        for sentence in (*sentences(phase), *percentile_sentences(phase, (courses or {}).get(name))):
            say(console, sentence)
        if sentence := kept_up(phase, schedule):
            say(console, sentence, style="bold")
    for line_ in without(outcome.connected):
        say(console, line_, style="yellow")
    if outcome.interrupted:
        say(console, "The load was ended early.", style="yellow")


def _table(name: str, phase: PhaseOutcome) -> Table:
    table = titled_table(name)
    table.add_column("operation")
    for column in (
        "done",
        "per s",
        "not found",
        "not applied",
        "errors",
        "p50 ms",
        "p95",
        "p99",
        "p99.9",
        "most",
        "service p99",
    ):
        table.add_column(column, justify="right")
    for operation in phase.tables.operations():
        table.add_row(*_row(operation, phase))
    return table


def _row(operation: str, phase: PhaseOutcome) -> list[str]:
    outcomes = phase.tables.outcomes(operation)
    errors = sum(count for outcome, count in outcomes.items() if is_error(outcome))
    done = sum(outcomes.values()) - errors
    response = phase.histogram("response", operation)
    seconds = phase.totals.execution_s
    return [
        operation,
        f"{done:,}",
        f"{done / seconds:,.0f}" if seconds else "",
        f"{outcomes.get(Outcome.NOT_FOUND, 0):,}",
        f"{outcomes.get(Outcome.NOT_APPLIED, 0):,}",
        f"{errors:,}",
        *(_ms(response, q) for q in QUANTILES),
        "-" if response.max_ns is None else digits(response.max_ns / NS_PER_MS),
        _ms(phase.histogram("service", operation), 0.99),
    ]


def sentences(phase: PhaseOutcome) -> list[str]:
    """Operations sent and done, errors, and whether the generator kept up."""
    totals = phase.totals
    everything = totals.operations + totals.errors
    lines = [
        f"{everything:,} operations in {totals.execution_s:.1f} s: {totals.operations:,} done "
        f"({totals.rate_per_s:,.0f} per s), {totals.errors:,} errors"
        + (f" ({_kinds(totals.errors_by_kind)})." if totals.errors else ".")
    ]
    if totals.unsent:
        lines.append(
            f"{totals.unsent:,} operations were due and not sent: neither done nor failed. What is due by the end of "
            f"the load is sent for {DRAIN_S:g} s more."
        )
    lines += [f"Servers said of {kind}: {text}" for kind, text in totals.texts]
    not_applied = sum(phase.tables.outcomes(name).get(Outcome.NOT_APPLIED, 0) for name in phase.tables.operations())
    if not_applied:
        lines.append(f"{not_applied:,} light-weight transactions were not applied: their condition did not hold.")
    if totals.not_found:
        lines.append(f"{totals.not_found:,} reads of keys that the fill has written found no row.")
    if totals.rows:
        lines.append(f"{totals.rows:,} rows were returned.")
    lag, pacing = (_worst(phase.histogram(name, outcomes=None)) for name in ("lag", "pacing"))
    cpu_us = totals.cpu_ns / 1000 / everything if everything else 0.0
    lines.append(
        f"Lag {lag}, of which the generator's own {pacing}; generator: {digits(cpu_us)} µs CPU per operation, "
        f"busiest thread at {totals.busiest_thread_fraction:.0%}."
    )
    if totals.reconnections:
        lines.append(f"Connections were reopened {totals.reconnections:,} times.")
    if totals.dropped:
        lines.append(f"{totals.dropped:,} records could not be written: these figures lack them.")
    return lines


def estimates(phase: PhaseOutcome, course: percentile_intervals.HistogramSeries | None) -> dict[float, Estimate | None]:
    """Share to the percentile of response time of all operations with its interval; None if the count is too small.

    Without the course of the phase there is no interval.
    """
    buckets = phase.histogram("response").buckets
    parts = course.parts() if course is not None else []
    by_quantile: dict[float, Estimate | None] = {}
    for q in QUANTILES:
        at = Histogram(buckets).quantile_ns(q)
        by_quantile[q] = (
            percentile_intervals.quantile(buckets, q, percentile_intervals.below(parts, at or 0.0)) if buckets else None
        )
    return by_quantile


def percentile_sentences(phase: PhaseOutcome, course: percentile_intervals.HistogramSeries | None) -> list[str]:
    """The percentiles of all operations with their intervals, and those that the count does not support."""
    by_quantile = estimates(phase, course)
    known = [(q, one) for q, one in by_quantile.items() if one is not None]
    operations = phase.histogram("response").n
    lines = []
    if known:
        shown = "; ".join(f"p{q * 100:g} {digits(one.value)}{_ends(one)}" for q, one in known)
        intervals = "" if all(one.low is None for _, one in known) else ", with 95% intervals"
        lines.append(f"Response ms of all operations{intervals}: {shown}.")
        lines.append(f"They rest on {operations:,} operations; p{known[-1][0] * 100:g}: {known[-1][1].method}.")
    lacking = [q for q, one in by_quantile.items() if one is None]
    if lacking and operations:
        names = ", ".join(f"p{q * 100:g} ({needed(q):,})" for q in lacking)
        lines.append(f"{operations:,} operations are too few for {names}: {BEYOND} must lie beyond.")
    return lines


def _ends(estimate: Estimate) -> str:
    if estimate.low is None and estimate.high is None:
        return ""
    low, high = ("?" if end is None else digits(end) for end in (estimate.low, estimate.high))
    return f" [{low}, {high}]"


def _kinds(errors: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {kind}" for kind, count in sorted(errors.items(), key=lambda item: -item[1]))


def _worst(histogram: Histogram) -> str:
    """The p99, or the largest value of few."""
    if supported(0.99, histogram.n) or histogram.max_ns is None:
        return f"p99 {_ms(histogram, 0.99)} ms"
    return f"at most {number(histogram.max_ns / NS_PER_MS, digits=3, trim=True)} ms"


def as_data(outcome: LoadResult, courses: Courses | None = None, schedule: Schedule | None = None) -> dict[str, Any]:
    """The same as data; times in milliseconds."""
    asked = steady_per_s(schedule)
    return {
        "connected": {} if outcome.connected is None else asdict(outcome.connected),
        "interrupted": outcome.interrupted,
        "phases": {
            name: _phase_data(phase, (courses or {}).get(name), asked) for name, phase in outcome.phases.items()
        },
    }


def _phase_data(
    phase: PhaseOutcome, course: percentile_intervals.HistogramSeries | None, asked: float | None
) -> dict[str, Any]:
    totals = phase.totals
    return {
        "execution_s": totals.execution_s,
        "operations": totals.operations,
        "asked_per_s": asked,
        "rate_per_s": totals.rate_per_s,
        "errors": totals.errors,
        "errors_by_kind": dict(totals.errors_by_kind),
        "unsent": totals.unsent,
        "error_texts": {kind: list(texts) for kind, texts in totals.error_texts.items()},
        "not_found": totals.not_found,
        "rows": totals.rows,
        "reconnections": totals.reconnections,
        "dropped": totals.dropped,
        "cpu_s": totals.cpu_ns / 1e9,
        "busiest_thread_fraction": totals.busiest_thread_fraction,
        "lag_ms_p99": _number(phase.histogram("lag", outcomes=None), 0.99),
        "pacing_ms_p99": _number(phase.histogram("pacing", outcomes=None), 0.99),
        "response_ms": {
            f"p{q * 100:g}": None if one is None else one.model_dump() for q, one in estimates(phase, course).items()
        },
        "by_operation": {
            operation: {
                "outcomes": phase.tables.outcomes(operation),
                **{
                    f"{measure}_ms_p{q * 100:g}": _number(phase.histogram(measure, operation), q)
                    for measure in ("response", "service")
                    for q in QUANTILES
                },
            }
            for operation in phase.tables.operations()
        },
    }


def _number(histogram: Histogram, q: float) -> float | None:
    """A percentile in ms; None if the count does not support it."""
    ns = histogram.quantile_ns(q) if supported(q, histogram.n) else None
    return None if ns is None else ns / NS_PER_MS


def explained(name: str, explanation: Explanation, console: Console) -> None:
    """Description of a workload, before it runs."""
    console.print(explanation_table(name, explanation), soft_wrap=True)
    say(console, explanation_sentence(explanation))


def explanation_sentence(explanation: Explanation) -> str:
    """Records and their size."""
    if not explanation.records:
        return "Starts with empty tables."
    size = explanation.record_bytes
    whole = data_size(explanation.records * size)
    return f"{explanation.records:,} records of about {size:,} bytes ({whole}), filled by {explanation.filling}."


def explanation_table(name: str, explanation: Explanation) -> Table:
    """Operations, shares, sizes."""
    table = titled_table(f"{name}: {explanation.about}" if explanation.about else name)
    table.add_column("operation")
    table.add_column("share", justify="right")
    table.add_column("keys")
    table.add_column("sends")
    table.add_column("bytes", justify="right")
    for operation in explanation.operations:
        table.add_row(
            operation.name,
            f"{operation.share:.1%}",
            operation.keys,
            operation.does,
            f"{operation.bytes:,}",
        )
    return table


def operations(shown_operations: Sequence[Mapping[str, Any]], order: Order, console: Console) -> None:
    """Operations as `steelyard-agent ops` prints them; statements of a program with their values in place."""
    texts = {one.name: one.cql for one in order.work.statements} if isinstance(order.work, Program) else {}
    for operation in shown_operations:
        key = operation.get("key", operation["key_number"])
        say(console, f"{operation['index']}  {operation['kind']}  key {key}", style="bold")
        for step in operation.get("steps", ()):
            sent = step["statements"]
            indent = "    "
            if step.get("batch"):
                say(console, f"    {step['batch']} batch of {len(sent)}")
                indent = "        "
            for execution in sent[:BATCH_SHOWN]:
                text = filled_in(texts[execution["name"]], execution.get("values", ()))
                say(console, f"{indent}{text}")
            if len(sent) > BATCH_SHOWN:
                say(console, f"{indent}and {len(sent) - BATCH_SHOWN} more")
        for name, value in (operation.get("values") or {}).items():
            say(console, f"    {name}: {shown(value)}")


def filled_in(cql: str, values: Sequence[Any]) -> str:
    """A statement with values in place of its markers."""
    parts, at = [], 0
    markers = [word for word in cql_statement.tokens(cql) if word.kind == "marker"]
    for word, value in zip(markers, values, strict=False):
        parts += [cql[at : word.at], shown(value)]
        at = word.at + 1
    return "".join([*parts, cql[at:]])


def shown(value: Any) -> str:
    """A value, short."""
    text = json.dumps(value, ensure_ascii=False) if not isinstance(value, str) else f"'{value}'"
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}..."
