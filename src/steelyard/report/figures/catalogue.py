"""Catalogue of the page's figures, by name, in the order in which they are drawn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from steelyard.analysis.comparisons.judgement import shown
from steelyard.analysis.results import Results
from steelyard.analysis.statistics.comparison import Comparison
from steelyard.analysis.treatments import factor_label, label
from steelyard.model.estimate import Estimate
from steelyard.reading.report_input import ReportInput
from steelyard.report.data.chart_rows import n_range
from steelyard.report.data.presentation import Figure, Panel, View, view
from steelyard.report.draw.plot import NARROW_PX, WIDE_PX
from steelyard.report.figures import aligned, forest, node_traces, timelines
from steelyard.report.figures.elasticity import plane
from steelyard.report.figures.forest import ForestRow
from steelyard.report.figures.interactions import profiles
from steelyard.report.figures.main_chart import main_chart, spread
from steelyard.report.figures.percentiles import percentiles
from steelyard.report.figures.rate_curves import rate_curves
from steelyard.report.figures.regressions import laws, regressions

UNDECIDED: Final = ("undecided", "descriptive")
MOST_COMPARISONS: Final = 40
HOLLOW: Final = "; hollow: undecided"


def forests(this: View) -> Figure | None:
    """Forest plot of every comparison; None without comparisons, or of differences, which have no common axis."""
    every = [(one, one.change_percent) for one in this.results.of(Comparison) if one.change_percent is not None]
    comparisons = [one for one, _ in every[:MOST_COMPARISONS]]
    if not comparisons:
        return None
    rows = [_forest_row(*one) for one in every[:MOST_COMPARISONS]]
    margin = next((one.margin_percent for one in comparisons if one.margin_percent), None)
    ends = None if margin is None else (-margin, margin)
    wide, narrow = forest.picture(rows, ends, width=WIDE_PX), forest.picture(rows, ends, width=NARROW_PX, narrow=True)
    caption = (
        f"Change of {this.results.response_label} between levels, all else equal, with its "
        f"{100 * this.results.confidence:g}% interval, "
        f"n = {n_range(one.starts_level for one in comparisons)} starts and "
        f"{n_range(one.n_level for one in comparisons)} trials per level. Dashed: no change"
        f"{HOLLOW if any(not row.decided for row in rows) else ''}. Log scale."
    )
    if margin is not None:
        caption += f" Shaded: the study's margin of equivalence, {margin:g}%."
    if len(every) > len(comparisons):
        caption += f" The first {len(comparisons)} of {len(every)} comparisons are drawn."
    return Figure("forest", "Every comparison", caption, (Panel("", wide, narrow),))


def _forest_row(comparison: Comparison, change: Estimate) -> ForestRow:
    what = f"{factor_label(comparison.factor, comparison.others)} {comparison.baseline} → {comparison.level}"
    others = label(comparison.others, [comparison.factor])
    return ForestRow(
        f"{others}: {what}" if comparison.others else what, change.value, change.low, change.high,
        shown(comparison.verdict, survives_holm=comparison.survives_holm, final=comparison.final),
        comparison.verdict not in UNDECIDED,
    )  # fmt: skip


MAKERS: Final[tuple[Callable[[View], Figure | None], ...]] = (
    main_chart, forests, regressions, laws, aligned.curves, plane, profiles, spread, percentiles, rate_curves,
)  # fmt: skip
"""Figures that need the results only. One that names its `Figure.section` is at the end of that section of the
page; nothing else must know it. Any other has its place in `report/forms.py`."""


def of_results(results: Results) -> dict[str, Figure]:
    """Every figure that these results support, by name; `of_page` adds those of nodes and of the time within trials."""
    this = view(results)
    return {figure.name: figure for maker in MAKERS if (figure := maker(this)) is not None}


def of_page(page_input: ReportInput) -> dict[str, Figure]:
    """Every figure of a page, by name: of the results, of the nodes, and over the time of trials."""
    of_nodes = [figure for trace in page_input.traces if (figure := node_traces.figure(trace)) is not None]
    return {
        **of_results(page_input.results),
        **{figure.name: figure for figure in of_nodes},
        **timelines.all_figures(view(page_input.results), page_input.timelines, page_input.curves),
    }
