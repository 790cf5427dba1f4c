"""Forest plot: relative changes with their intervals, one per row, with the line of no change."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from steelyard.analysis.comparisons.judgement import shown
from steelyard.analysis.comparisons.two_sided import limits_percent
from steelyard.analysis.inference.multiplicity import DECIDED
from steelyard.analysis.treatments import label
from steelyard.format import MINUS, confidence_text, number
from steelyard.model.errors import StudyError
from steelyard.model.responses import label_of, unit_of
from steelyard.reading.comparison import Comparison
from steelyard.report.basics.theme import ALERT, BAND, INK, MUTED, SERIES
from steelyard.report.draw import files, marks
from steelyard.report.draw.axes import Axis, foot_px, x_axis
from steelyard.report.draw.files import SUFFIXES
from steelyard.report.draw.plot import WIDE_PX
from steelyard.report.draw.scales import Domain, Scale
from steelyard.report.draw.svg import Element, Picture, fitted, place, text, text_px, titled

ROW_PX: Final = 26
NARROW_ROW_PX: Final = 38
LABEL_SHARE: Final = 0.5
"""Largest share of the picture's width for labels."""
BESIDE_PX: Final = 10
"""Gap between the axis and the words at both sides."""
LINE_PX, SINK_PX, EDGE_PX, POINT_PX = 13.0, 3.5, 4.0, 4.0
AXIS_TITLE: Final = "change, with its interval (log scale)"
DECIDED_COLOUR: Final = SERIES[0]
LEAST_RATIO: Final = 1e-4
"""Smaller ratios are drawn at this value."""
HALF, DOUBLE = 0.5, 2.0
"""An axis beyond these ratios has multiples, not percentages."""
ROOM: Final = 1.03
TICK_GAP: Final = 0.11
TICK_PX: Final = 48
ROUND: Final = (
    2.0, 0.5, 10.0, 0.1, 100.0, 0.01, 5.0, 0.2, 1000.0, 0.001, 1.2, 0.8, 1.1, 0.9, 1.05, 0.95, 1.02, 0.98, 1.01, 0.99,
)  # fmt: skip
"""Candidate ticks of the axis, most wanted first."""


@dataclass(frozen=True)
class ForestRow:
    """One change in percent; `low` and `high` are None without an interval."""

    label: str
    value: float
    low: float | None
    high: float | None
    verdict: str
    decided: bool


def write_comparison(comparison: Comparison, path: Path) -> None:
    """Draw a comparison, a row for each cell, into a file of the kind that its name says. Raises as `write` does."""
    a, b = comparison.a, comparison.b
    rows = [
        ForestRow(
            label=label(contrast.cell) if contrast.cell else f"{b.name} against {a.name}",
            value=contrast.change_percent.value,
            low=contrast.change_percent.low,
            high=contrast.change_percent.high,
            verdict=shown(contrast.verdict, survives_holm=contrast.survives_holm, final=contrast.final),
            decided=contrast.verdict in DECIDED,
        )
        for contrast in comparison.contrasts
    ]
    first = comparison.contrasts[0]
    starts = sorted({count for contrast in comparison.contrasts for count in (contrast.starts_a, contrast.starts_b)})
    caption = (
        f"{b.name} against {a.name}\n{confidence_text(first.ratio.confidence)} intervals over starts "
        f"({' or '.join(str(count) for count in starts)} a side); unit of the values: {unit_of(first.response)}"
    )
    margin = None if comparison.margin_percent is None else limits_percent(comparison.margin_percent)
    write(rows, margin, f"Change of {label_of(first.response)}", caption, path)


