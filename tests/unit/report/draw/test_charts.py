"""Charts place numbers; they compute none, and keep the axes' rules."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.analysis.analyse import analyse
from steelyard.analysis.results import Results
from steelyard.analysis.statistics.trials import Point
from steelyard.model.trial import by_cell
from steelyard.reading.node_traces import Trace, median_trials
from steelyard.report import draw
from steelyard.report.basics import theme
from steelyard.report.basics.hover_text import HoverTexts
from steelyard.report.data import chart_rows
from steelyard.report.data.presentation import Figure, view
from steelyard.report.draw.axes import Axis, lines_of_labels
from steelyard.report.draw.charts import Positions, apart
from steelyard.report.draw.scales import Domain, Scale
from steelyard.report.draw.svg import Element, Picture, fitted, text_px
from steelyard.report.figures import catalogue, main_chart, node_traces
from steelyard.report.figures.forest import ForestRow, picture
from tests.unit.report import synthetic

COMPUTING = {"numpy", "scipy", "polars", "statistics", "random", "steelyard.analysis"}
unhurried = settings(deadline=None)
HALF_STEP_PX = 0.051
"""Coordinates are written to a tenth of a pixel."""


@pytest.fixture(scope="module")
def found() -> dict[str, Figure]:
    study = synthetic.study()
    records = synthetic.records(study)
    results = analyse(records, study, seed=1)
    made = catalogue.of_results(results)
    record = next(record for record in records if record.treatment["nodes"] == 3 and record.verdict.outcome == "valid")
    trace = node_traces.figure(Trace(record, synthetic.samples(record)))
    assert trace is not None
    return {**made, trace.name: trace}


def _walk(root: Picture | Element) -> Iterator[Element]:
    for child in root.elements if isinstance(root, Picture) else root.children:
        if isinstance(child, Element):
            yield child
            yield from _walk(child)


def _with(picture: Picture, name: str) -> list[tuple[Element, str]]:
    """Elements that have an attribute, with its value."""
    return [(one, value) for one in _walk(picture) for key, value in one.attributes if key == name]


def _axes(picture: Picture) -> list[list[str]]:
    return [value.split(" ") for _, value in _with(picture, "data-axis")]


def _inverse(picture: Picture, which: str) -> tuple[Scale, Any]:
    """The scale of an axis as the page reads it, and what turns pixels into its values."""
    (found,) = [axis for axis in _axes(picture) if axis[0] == which]
    low, high, first, last = (float(part) for part in found[2:6])
    return Scale(Domain(low, high), first, last), lambda px: low + (px - first) / (last - first) * (high - low)


def _texts(picture: Picture) -> list[str]:
    return [str(one.children[0]) for one in _walk(picture) if one.tag == "text"]


def test_the_figures_of_a_plain_study(found: dict[str, Figure]) -> None:
    assert list(found) == [
        "main",
        "forest",
        "regression",
        "profiles",
        "percentiles",
        found[list(found)[-1]].name,
    ]


def test_the_pen_sees_neither_the_analysis_nor_what_it_computes_with() -> None:
    modules = sorted(Path(draw.__path__[0]).glob("*.py"))
    assert len(modules) >= 7
    for module in modules:
        for node in ast.walk(ast.parse(module.read_text())):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [one.name for one in node.names] if isinstance(node, ast.Import) else []
            assert not [name for name in names for banned in COMPUTING if f"{name}.".startswith(f"{banned}.")], module


def test_marks_stand_where_the_axis_says_their_number_is() -> None:
    study = synthetic.study()
    results = analyse(synthetic.records(study), study, seed=1)
    drawn: dict[str, float] = {}
    px = 0.0
    for panel in _main(results).panels:
        _, value = _inverse(panel.picture, "y")
        px = max(px, abs(value(1.0) - value(0.0)) * HALF_STEP_PX)
        for mark, tip in _with(panel.picture, "data-tip"):
            attributes = dict(mark.attributes)
            moved = re.search(r",([^)]*)\)", attributes.get("transform", ""))
            drawn[tip] = value(float(attributes["cy"] if "cy" in attributes else moved[1] if moved else "nan"))
    values = {tip: at for tip, at in drawn.items() if "trials from" in tip}
    trials = {tip: at for tip, at in drawn.items() if "start " in tip}
    assert results.answer_table is not None
    expected = [row.value / 1000 for row in results.answer_table.rows if row.value is not None]
    assert sorted(values.values()) == pytest.approx(sorted(expected), abs=px)
    assert sorted(trials.values()) == pytest.approx(
        sorted(p.value / 1000 for p in results.of(Point) if p.used or p.warm_up), abs=px
    )
    assert len(values) == 8


def test_time_axes_start_at_0_or_the_caption_says_so(found: dict[str, Figure]) -> None:
    for panel in found["regression"].panels:
        assert [domain.low for domain in panel.picture.y_domains] == [0]
        (side,) = [axis for axis in _axes(panel.picture) if axis[0] == "y"]
        assert side[2] == "0"
    lows = {domain.low > 0 for panel in found["main"].panels for domain in panel.picture.y_domains}
    words = {(True,): "which does not start at 0", (False,): "which starts at 0"}
    assert words.get(tuple(lows), "not always from 0") in found["main"].caption


def test_latency_axes_are_logarithmic_and_shared(found: dict[str, Figure]) -> None:
    domains = [domain for panel in found["percentiles"].panels for domain in panel.picture.y_domains]
    assert len(domains) == 4
    assert {domain.kind for domain in domains} == {"log"}
    assert len(set(domains)) == 1


def test_every_caption_has_its_n(found: dict[str, Figure]) -> None:
    for figure in found.values():
        assert "n = " in figure.caption, figure.name


def test_two_levels_are_drawn_by_start_without_a_line() -> None:
    """Two levels are two categories: dots by start in order of time, a mean per start, the answer beside them."""
    study = synthetic.study(workloads=("A",), starts=3)
    results = analyse(synthetic.records(study, faults=False), study, seed=1)
    figure = _main(results)
    assert "one column per start" in figure.caption
    assert "Hollow: 6 warm-up trials" in figure.caption
    assert "n = 3 starts and 6 trials per level" in figure.caption
    (panel,) = figure.panels
    dots = [(mark, tip) for mark, tip in _with(panel.picture, "data-tip") if "start " in tip]
    points = [one for one in results.of(Point) if one.used or one.warm_up]
    assert len(dots) == len(points) == 18
    across = [float(dict(mark.attributes)["cx"]) for mark, _ in dots if "cx" in dict(mark.attributes)]
    assert len(set(across)) == len(across) == 9, "one place for each trial of the first level"
    means = [one for one, width in _with(panel.picture, "stroke-width") if width == "2"]
    assert dict(means[0].attributes)["d"].count("M") == 3
    assert "hollow" not in _main_of(synthetic.study(workloads=("A",), warm_up_trials=0)).caption.lower()
    assert main_chart.spread(view(results)) is None
    assert main_chart.spread(view(analyse(synthetic.records(three := synthetic.study(nodes=(1, 3, 6))), three, seed=1)))


def test_too_many_lines_become_small_multiples() -> None:
    study = synthetic.study(nodes=(1, 3, 6), workloads=("A", "B", "C", "D", "E", "F", "I"))
    assert len(_main_of(study).panels) == 1
    wide = synthetic.study(nodes=(1, 3, 6), workloads=("A", "B", "C", "D", "E", "F", "I", "a", "b"))
    for name in ("a", "b"):
        synthetic.MILLISECONDS_BY_WORKLOAD.setdefault(name, 1500.0)
        synthetic.EXPONENT_BY_WORKLOAD.setdefault(name, 0.1)
    assert len(_main_of(wide).panels) == 9


def _main(results: Results) -> Figure:
    figure = main_chart.main_chart(view(results))
    assert figure is not None
    return figure


def _main_of(study: Any) -> Figure:
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
    assert "Without a value, and so not drawn: workload E, 3 nodes" in caption


def test_words_on_an_axis_lie_one_apart_and_are_quoted() -> None:
    positions = Positions("heap", ("it's <small>", "large"))
    assert positions.places == [0.0, 1.0]
    assert positions.axis().ticks == ((0.0, "it's <small>"), (1.0, "large"))
    word = Picture(10, 10, (Element("text", (), ("it's <small>",)),))
    for written in (word.in_page(HoverTexts(), title="", identity="a"), word.in_file()):
        assert "it&#x27;s &lt;small&gt;" in written


def test_an_axis_of_a_factor_with_a_unit_shows_its_numbers() -> None:
    named = Positions("memory", ("small", "large"), (1.0, 2.5))
    assert named.axis().ticks == ((1.0, "small"), (2.5, "large"))
    measured = Positions("memory, GB", ("small", "large"), (1.0, 2.5), by_number=True)
    assert measured.axis().ticks == ((1.0, "1"), (2.5, "2.5"))


def test_thinning_keeps_at_most_what_was_asked() -> None:
    kept, step = chart_rows.thinned([{"x": index} for index in range(1000)], 400)
    assert (len(kept), step) == (334, 3)
    assert chart_rows.thinned([], 400) == ([], 1)


def test_a_drawing_is_themed_and_says_what_its_marks_mean(found: dict[str, Figure]) -> None:
    texts = HoverTexts()
    drawn = found["main"].panels[0].picture.in_page(texts, title="A <title> & more", identity="one")
    assert 'fill="var(--s1)"' in drawn
    assert 'stroke="var(--s1)"' in drawn
    assert "<circle" in drawn
    assert not any(colour in drawn for colour in theme.SERIES)
    assert "A &lt;title&gt; &amp; more" in drawn
    said = json.loads(texts.as_json())
    assert any(
        re.match(r"workload A, 1 node · [\d.]+ s · 2 trials from 1 start|workload A, 1 node .* from 2 starts", text)
        for text in said
    )
    numbers = {int(number) for number in re.findall(r'data-tip="(\d+)"', drawn)}
    assert numbers == set(range(len(said)))
    assert "http" not in drawn


def test_a_file_has_its_colours_and_nothing_for_the_page(found: dict[str, Figure]) -> None:
    drawn = found["main"].panels[0].picture.in_file()
    assert drawn.startswith('<svg xmlns="http://www.w3.org/2000/svg"')
    assert theme.SERIES[0] in drawn
    assert "var(" not in drawn
    assert "data-" not in drawn


def test_the_palette_covers_both_themes() -> None:
    assert len(set(theme.SERIES)) == len(set(theme.SERIES_DARK)) == len(theme.SHAPES) == len(set(theme.DASHES))


def test_the_middle_trial_is_chosen() -> None:
    study = synthetic.study(warm_up_trials=0)
    records = synthetic.records(study, faults=False)
    results = analyse(records, study, seed=1)
    used = {(point.trial_id, point.attempt): point.value for point in results.of(Point) if point.used}
    shown = median_trials(by_cell(records), used)
    assert len(shown) == 8
    for record in shown:
        values = sorted(used[one.id, one.attempt] for one in records if one.treatment == record.treatment)
        assert used[record.id, record.attempt] == values[2]
    assert json.dumps([record.id for record in shown])


def test_axes_say_what_they_measure_so_that_the_zoom_can_draw_them_anew(found: dict[str, Figure]) -> None:
    main = _main_of(synthetic.study(nodes=(1, 3, 6))).panels[0].picture
    (side,) = [axis for axis in _axes(main) if axis[:2] == ["y", "linear"]]
    low, high, first, last, left, right = (float(part) for part in side[2:])
    assert (low, high) == (0, 80)
    assert first - last == 340
    ((_, marks), *_) = _with(main, "data-marks")
    assert [float(part) for part in marks.split(" ")] == [left, last, right - left, 340]
    (foot,) = [axis for axis in _axes(main) if axis[0] == "x"]
    assert foot[1] == "fixed"
    assert [float(part) for part in foot[4:6]] == [left, right]
    times = found["percentiles"].panels[0].picture
    (side,) = [axis for axis in _axes(times) if axis[:2] == ["y", "log"]]
    (domain,) = times.y_domains
    assert [float(part) for part in side[2:4]] == pytest.approx([domain.low, domain.high], rel=1e-6)


def test_the_main_chart_has_law_band_and_ideal_where_they_were_fitted() -> None:
    study = synthetic.study(nodes=(1, 2, 3, 4, 6), workloads=("A",), starts=3, warm_up_trials=0)
    analysis = study.analysis.model_copy(update={"response": "throughput_per_s"})
    load = study.load.model_copy(update={"threads": 8})
    study = study.model_copy(update={"analysis": analysis, "load": load})
    results = analyse(synthetic.records(study, faults=False), study, seed=1)
    figure = _main(results)
    assert "Bands: the universal scalability law" in figure.caption
    assert "Dotted: ideal" in figure.caption
    main = figure.panels[0].picture
    (ideal,) = [one for one, dash in _with(main, "stroke-dasharray") if dash == "1 3"]
    ends = re.findall(r"[ML]([^,]+),([^ML]+)", dict(ideal.attributes)["d"])
    assert len(ends) == 2
    (_, size), (_, value) = _inverse(main, "x"), _inverse(main, "y")
    first, last = ((size(float(x)), value(float(y))) for x, y in ends)
    assert first[0] == pytest.approx(1, abs=0.01)
    assert last[1] / last[0] == pytest.approx(first[1] / first[0], rel=0.01)
    bands = [one for one, _ in _with(main, "fill-opacity") if one.tag == "path"]
    assert len(bands) == 1


def test_interactions_are_drawn_both_ways_and_only_where_two_factors_vary(found: dict[str, Figure]) -> None:
    assert [panel.title for panel in found["profiles"].panels] == [
        "over nodes, one line per workload",
        "over workload, one line per nodes",
    ]
    study = synthetic.study(workloads=("A",))
    assert "profiles" not in catalogue.of_results(analyse(synthetic.records(study), study, seed=1))


def test_every_comparison_is_a_row_of_the_forest(found: dict[str, Figure]) -> None:
    panel = found["forest"].panels[0]
    labels = [f"workload {name}: nodes 1 → 3" for name in ("A", "C", "E", "I")]
    assert [text for text in _texts(panel.picture) if "→" in text] == labels
    assert panel.narrow is not None
    assert [text for text in _texts(panel.narrow) if text.startswith("workload")] == [
        label.partition(": ")[0] for label in labels
    ]
    tips = [tip for _, tip in _with(panel.picture, "data-tip")]
    assert [tip.partition(" · ")[0] for tip in tips] == labels


def test_rows_of_a_forest_that_are_called_alike_are_all_drawn() -> None:
    same = [ForestRow("the same", float(change), None, None, "undecided", False) for change in (-5, 5, 10)]
    drawn = picture(same, (-3.0, 3.0))
    heights = {dict(one.attributes)["cy"] for one in _walk(drawn) if one.tag == "circle"}
    assert len(heights) == 3
    assert _texts(drawn).count("undecided") == 3


@unhurried
@given(st.lists(st.floats(-50, 450), max_size=30), st.floats(1, 20))
def test_labels_are_apart_inside_and_in_their_order(wanted: list[float], gap: float) -> None:
    places = apart(wanted, gap, 0.0, 400.0)
    ordered = sorted(range(len(wanted)), key=wanted.__getitem__)
    assert all(places[right] - places[left] >= gap - 1e-6 for left, right in pairwise(ordered))
    if gap * max(len(wanted) - 1, 0) <= 400:
        assert all(-1e-6 <= place <= 400 + 1e-6 for place in places)
    free = all(right - left >= gap for left, right in pairwise(sorted(wanted)))
    if free and all(0 <= place <= 400 for place in wanted):
        assert places == wanted


@unhurried
@given(st.lists(st.text("abcdefghijklmnop ", min_size=1, max_size=20), min_size=1, max_size=12), st.booleans())
def test_labels_of_levels_do_not_overlap(words: list[str], staggered: bool) -> None:
    domain = Domain(-0.5, len(words) - 0.5)
    axis = Axis(domain, "", tuple((float(place), word) for place, word in enumerate(words)), True, staggered)
    scale = Scale(domain, 30.0, 300.0)
    ends: dict[int, float] = {}
    lines = lines_of_labels(axis, scale)
    assert lines[0] == 0
    for (value, word), line in zip(axis.ticks, lines, strict=True):
        if line is not None:
            left = scale.of(value) - text_px(word) / 2
            assert left >= ends.get(line, -1e9)
            ends[line] = left + text_px(word)


def test_a_name_that_is_too_long_is_cut() -> None:
    assert fitted("short", 100) == "short"
    cut = fitted("a name that is much too long to stand here", 100)
    assert cut.endswith("…")
    assert text_px(cut) <= 100
