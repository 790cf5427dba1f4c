"""Which figures a page has: the results' numbers as rows for the charts, each figure with its caption and key."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from steelyard.analysis.results import LABELS, UNITS, Box, Fit, LawFit, Point, Results, Summary, label
from steelyard.model.trial import TrialRecord
from steelyard.report import charts
from steelyard.report.charts import Styles
from steelyard.report.format import Scale, count, listed, number, with_interval
from steelyard.report.theme import DASHES, MAX_LINES, SERIES, SHAPES
from steelyard.report.view import Figure, Key, Panel, View, view

Row = dict[str, Any]

WIDE_PX: Final = 740
NARROW_PX: Final = 290
LABEL_PX: Final = 90
"""Room that the names at the ends of lines take."""
PERCENTILES: Final = ("p50", "p95", "p99")


def _tip(*parts: str) -> str:
    return " · ".join(part for part in parts if part)


def _n_range(amounts: Iterable[int]) -> str:
    found = sorted(set(amounts))
    return f"{found[0]}" if len(found) == 1 else f"{found[0]} to {found[-1]}" if found else "0"


def _thinned(rows: Sequence[Row]) -> tuple[list[Row], str]:
    """Rows that are few enough to draw, and what the caption says about the others."""
    drawn, step = charts.thinned(rows)
    return [dict(row) for row in drawn], f" Every {step}th dot is drawn." if step > 1 else ""


def medians(this: View) -> Figure | None:
    """The main chart."""
    rows = [_median_row(this, summary) for summary in this.results.summaries if summary.median is not None]
    if not rows:
        return None
    trials, thinned = _thinned(_trial_rows(this))
    positions, bare = this.positions, sum(row["low"] is None for row in rows)
    caption = (
        f"Median {this.results.response_label} over {positions.name}, n = {_n_range(row['n'] for row in rows)} "
        "trials a "
        f"point; faint dots are the trials.{thinned} "
    )
    kind = f"{100 * this.results.confidence:g}% order-statistic intervals of the median over trials"
    if bare == len(rows):
        caption += f"No point has an interval: fewer than 6 trials support none ({kind})."
    else:
        caption += f"Vertical lines are {kind}"
        caption += f"; {count(bare, 'point has', 'points have')} fewer than 6 trials and so none." if bare else "."
    caption += " The axis starts at 0."
    missing = [label(summary.treatment) for summary in this.results.summaries if summary.n == 0]
    if missing:
        caption += f" Without a valid trial, and so without a point: {'; '.join(missing)}."
    keys: tuple[Key, ...] = ()
    if 1 < len(this.series) <= MAX_LINES:
        keys = tuple(
            Key(name, SERIES[index], SHAPES[index], " ".join(map(str, DASHES[index])))
            for index, name in enumerate(this.series)
        )
    title = f"Median {this.results.response_label}"
    return Figure("medians", title, caption, _median_panels(this, rows, trials), keys)


def _median_row(this: View, summary: Summary) -> Row:
    shown = this.scale.estimate(summary.median) if summary.median is not None else None
    value = with_interval(shown)
    return {
        "level": this.level(summary.treatment),
        "series": this.of(summary.treatment),
        "y": shown.value if shown else None,
        "low": shown.low if shown else None,
        "high": shown.high if shown else None,
        "n": summary.n,
        "tip": _tip(label(summary.treatment), f"median {value} {this.scale.unit}", f"n = {summary.n}"),
    }


def _trial_rows(this: View) -> list[Row]:
    """Every used trial as a dot; `part` sets the trials of a cell side by side, by time."""
    found = [point for point in this.results.points if point.used and not point.control]
    sizes: dict[str, int] = {}
    places = []
    for point in found:
        cell = str(sorted(point.treatment.items()))
        places.append((cell, sizes.get(cell, 0)))
        sizes[cell] = sizes.get(cell, 0) + 1
    return [
        {
            "level": this.level(point.treatment),
            "series": this.of(point.treatment),
            "y": this.scale.of(point.value),
            "part": place / (sizes[cell] - 1) if sizes[cell] > 1 else 0.5,
            "tip": _point_tip(this, point),
        }
        for point, (cell, place) in zip(found, places, strict=True)
    ]


def _median_panels(this: View, rows: Sequence[Row], trials: Sequence[Row]) -> tuple[Panel, ...]:
    """One picture, or with too many lines one a series."""
    title, positions = f"median {this.y_title}", this.positions
    if len(this.series) <= MAX_LINES:
        wide, narrow = (
            charts.medians(rows, trials, positions, this.styles(), y_title=title, width=width - LABEL_PX, height=height)
            for width, height in ((WIDE_PX, 340), (NARROW_PX + 20, 280))
        )
        return (Panel("", wide, narrow),)
    return tuple(
        Panel(
            name,
            charts.medians(
                [row for row in rows if row["series"] == name],
                [row for row in trials if row["series"] == name],
                positions,
                Styles((name,)),
                y_title=title,
                width=charts.PANEL_WIDTH,
                height=charts.PANEL_HEIGHT,
                label=False,
            ),
        )
        for name in this.series
    )


def regressions(this: View) -> Figure | None:
    """Trials over the numeric factor, with the least-squares line."""
    panels: list[Panel] = []
    amounts: list[int] = []
    honest, notes = 0, ""
    ends = sorted(this.positions.places)
    reach = [ends[0] - this.positions.step * 0.2, ends[-1] + this.positions.step * 0.2]
    trials = _trial_rows(this)
    for regression in this.results.regressions:
        fit = regression.honest or regression.published
        name = label(regression.others)
        points = [row for row in trials if row["series"] == name]
        if fit is None or not points:
            continue
        honest += regression.honest is not None
        amounts.append(len(points))
        line = _line(this, fit, reach)
        drawn, thinned = _thinned(points)
        notes = notes or thinned
        panels.append(
            Panel(name, charts.regression(drawn, line, this.positions, y_title=this.y_title, colour=this.colour(name)))
        )
    if not panels:
        return None
    form = "start means; the published form, fitted to trials, stands beside it in the table" if honest else "trials"
    caption = (
        f"Least-squares line of {this.results.response_label} on {this.positions.name}, fitted to {form}. "
        f"Each trial is a dot, set side by side within its {'size' if this.axis == 'nodes' else 'level'}; n = "
        f"{_n_range(amounts)} "
        f"trials a panel.{notes} Each panel has its own axis, from 0."
    )
    title = f"{this.results.response_label.capitalize()} on {this.positions.name}"
    return Figure("regression", title, caption, tuple(panels))


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
        shown = _law_scale(this, law)
        if law.law != "usl" or law.refusal or not law.curve or shown is None:
            continue
        per, scale = shown
        title = f"{LABELS[law.response]}, {scale.unit}"
        points = [
            {
                "level": this.level(one.treatment),
                "y": middle.value,
                "part": 0.5,
                "tip": _tip(label(one.treatment), f"mean {with_interval(middle)} {scale.unit}"),
            }
            for one in (*this.results.summaries, *this.results.other_summaries)
            if one.response == law.response and this.of(one.treatment) == label(law.others) and one.mean is not None
            for middle in [scale.estimate(one.mean_of_starts or one.mean)]
        ]
        curve = [
            {
                "x": point.level,
                **{
                    key: scale.of(None if end is None else end * per)
                    for key, end in (("y", point.value), ("low", point.low), ("high", point.high))
                },
            }
            for point in law.curve
        ]
        name = label(law.others)
        panels.append(
            Panel(name, charts.regression(points, curve, this.positions, y_title=title, colour=this.colour(name)))
        )
    if not panels:
        return None
    caption = (
        f"The universal scalability law fitted to {title.partition(',')[0]} over {this.positions.name}, n = "
        f"{_n_range(law.n for law in this.results.laws if law.law == 'usl' and not law.refusal)} start means a "
        "panel, with its "
        f"pointwise {100 * this.results.confidence:g}% band; dots are means of start means. The axis starts at 0."
    )
    return Figure("laws", "Scalability laws", caption, tuple(panels))


def _law_scale(this: View, law: LawFit) -> tuple[float, Scale] | None:
    """What turns a law's curve into its response: the operations of a trial where the curve is of one operation's time.

    None where trials differ in operations, so that the curve has no place among them.
    """
    scale = this.scale if law.response == this.results.response else Scale(1.0, UNITS[law.response])
    if law.load == "saturated":
        return 1.0, scale
    amounts = {
        amount
        for one in this.results.other_summaries
        if one.response == "operations" and one.n
        for amount in (one.min, one.max)
    }
    return (float(amounts.pop() or 0.0), scale) if len(amounts) == 1 else None


def _point_tip(this: View, point: Point) -> str:
    return _tip(
        label(point.treatment),
        f"{number(this.scale.of(point.value))} {this.scale.unit}",
        f"trial {point.trial_id}",
        f"start {point.start_replicate}, number {point.order_of_treatment or '–'} of its treatment",
    )


def boxes(this: View) -> Figure | None:
    """Box plots with their raw points."""
    panels, notes = [], ""
    trials = _trial_rows(this)
    for name in this.series:
        found = [box for box in this.results.boxes if this.of(box.treatment) == name]
        if not found:
            continue
        drawn, thinned = _thinned([row for row in trials if row["series"] == name])
        notes = notes or thinned
        spec = charts.boxes(
            [_box_row(this, box) for box in found],
            drawn,
            this.positions,
            y_title=this.y_title,
            colour=this.colour(name),
        )
        panels.append(Panel(name, spec))
    if not panels:
        return None
    caption = (
        f"{this.results.response_label.capitalize()} of the used trials, n = "
        f"{_n_range(box.n for box in this.results.boxes)} a "
        "box. Box: quartiles and median; whiskers: to the last trial within 1.5 interquartile ranges. Diamond: mean, "
        "with one "
        f"standard deviation to each side. Dots: the trials, left to right by time.{notes} Each panel has its own "
        "axis, which "
        "does not start at 0, to show the spread."
    )
    return Figure("boxes", f"Spread of {this.results.response_label}", caption, tuple(panels))


def _box_row(this: View, box: Box) -> Row:
    low, q1, median, q3, high, mean, sd = (
        this.scale.of(value)
        for value in (box.whisker_low, box.q1, box.median, box.q3, box.whisker_high, box.mean, box.sd)
    )
    return {
        "level": this.level(box.treatment),
        "low": low,
        "q1": q1,
        "median": median,
        "q3": q3,
        "high": high,
        "mean": mean,
        "sd": sd,
        "tip": _tip(
            label(box.treatment),
            f"quartiles {number(q1)}, {number(median)}, {number(q3)} {this.scale.unit}",
            f"mean {number(mean)}, sd {number(sd, digits=3)}",
            f"n = {box.n}",
        ),
    }


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
                "tip": _point_tip(this, point),
            }
            for point in mine
        ]
        warm = [one for one in this.results.warm_ups if this.of(one.treatment) == name]
        fixed, detected = {one.fixed_cut for one in warm}, {one.detected_cut or 0 for one in warm}
        cuts = [{"x": max(fixed, default=0) + 1, "kind": "fixed"}]
        cuts += [{"x": cut + 1, "kind": "detected"} for cut in sorted(detected)]
        drawn, thinned = _thinned(rows)
        notes = notes or thinned
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
    return Figure("warm-up", "Trials in their order", caption, tuple(panels), keys, this.positions.name)


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
                "tip": _tip(
                    label(summary.treatment), f"{name} {with_interval(estimate)} ms", f"n = {summary.n} trials"
                ),
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
    n = _n_range(row["n"] for row in rows)
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
    return Figure("percentiles", "Response time", caption, panels, keys)


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
    return Figure("order", "Order of the trials", caption, (Panel("", wide, narrow),), keys)


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
        "tip": _tip(
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
    makers: tuple[Callable[[View], Figure | None], ...] = (medians, regressions, laws, boxes, over_trials, percentiles)
    found = [maker(this) for maker in makers]
    found.append(order(this, records))
    return {figure.name: figure for figure in found if figure is not None}
