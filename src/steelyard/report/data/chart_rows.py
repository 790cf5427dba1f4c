"""Rows that several figures draw: trials as dots, curves of laws, words for captions and keys."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from steelyard.analysis.results import UNITS, LawFit, Point, label
from steelyard.format import Scale, number
from steelyard.report.basics.theme import DASHES, MAX_LINES, SERIES, SHAPES
from steelyard.report.data.presentation import Key, View
from steelyard.report.draw import charts

Row = dict[str, Any]

WIDE_PX: Final = 740
NARROW_PX: Final = 290
LABEL_PX: Final = 90
"""Room that the names at the ends of lines take."""


def tip(*parts: str) -> str:
    """What is said of a mark under the pointer."""
    return " · ".join(part for part in parts if part)


def n_range(amounts: Iterable[int]) -> str:
    """`6`, or `4 to 6`."""
    found = sorted(set(amounts))
    return f"{found[0]}" if len(found) == 1 else f"{found[0]} to {found[-1]}" if found else "0"


def thinned(rows: Sequence[Row]) -> tuple[list[Row], str]:
    """Rows that are few enough to draw, and what the caption says about the others."""
    drawn, step = charts.thinned(rows)
    return [dict(row) for row in drawn], f" Every {step}th dot is drawn." if step > 1 else ""


def series_keys(this: View) -> tuple[Key, ...]:
    """One entry a series; none where there is one series, or too many for one picture."""
    if not 1 < len(this.series) <= MAX_LINES:
        return ()
    return level_keys(this.series)


def level_keys(names: Sequence[str]) -> tuple[Key, ...]:
    """One entry a name, with its colour, marker and dash."""
    dashes = [" ".join(map(str, dash)) for dash in DASHES]
    return tuple(
        Key(name, SERIES[index % len(SERIES)], SHAPES[index % len(SHAPES)], dashes[index % len(dashes)])
        for index, name in enumerate(names)
    )


def trial_rows(this: View) -> list[Row]:
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
            "tip": point_tip(this, point),
        }
        for point, (cell, place) in zip(found, places, strict=True)
    ]


def point_tip(this: View, point: Point) -> str:
    """What is said of a trial under the pointer."""
    return tip(
        label(point.treatment),
        f"{number(this.scale.of(point.value))} {this.scale.unit}",
        f"trial {point.trial_id}",
        f"start {point.start_replicate}, number {point.order_of_treatment or '–'} of its treatment",
    )


def law_scale(this: View, law: LawFit) -> tuple[float, Scale] | None:
    """What turns a law's curve into its response: the operations of a trial where the curve is of one operation's time.

    None where trials differ in operations, so that the curve has no place among them.
    """
    scale = this.scale if law.response == this.results.response else Scale(1.0, UNITS[law.response])
    if law.load == "saturated":
        return 1.0, scale
    amounts = {
        amount.value if amount else 0.0
        for one in this.results.other_summaries
        if one.response == "operations" and one.n
        for amount in (one.min, one.max)
    }
    return (amounts.pop(), scale) if len(amounts) == 1 else None


def law_rows(law: LawFit, per: float, scale: Scale) -> list[Row]:
    """A law's curve with its band, in the unit that is shown; `per` and `scale` are those of `law_scale`."""
    return [
        {
            "x": point.level,
            **{
                key: scale.of(None if end is None else end * per)
                for key, end in (("y", point.value), ("low", point.low), ("high", point.high))
            },
        }
        for point in law.curve
    ]
