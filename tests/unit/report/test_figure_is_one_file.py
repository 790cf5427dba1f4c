"""A figure that names its section stands there on the page: a maker and its line in the catalogue are all it takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from steelyard.analysis.statistic import Section
from steelyard.report.data.presentation import Figure, View
from steelyard.report.figures import catalogue
from steelyard.report.figures.main_chart import main_chart
from steelyard.report.page import build
from tests.unit.report import synthetic
from tests.unit.report.test_page import page_input


def maker(section: Section) -> Callable[[View], Figure | None]:
    """A figure of its own for a section."""

    def another(this: View) -> Figure | None:
        drawn = main_chart(this)
        named = {"name": f"another-{section.value}", "title": "Another figure", "section": section}
        return None if drawn is None else replace(drawn, **named)

    return another


def test_a_figure_stands_at_the_end_of_its_section(monkeypatch: pytest.MonkeyPatch) -> None:
    """One in each section, all on one page."""
    # The catalogue is made of the package's files once.
    monkeypatch.setattr(catalogue, "MAKERS", (*catalogue.MAKERS, *map(maker, Section)))
    page = build(page_input(synthetic.study()))
    for section in Section:
        inside = page.partition(f'<section id="{section.value}"')[2].partition("</section>")[0]
        figure = f'<figure id="another-{section.value}"'
        assert figure in inside, section
        assert page.count(figure) == 1


def test_every_figure_has_its_place_on_the_page() -> None:
    """The end of a section that it names, or a form of `report/forms.py` that draws it."""
    of_page = page_input(synthetic.study(nodes=(1, 2, 3, 4, 5), workloads=("A", "E")))
    page = build(of_page)
    drawn = catalogue.of_results(of_page.results)
    assert len(drawn) >= len(catalogue.MAKERS) - 3, "all but rate curves, aligned ones and the plane of elasticity"
    assert {name: page.count(f'<figure id="{name}"') for name in drawn} == dict.fromkeys(drawn, 1)
