"""The look of every picture, said once: colours that the colour-blind can tell apart, markers and dashes beside them.

The colours written into a chart are those of the light theme. The page swaps each for a CSS variable (see `svg`), so
one picture serves both themes, while a picture saved as a file needs no style sheet.
"""

from __future__ import annotations

from typing import Any, Final

INK: Final = "#1b2330"
MUTED: Final = "#5b6675"
GRID: Final = "#e4e7ec"
PAPER: Final = "#fefefe"
ALERT: Final = "#b3251d"
BAND: Final = "#f1f3f6"

SERIES: Final = ("#0072b2", "#d25a00", "#008f68", "#b04f8a", "#b98500", "#4a7fd6", "#6c7480")
"""Okabe and Ito's palette (2008), a little darker so that thin lines reach a contrast of 3:1 on white; yellow is left
out for the same reason."""

SERIES_DARK: Final = ("#4aaee8", "#f5873f", "#34c79b", "#e093c3", "#efbc4a", "#93b8f7", "#a7b0bd")

SHAPES: Final = ("circle", "square", "triangle-up", "diamond", "triangle-down", "triangle-right", "cross")
DASHES: Final = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [4, 2], [10, 3], [1, 3])
MAX_LINES: Final = len(SERIES)
"""With more lines than this a chart becomes small multiples."""

VARIABLES: Final = {
    INK: "--ink",
    MUTED: "--muted",
    GRID: "--grid",
    PAPER: "--paper",
    ALERT: "--alert",
    BAND: "--band",
    **{colour: f"--s{index}" for index, colour in enumerate(SERIES, start=1)},
}
"""Light colour to the page's variable."""

FONT: Final = "Helvetica Neue, Arial, Liberation Sans, sans-serif"


def config() -> dict[str, Any]:
    """Vega-Lite's `config`: no frame, thin grid, horizontal titles, quiet axes."""
    return {
        "background": "transparent",
        "font": FONT,
        "view": {"stroke": None},
        "padding": {"left": 2, "right": 6, "top": 4, "bottom": 2},
        "axis": {
            "labelColor": MUTED,
            "labelFontSize": 11,
            "titleColor": MUTED,
            "titleFontSize": 11,
            "titleFontWeight": "normal",
            "titlePadding": 6,
            "gridColor": GRID,
            "domainColor": MUTED,
            "tickColor": MUTED,
            "tickSize": 4,
            "labelPadding": 4,
        },
        "axisX": {"grid": False},
        "axisY": {
            "domain": False,
            "ticks": False,
            "titleAngle": 0,
            "titleAlign": "left",
            "titleAnchor": "start",
            "titleBaseline": "bottom",
            "titleX": 0,
            "titleY": -10,
        },
        "legend": {
            "orient": "top",
            "direction": "horizontal",
            "titleColor": MUTED,
            "titleFontSize": 11,
            "titleFontWeight": "normal",
            "titleOrient": "left",
            "titlePadding": 8,
            "labelColor": INK,
            "labelFontSize": 11,
            "symbolSize": 60,
            "symbolStrokeWidth": 2,
            "columnPadding": 14,
            "offset": 22,
        },
        "title": {
            "color": INK,
            "fontSize": 12,
            "fontWeight": 600,
            "anchor": "start",
            "frame": "group",
            "offset": 22,
        },
        "header": {"labelColor": INK, "titleColor": MUTED, "labelFontSize": 12},
        "line": {"strokeWidth": 1.75},
        "point": {"strokeWidth": 1.5, "size": 42},
        "rule": {"color": INK, "strokeWidth": 1.25},
        "text": {"color": INK, "fontSize": 11},
    }
