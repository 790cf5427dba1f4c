"""Interaction plots: cell means over one factor, one line per level of another; parallel lines mean none."""

from __future__ import annotations

from itertools import combinations, product
from typing import Final

from steelyard.analysis.statistics.summary import Summary
from steelyard.analysis.treatments import label, part
from steelyard.analysis.wording import capital, mean_of
from steelyard.format import count, with_interval
from steelyard.model.named_level import Level
from steelyard.report.basics.theme import MAX_LINES
from steelyard.report.data.chart_rows import level_keys, n_range, tip
from steelyard.report.data.presentation import Figure, Panel, View
from steelyard.report.draw.axes import measured
from steelyard.report.draw.charts import CellPoint, Positions, Styles, ends_of, levels_chart
from steelyard.report.draw.scales import from_zero

MOST_PANELS: Final = 12


def profiles(this: View) -> Figure | None:
    """Cell means over each factor, one line per level of another; None if fewer than two factors vary."""
    varying = [name for name, levels in this.results.factors.items() if len(levels) > 1]
    drawable = [
        (over, lines)
        for pair in combinations(varying, 2)
        for over, lines in (pair, pair[::-1])
        if len(this.results.factors[lines]) <= MAX_LINES
    ]
    shown = [
        _Profile(this, over, lines, rest) for over, lines in drawable for rest in _rests(this, varying, over, lines)
    ]
    shown = [one for one in shown if one.points]
    if not shown:
        return None
    every = [point for one in shown for point in one.points]
    panels = tuple(one.panel() for one in shown[:MOST_PANELS])
    bare = all(point.low is None for point in every)
    cut = sum(point.low is None for point in every)
    lost = f"{count(cut, 'point has', 'points have')} none. "
    caption = (
        f"{capital(this.results.response_label)} over one factor, one line per level of another: lines that are not "
        "parallel show an interaction, which the analysis of variance tests. "
        f"{capital(mean_of(this.results.response))}s of start means, n = "
        f"{n_range(point.n for point in every)} trials per point"
        f"{'' if bare else f'; vertical lines are {100 * this.results.confidence:g}% intervals over starts'}. "
        f"{'' if bare or not cut else lost}"
        "All axes start at 0."
    )
    if len(shown) > MOST_PANELS:
        caption += f" The first {MOST_PANELS} of {len(shown)} panels are drawn; the table of every cell has all."
    lines = {one.lines for one in shown[:MOST_PANELS]}
    keys = level_keys([str(level) for level in this.results.factors[lines.pop()]]) if len(lines) == 1 else ()
    return Figure("profiles", "Interactions", caption, panels, keys, zoom="each")


def _rests(this: View, varying: list[str], over: str, lines: str) -> list[dict[str, Level]]:
    """Combinations of levels of the remaining factors; each gets its own panel."""
    others = [name for name in varying if name not in (over, lines)]
    return [
        dict(zip(others, levels, strict=True)) for levels in product(*(this.results.factors[name] for name in others))
    ]


class _Profile:
    """One interaction panel: the factor on the axis, the factor of the lines, and fixed levels of the rest."""

    def __init__(self, this: View, over: str, lines: str, rest: dict[str, Level]) -> None:
        self.this, self.over, self.lines, self.rest = this, over, lines, rest
        summaries = [
            summary
            for summary in this.results.main(Summary)
            if all(summary.treatment.get(name) == level for name, level in rest.items())
            and over in summary.treatment
            and lines in summary.treatment
        ]
        self.points = [point for summary in summaries if (point := self._point(summary)) is not None]

    def _point(self, summary: Summary) -> CellPoint | None:
        if (value := summary.value) is None:
            return None
        shown = self.this.scale.estimate(value)
        return CellPoint(
            summary.treatment[self.over],
            str(summary.treatment[self.lines]),
            shown.value,
            shown.low,
            shown.high,
            summary.n,
            tip(label(summary.treatment), f"{with_interval(shown)} {self.this.scale.unit}", f"n = {summary.n}"),
        )

    def panel(self) -> Panel:
        """The picture of the panel."""
        factors = self.this.results.factors
        name = "number of nodes" if self.over == "nodes" else self.over
        rest = ", ".join(part(factor, level) for factor, level in self.rest.items())
        drawn = levels_chart(
            self.points,
            Positions(name, tuple(factors[self.over])),
            Styles(tuple(str(level) for level in factors[self.lines])),
            measured(from_zero(ends_of(self.points)), self.this.y_title),
            joined=True,
        )
        return Panel(f"over {self.over}, one line per {self.lines}" + (f": {rest}" if rest else ""), drawn)
