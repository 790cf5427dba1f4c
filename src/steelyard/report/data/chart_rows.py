"""Rows that several figures draw: trials as dots, fitted curves, words for captions and keys."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeVar

from steelyard.analysis.narrative.answer_table import AnswerRow
from steelyard.analysis.statistics.law import LawFit
from steelyard.analysis.statistics.summary import Summary
from steelyard.analysis.statistics.trials import Point
from steelyard.analysis.treatments import Treatment, label
from steelyard.format import UnitScale, count, number, with_interval
from steelyard.judging.t_interval import FEWEST_STARTS
from steelyard.model import responses
from steelyard.model.estimate import Estimate
from steelyard.model.responses import unit_of
from steelyard.model.trial import CellKey, cell_key
from steelyard.report.basics.theme import MAX_LINES
from steelyard.report.data.presentation import Key, View
from steelyard.report.draw.charts import CellPoint, Dot, FittedPoint, style

Row = TypeVar("Row")

MOST_POINTS: Final = 400
"""Most marks of one kind in one picture; of more, every k-th is drawn and the caption says so."""

TOO_FEW: Final = "too few starts"


@dataclass(frozen=True)
class AnswerPoint:
    """A value of the answer, and how many starts it rests on."""

    drawn: CellPoint
    starts: int


def tip(*parts: str) -> str:
    """Hover text of a mark."""
    return " · ".join(part for part in parts if part)


def n_range(amounts: Iterable[int]) -> str:
    """`6`, or `4 to 6`."""
    distinct = sorted(set(amounts))
    return f"{distinct[0]:,}" if len(distinct) == 1 else f"{distinct[0]:,} to {distinct[-1]:,}" if distinct else "0"


def thinned(rows: Sequence[Row], most: int = MOST_POINTS) -> tuple[list[Row], int]:
    """At most `most` rows, evenly spaced, and k: every k-th row is kept."""
    step = -(-len(rows) // most) if rows else 1
    return list(rows[::step]), step


def thinning(step: int) -> str:
    """Sentence of the caption if only every k-th dot is drawn."""
    return f" Every {step}th dot is drawn." if step > 1 else ""


def series_keys(this: View) -> tuple[Key, ...]:
    """One key entry per series; none for a single series or too many for one picture."""
    if not 1 < len(this.series) <= MAX_LINES:
        return ()
    return level_keys(this.series)


def level_keys(names: Sequence[str], *, lines: bool = True) -> tuple[Key, ...]:
    """One key entry per name, with its colour, marker and, where `lines` are drawn, dash."""
    styles = (style(index) for index in range(len(names)))
    return tuple(
        Key(name, of.colour, of.shape, of.dash if lines else None) for name, of in zip(names, styles, strict=True)
    )


def answer_points(this: View) -> list[AnswerPoint]:
    """Values of the answer; of all treatments, where no table of the answer has them over the axis."""
    table = this.results.answer_table
    rows = [row for row in table.rows if row.value_interval is not None] if table else []
    if rows and {this.axis} == {row.factor for row in rows}:
        return [_answer_point(this, row) for row in rows]
    return [
        _point(this, one.treatment, value, one.n, one.starts)
        for one in this.results.main(Summary)
        if (value := one.value) is not None
    ]


def _answer_point(this: View, row: AnswerRow) -> AnswerPoint:
    assert row.value_interval is not None
    return _point(this, {**row.others, row.factor: row.level}, row.value_interval, row.n, row.starts)


def _point(this: View, treatment: Treatment, value: Estimate, n: int, starts: int) -> AnswerPoint:
    shown = this.scale.estimate(value)
    sizes = f"n = {count(n, 'trial')} from {count(starts, 'start')}"
    resolution = responses.of(this.results.response).resolution
    hover = tip(label(treatment), f"{with_interval(shown, resolution)} {this.scale.unit}", sizes)
    level, series = this.level(treatment), this.of(treatment)
    return AnswerPoint(CellPoint(level, series, shown.value, shown.low, shown.high, n, hover), starts)


class WithoutInterval(NamedTuple):
    """Values of the answer that have no interval."""

    number: int
    few: bool
    """Whether each has too few starts. Otherwise nothing varies in one, or its interval would reach below 0."""

    @property
    def words(self) -> str:
        """What they lack, after `has`."""
        return f"{TOO_FEW} for one" if self.few else "none"


def without_interval(points: Sequence[AnswerPoint]) -> WithoutInterval:
    """Those of these points that have none."""
    bare = [point for point in points if point.drawn.low is None]
    return WithoutInterval(len(bare), all(point.starts < FEWEST_STARTS for point in bare))


def amount(amounts: Sequence[int], noun: str) -> str:
    """`6 trials`, or `4 to 6 trials`."""
    return f"{n_range(amounts)} {noun if set(amounts) == {1} else f'{noun}s'}"


def without_trials(this: View) -> str:
    """Sentence of a caption on treatments without a valid trial; empty if all have one."""
    missing = [label(summary.treatment) for summary in this.results.main(Summary) if summary.n == 0]
    return f" Without a value, and so not drawn: {'; '.join(missing)}." if missing else ""


def trial_dots(this: View) -> list[Dot]:
    """Every used trial as a dot; `part` places the trials of a cell side by side, by time."""
    points = [point for point in this.results.of(Point) if point.used and not point.control]
    sizes: dict[CellKey, int] = {}
    places = []
    for point in points:
        cell = cell_key(point.treatment)
        places.append((cell, sizes.get(cell, 0)))
        sizes[cell] = sizes.get(cell, 0) + 1
    return [
        Dot(
            this.level(point.treatment),
            this.of(point.treatment),
            point.value * this.scale.factor,
            place / (sizes[cell] - 1) if sizes[cell] > 1 else 0.5,
            point_tip(this, point),
        )
        for point, (cell, place) in zip(points, places, strict=True)
    ]


def point_tip(this: View, point: Point) -> str:
    """Hover text of a trial."""
    return tip(
        label(point.treatment),
        f"{number(this.scale.of(point.value))} {this.scale.unit}",
        f"trial {point.trial_id}",
        f"start {point.start_replicate}, number {point.order_of_treatment or '–'} of its treatment",
    )


def law_scale(this: View, law: LawFit) -> tuple[float, UnitScale] | None:
    """Factor from a law's curve to its response, and the response's scale.

    The factor is the operations of a trial where the curve is the time of one operation. None if trials differ in
    operations, as there is no common factor.
    """
    scale = this.scale if law.response == this.results.response else UnitScale(1.0, unit_of(law.response))
    if law.load == "saturated":
        return 1.0, scale
    amounts = {
        amount.value if amount else 0.0
        for one in this.results.others(Summary)
        if one.response == "operations" and one.n
        for amount in (one.min, one.max)
    }
    return (amounts.pop(), scale) if len(amounts) == 1 else None


def law_curve(law: LawFit, per: float, scale: UnitScale) -> list[FittedPoint]:
    """A law's curve with its band, in the unit that is shown; `per` and `scale` are those of `law_scale`."""
    series = label(law.others)
    return [
        FittedPoint(
            point.level,
            point.value * per * scale.factor,
            None if point.low is None else point.low * per * scale.factor,
            None if point.high is None else point.high * per * scale.factor,
            series,
        )
        for point in law.curve
    ]
