"""From a Vega-Lite chart to an SVG that lives in the page: small, themed, and the same for every reader.

A picture is drawn once, when the report is made; the page needs no script to show or to print it.
"""

from __future__ import annotations

import re
from typing import Any, Final
from xml.etree import ElementTree

import vl_convert

from steelyard.report.basics import zoom
from steelyard.report.basics.theme import VARIABLES

SVG_NAMESPACE: Final = "http://www.w3.org/2000/svg"
PNG_SCALE: Final = 3.0
"""Pixels of a PNG for each point of the figure."""
ON_PAPER: Final = {"background": "white", "padding": 8}
"""A file is looked at on any ground; the page brings its own."""
_CIRCLE = re.compile(r"M([\d.]+),0A\1,\1,0,1,1,-\1,0A\1,\1,0,1,1,\1,0")
_NUMBER = re.compile(r"-?\d+\.\d{2,}(?:e-?\d+)?")
_DROPPED = (
    "role",
    "aria-roledescription",
    "aria-hidden",
    "font-family",
    "pointer-events",
    "cursor",
    "stroke-miterlimit",
    "class",
)
_MARKS = ("mark", "point", "circle", "rule", "bar", "line", "tick", "square")
_DEFAULTS: Final = {
    "opacity": "1",
    "stroke-width": "1",
    "stroke-dasharray": "1,0",
    "font-weight": "normal",
    "font-size": "11px",
    "text-anchor": "start",
    "transform": "translate(0,0)",
}
"""What an element need not say: the defaults of SVG, and the size of text that the page sets for all charts."""

_EMPTY_PATHS = ("", "M0,0h0v0h0Z")
_COLOURED = ("fill", "stroke")
_GEOMETRY = ("d", "transform", "x", "y", "x1", "x2", "y1", "y2", "width", "height", "viewBox")


def draw(chart: dict[str, Any] | str) -> str:
    """Draw a Vega-Lite specification as an SVG with the light theme's colours, fit to be saved as a file.

    What is an SVG already stays as it is.
    """
    return chart if isinstance(chart, str) else str(vl_convert.vegalite_to_svg(chart))


def inline(drawing: str, *, title: str, identity: str) -> str:
    """Make a drawing part of the page: colours become variables, fonts the page's, empty elements vanish.

    `title` is what a screen reader says; `identity` is the element's id, which must be unique in the page. The words
    that the chart gives to a mark (Vega-Lite's `description`) stay as `data-tip`, which the page shows on hover.
    """
    root = ElementTree.fromstring(drawing)
    zoom.mark_axes(root)
    _strip(root)
    zoom.mark_marks(root)
    for element in root.iter():
        element.tag = element.tag.replace(f"{{{SVG_NAMESPACE}}}", "")
    width, height = root.get("width", "0"), root.get("height", "0")
    root.attrib = {
        "class": "chart",
        "width": width,
        "height": height,
        "font-size": "11px",
        "fill": "none",
        "viewBox": root.get("viewBox", f"0 0 {width} {height}"),
        "role": "img",
        "aria-labelledby": identity,
    }
    label = ElementTree.Element("title", {"id": identity})
    label.text = title
    root.insert(0, label)
    return ElementTree.tostring(root, encoding="unicode")


def _strip(element: ElementTree.Element) -> None:
    """Remove what nobody sees, depth first: empty elements, groups that do nothing, default values; swap colours."""
    kept: list[ElementTree.Element] = []
    for child in element:
        _strip(child)
        if _local(child) == "g" and not child.attrib:
            kept += list(child)
        elif not _is_empty(child):
            kept.append(child)
    element[:] = kept
    attributes = element.attrib
    words = attributes.pop("aria-label", None)
    if words and attributes.get("aria-roledescription") in _MARKS:
        attributes["data-tip"] = words
    for name in _DROPPED:
        attributes.pop(name, None)
    for name in _COLOURED:
        colour = attributes.get(name)
        if colour in VARIABLES:
            attributes[name] = f"var({VARIABLES[colour]})"
    for name in _GEOMETRY:
        if name in attributes:
            attributes[name] = _NUMBER.sub(_shorter, attributes[name])
    _round(element)
    for name, value in _DEFAULTS.items():
        if attributes.get(name) == value:
            del attributes[name]
    if "stroke" not in attributes:
        attributes.pop("stroke-width", None)


def _round(element: ElementTree.Element) -> None:
    """A path that is a circle becomes one, which takes a third of the room."""
    circle = _CIRCLE.fullmatch(element.get("d", ""))
    if circle:
        element.tag = "circle"
        element.set("r", circle.group(1))
        del element.attrib["d"]


def _local(element: ElementTree.Element) -> str:
    return element.tag.rpartition("}")[2]


def _is_empty(element: ElementTree.Element) -> bool:
    if element.get("display") == "none":
        return True
    if _local(element) == "g":
        return len(element) == 0
    if _local(element) == "path":
        unseen = all(element.get(name) in (None, "none", "transparent") for name in _COLOURED)
        return unseen or element.get("d", "") in _EMPTY_PATHS
    return False


def _shorter(match: re.Match[str]) -> str:
    text = f"{float(match.group()):.1f}".removesuffix(".0")
    return "0" if text == "-0" else text
