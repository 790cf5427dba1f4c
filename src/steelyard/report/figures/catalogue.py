"""Which figures a page has: the results' numbers as rows for the charts, each figure with its caption and key."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from steelyard.analysis.results import LABELS, Comparison, Fit, Point, Results, Summary, label
from steelyard.format import count, listed, number, with_interval
from steelyard.model.trial import TrialRecord
from steelyard.report.basics.theme import DASHES, MAX_LINES, SERIES, SHAPES
from steelyard.report.data.chart_rows import (
    NARROW_PX,
    WIDE_PX,
    Row,
    law_rows,
    law_scale,
    n_range,
    point_tip,
    thinned,
    tip,
    trial_rows,
)
from steelyard.report.data.presentation import Figure, Key, Panel, View, view
from steelyard.report.draw import charts
from steelyard.report.draw.charts import Styles
from steelyard.report.figures import forest
from steelyard.report.figures.box_plots import boxes, deviations
from steelyard.report.figures.forest import ForestRow
from steelyard.report.figures.interactions import profiles
from steelyard.report.figures.main_chart import medians

PERCENTILES: Final = ("p50", "p95", "p99")
UNDECIDED: Final = ("undecided", "descriptive")
MOST_COMPARISONS: Final = 40
FOREST_PX, NARROW_FOREST_PX = 340, 130


def forests(this: View) -> Figure | None:
    """Every comparison, one below the other, beside the line of no change."""
    found = this.results.comparisons[:MOST_COMPARISONS]
    if not found:
        return None
    rows = [_forest_row(one) for one in found]
    margin = next((one.margin_percent for one in this.results.effects if one.margin_percent), None)
    ends = None if margin is None else (-margin, margin)
    wide = forest.spec(rows, "", "", ends, width=FOREST_PX)
    narrow = forest.spec(rows, "", "", ends, width=NARROW_FOREST_PX, narrow=True)
    caption = (
        f"Change of {this.results.response_label} between levels, all else equal, with its "
        f"{100 * this.results.confidence:g}% interval, n = {n_range(one.starts_level for one in found)} starts and "
        f"{n_range(one.n_level for one in found)} trials a level. Dashed: no change. Hollow: nothing is decided. "
        "The axis is of logarithms, so that twice and half are as far from no change."
    )
    if margin is not None:
        caption += f" Shaded: the study's margin of equivalence, {margin:g}%."
    if len(this.results.comparisons) > len(found):
        caption += f" The first {len(found)} of {len(this.results.comparisons)} comparisons are drawn."
    return Figure("forest", "Every comparison", caption, (Panel("", wide, narrow),))


def _forest_row(one: Comparison) -> ForestRow:
    change = one.change_percent
    what = f"{one.factor} {one.baseline} → {one.level}"
    return ForestRow(
        f"{label(one.others)}: {what}" if one.others else what, change.value, change.low, change.high, one.verdict,
        one.verdict not in UNDECIDED,
    )  # fmt: skip


def regressions(this: View) -> Figure | None:
    """Trials over the numeric factor, with the least-squares line."""
    panels: list[Panel] = []
    amounts: list[int] = []
    honest, notes = 0, ""
    ends = sorted(this.positions.places)
    reach = [ends[0] - this.positions.step * 0.2, ends[-1] + this.positions.step * 0.2]
    trials = trial_rows(this)
    for regression in this.results.regressions:
        fit = regression.honest or regression.published
        name = label(regression.others)
        points = [row for row in trials if row["series"] == name]
        if fit is None or not points:
            continue
        honest += regression.honest is not None
        amounts.append(len(points))
        line = _line(this, fit, reach)
        drawn, note = thinned(points)
        notes = notes or note
        panels.append(
            Panel(name, charts.regression(drawn, line, this.positions, y_title=this.y_title, colour=this.colour(name)))
        )
    if not panels:
        return None
    form = "start means; the published form, fitted to trials, stands beside it in the table" if honest else "trials"
    caption = (
        f"Least-squares line of {this.results.response_label} on {this.positions.name}, fitted to {form}. "
        f"Each trial is a dot, set side by side within its {'size' if this.axis == 'nodes' else 'level'}; n = "
        f"{n_range(amounts)} "
        f"trials a panel.{notes} Each panel has its own axis, from 0."
    )
    title = f"{this.results.response_label.capitalize()} on {this.positions.name}"
    return Figure("regression", title, caption, tuple(panels), zoom="each")


def _line(this: View, fit: Fit, reach: Sequence[float]) -> list[Row]:
    """Both ends of a fitted line within the axis, which ends at 0."""
    slope, intercept = fit.slope.value, fit.intercept.value
    rows = []
    for place in reach:
        inside = -intercept / slope if intercept + slope * place < 0 and slope else place
        rows.append({"x": inside, "y": this.scale.of(max(intercept + slope * inside, 0.0)), "low": None, "high": None})
    return rows


def laws(this: View) -> Figure | None:
    """Fitted scalability laws with the band of each; none where too few sizes were measured."""
    panels = []
    title = ""
    for law in this.results.laws:
        shown = law_scale(this, law)
        if law.law != "usl" or law.refusal or not law.curve or shown is None:
            continue
        per, scale = shown
        title = f"{LABELS[law.response]}, {scale.unit}"
        points = [
            {
                "level": this.level(one.treatment),
                "y": middle.value,
                "part": 0.5,
                "tip": tip(label(one.treatment), f"mean {with_interval(middle)} {scale.unit}"),
            }
            for one in (*this.results.summaries, *this.results.other_summaries)
            if one.response == law.response and this.of(one.treatment) == label(law.others) and one.mean is not None
            for middle in [scale.estimate(one.mean_of_starts or one.mean)]
        ]
        curve = law_rows(law, per, scale)
        name = label(law.others)
        panels.append(
            Panel(name, charts.regression(points, curve, this.positions, y_title=title, colour=this.colour(name)))
        )
    if not panels:
        return None
    caption = (
        f"The universal scalability law fitted to {title.partition(',')[0]} over {this.positions.name}, n = "
        f"{n_range(law.n for law in this.results.laws if law.law == 'usl' and not law.refusal)} start means a "
        "panel, with its "
        f"pointwise {100 * this.results.confidence:g}% band; dots are means of start means. The axis starts at 0."
    )
    return Figure("laws", "Scalability laws", caption, tuple(panels), zoom="each")


def over_trials(this: View) -> Figure | None:
    """The warm-up figure: the response over the trial's number within its start."""
    levels = tuple(str(level) for level in this.positions.levels)
    styles = Styles(levels)
    panels, most, notes, total = [], 0, "", 0
    for name in this.series:
        mine = [
            point
            for point in this.results.points
            if this.of(point.treatment) == name and point.order_of_treatment is not None and not point.control
        ]
        if not mine:
            continue
        total += len(mine)
        most = max(most, *(point.order_of_treatment or 0 for point in mine))
        rows = [
            {
                "x": point.order_of_treatment,
                "y": this.scale.of(point.value),
                "series": str(this.level(point.treatment)),
                "line": f"{point.start}/{point.treatment}",
                "kept": point.used,
                "tip": point_tip(this, point),
            }
            for point in mine
        ]
        warm = [one for one in this.results.warm_ups if this.of(one.treatment) == name]
        fixed, detected = {one.fixed_cut for one in warm}, {one.detected_cut or 0 for one in warm}
        cuts = [{"x": max(fixed, default=0) + 1, "kind": "fixed"}]
        cuts += [{"x": cut + 1, "kind": "detected"} for cut in sorted(detected)]
        drawn, note = thinned(rows)
        notes = notes or note
        spec = charts.over_trials(
            drawn, cuts, styles, x_title="trial of its treatment within the start", y_title=this.y_title
        )
        panels.append(Panel(name, spec))
    if not panels or most < 2:
        return None
    caption = (
        f"{this.results.response_label.capitalize()} over the trial's number within its start, "
        f"n = {count(total, 'valid trial')}; a line is one start of a cluster. Hollow: dropped as warm-up by the "
        "study's fixed count (shaded). Dashed: where detection (MSER-5) would cut, if it "
        f"would.{notes} Each panel has its own axis, from 0."
    )
    keys = tuple(Key(name, SERIES[index % len(SERIES)]) for index, name in enumerate(levels))
    return Figure("warm-up", "Trials in their order", caption, tuple(panels), keys, this.positions.name, zoom="each")


