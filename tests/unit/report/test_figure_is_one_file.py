"""A figure that names its section stands there on the page: a maker and its line in the catalogue are all it takes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from steelyard.analysis.statistic import Section
from steelyard.report.data.presentation import Figure, View
from steelyard.report.figures import catalogue
from steelyard.report.figures.main_chart import main_chart
from steelyard.report.page import build
from tests.unit.report import synthetic
from tests.unit.report.test_page import page_input


@pytest.mark.parametrize("section", list(Section))
def test_a_figure_stands_at_the_end_of_its_section(section: Section, monkeypatch: pytest.MonkeyPatch) -> None:
    def another(this: View) -> Figure | None:
        drawn = main_chart(this)
        return None if drawn is None else replace(drawn, name="another", title="Another figure", section=section)

    monkeypatch.setattr(catalogue, "MAKERS", (*catalogue.MAKERS, another))
    page = build(page_input(synthetic.study()))
    inside = page.partition(f'<section id="{section.value}"')[2].partition("</section>")[0]
    assert '<figure id="another"' in inside
    assert page.count('<figure id="another"') == 1
