"""The charts: numbers that the analysis has computed, placed on axes. Nothing is estimated here.

Every function takes plain rows and gives a Vega-Lite specification as a mapping. Vega-Lite's own box plots, error bars
and regressions are not used: they compute (and some draw random numbers) out of sight of the tests.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import altair as alt

from steelyard.report.basics.theme import ALERT, BAND, DASHES, INK, MUTED, PAPER, SERIES, SHAPES, config

Row = Mapping[str, Any]

PANEL_WIDTH: Final = 296
"""Of the plot itself; with its axis a panel takes about 335 px, so that two stand side by side and one fits a phone."""

PANEL_HEIGHT: Final = 180
LABEL_GAP_PX: Final = 14
SMALL_LABEL_GAP_PX: Final = 11
NUDGE_PX: Final = 6
MAIN_MARGIN: Final = 0.12
HEADROOM: Final = 1.06
MAX_POINTS: Final = 400
"""Marks of one kind in one picture; above it every k-th is drawn and the caption says so."""


@dataclass(frozen=True)
class Positions:
    """Where the levels of the factor on the x axis lie: numbers at their value, words one apart."""

    name: str
    levels: tuple[Any, ...]

    @property
    def numeric(self) -> bool:
        """Whether the levels are quantities."""
        return all(isinstance(level, int | float) and not isinstance(level, bool) for level in self.levels)

    def of(self, level: Any) -> float:
        """Place of a level on the axis."""
        return float(level) if self.numeric else float(self.levels.index(level))

    @property
    def places(self) -> list[float]:
        """Places of all levels."""
        return [self.of(level) for level in self.levels]

    @property
    def step(self) -> float:
        """Smallest distance between two levels; 1 where there is one level."""
        places = sorted(self.places)
        gaps = [right - left for left, right in pairwise(places)]
        return min(gaps, default=1.0) or 1.0

    def axis(self, *, margin: float = 0.35, title: str | None = None) -> alt.X:
        """The x channel, on the field `x`."""
        places, room = self.places, self.step * margin
        words = {str(place): str(level) for place, level in zip(places, self.levels, strict=True)}
        choice = " : ".join(f"datum.value == {place} ? {_quoted(word)}" for place, word in words.items())
        return alt.X(
            "x:Q",
            title=self.name if title is None else title,
            scale=alt.Scale(domain=[min(places) - room, max(places) + room], nice=False, zero=False),
            axis=alt.Axis(values=places, labelExpr=f"{choice} : ''", labelOverlap=True),
        )


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


@dataclass(frozen=True)
class Styles:
    """Colour, marker and dash of each series, the same in every chart of a page."""

    names: tuple[str, ...]

    def colour(self, **options: Any) -> alt.Color:
        """Colour by the field `series`."""
        return alt.Color("series:N", scale=alt.Scale(domain=list(self.names), range=self._cycle(SERIES)), **options)

    def shape(self, **options: Any) -> alt.Shape:
        """Marker by the field `series`."""
        return alt.Shape("series:N", scale=alt.Scale(domain=list(self.names), range=self._cycle(SHAPES)), **options)

    def dash(self, **options: Any) -> alt.StrokeDash:
        """Dash by the field `series`."""
        return alt.StrokeDash(
            "series:N", scale=alt.Scale(domain=list(self.names), range=self._cycle(DASHES)), **options
        )

    def _cycle(self, values: Sequence[Any]) -> list[Any]:
        return [values[index % len(values)] for index in range(len(self.names))]


def thinned(rows: Sequence[Row], most: int = MAX_POINTS) -> tuple[list[Row], int]:
    """At most `most` rows, evenly spaced, and k where every k-th was kept."""
    step = -(-len(rows) // most) if rows else 1
    return [row for index, row in enumerate(rows) if index % step == 0], step


class _Rows:
    """The rows of one chart, kept beside it: Altair would copy and check each of thousands of them several times."""

    def __init__(self) -> None:
        self._datasets: dict[str, list[dict[str, Any]]] = {}

    def __call__(self, rows: Sequence[Row]) -> alt.NamedData:
        name = f"rows-{len(self._datasets)}"
        self._datasets[name] = [dict(row) for row in rows]
        return alt.NamedData(name=name)

    def done(self, chart: Any) -> dict[str, Any]:
        """The specification of a chart over these rows."""
        return {**chart.configure(**config()).to_dict(validate=False), "datasets": self._datasets}


def _top(rows: Sequence[Row], *fields: str) -> float:
    return (
        max((float(row[field]) for row in rows for field in fields if row.get(field) is not None), default=1.0) or 1.0
    )


def _from_zero(title: str, top: float, *, field: str = "y", ticks: int = 5) -> alt.Y:
    return alt.Y(
        f"{field}:Q",
        title=title,
        scale=alt.Scale(domain=[0, top * HEADROOM], nice=True),
        axis=alt.Axis(tickCount=ticks, format=",~r"),
    )


def _between(title: str, rows: Sequence[Row], *fields: str, ticks: int = 5) -> alt.Y:
    """A y channel that does not start at 0, for spreads and differences; the caption must say so."""
    found = [float(row[field]) for row in rows for field in fields if row.get(field) is not None] or [0.0, 1.0]
    low, high = min(found), max(found)
    room = (high - low) * 0.08 or abs(high) * 0.05 or 1.0
    scale = alt.Scale(domain=[low - room, high + room], nice=False, zero=False)
    return alt.Y("y:Q", title=title, scale=scale, axis=alt.Axis(tickCount=ticks))


def medians(
    rows: Sequence[Row],
    trials: Sequence[Row],
    positions: Positions,
    styles: Styles,
    *,
    y_title: str,
    width: int,
    height: int = 320,
    label: bool = True,
    joined: bool = False,
    curves: Sequence[Row] = (),
    ideals: Sequence[Row] = (),
) -> dict[str, Any]:
    """One line a series over the levels of one factor, each point with its interval and each line with its name.

    Rows: `level`, `series`, `y`, `low`, `high` (None: no interval), `tip`. Trials: `level`, `series`, `y`, `tip`, drawn
    as faint dots. Points of different series at one level are set beside each other so that no interval hides another.
    Levels that are words are not joined by lines, unless `joined`, to show which belong together.
    Curves (a fitted law: `x`, `y`, `low`, `high`, `series`) take the place of the straight lines; ideals (`x`, `y`,
    `series`) are dotted.
    """
    data = _Rows()
    names = [name for name in styles.names if any(row["series"] == name for row in rows)]
    places = positions.places
    nudge = (max(places) - min(places) + 2 * MAIN_MARGIN * positions.step) / width * NUDGE_PX
    shift = {name: (index - (len(names) - 1) / 2) * nudge for index, name in enumerate(names)}
    placed = [{**row, "x": positions.of(row["level"]) + shift[row["series"]]} for row in rows]
    dots = [{**row, "x": positions.of(row["level"]) + shift[row["series"]]} for row in trials]
    tops = [_top(placed, "y", "high"), _top(dots, "y")]
    top = max(*tops, *([_top(curves, "y")] if curves else []), *([_top(ideals, "y")] if ideals else []))
    # A band may reach far beyond what was measured: it is cut where the axis ends.
    bands = [{**row, "high": min(row["high"], top * HEADROOM)} for row in curves if row["high"] is not None]
    colour, x, y = styles.colour(legend=None), positions.axis(margin=MAIN_MARGIN), _from_zero(y_title, top)
    base = alt.Chart(data(placed))
    lines = alt.Chart(data(curves)) if curves else base
    layers: list[Any] = []
    if bands:
        layers.append(
            alt.Chart(data(bands)).mark_area(opacity=0.13).encode(x=x, y=alt.Y("low:Q"), y2="high:Q", color=colour)
        )
    if ideals:
        dotted = alt.Chart(data(ideals)).mark_line(strokeWidth=1.25, strokeDash=[1, 3])
        layers.append(dotted.encode(x=x, y=y, color=colour))
    layers += [
        alt.Chart(data(dots))
        .mark_point(filled=True, size=18, opacity=0.45)
        .encode(x=x, y=y, color=colour, description="tip:N"),
        lines.mark_line(strokeWidth=2, opacity=1 if positions.numeric or joined else 0).encode(
            x=x, y=y, color=colour, strokeDash=styles.dash(legend=None)
        ),
        base.transform_filter("isValid(datum.low)")
        .mark_rule(strokeWidth=1.75)
        .encode(x=x, y=alt.Y("low:Q"), y2="high:Q", color=colour),
        base.mark_point(filled=True, size=58, opacity=1).encode(
            x=x, y=y, color=colour, shape=styles.shape(legend=None), description="tip:N"
        ),
    ]
    labels = _end_labels(placed, names, top, height) if label else []
    label_layer = (
        alt.Chart(data(labels))
        .mark_text(align="left", baseline="middle", fontWeight=600, dx=8)
        .encode(x=x, y=alt.Y("y:Q"), text="series:N", color=colour)
    )
    return data.done(alt.layer(*layers, label_layer).properties(width=width, height=height))


def _end_labels(placed: Sequence[Row], names: Sequence[str], top: float, height: int) -> list[dict[str, Any]]:
    """Names at the right ends of lines, pushed apart where they would overlap."""
    last = [max((row for row in placed if row["series"] == name), key=lambda row: row["x"]) for name in names]
    edge = max((row["x"] for row in last), default=0.0)
    gap = LABEL_GAP_PX / height * top * HEADROOM
    labels: list[dict[str, Any]] = []
    for row in sorted(last, key=lambda row: float(row["y"])):
        floor = labels[-1]["y"] + gap if labels else 0.0
        labels.append({"series": row["series"], "x": edge, "y": max(float(row["y"]), floor)})
    return labels


def regression(
    points: Sequence[Row],
    fits: Sequence[Row],
    positions: Positions,
    *,
    y_title: str,
    colour: str,
    width: int = PANEL_WIDTH,
    title: str = "",
) -> dict[str, Any]:
    """Trials over a numeric factor with the fitted line and, where the rows have it, the band of its mean.

    Points: `level`, `y`, `part` (a place beside each other, 0 to 1), `tip`.
    Fits: `x`, `y`, `low`, `high`, in order of x.
    """
    data = _Rows()
    spread = positions.step * 0.16
    placed = [{**row, "x": positions.of(row["level"]) + (row["part"] - 0.5) * spread} for row in points]
    x = positions.axis(margin=0.3)
    y = _from_zero(y_title, max(_top(placed, "y"), _top(fits, "y", "high")))
    fitted = alt.Chart(data(fits))
    layers = [
        fitted.transform_filter("isValid(datum.low)")
        .mark_area(color=colour, opacity=0.14)
        .encode(x=x, y=alt.Y("low:Q"), y2="high:Q"),
        fitted.mark_line(color=colour, strokeWidth=1.75).encode(x=x, y=y),
        alt.Chart(data(placed))
        .mark_point(filled=True, opacity=0.55, size=24, color=colour)
        .encode(x=x, y=y, description="tip:N"),
    ]
    return data.done(alt.layer(*layers).properties(width=width, height=PANEL_HEIGHT, **_titled(title)))


def _titled(title: str) -> dict[str, str]:
    return {"title": title} if title else {}


def boxes(
    summaries: Sequence[Row],
    points: Sequence[Row],
    positions: Positions,
    *,
    y_title: str,
    colour: str,
    width: int = PANEL_WIDTH,
    title: str = "",
) -> dict[str, Any]:
    """Box plots with their raw points beside them, mean and standard deviation marked.

    Summaries: `level`, `low`, `q1`, `median`, `q3`, `high`, `mean`, `sd` (None where n is 1), `tip`; `low` and `high`
    are the ends of the whiskers. Points: `level`, `y`, `part` (a position within the cell, 0 to 1), `tip`.
    """
    data = _Rows()
    step = 1.0
    order = {level: index for index, level in enumerate(positions.levels)}
    ordinal = Positions(positions.name, tuple(str(level) for level in positions.levels))
    box = [{**row, "x": order[row["level"]] - 0.16 * step} for row in summaries]
    for row in box:
        sd = row["sd"]
        row["sd_low"], row["sd_high"] = (None, None) if sd is None else (max(row["mean"] - sd, 0.0), row["mean"] + sd)
        row["left"], row["right"] = row["x"] - 0.13, row["x"] + 0.13
        row["mean_x"] = row["x"] + 0.2
    dots = [{**row, "x": order[row["level"]] + 0.14 + 0.2 * row["part"]} for row in points]
    x = ordinal.axis(margin=0.5)
    ends = [{"y": row[end]} for row in box for end in ("low", "high", "sd_low", "sd_high")]
    y = _between(y_title, [*ends, *dots], "y")
    base = alt.Chart(data(box))
    layers = [
        base.mark_rule(color=colour, strokeWidth=1.25).encode(x=x, y=alt.Y("low:Q"), y2="high:Q"),
        base.mark_rect(fill=PAPER, stroke=colour, strokeWidth=1.5).encode(
            x=alt.X("left:Q"), x2="right:Q", y=alt.Y("q1:Q"), y2="q3:Q", description="tip:N"
        ),
        base.mark_rule(color=colour, strokeWidth=2.75).encode(x=alt.X("left:Q"), x2="right:Q", y=alt.Y("median:Q")),
        base.transform_filter("isValid(datum.sd_low)")
        .mark_rule(color=INK, strokeWidth=1)
        .encode(x=alt.X("mean_x:Q"), y=alt.Y("sd_low:Q"), y2="sd_high:Q"),
        base.mark_point(shape="diamond", filled=True, fill=INK, size=36, opacity=1).encode(
            x=alt.X("mean_x:Q"), y=alt.Y("mean:Q")
        ),
        alt.Chart(data(dots))
        .mark_point(filled=True, color=colour, size=20, opacity=0.5)
        .encode(x=x, y=y, description="tip:N"),
    ]
    return data.done(alt.layer(*layers).properties(width=width, height=PANEL_HEIGHT, **_titled(title)))


def over_trials(
    points: Sequence[Row],
    cuts: Sequence[Row],
    styles: Styles,
    *,
    x_title: str,
    y_title: str,
    legend: bool = False,
    width: int = PANEL_WIDTH,
    title: str = "",
) -> dict[str, Any]:
    """A response over the trial's number within its start: filled where kept, hollow where dropped as warm-up.

    Points: `x`, `y`, `series`, `line` (one start), `kept`, `tip`. Cuts: `x` (the first number that is kept), `kind`
    (`fixed` or `detected`). The shaded band ends at the fixed count, a dashed rule stands at the detected one.
    """
    data = _Rows()
    last = max((float(row["x"]) for row in points), default=1.0)
    scale = alt.Scale(domain=[0.5, last + 0.5], nice=False, zero=False)
    axis = alt.Axis(tickMinStep=1, format="d", tickCount=min(int(last), 10))
    x, y = alt.X("x:Q", title=x_title, scale=scale, axis=axis), _from_zero(y_title, _top(points, "y"), ticks=4)
    base = alt.Chart(data(points))
    colour = styles.colour(**({"title": None} if legend else {"legend": None}))
    bands = [{"from": 0.5, "to": float(row["x"]) - 0.5} for row in cuts if row["kind"] == "fixed" and row["x"] > 1]
    found = [{"x": float(row["x"]) - 0.5} for row in cuts if row["kind"] == "detected" and row["x"] > 1]
    layers = [
        alt.Chart(data(bands)).mark_rect(color=BAND, opacity=1).encode(x=alt.X("from:Q", scale=scale), x2="to:Q"),
        alt.Chart(data(found)).mark_rule(color=MUTED, strokeDash=[3, 3], strokeWidth=1.25).encode(x=x),
        base.mark_line(strokeWidth=1, opacity=0.55).encode(x=x, y=y, color=colour, detail="line:N"),
        base.transform_filter("datum.kept")
        .mark_point(filled=True, size=26, opacity=1)
        .encode(x=x, y=y, color=colour, description="tip:N"),
        base.transform_filter("!datum.kept")
        .mark_point(fill=PAPER, size=26, opacity=1, strokeWidth=1.5)
        .encode(x=x, y=y, color=colour, description="tip:N"),
    ]
    return data.done(alt.layer(*layers).properties(width=width, height=PANEL_HEIGHT, **_titled(title)))


def percentiles(
    rows: Sequence[Row],
    positions: Positions,
    styles: Styles,
    *,
    y_title: str,
    domain: tuple[float, float],
    width: int = PANEL_WIDTH,
    title: str = "",
) -> dict[str, Any]:
    """Response-time percentiles over the levels of one factor, on a logarithmic axis shared by all panels.

    Rows: `level`, `series` (p50, p95, p99), `y`, `low`, `high`, `tip`. `domain` is in the rows' unit, above 0.
    """
    data = _Rows()
    placed = [{**row, "x": positions.of(row["level"])} for row in rows]
    edge = max((row["x"] for row in placed), default=0.0)
    x, colour = positions.axis(margin=0.3), styles.colour(legend=None)
    y = alt.Y(
        "y:Q",
        title=y_title,
        scale=alt.Scale(type="log", domain=list(domain), nice=False),
        axis=alt.Axis(**_log_ticks(domain)),
    )
    base = alt.Chart(data(placed))
    factor = (domain[1] / domain[0]) ** (SMALL_LABEL_GAP_PX / PANEL_HEIGHT)
    ends: list[dict[str, Any]] = []
    for row in sorted((row for row in placed if row["x"] == edge), key=lambda row: float(row["y"])):
        ends.append({**row, "y": max(float(row["y"]), ends[-1]["y"] * factor) if ends else row["y"]})
    layers = [
        base.mark_line(strokeWidth=1.75).encode(x=x, y=y, color=colour, strokeDash=styles.dash(legend=None)),
        base.transform_filter("isValid(datum.low)")
        .mark_rule(strokeWidth=1.5)
        .encode(x=x, y=alt.Y("low:Q"), y2="high:Q", color=colour),
        base.mark_point(filled=True, size=40, opacity=1).encode(
            x=x, y=y, color=colour, shape=styles.shape(legend=None), description="tip:N"
        ),
        alt.Chart(data(ends))
        .mark_text(align="left", baseline="middle", dx=8, fontSize=10)
        .encode(x=x, y=alt.Y("y:Q"), text="series:N", color=colour),
    ]
    return data.done(alt.layer(*layers).properties(width=width, height=PANEL_HEIGHT, **_titled(title)))


def _log_ticks(domain: tuple[float, float]) -> dict[str, Any]:
    """1, 2 and 5 of every decade within the domain, as plain numbers."""
    ticks = [mantissa * 10.0**power for power in range(-6, 9) for mantissa in (1, 2, 5)]
    inside = [tick for tick in ticks if domain[0] <= tick <= domain[1]]
    if len(inside) > 8:
        inside = [tick for tick in inside if f"{tick:e}".startswith("1")]
    return {"values": inside, "format": ",~r"}


def _time_format(points: Sequence[Row]) -> str:
    """Seconds for a study of minutes, days for one of days."""
    hours = (max(row["x"] for row in points) - min(row["x"] for row in points)) / 3.6e6
    return "%H:%M:%S" if hours < 0.5 else "%H:%M" if hours < 24 else "%d %b %H:%M"


def order(
    points: Sequence[Row],
    spans: Sequence[Row],
    styles: Styles,
    *,
    y_title: str,
    x_title: str,
    width: int,
    height: int = 240,
    legend: bool = False,
) -> dict[str, Any]:
    """A difference against the time of day, to see drift: every attempt, those without a value as crosses on the floor.

    Points: `x` (milliseconds since the epoch), `y` (None where the attempt has no value), `series`, `state` (kept,
    warm-up, invalid), `tip`. Spans: `from`, `to`, the times of the starts, shaded in turn.
    """
    data = _Rows()
    drawn = [row for row in points if row["y"] is not None]
    y = _between(y_title, [*drawn, {"y": 0.0}], "y")
    floor = y.to_dict()["scale"]["domain"][0]
    lost = [{**row, "y": floor} for row in points if row["y"] is None]
    utc = alt.Scale(type="utc")
    axis = alt.Axis(format=_time_format(points), tickCount=max(3, width // 110), labelOverlap=True)
    x = alt.X("x:T", title=x_title, scale=utc, axis=axis)
    key = {"title": None} if legend else {"legend": None}
    colour, shape = styles.colour(**key), styles.shape(**key)
    base = alt.Chart(data(drawn))
    shaded = [row for index, row in enumerate(spans) if index % 2 == 0]
    layers = [alt.Chart(data(shaded)).mark_rect(color=BAND, opacity=1).encode(x=alt.X("from:T", scale=utc), x2="to:T")]
    layers.append(alt.Chart(data([{"y": 0.0}])).mark_rule(color=MUTED, strokeWidth=1).encode(y=y))
    layers += [
        base.transform_filter("datum.state == 'kept'")
        .mark_point(filled=True, size=34, opacity=0.9)
        .encode(x=x, y=y, color=colour, shape=shape, description="tip:N"),
        base.transform_filter("datum.state == 'warm-up'")
        .mark_point(fill=PAPER, size=34, opacity=0.9)
        .encode(x=x, y=y, color=colour, shape=shape, description="tip:N"),
        alt.Chart(data([*lost, *[row for row in drawn if row["state"] == "invalid"]]))
        .mark_text(text="✕", color=ALERT, fontSize=13, fontWeight=700)
        .encode(x=x, y=alt.Y("y:Q"), description="tip:N"),
    ]
    return data.done(alt.layer(*layers).properties(width=width, height=height))
