"""The plane of elasticity: points and intervals at their values, names that cover nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

import pytest

from steelyard.analysis.analyse import analyse
from steelyard.analysis.results import Results
from steelyard.analysis.statistics.elasticity import Elasticity
from steelyard.report.basics.theme import VARIABLES
from steelyard.report.data.presentation import Figure, view
from steelyard.report.draw.svg import Element, Picture
from steelyard.report.figures.elasticity import plane
from steelyard.study.read import read_text
from tests.unit.report import elastic, growing


@pytest.fixture(scope="module")
def results() -> Results:
    return analyse(growing.records(elastic.STUDY), read_text(elastic.STUDY), seed=1)


def drawn(results: Results) -> Figure:
    figure = plane(view(results))
    assert figure is not None
    return figure


def walk(elements: tuple[Element | str, ...]) -> Iterator[Element]:
    for one in elements:
        if isinstance(one, Element):
            yield one
            yield from walk(one.children)


def names(picture: Picture) -> dict[str, tuple[float, float]]:
    texts = [one for one in walk(picture.elements) if one.tag == "text"]
    return {str(one.children[0]): (float(dict(one.attributes)["x"]), float(dict(one.attributes)["y"])) for one in texts}


def with_rows(results: Results, *rows: Elasticity) -> Results:
    return results.model_copy(update={"rows": {**results.rows, "elasticity": rows}})


def test_each_treatment_has_a_point_with_its_numbers_and_a_name(results: Results) -> None:
    (panel,) = drawn(results).panels
    tips = [
        dict(one.attributes)["data-tip"] for one in walk(panel.picture.elements) if "data-tip" in dict(one.attributes)
    ]
    assert any(re.fullmatch(r"policy scheduled · theta under 6.0 \[3.9, 8.0\]%, over 25%", tip) for tip in tips)
    assert any(tip.startswith("policy none · theta under 20%") for tip in tips)
    for picture in (panel.picture, panel.narrow):
        assert picture is not None
        assert {"none", "scheduled", "0, 0 is perfect"} <= names(picture).keys()


def test_colours_are_those_of_both_themes(results: Results) -> None:
    picture = drawn(results).panels[0].picture
    used = {value for one in walk(picture.elements) for key, value in one.attributes if key in ("fill", "stroke")}
    assert used - {"none"} <= VARIABLES.keys()


def test_treatments_at_one_place_have_names_apart(results: Results) -> None:
    base = next(row for row in results.of(Elasticity) if row.treatment["policy"] == "none")
    rows = [base.model_copy(update={"treatment": {"policy": f"p{place}"}}) for place in range(4)]
    at = [place for name, place in names(drawn(with_rows(results, *rows)).panels[0].picture).items() if name[0] == "p"]
    assert len({*at}) == 4
    heights = sorted(y for _, y in at)
    assert all(after == before or after - before >= 9 for before, after in pairwise(heights))


def test_other_factors_have_a_panel_each_and_no_rows_no_figure(results: Results) -> None:
    of_workloads = [
        row.model_copy(update={"treatment": {**row.treatment, "workload": name}, "others": {"workload": name}})
        for row in results.of(Elasticity)
        for name in ("A", "C")
    ]
    figure = drawn(with_rows(results, *of_workloads))
    assert [panel.title for panel in figure.panels] == ["workload A", "workload C"]
    assert "none" in names(figure.panels[1].picture)
    assert plane(view(with_rows(results))) is None
