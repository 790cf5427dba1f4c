"""Tables of time courses: equal parts, percentile curves and node usage."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from steelyard.analysis.row import meaning
from steelyard.analysis.statistics.parts import PARTS, PartMean
from steelyard.analysis.statistics.summary import Summary
from steelyard.analysis.statistics.trials import Point
from steelyard.analysis.treatments import label
from steelyard.format import NONE, number, with_interval
from steelyard.model import responses
from steelyard.model.responses import label_of
from steelyard.reading.node_traces import Trace
from steelyard.reading.server_metrics import server_metrics
from steelyard.reading.time_courses import MARKS, Curve
from steelyard.report.data.presentation import View
from steelyard.report.data.traces import RESOURCES, usage
from steelyard.report.tables.generic import Cell, ShownColumn, Table


def parts(this: View) -> Table | None:
    """Mean value analysis: one row per treatment, response and number of parts."""
    part_means = this.results.of(PartMean)
    if not part_means:
        return None
    groups: dict[tuple[str, str, int], list[PartMean]] = {}
    for part_mean in part_means:
        groups.setdefault((label(part_mean.treatment), part_mean.response, part_mean.parts), []).append(part_mean)
    most = max(part_mean.parts for part_mean in part_means)
    columns = (
        ShownColumn("treatment", numeric=False, term="factor"),
        ShownColumn("response", numeric=False, term="response of parts"),
        ShownColumn("n", "trials", about=meaning(Summary, "n")),
        *(ShownColumn(f"part {part}", about=meaning(PartMean, "mean")) for part in range(1, most + 1)),
    )
    rows = []
    for (treatment, response, _), group in groups.items():
        by_part = {part_mean.part: part_mean.mean for part_mean in group}
        means = [by_part.get(part) for part in range(1, most + 1)]
        rows.append(
            (
                Cell(treatment),
                Cell(f"{label_of(response)}, {group[0].unit}"),
                Cell(str(group[0].n)),
                *(Cell("" if mean is None else with_interval(mean)) for mean in means),
            )
        )
    caption = (
        "Mean value analysis: each used trial cut into 2, 4 and 8 equal parts, each part averaged over starts; "
        f"brackets are {100 * this.results.confidence:g}% t intervals over the means of three or more starts, or over "
        f"the trials of a single start. Similar means suggest a steady state.{_too_short(groups)}"
    )
    return Table("parts", caption, columns, tuple(rows), "Means over equal parts of a trial")


def _too_short(groups: Collection[tuple[str, str, int]]) -> str:
    """Which treatments could not be cut, and why; empty if all could."""
    sentences = []
    for parts in PARTS:
        have = {treatment for treatment, _, cut in groups if cut == parts}
        if lacking := [name for name in dict.fromkeys(treatment for treatment, _, _ in groups) if name not in have]:
            sentences.append(f" Not cut into {parts}: {'; '.join(lacking)}.")
    why = " Each part needs at least one whole second of a trial." if sentences else ""
    return "".join(sentences) + why


def curves(percentile_curves: Sequence[Curve]) -> Table | None:
    """The percentile curves at round percentiles."""
    shown = [name for name in MARKS if any(name in curve.marks for curve in percentile_curves)]
    if not shown:
        return None
    columns = (
        ShownColumn("treatment", numeric=False, term="factor"),
        ShownColumn("measured", numeric=False, term="response and service time"),
        ShownColumn("trials", about=meaning(Summary, "n")),
        ShownColumn("operations", about=responses.of("operations").definition),
        *(ShownColumn(name, "ms", term="percentile of a curve") for name in shown),
    )
    rows = tuple(
        (
            Cell(label(dict(curve.treatment))),
            Cell(f"{curve.measure} time"),
            Cell(str(curve.trials)),
            Cell(f"{curve.operations:,}", str(curve.operations)),
            *(Cell(number(curve.marks.get(name), digits=3), _raw(curve.marks.get(name))) for name in shown),
        )
        for curve in percentile_curves
    )
    caption = (
        "The percentile curves at round percentiles, over all operations of a treatment: the histograms of its used "
        "trials are added up. The table of responses has a different number, the geometric mean of the trials' "
        "percentiles. A percentile that the count does not support is left out."
    )
    return Table("curve-table", caption, columns, rows, "The percentile curves as numbers")


def _raw(value: float | None) -> str:
    return "" if value is None else repr(value)


def nodes(traces: Sequence[Trace]) -> Table | None:
    """CPU, memory, disk and network of every node of the drawn trials: the mean and the highest reading."""
    metrics = [(resource.panel, resource.title, word) for resource in RESOURCES for _, word in resource.metrics]
    used = [(label(trace.record.treatment), trace.record.id, node) for trace in traces for node in usage(trace)]
    shown = [
        (panel, title, word) for panel, title, word in metrics if any((panel, word) in node.means for *_, node in used)
    ]
    if not used:
        return None
    columns = (
        ShownColumn("treatment", numeric=False, term="factor"),
        ShownColumn("trial", numeric=False, about=meaning(Point, "trial_id")),
        ShownColumn("node", numeric=False, term="node"),
        *(
            ShownColumn(f"{title.partition(',')[0]} {word}", title.partition(", ")[2], term="readings of a node")
            for _, title, word in shown
        ),
    )
    rows = []
    for treatment, trial, node in used:
        cells = [node.means.get((panel, word)) for panel, _, word in shown]
        rows.append(
            (
                Cell(treatment),
                Cell(trial),
                Cell(f"{node.node} (load)" if node.loads else node.node),
                *(
                    Cell(NONE)
                    if reading is None
                    else Cell(f"{number(reading[0], digits=3)} ({number(reading[1], digits=3)})", repr(reading[0]))
                    for reading in cells
                ),
            )
        )
    caption = (
        "CPU, memory, disk and network of each node during one trial of each treatment: the mean over the measured "
        "phase, with the highest one-second reading in parentheses."
    )
    return Table("node-table", caption, columns, tuple(rows), "What the nodes did, as numbers")


def servers(traces: Sequence[Trace]) -> Table | None:
    """Metrics that only the database nodes report in the drawn trials."""
    rows = tuple(
        (
            Cell(label(trace.record.treatment)),
            Cell(trace.record.id),
            Cell(said.metric),
            Cell(f"{said.readings:,}", str(said.readings)),
            Cell(number(said.mean, digits=3), repr(said.mean)),
            Cell(number(said.greatest, digits=3), repr(said.greatest)),
            Cell(said.node),
        )
        for trace in traces
        for said in server_metrics(trace.samples, trace.databases, trace.record.measured_span)
    )
    if not rows:
        return None
    columns = (
        ShownColumn("treatment", numeric=False, term="factor"),
        ShownColumn("trial", numeric=False, about=meaning(Point, "trial_id")),
        ShownColumn("metric", numeric=False, term="metric of a server"),
        ShownColumn("readings", term="readings of a server"),
        ShownColumn("mean", term="mean of a server's metric"),
        ShownColumn("greatest", term="greatest of a server's metric"),
        ShownColumn("of node", numeric=False, term="node"),
    )
    caption = (
        "Metrics of the database during one trial of each treatment: every metric that its nodes report of "
        "themselves, over the measured phase. Each name ends with its unit."
    )
    return Table("server-table", caption, columns, rows, "Metrics of the database, as numbers")
