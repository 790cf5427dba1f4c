"""Marks of a plot: points, lines, bands and bars at pixel coordinates.

The page's zoom moves marks of fixed size (`circle`, `text`, and `path` with `transform`) and stretches every other path
and rectangle. It leaves stroke widths, unless the width is a quantity (`data-grows`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from steelyard.report.basics.theme import PAPER
from steelyard.report.draw.svg import Element, element, group, place

Place = tuple[float, float]
LINE: Final = 1.75
LONE_PX: Final = 1.5
OUTLINES: Final = {
    "square": ((-0.89, -0.89), (0.89, -0.89), (0.89, 0.89), (-0.89, 0.89)),
    "triangle-up": ((0, -1.15), (1.1, 0.85), (-1.1, 0.85)),
    "triangle-down": ((0, 1.15), (1.1, -0.85), (-1.1, -0.85)),
    "triangle-right": ((1.15, 0), (-0.85, 1.1), (-0.85, -1.1)),
    "diamond": ((0, -1.25), (1.1, 0), (0, 1.25), (-1.1, 0)),
    "cross": (
        (-0.4, -1.1), (0.4, -1.1), (0.4, -0.4), (1.1, -0.4), (1.1, 0.4), (0.4, 0.4), (0.4, 1.1), (-0.4, 1.1),
        (-0.4, 0.4), (-1.1, 0.4), (-1.1, -0.4), (-0.4, -0.4),
    ),
}  # fmt: skip
"""Corners of each marker at radius 1; the circle has none."""


def symbol(shape: str, x: float, y: float, radius: float, *, tip: str | None = None) -> Element:
    """A marker of about the same weight for every shape."""
    if shape == "circle":
        return element("circle", cx=place(x), cy=place(y), r=radius, data_tip=tip)
    corners = " ".join(f"{place(dx * radius)},{place(dy * radius)}" for dx, dy in OUTLINES[shape])
    return element("path", d=f"M{corners}Z", transform=f"translate({place(x)},{place(y)})", data_tip=tip)


def filled(marks: Iterable[Element], colour: str, opacity: float | None = None) -> Element:
    """Markers of one colour."""
    return group(marks, fill=colour, fill_opacity=opacity)


def hollow(marks: Iterable[Element], colour: str, width: float = 1.5) -> Element:
    """Markers that are an outline only."""
    return group(marks, fill=PAPER, stroke=colour, stroke_width=width)


def path(d: str, colour: str, *, width: float = LINE, dash: str = "", opacity: float | None = None) -> Element | None:
    """A stroke along a path; None if the path is empty."""
    if not d:
        return None
    return element(
        "path", d=d, stroke=colour, stroke_width=None if width == 1 else width, stroke_dasharray=dash or None,
        stroke_opacity=opacity,
    )  # fmt: skip


def line(
    places: Iterable[Place | None], colour: str, *, width: float = LINE, dash: str = "", opacity: float | None = None
) -> Element | None:
    """A line through places; None breaks it. A lone place becomes a short dash, so that it is visible."""
    pieces: list[str] = []
    run: list[Place] = []
    for at in (*places, None):
        if at is not None:
            run.append(at)
            continue
        if len(run) == 1:
            pieces.append(f"M{place(run[0][0] - LONE_PX)},{place(run[0][1])}h{place(2 * LONE_PX)}")
        elif run:
            pieces.append("M" + "L".join(f"{place(x)},{place(y)}" for x, y in run))
        run = []
    if not pieces:
        return None
    return element(
        "path", d="".join(pieces), stroke=colour, stroke_width=width, stroke_dasharray=dash or None,
        stroke_opacity=opacity, stroke_linecap=None if dash else "round", stroke_linejoin="round",
    )  # fmt: skip


def steps(places: Sequence[Place], colour: str, *, width: float = 1.25, dash: str = "") -> Element | None:
    """A step line: each value holds back to the previous place, as a reading covers the second before it."""
    if not places:
        return None
    level = place(places[0][1])
    pieces = [f"M{place(places[0][0])},{level}"]
    for x, y in places[1:]:
        pieces.append("" if place(y) == level else f"V{place(y)}")
        level = place(y)
        pieces.append(f"H{place(x)}")
    return path("".join(pieces), colour, width=width, dash=dash)


def band(ends: Sequence[tuple[float, float, float]], colour: str, opacity: float) -> Element | None:
    """The area between two lines: x, low and high of each place."""
    if len(ends) < 2:
        return None
    there = "L".join(f"{place(x)},{place(high)}" for x, _, high in ends)
    back = "L".join(f"{place(x)},{place(low)}" for x, low, _ in reversed(ends))
    return element("path", d=f"M{there}L{back}Z", fill=colour, fill_opacity=opacity)


def uprights(ends: Iterable[tuple[float, float, float]], colour: str, *, width: float) -> Element | None:
    """Upright strokes, as of intervals: x, low and high of each."""
    return path("".join(f"M{place(x)},{place(low)}V{place(high)}" for x, low, high in ends), colour, width=width)


def shaded(pieces: Sequence[str], colour: str, *, width: float, opacity: float) -> Element | None:
    """Pieces of path as one path whose stroke width is a quantity: the cells of a heat map."""
    if not pieces:
        return None
    return element("path", d="".join(pieces), stroke=colour, stroke_width=width, opacity=opacity, data_grows="")


def rectangle(left: float, top: float, right: float, bottom: float, fill: str) -> Element:
    """A filled rectangle."""
    size = {"width": place(max(right - left, 0.0)), "height": place(max(bottom - top, 0.0))}
    return element("rect", x=place(left), y=place(top), **size, fill=fill)