def percentiles(this: View) -> Figure | None:
    """Response-time percentiles over the axis, one panel a series."""
    wanted = {f"response_ms_{name}": name for name in PERCENTILES}
    found: list[tuple[str, Summary]] = [
        (wanted[summary.response], summary)
        for summary in (*this.results.other_summaries, *this.results.summaries)
        if summary.response in wanted and summary.n and summary.median is not None
    ]
    if not found:
        return None
    rows: list[Row] = []
    for name, summary in found:
        estimate = summary.median
        if estimate is None or estimate.value <= 0:
            continue
        rows.append(
            {
                "level": this.level(summary.treatment),
                "panel": this.of(summary.treatment),
                "series": name,
                "y": estimate.value,
                "low": estimate.low,
                "high": estimate.high,
                "n": summary.n,
                "tip": tip(label(summary.treatment), f"{name} {with_interval(estimate)} ms", f"n = {summary.n} trials"),
            }
        )
    if not rows:
        return None
    ends = [float(value) for row in rows for value in (row["y"], row["low"], row["high"]) if value]
    domain = (min(ends) / 1.4, max(ends) * 1.4)
    panels = tuple(
        Panel(
            name,
            charts.percentiles(
                [row for row in rows if row["panel"] == name],
                this.positions,
                Styles(PERCENTILES),
                y_title="response time, ms",
                domain=domain,
                width=charts.PANEL_WIDTH - 24,
            ),
        )
        for name in this.series
        if any(row["panel"] == name for row in rows)
    )
    n = n_range(row["n"] for row in rows)
    caption = (
        f"Percentiles of response time over {this.positions.name}: each point is the median over n = "
        f"{n} "
        f"trials of the trial's own percentile, with its {100 * this.results.confidence:g}% interval where n "
        "supports one. "
        "Logarithmic axis, the same in all panels."
    )
    keys = tuple(
        Key(name, SERIES[index], SHAPES[index], " ".join(map(str, DASHES[index])))
        for index, name in enumerate(PERCENTILES)
    )
    return Figure("percentiles", "Response time", caption, panels, keys, zoom="xy")


