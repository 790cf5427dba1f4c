"""Changes with their intervals, one below the other, beside the line of no change: the picture of a comparison."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import vl_convert

from steelyard.model.errors import StudyError
from steelyard.report.basics.theme import ALERT, BAND, INK, MUTED, SERIES, config
from steelyard.report.draw import svg
from steelyard.report.draw.svg import ON_PAPER, PNG_SCALE

ROW_HEIGHT: Final = 26
NARROW_HEIGHT: Final = 38
NARROW_ROW: Final = 150
WIDTH: Final = 420
SUFFIXES: Final = (".svg", ".png", ".pdf")
DECIDED_COLOUR: Final = SERIES[0]
LEAST_RATIO: Final = 1e-4
"""Ratios below are drawn there."""
ROOM: Final = 1.03
TICK_GAP: Final = 0.11
ROUND: Final = (
    2.0, 0.5, 10.0, 0.1, 100.0, 0.01, 5.0, 0.2, 1000.0, 0.001, 1.2, 0.8, 1.1, 0.9, 1.05, 0.95, 1.02, 0.98, 1.01, 0.99,
)  # fmt: skip
"""Ratios that are marked on the axis, the first ones first."""
AS_PERCENT: Final = "datum.value == 1 ? '0%' : format(100 * (datum.value - 1), '+,.3~r') + '%'"
LONGEST_ROW: Final = 420
"""Pixels for a row's label."""


@dataclass(frozen=True)
class ForestRow:
    """One change in per cent; `low` and `high` are None where there is no interval."""

    label: str
    value: float
    low: float | None
    high: float | None
    verdict: str
    decided: bool


def spec(
    rows: Sequence[ForestRow],
    title: str,
    caption: str,
    margin: tuple[float, float] | None,
    *,
    width: int = WIDTH,
    narrow: bool = False,
) -> dict[str, Any]:
    """A Vega-Lite chart: a point and its interval a row; hollow where nothing is decided. Nothing is estimated here.

    Without `title` the chart has none of its own; `narrow` breaks labels at their colon.
    """
    values: list[dict[str, Any]] = [
        {
            "label": row.label, "value": _ratio(row.value), "verdict": row.verdict,
            "low": _ratio(row.value if row.low is None else row.low),
            "high": _ratio(row.value if row.high is None else row.high),
            "colour": DECIDED_COLOUR if row.decided else MUTED,
            "fill": DECIDED_COLOUR if row.decided else "white",
        }
        for row in rows
    ]  # fmt: skip
    y: dict[str, Any] = {
        "field": "label", "type": "nominal", "sort": [row.label for row in rows], "title": None,
        "axis": {"labelLimit": LONGEST_ROW, "labelColor": INK, "ticks": False, "domain": False, "titleAngle": 0},
    }  # fmt: skip
    if narrow:
        y["axis"] = {**y["axis"], "labelLimit": NARROW_ROW, "labelExpr": "split(datum.label, ': ')"}
    drawn = [value[end] for value in values for end in ("low", "high")] + [1.0, *map(_ratio, margin or ())]
    ends = min(drawn) / ROOM, max(drawn) * ROOM
    x = {
        "type": "quantitative", "title": "change, with its interval (axis of logarithms)",
        "scale": {"type": "log", "domain": list(ends), "nice": False},
        "axis": {"labelExpr": AS_PERCENT, "values": ticks(*ends)},
    }  # fmt: skip
    layers: list[dict[str, Any]] = []
    if margin is not None:
        band = {"values": [{"low": _ratio(margin[0]), "high": _ratio(margin[1])}]}
        layers.append(
            {"data": band, "mark": {"type": "rect", "color": BAND},
             "encoding": {"x": {"field": "low", **x}, "x2": {"field": "high"}}}
        )  # fmt: skip
    layers += [
        {"data": {"values": [{"zero": 1}]}, "mark": {"type": "rule", "color": ALERT, "strokeDash": [4, 3]},
         "encoding": {"x": {"field": "zero", **x}}},
        {"mark": {"type": "rule", "strokeWidth": 2},
         "encoding": {"y": y, "x": {"field": "low", **x}, "x2": {"field": "high"}, "color": _colour("colour")}},
        {"mark": {"type": "point", "size": 60, "strokeWidth": 2, "opacity": 1},
         "encoding": {"y": y, "x": {"field": "value", **x}, "color": _colour("colour"), "fill": _colour("fill")}},
        {"mark": {"type": "text", "align": "left", "dx": 8, "color": MUTED, "fontSize": 11},
         "encoding": {"y": y, "x": {"field": "high", **x}, "text": {"field": "verdict"}}},
    ]  # fmt: skip
    heading = {"text": title, "subtitle": caption.split("\n"), "anchor": "start", "subtitleColor": MUTED}
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        **({"title": heading} if title else {}),
        "width": width, "height": {"step": NARROW_HEIGHT if narrow else ROW_HEIGHT}, "data": {"values": values},
        "layer": layers, "config": config(),
    }  # fmt: skip


def _ratio(percent: float) -> float:
    """Where a change lies on an axis on which twice and half are as far from none."""
    return max(1 + percent / 100, LEAST_RATIO)


def ticks(low: float, high: float) -> list[float]:
    """Round changes between two ratios, no change always among them, none closer to another than TICK_GAP of it all."""
    gap = TICK_GAP * math.log(high / low)
    found = [1.0]
    for ratio in (one for one in ROUND if low <= one <= high):
        if all(abs(math.log(ratio / other)) >= gap for other in found):
            found.append(ratio)
    return sorted(found)


def _colour(field: str) -> dict[str, Any]:
    return {"field": field, "type": "nominal", "scale": None, "legend": None}


def refuse_other(path: Path) -> None:
    """Raises StudyError for another suffix than svg, png, pdf."""
    if path.suffix.lower() not in SUFFIXES:
        raise StudyError(
            f"--figure {path}: no picture of this kind", "name it .svg, .png or .pdf",
            key="--figure", read=path.suffix, allowed=SUFFIXES,
        )  # fmt: skip


def write(chart: dict[str, Any], path: Path) -> None:
    """Write the chart as its suffix says. Raises StudyError for another suffix than svg, png, pdf."""
    refuse_other(path)
    drawing = svg.draw({**chart, **ON_PAPER})
    path.parent.mkdir(parents=True, exist_ok=True)
    match path.suffix.lower():
        case ".svg":
            path.write_text(drawing, encoding="utf-8")
        case ".png":
            path.write_bytes(vl_convert.svg_to_png(drawing, scale=PNG_SCALE))
        case _:
            path.write_bytes(vl_convert.svg_to_pdf(drawing))
