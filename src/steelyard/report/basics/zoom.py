"""What the page's zoom needs to know of a drawing: where its axes lie, what they measure, which marks may stretch.

The page zooms by moving marks, never by stretching text: so axes are drawn anew from what is written here.
"""

from __future__ import annotations

import math
import re
from typing import Final
from xml.etree import ElementTree

DIGITS: Final = 12
DAY_S: Final = 86_400.0
FIXED: Final = "fixed 0 1"
_PLOT = re.compile(r"M0,0h([\d.]+)v([\d.]+)h-[\d.]+Z")
_PLACE = re.compile(r"translate\((-?[\d.]+),(-?[\d.]+)\)")
_CLOCK = re.compile(r"(\d\d):(\d\d)(?::(\d\d))?")
_AXIS_PARTS: Final = {"role-axis-grid": "grid", "role-axis-tick": "tick", "role-axis-label": "label"}
LABEL_BELOW_PX: Final = 3.0
"""How far below its place on a y axis the baseline of a label is."""


def mark_axes(root: ElementTree.Element) -> None:
    """Say of each axis of a Vega chart, as `data-axis`, what the page's zoom needs to draw it anew: x or y, the scale,
    the values at both ends, the pixels of both ends. `fixed` axes keep their labels."""
    frame = next((one for one in root.iter() if "role-frame" in one.get("class", "")), None)
    plot = next((size for one in frame.iter() if (size := _PLOT.fullmatch(one.get("d", "")))), None) if frame else None
    if frame is None or plot is None:
        return
    width, height = float(plot.group(1)), float(plot.group(2))
    frame.set("data-plot", f"{width:g} {height:g}")
    for axis in frame.iter():
        if "role-axis" not in axis.get("class", "").split():
            continue
        spoken, parts = axis.get("aria-label", ""), [one.get("class", "") for one in axis.iter()]
        grid = any("role-axis-grid" in one for one in parts)
        across = spoken.startswith("X-axis") or (not spoken and not grid)
        for one in axis.iter():
            part = next((name for role, name in _AXIS_PARTS.items() if role in one.get("class", "").split()), "")
            if part:
                one.set("data-part", part)
        scale = FIXED
        labels = [one for one in axis.iter() if "role-axis-label" in one.get("class", "").split()]
        if labels:
            scale = _scale(labels[0], across, width if across else height, log="log scale" in spoken)
        elif not across:
            scale = "grid 0 1"
        ends = f"0 {width:g}" if across else f"{height:g} 0"
        axis.set("data-axis", f"{'x' if across else 'y'} {scale} {ends}")


def _scale(labels: ElementTree.Element, across: bool, length: float, *, log: bool) -> str:
    """The scale and the values at both ends of an axis, from its labels; axes of words and levels are fixed."""
    found: list[tuple[float, float]] = []
    clock = False
    for one in labels:
        value, is_time = _said(one.text or "")
        clock = clock or is_time
        place = _PLACE.search(one.get("transform", ""))
        if value is None or place is None:
            return FIXED
        at = float(place.group(1)) if across else length - float(place.group(2)) + LABEL_BELOW_PX
        earlier = found[-1][1] if is_time and found else 0.0
        found.append((at, value + DAY_S * (earlier // DAY_S + (value < earlier % DAY_S))))
    if len(found) < 2 or (across and not clock) or found[0][0] == found[-1][0]:
        return FIXED
    (first_px, first), (last_px, last) = found[0], found[-1]
    if log and first > 0 and last > 0:
        step = math.log(last / first) / (last_px - first_px)
        ends = [first * math.exp(step * (at - first_px)) for at in (0.0, length)]
    else:
        step = (last - first) / (last_px - first_px)
        ends = [first + step * (at - first_px) for at in (0.0, length)]
    kind = "clock" if clock else "log" if log else "linear"
    return f"{kind} {ends[0]:.{DIGITS}g} {ends[1]:.{DIGITS}g}"


def _said(text: str) -> tuple[float | None, bool]:
    """The value of a label, and whether it is a time of day (then in seconds)."""
    time = _CLOCK.fullmatch(text)
    if time is not None:
        hours, minutes, seconds = (int(one or 0) for one in time.groups())
        return 3600.0 * hours + 60.0 * minutes + seconds, True
    try:
        return float(text.replace(",", "").replace("−", "-")), False
    except ValueError:
        return None, False


def mark_marks(root: ElementTree.Element) -> None:
    """Put the marks of a Vega chart into one group with the size of the plot, so that the zoom can clip them, and its
    words, which may stand beside the plot, into another."""
    for frame in root.iter():
        plot = frame.attrib.pop("data-plot", None)
        if plot is None:
            continue
        axes = [one for one in frame if one.get("data-axis")]
        marks = ElementTree.Element("g", {"data-marks": f"0 0 {plot}"})
        marks.extend(one for one in frame if not one.get("data-axis") and one.tag.rpartition("}")[2] != "text")
        words = ElementTree.Element("g", {"data-marks": f"0 0 {plot}", "data-words": ""})
        words.extend(one for one in frame if not one.get("data-axis") and one not in marks)
        frame[:] = [*axes, marks, words] if len(words) else [*axes, marks]
