"""Charts place numbers; they compute none, and keep the axes' rules."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree

import pytest

from steelyard.analysis.analyse import analyse
from steelyard.analysis.results import Results
from steelyard.analysis.statistics.trials import Point
from steelyard.report.basics import theme, zoom
from steelyard.report.data import traces
from steelyard.report.data.presentation import Figure, view
from steelyard.report.draw import charts, svg
from steelyard.report.draw.charts import Positions
from steelyard.report.figures import catalogue, main_chart
from tests.unit.report import synthetic

COMPUTING = (
    "boxplot",
    "errorbar",
    "errorband",
    "regression",
    "loess",
    "aggregate",
    "density",
    "quantile",
    "bin",
    "window",
)


@pytest.fixture(scope="module")
def found() -> dict[str, Figure]:
    study = synthetic.study()
    records = synthetic.records(study)
    results = analyse(records, study, seed=1)
    made = catalogue.of_results(results, records)
    record = next(record for record in records if record.treatment["nodes"] == 3 and record.verdict.outcome == "valid")
    trace = traces.figure(traces.Trace(record, synthetic.samples(record)))
    assert trace is not None
    return {**made, trace.name: trace}


def _walk(tree: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield key, value
            yield from _walk(value)
    elif isinstance(tree, list):
        for value in tree:
            yield from _walk(value)


def _y_scales(spec: Any) -> list[dict[str, Any]]:
    return [value["scale"] for key, value in _walk(spec) if key == "y" and isinstance(value, dict) and "scale" in value]


def test_the_figures_of_a_plain_study(found: dict[str, Figure]) -> None:
    assert list(found) == [
        "medians",
        "forest",
        "regression",
        "profiles",
        "boxes",
        "deviations",
        "warm-up",
        "percentiles",
        "order",
        found[list(found)[-1]].name,
    ]


def test_no_chart_computes(found: dict[str, Figure]) -> None:
    for figure in found.values():
        for panel in figure.panels:
            used = {key for key, _ in _walk(panel.spec)} | {
                value for key, value in _walk(panel.spec) if key == "type" and isinstance(value, str)
            }
            assert used.isdisjoint(COMPUTING), figure.name


def test_time_axes_start_at_0_or_the_caption_says_so(found: dict[str, Figure]) -> None:
    for name in ("medians", "regression", "warm-up"):
        for panel in found[name].panels:
            assert all(scale["domain"][0] == 0 for scale in _y_scales(panel.spec)), name
    assert "does not start at 0" in found["boxes"].caption


def test_latency_axes_are_logarithmic_and_shared(found: dict[str, Figure]) -> None:
    scales = [scale for panel in found["percentiles"].panels for scale in _y_scales(panel.spec)]
    assert scales
    assert {scale["type"] for scale in scales} == {"log"}
    assert len({tuple(scale["domain"]) for scale in scales}) == 1


def test_every_caption_has_its_n(found: dict[str, Figure]) -> None:
    for figure in found.values():
        assert "n = " in figure.caption, figure.name


def test_too_many_lines_become_small_multiples() -> None:
    study = synthetic.study(workloads=("A", "B", "C", "D", "E", "F", "I"))
    assert len(_medians(study).panels) == 1
    wide = synthetic.study(workloads=("A", "B", "C", "D", "E", "F", "I", "a", "b"))
    for name in ("a", "b"):
        synthetic.MILLISECONDS_BY_WORKLOAD.setdefault(name, 1500.0)
        synthetic.EXPONENT_BY_WORKLOAD.setdefault(name, 0.1)
    assert len(_medians(wide).panels) == 9


def _main(results: Results) -> Figure:
    figure = main_chart.medians(view(results))
    assert figure is not None
    return figure


def _medians(study: Any) -> Figure:
    records = synthetic.records(study)
    return _main(analyse(records, study, seed=1))


def test_a_cell_that_failed_is_named() -> None:
    study = synthetic.study(trials=1, starts=2, warm_up_trials=0)
    records = [
        record
        if record.treatment != {"nodes": 3, "workload": "E"}
        else record.model_copy(update={"verdict": synthetic.FAULT, "responses": type(record.responses)()})
        for record in synthetic.records(study, faults=False)
    ]
    caption = _main(analyse(records, study, seed=1)).caption
    assert "Without a valid trial, and so without a point: workload E, 3 nodes" in caption


def test_words_on_an_axis_lie_one_apart_and_are_quoted() -> None:
    positions = Positions("heap", ("it's small", "large"))
    assert positions.places == [0.0, 1.0]
    assert "'it\\'s small'" in positions.axis().to_dict()["axis"]["labelExpr"]


def test_thinning_keeps_at_most_what_was_asked() -> None:
    rows, step = charts.thinned([{"x": index} for index in range(1000)], 400)
    assert (len(rows), step) == (334, 3)
    assert charts.thinned([], 400) == ([], 1)


def test_a_drawing_is_themed_and_says_what_its_marks_mean(found: dict[str, Figure]) -> None:
    drawn = svg.inline(svg.draw(found["medians"].panels[0].spec), title="A <title> & more", identity="one")
    assert 'stroke="var(--s1)"' in drawn
    assert "<circle" in drawn
    assert not any(colour in drawn for colour in theme.SERIES)
    assert "A &lt;title&gt; &amp; more" in drawn
    assert 'data-tip="workload A, 1 node · median' in drawn
    assert "http" not in drawn


def test_the_palette_covers_both_themes() -> None:
    assert len(set(theme.SERIES)) == len(set(theme.SERIES_DARK)) == len(theme.SHAPES) == len(theme.DASHES)


def test_the_middle_trial_is_chosen() -> None:
    study = synthetic.study(warm_up_trials=0)
    records = synthetic.records(study, faults=False)
    results = analyse(records, study, seed=1)
    used = {(point.trial_id, point.attempt): point.value for point in results.of(Point) if point.used}
    shown = traces.chosen(records, used)
    assert len(shown) == 8
    for record in shown:
        values = sorted(used[one.id, one.attempt] for one in records if one.treatment == record.treatment)
        assert used[record.id, record.attempt] == values[2]
    assert json.dumps([record.id for record in shown])


def _axes(figure: Figure) -> list[list[str]]:
    drawn = svg.inline(svg.draw(figure.panels[0].spec), title="x", identity="y")
    return [found.split(" ") for found in re.findall(r'data-axis="([^"]*)"', drawn)]


def test_axes_say_what_they_measure_so_that_the_zoom_can_draw_them_anew(found: dict[str, Figure]) -> None:
    (side,) = [axis for axis in _axes(found["medians"]) if axis[:2] == ["y", "linear"]]
    low, high, first, last = (float(part) for part in side[2:])
    assert low == pytest.approx(0, abs=1e-6)
    assert (first, last) == (340.0, 0.0)
    assert high == pytest.approx(70, rel=1e-6)
    assert ["x", "fixed", "0", "1", "0", "650"] in _axes(found["medians"])
    (side,) = [axis for axis in _axes(found["percentiles"]) if axis[:2] == ["y", "log"]]
    scale = _y_scales(found["percentiles"].panels[0].spec)[0]
    assert [float(part) for part in side[2:4]] == pytest.approx(scale["domain"], rel=0.01)


def test_a_time_axis_passes_midnight() -> None:
    labels = "".join(
        f'<text transform="translate({50 * index},17)">{text}</text>'
        for index, text in enumerate(("23:50", "00:00", "00:10", "00:20"))
    )
    group = ElementTree.fromstring(f"<g>{labels}</g>")
    kind, low, high = zoom._scale(group, True, 150, log=False).split(" ")
    assert (kind, float(low), float(high)) == ("clock", 85_800.0, 87_600.0)


def test_the_main_chart_has_law_band_and_ideal_where_they_were_fitted() -> None:
    study = synthetic.study(nodes=(1, 2, 3, 4, 6), workloads=("A",), starts=3, warm_up_trials=0)
    analysis = study.analysis.model_copy(update={"response": "throughput_per_s"})
    load = study.load.model_copy(update={"threads": 8})
    study = study.model_copy(update={"analysis": analysis, "load": load})
    results = analyse(synthetic.records(study, faults=False), study, seed=1)
    figure = _main(results)
    assert "Bands: the universal scalability law" in figure.caption
    assert "Dotted: ideal" in figure.caption
    spec = figure.panels[0].spec
    assert isinstance(spec, dict)
    ideal = [rows for rows in spec["datasets"].values() if len(rows) == 2 and "low" not in rows[0]]
    first, last = ideal[0]
    assert last["y"] / last["x"] == pytest.approx(first["y"] / first["x"])


def test_interactions_are_drawn_both_ways_and_only_where_two_factors_vary(found: dict[str, Figure]) -> None:
    assert [panel.title for panel in found["profiles"].panels] == [
        "nodes, a line for each workload",
        "workload, a line for each nodes",
    ]
    study = synthetic.study(workloads=("A",))
    assert "profiles" not in catalogue.of_results(analyse(synthetic.records(study), study, seed=1), ())


def test_every_comparison_is_a_row_of_the_forest(found: dict[str, Figure]) -> None:
    spec = found["forest"].panels[0].spec
    assert isinstance(spec, dict)
    labels = [row["label"] for row in spec["data"]["values"]]
    assert labels == [f"workload {name}: nodes 1 → 3" for name in ("A", "C", "E", "I")]
    assert "title" not in spec