def picture(
    rows: Sequence[ForestRow], margin: tuple[float, float] | None, *, width: float = WIDE_PX, narrow: bool = False
) -> Picture:
    """One row per change: a point with its interval, hollow if undecided, and its verdict. Nothing is estimated here.
    `margin` in percent is shaded; `narrow` breaks labels at their colon."""
    drawn = [_ratio(end) for row in rows for end in (row.value, row.low, row.high) if end is not None]
    drawn += [1.0, *map(_ratio, margin or ())]
    percent = min(drawn) >= HALF and max(drawn) <= DOUBLE
    domain = Domain(min(drawn) / ROOM, max(drawn) * ROOM, "log")
    labels = [_lines(row.label, width * LABEL_SHARE, narrow) for row in rows]
    left = max(text_px(line) for lines in labels for line in lines) + BESIDE_PX
    right = width - max(text_px(row.verdict) for row in rows) - BESIDE_PX
    height = NARROW_ROW_PX if narrow else ROW_PX
    bottom = len(rows) * height + 2 * EDGE_PX
    scale = Scale(domain, left, right)
    values = ticks(domain.low, domain.high, max(TICK_GAP, TICK_PX / (right - left)))
    x = Axis(domain, AXIS_TITLE, tuple((value, as_change(value, percent=percent)) for value in values), fixed=True)
    elements: list[Element | None] = []
    if margin is not None:
        low, high = (scale.of(_ratio(end)) for end in margin)
        elements.append(marks.rectangle(low, EDGE_PX, high, bottom, BAND))
    elements += x_axis(x, scale, bottom)
    elements.append(marks.line([(scale.of(1.0), EDGE_PX), (scale.of(1.0), bottom)], ALERT, width=1.25, dash="4 3"))
    for index, (row, lines) in enumerate(zip(rows, labels, strict=True)):
        elements += _row(row, lines, EDGE_PX + (index + 0.5) * height, scale)
    return Picture(width, bottom + foot_px(x, scale), tuple(one for one in elements if one is not None))


def _row(row: ForestRow, lines: Sequence[str], y: float, scale: Scale) -> list[Element | None]:
    """Label at the left; verdict in its own column at the right, so that no interval covers it."""
    colour = DECIDED_COLOUR if row.decided else MUTED
    low, at, high = (scale.of(_ratio(row.value if end is None else end)) for end in (row.low, row.value, row.high))
    ends = "" if row.low is None or row.high is None else f" [{number(row.low)}, {number(row.high)}]"
    point = [marks.symbol("circle", at, y, POINT_PX, tip=f"{row.label} · {number(row.value)}%{ends} · {row.verdict}")]
    upper = y + SINK_PX - LINE_PX * (len(lines) - 1) / 2
    return [
        *(
            text(scale.first_px - BESIDE_PX, upper + LINE_PX * index, line, anchor="end", fill=INK)
            for index, line in enumerate(lines)
        ),
        marks.path(f"M{place(low)},{place(y)}H{place(high)}", colour, width=2),
        marks.filled(point, colour) if row.decided else marks.hollow(point, colour, width=2),
        text(scale.last_px + BESIDE_PX, y + SINK_PX, row.verdict, fill=MUTED),
    ]


def _lines(words: str, room_px: float, narrow: bool) -> list[str]:
    return [fitted(line, room_px) for line in (words.split(": ") if narrow else [words])]


def as_change(ratio: float, *, percent: bool) -> str:
    """A ratio as a change, in the one unit of its axis: percent if all of it lies from half to double, otherwise
    multiples: `+20%`, `10×`, `0.01×`."""
    if percent and ratio == 1:
        return "0%"
    if percent:
        return f"{MINUS if ratio < 1 else '+'}{number(abs(100 * (ratio - 1)), digits=3, trim=True)}%"
    return f"{number(ratio, digits=3, trim=True)}×"


def _ratio(percent: float) -> float:
    """A change in percent as a ratio, for the logarithmic axis."""
    return max(1 + percent / 100, LEAST_RATIO)


def ticks(low: float, high: float, share: float = TICK_GAP) -> list[float]:
    """Round ratios between two ends, always with 1 (no change), at least a share of the axis apart."""
    gap = share * math.log(high / low)
    chosen = [1.0]
    for ratio in (one for one in ROUND if low <= one <= high):
        if all(abs(math.log(ratio / other)) >= gap for other in chosen):
            chosen.append(ratio)
    return sorted(chosen)


def refuse_other(path: Path) -> None:
    """Raises StudyError if the suffix is not svg, png or pdf."""
    if path.suffix.lower() not in SUFFIXES:
        raise StudyError(
            f"--figure {path}: no picture of this kind", "name it .svg, .png or .pdf",
            key="--figure", read=path.suffix, allowed=SUFFIXES,
        )  # fmt: skip


def write(rows: Sequence[ForestRow], margin: tuple[float, float] | None, title: str, caption: str, path: Path) -> None:
    """Write the picture with its title and caption in the format of the suffix. Raises StudyError if it is not one of
    `SUFFIXES`."""
    refuse_other(path)
    files.write(titled(picture(rows, margin), title, caption.split("\n"), (INK, MUTED)), path)
