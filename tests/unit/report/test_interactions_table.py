"""Table of interaction contrasts on the page."""

from __future__ import annotations

from steelyard.analysis.analyse import analyse
from steelyard.analysis.statistics.interaction import TRENDS, Interaction
from steelyard.report.data.presentation import view
from steelyard.report.tables.interactions import interactions
from tests.unit.analysis.made import cell, study
from tests.unit.analysis.statistics.test_interaction import asked, linked


def test_a_row_has_both_ratios_and_both_scales() -> None:
    records = [one.model_copy(update={"hard": ("nodes", "link")}) for one in linked()]
    table = interactions(view(analyse(records, asked("link"), seed=1)))
    assert table is not None
    (row,) = [[cell.text for cell in row] for row in table.rows if row[2].text == "nodes 1 → 3"]
    assert row[1:4] == ["link nodal → 802.11n", "nodes 1 → 3", "2.1 → 5.0"]
    assert row[4].startswith("2.4")
    assert (row[6], row[9]) == ("higher", "higher")
    assert len(row) == len(table.columns)
    assert "undecided (" not in table.caption


def test_why_a_difference_is_undecided_stands_in_its_cell_and_below_the_caption() -> None:
    records = [one.model_copy(update={"hard": ("nodes", "link")}) for one in linked()]
    results = analyse(records, asked("link"), seed=1)
    known = tuple(row.model_copy(update={"verdict": "undecided", "why": TRENDS}) for row in results.of(Interaction))
    table = interactions(view(results.model_copy(update={"rows": {**results.rows, "interaction": known}})))
    assert table is not None
    assert {row[6].text for row in table.rows} == {"undecided (trends)"}
    assert f"Undecided (trends): the interval leaves out no difference, but {TRENDS}." in table.caption


def test_without_another_factor_there_is_no_table() -> None:
    records = [*cell([[1.0], [2.0], [1.5]], nodes=1), *cell([[3.0], [2.0], [4.0]], nodes=3)]
    assert interactions(view(analyse(records, study(factors={"nodes": (1, 3)}), seed=1))) is None
