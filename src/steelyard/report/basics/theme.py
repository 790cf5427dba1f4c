"""Theme of the figures: a palette for colour-blind readers, markers and dash patterns.

Drawing code names the colours of the light theme. In the page each is a CSS variable (see `draw.svg`), so that one
picture serves both themes; a picture saved as a file needs no style sheet.
"""

from __future__ import annotations

from typing import Final

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
DASHES: Final = ("", "6 3", "2 2", "8 3 2 3", "4 2", "10 3", "1 3")
MAX_LINES: Final = len(SERIES)
"""A chart with more lines than this becomes small multiples."""

VARIABLES: Final = {
    INK: "--ink",
    MUTED: "--muted",
    GRID: "--grid",
    PAPER: "--paper",
    ALERT: "--alert",
    BAND: "--band",
    **{colour: f"--s{index}" for index, colour in enumerate(SERIES, start=1)},
}
"""Colour of the light theme to the page's CSS variable."""

FONT: Final = "Helvetica Neue, Arial, Liberation Sans, sans-serif"