def order(this: View, records: Sequence[TrialRecord]) -> Figure | None:
    """The order plot: every attempt against the time of day, as its difference from its treatment's median."""
    if not records:
        return None
    several = len(this.series) <= MAX_LINES
    names = this.series if several else tuple(str(level) for level in this.positions.levels)
    points = {(point.trial_id, point.attempt): point for point in this.results.points}
    middles = {str(sorted(one.treatment.items())): one.median.value for one in this.results.summaries if one.median}
    rows = []
    for record in records:
        middle = middles.get(str(sorted(record.treatment.items())))
        series = this.of(record.treatment) if several else str(this.level(record.treatment))
        rows.append({"series": series, **_order_row(this, record, points.get((record.id, record.attempt)), middle)})
    drawn, step = charts.thinned(rows, 2 * charts.MAX_POINTS)
    spans = _spans(records)
    wide, narrow = (
        charts.order(
            drawn,
            spans,
            Styles(names),
            y_title=f"{this.results.response_label}, % from its treatment's median",
            x_title="time of day, UTC",
            width=width,
            height=height,
        )
        for width, height in ((WIDE_PX - 40, 240), (NARROW_PX, 220))
    )
    caption = (
        f"{this.results.response_label.capitalize()} of every attempt, as its difference from the median of its "
        "treatment, "
        f"against the time at which it began; n = {len(records)} attempts. Filled: used; hollow: warm-up; crosses at "
        "the foot: "
        "not valid, or nothing to compare with. Shaded: every other start of a cluster. A slope or a step that all "
        "colours "
        "share is drift, not an effect. The line at 0 is the median of each treatment."
    )
    if step > 1:
        caption += f" Every {step}th attempt is drawn."
    keys = tuple(
        Key(name, SERIES[index % len(SERIES)], SHAPES[index % len(SHAPES)]) for index, name in enumerate(names)
    )
    return Figure("order", "Order of the trials", caption, (Panel("", wide, narrow),), keys, zoom="xy")


def _order_row(this: View, record: TrialRecord, point: Point | None, middle: float | None) -> Row:
    valid = record.verdict.outcome == "valid"
    state = "invalid" if not valid else "warm-up" if point and point.warm_up else "kept"
    value = 100 * (point.value / middle - 1) if point and valid and middle else None
    shown = this.scale.of(point.value) if point else None
    why = "" if valid else listed([reason.kind.value for reason in record.verdict.reasons] or [record.verdict.outcome])
    return {
        "x": int(record.begun_s * 1000),
        "y": value,
        "state": state,
        "tip": tip(
            label(record.treatment),
            f"{number(shown)} {this.scale.unit}" if shown is not None else "",
            "" if state == "kept" else state,
            why,
            f"trial {record.id}" + (f", attempt {record.attempt}" if record.attempt > 1 else ""),
        ),
    }


def _spans(records: Sequence[TrialRecord]) -> list[Row]:
    """From the first to the last trial of each start, in milliseconds since the epoch."""
    ends: dict[str, list[float]] = {}
    for record in records:
        left = record.ended_s or record.begun_s
        span = ends.setdefault(record.start, [record.begun_s, left])
        span[0], span[1] = min(span[0], record.begun_s), max(span[1], left)
    return [{"from": int(span[0] * 1000), "to": int(span[1] * 1000)} for span in sorted(ends.values())]


def of_results(results: Results, records: Sequence[TrialRecord]) -> dict[str, Figure]:
    """Every figure that these results support, by name, but for the nodes' time lines (see `traces`)."""
    this = view(results)
    makers: tuple[Callable[[View], Figure | None], ...] = (
        medians, forests, regressions, laws, profiles, boxes, deviations, over_trials, percentiles,
    )  # fmt: skip
    found = [maker(this) for maker in makers]
    found.append(order(this, records))
    return {figure.name: figure for figure in found if figure is not None}
