"""Pictures drawn by hand where Vega-Lite would be slow or large: many lines and thousands of cells, as a few paths.

The text that comes out is a whole SVG in the light theme's colours, as `svg.draw` gives it, so that it goes into the
page and into files the same way.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Final

from steelyard.format import number
from steelyard.report.basics.theme import FONT, GRID, MUTED

Place = tuple[float, float]
TEXT_PX: Final = 11
MANTISSAS: Final = (1.0, 2.0, 5.0)
MOST_LOG_TICKS: Final = 7


@dataclass(frozen=True)
class Axis:
    """From a quantity to a place in the picture; `log` axes need both ends above 0."""

    low: float
    high: float
    first_px: float
    last_px: float
    log: bool = False

    def of(self, value: float) -> float:
        """Place of a value, in pixels; values beyond an end are set to the end."""
        inside = min(max(value, self.low), self.high)
        if self.log:
            share = math.log(inside / self.low) / (math.log(self.high / self.low) or 1.0)
        else:
            share = (inside - self.low) / ((self.high - self.low) or 1.0)
        return self.first_px + share * (self.last_px - self.first_px)

    def ticks(self, most: int = 5) -> tuple[float, ...]:
        """Round values within the axis, at most about `most` of them."""
        if self.log:
            found = [mantissa * 10.0**power for power in range(-6, 10) for mantissa in MANTISSAS]
            inside = [tick for tick in found if self.low <= tick <= self.high]
            if len(inside) > MOST_LOG_TICKS:
                inside = [tick for tick in inside if f"{tick:e}".startswith("1")]
            return tuple(inside)
        raw = (self.high - self.low) / most or 1.0
        power = 10.0 ** math.floor(math.log10(raw))
        steps = [mantissa * power for mantissa in (*MANTISSAS, 10.0)]
        step = next((step for step in steps if step >= raw), raw)
        if step > self.high - self.low:
            # Else 0 could stand alone, and an axis with one number has no scale.
            step = max((one for one in steps if one <= self.high - self.low), default=step)
        first = math.ceil(self.low / step)
        return tuple(step * index for index in range(first, math.floor(self.high / step + 1e-9) + 1))


@dataclass
class Drawing:
    """An SVG in the making."""

    width: float
    height: float
    parts: list[str] = field(default_factory=list)

    def path(self, places: Iterable[Place | None], colour: str, *, width: float = 1.75, dash: str = "") -> None:
        """A line through places; None breaks it. A place that stands alone becomes a dot."""
        found, run = [], 0
        for place in (*places, None):
            if place is None:
                found += ["h0"] if run == 1 else []
                run = 0
                continue
            found.append(f"{'L' if run else 'M'}{place[0]:.1f},{place[1]:.1f}")
            run += 1
        dashes = f' stroke-dasharray="{dash}"' if dash else ""
        if found:
            self.parts.append(
                f'<path d="{"".join(found)}" stroke="{colour}" stroke-width="{width:g}" '
                f'stroke-linecap="{"butt" if dash else "round"}" stroke-linejoin="round"{dashes}/>'
            )

    def steps(self, places: Sequence[Place], colour: str, *, width: float = 1.25, dash: str = "") -> None:
        """A line that holds each value back to the place before it, as readings of the second before do."""
        if places:
            first, rest = places[0], places[1:]
            found, level = [f"M{first[0]:.1f},{first[1]:.1f}"], f"{first[1]:.1f}"
            for x, y in rest:
                found.append("" if f"{y:.1f}" == level else f"V{y:.1f}")
                level = f"{y:.1f}"
                found.append(f"H{x:.1f}")
            dashes = f' stroke-dasharray="{dash}"' if dash else ""
            self.parts.append(f'<path d="{"".join(found)}" stroke="{colour}" stroke-width="{width:g}"{dashes}/>')

    def bars(self, pieces: Sequence[str], colour: str, *, width: float, opacity: float = 1.0) -> None:
        """Upright strokes of one width, each a piece of path: how a heat map's cells become one path."""
        if pieces:
            self.parts.append(
                f'<path d="{"".join(pieces)}" stroke="{colour}" stroke-width="{width:.2f}" opacity="{opacity:g}" '
                'data-grows=""/>'
            )

    def rectangle(self, left: float, top: float, right: float, bottom: float, colour: str) -> None:
        """A filled rectangle."""
        self.parts.append(
            f'<rect x="{left:.1f}" y="{top:.1f}" width="{max(right - left, 0.0):.1f}" '
            f'height="{max(bottom - top, 0.0):.1f}" fill="{colour}"/>'
        )

    def text(self, x: float, y: float, words: str, *, anchor: str = "start", colour: str = MUTED) -> None:
        """One line of text."""
        self.parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{TEXT_PX}px" '
            f'fill="{colour}">{escape(words)}</text>'
        )

    def marks(self, left: float, top: float, right: float, bottom: float) -> None:
        """Begin a group of marks that the page's zoom may stretch within this rectangle; `done` ends it."""
        self.parts.append(f'<g data-marks="{left:g} {top:g} {right - left:g} {bottom - top:g}">')

    def done(self) -> None:
        """End a group of marks."""
        self.parts.append("</g>")

    def rules(self, pieces: Iterable[tuple[float, float, float, float]], colour: str) -> None:
        """Thin straight lines of one colour, each from one place to another."""
        found = "".join(f"M{x:.1f},{y:.1f}L{to_x:.1f},{to_y:.1f}" for x, y, to_x, to_y in pieces)
        if found:
            self.parts.append(f'<path d="{found}" stroke="{colour}"/>')

    def y_axis(self, axis: Axis, left: float, right: float, title: str, *, most: int = 4) -> None:
        """Grid, numbers at the left, and the title above."""
        ticks = axis.ticks(most)
        self.rules(((left, axis.of(tick), right, axis.of(tick)) for tick in ticks), GRID)
        for tick in ticks:
            self.text(left - 5, axis.of(tick) + 3.5, number(tick, trim=True), anchor="end")
        self.text(0, min(axis.first_px, axis.last_px) - 8, title)

    def x_axis(self, axis: Axis, y: float, title: str, *, most: int = 8) -> None:
        """Line, numbers and title at the foot."""
        ticks = axis.ticks(most)
        self.rules([(axis.first_px, y, axis.last_px, y)], MUTED)
        scale = f"x linear {axis.low:g} {axis.high:g} {axis.first_px:g} {axis.last_px:g}"
        self.parts.append(f'<g data-axis="{scale}"><g data-part="tick">')
        self.parts += [
            f'<line transform="translate({axis.of(tick):.1f},{y:.1f})" y2="4" stroke="{MUTED}"/>' for tick in ticks
        ]
        self.parts.append('</g><g data-part="label">')
        self.parts += [
            f'<text transform="translate({axis.of(tick):.1f},{y + 16:.1f})" text-anchor="middle" '
            f'font-size="{TEXT_PX}px" fill="{MUTED}">{number(tick, trim=True)}</text>'
            for tick in ticks
        ]
        self.parts.append("</g></g>")
        self.text((axis.first_px + axis.last_px) / 2, y + 32, title, anchor="middle")

    def svg(self) -> str:
        """The whole picture."""
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{self.width:g}" height="{self.height:g}" '
            f'viewBox="0 0 {self.width:g} {self.height:g}" font-family="{FONT}" fill="none">'
            f"{''.join(self.parts)}</svg>"
        )
