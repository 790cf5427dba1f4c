"""Aligned curves on the page: their plots, bands, marks and key, and the numbers under them."""

from __future__ import annotations

from collections import Counter

import pytest

from steelyard.analysis.results import Results
from steelyard.analysis.statistics.aligned import AlignedSecond
from steelyard.report.basics.theme import VARIABLES
from steelyard.report.data.presentation import Figure, view
from steelyard.report.draw.svg import Picture
from steelyard.report.figures import aligned
from tests.unit.analysis.statistics import test_activity_response as around
from tests.unit.analysis.statistics import test_aligned as planted
from tests.unit.report.draw.test_elasticity_plane import names, walk


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return around.results(tmp_path_factory.mktemp("aligned"), planted.SIX, planted.intervals)


def drawn(results: Results) -> Figure:
    figure = aligned.curves(view(results))
    assert figure is not None
    return figure


def with_rows(results: Results, *rows: AlignedSecond) -> Results:
    return results.model_copy(update={"rows": {**results.rows, "aligned": rows}})


def bands(picture: Picture) -> int:
    return sum("fill-opacity" in dict(one.attributes) for one in walk(picture.elements))


def test_every_response_has_a_plot_and_one_of_its_ratio_to_the_control(results: Results) -> None:
    (panel,) = drawn(results).panels
    for picture in (panel.picture, panel.narrow):
        assert picture is not None
        assert {"mean response time, ms", "throughput, operations/s", "times the control"} <= names(picture).keys()
        assert "seconds since the decision" in names(picture)
        assert bands(picture) == 2, "of the response time and its ratio; the throughput does not vary"
        assert picture.height < 520
    dashes = Counter(dict(one.attributes).get("stroke-dasharray") for one in walk(panel.picture.elements))
    assert dashes[aligned.ARRIVAL_DASH] == 2 * 4, "two nodes in four plots"
    assert dashes[aligned.CONTROL_DASH] == 4, "the control's curve, or no change"


def test_colours_are_those_of_both_themes(results: Results) -> None:
    picture = drawn(results).panels[0].picture
    used = {value for one in walk(picture.elements) for key, value in one.attributes if key in ("fill", "stroke")}
    assert used - {"none"} <= VARIABLES.keys()


def test_key_and_caption_say_what_the_band_is(results: Results) -> None:
    figure = drawn(results)
    assert [key.text for key in figure.keys] == [
        "mean over trials", "simultaneous 95% band over 6 trials", "control", "decision",
        "a node in service, or left (median)",
    ]  # fmt: skip
    assert "holds the true curve in all seconds together" in figure.caption
    assert "the ratio to the control (simultaneous 95% band over 6 blocks)" in figure.caption
    few = [row.model_copy(update={"band": "4 trials: no band", "n": 4}) for row in results.of(AlignedSecond)]
    figure = drawn(with_rows(results, *few))
    assert [(key.text, key.shape) for key in figure.keys][1] == ("4 trials: no band", "")
    assert "simultaneous band holds" not in figure.caption
    assert "there was none: 2 trials of policy scheduled" in figure.caption


def test_a_disruption_begins_and_is_healed(results: Results) -> None:
    rows = [row.model_copy(update={"kind": "disruption"}) for row in results.of(AlignedSecond)]
    figure = drawn(with_rows(results, *rows))
    assert figure.title == "Around the beginning of the disruption"
    assert [key.text for key in figure.keys][-2:] == ["beginning", "healed, and recovered (medians)"]
    assert "seconds since the disruption" in names(figure.panels[0].picture)


def test_treatments_have_a_panel_each_and_what_differs_is_in_its_title(results: Results) -> None:
    rows = results.of(AlignedSecond)
    more = [row.model_copy(update={"treatment": {"policy": "hpa"}, "band": "4 trials: no band"}) for row in rows]
    figure = drawn(with_rows(results, *rows, *more))
    assert [panel.title for panel in figure.panels] == [
        "policy scheduled, simultaneous 95% band over 6 trials", "policy hpa, 4 trials: no band",
    ]  # fmt: skip
    many = [row.model_copy(update={"treatment": {"policy": f"p{place}"}}) for place in range(14) for row in rows]
    figure = drawn(with_rows(results, *many))
    assert len(figure.panels) == aligned.MOST_PANELS
    assert figure.caption.endswith("The first 12 of 14 panels are drawn.")
    assert aligned.curves(view(with_rows(results))) is None


def test_missing_seconds_break_line_and_band(results: Results) -> None:
    rows = [row for row in results.of(AlignedSecond) if not 8 <= row.second_s < 11]
    (panel,) = drawn(with_rows(results, *rows)).panels
    assert bands(panel.picture) == 4


def test_the_numbers_under_it_are_those_of_every_tenth_second(results: Results) -> None:
    course = drawn(results).course
    assert course is not None
    assert [row[1] for row in course.rows] == ["-20", "-10", "0", "10", "20", "30"]
    assert course.heads[:4] == (
        ("treatment", ""), ("second", "s"), ("nodes", "in service"), ("mean response time", "ms"),
    )  # fmt: skip
    row = course.rows[3]
    assert (row[0], row[2]) == ("policy scheduled, scale-out", "3")
    assert row[5] == "2"
