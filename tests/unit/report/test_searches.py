"""Searches in the report: rows of searches and windows, the curve of response time over rate, capacity over sizes."""

from __future__ import annotations

from pathlib import Path

import pytest

from steelyard.analysis.analyse import analyse
from steelyard.analysis.statistics import carried
from steelyard.analysis.statistics.carried import Carried
from steelyard.analysis.statistics.law import LawFit
from steelyard.analysis.statistics.scaling import Scaling
from steelyard.analysis.statistics.search import SearchRow
from steelyard.analysis.statistics.search_window import SearchWindow
from steelyard.analysis.statistics.summary import Summary
from steelyard.reading.reading import reading_of
from steelyard.reading.report_input import ReportInput
from steelyard.report.basics.theme import BAND
from steelyard.report.data.presentation import view
from steelyard.report.draw.axes import measured
from steelyard.report.draw.scales import Domain
from steelyard.report.figures import rate_curves
from steelyard.report.figures.catalogue import of_results
from steelyard.report.forms import NOT_POOLED
from steelyard.report.page import build
from tests.unit.lab.fakes import Script, study, without_waiting
from tests.unit.lab.test_conductor import conduct, stored

POOLED = {"throughput_per_s", "response_ms_p99", "service_ms_p99", "execution_time_ms", "error_percent", "errors"}
LOAD = {"schedule": "search", "objective": ["response_ms_p99 <= 10"], "threads": 64, "first_rate_per_s": 100}


def queued_ms(rate_per_s: float) -> float:
    return 4600 / max(1.0, 1000 - rate_per_s)


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> ReportInput:
    """Two rates allowed at most: one lets the search end by itself, the other makes it a lower bound."""
    script = Script(tmp_path_factory.mktemp("searched"), milliseconds=queued_ms)
    chosen = study(
        load=LOAD, data={"state": "continue"}, factors={"load.highest_rate_per_s": [300.0, 10000.0]},
        design={"starts": 3, "trials": 1, "seed": 3}, analysis={"response": "capacity_per_s"},
    )  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        without_waiting(patch)
        conduct(script, chosen)
    return reading_of(stored(script)).report_input(courses=False)


def test_a_lower_bound_is_shown_as_such_and_averaged_with_nothing(searched: ReportInput) -> None:
    rows = searched.results.of(SearchRow)
    bounds = [row for row in rows if row.treatment["load.highest_rate_per_s"] == 300.0]
    assert {(row.outcome, row.rate_per_s, row.high_per_s) for row in bounds} == {("at least", 300.0, None)}
    assert {row.outcome for row in rows if row not in bounds} == {"found"}
    cells = {summary.treatment["load.highest_rate_per_s"]: summary.n for summary in searched.results.main(Summary)}
    assert (cells.get(300.0, 0), cells[10000.0]) == (0, 3)
    page = build(searched)
    assert "at least 300 operations/s" in page
    assert "the search found a lower bound only" in page


def test_the_curve_has_every_window_limit_and_knee(searched: ReportInput) -> None:
    windows = searched.results.of(SearchWindow)
    assert len(windows) == sum(row.windows for row in searched.results.of(SearchRow))
    assert {row.binding for row in windows} == {"response_ms_p99 <= 10"}
    assert all((row.used > 1) == (not row.met) for row in windows)
    figures = of_results(searched.results)
    figure = figures["main"]
    assert len(figure.panels) == 2
    assert "Dashed line: the limit" in figure.caption
    assert "capacity" in figures["capacity"].title.lower()
    page = build(searched)
    assert page.index('id="main"') < page.index('id="capacity"') < page.index('id="provenance"')


def test_the_answer_leads_the_page_and_bounds_are_said_beside_it(searched: ReportInput) -> None:
    bound, found = carried.headline(searched.results.main(Carried))
    assert bound.startswith("highest_rate_per_s 300.0: 1 node carries at least 300 operations/s with p99 <= 10 ms")
    assert "10000.0: 1 node carries " in found
    assert searched.results.answer[:2] == (bound, found)
    assert build(searched).index("at least 300 operations/s with p99") < build(searched).index('id="main"')


def test_nothing_is_pooled_over_the_windows_of_a_search(searched: ReportInput) -> None:
    assert not {row.response for row in searched.results.of(Summary)} & POOLED
    assert not {"percentiles", "curves"} & set(of_results(searched.results))
    assert searched.tables["percentile"].height == searched.tables["pooled_percentile"].height == 0
    page = build(searched)
    assert NOT_POOLED in page
    assert 'id="responses"' not in page
    assert "99.9" not in page.partition('id="response-time"')[2].partition("<h2")[0]


def test_failed_operations_alone_are_drawn_from_0(searched: ReportInput) -> None:
    rows = searched.results.of(SearchWindow)
    none = [row.model_copy(update={"limited": "error_fraction", "value": 0.0, "limit": 0.01}) for row in rows]
    shown = searched.results.model_copy(update={"rows": {**searched.results.rows, "search_window": tuple(none)}})
    figure = rate_curves.rate_curves(view(shown))
    assert figure is not None
    assert "The axis of rates is logarithmic" in figure.caption


def test_an_interval_from_zero_is_drawn(searched: ReportInput) -> None:
    windows = searched.results.of(SearchWindow)
    found = next(row for row in searched.results.of(SearchRow) if row.outcome == "found")
    rows = [found.model_copy(update={"low_per_s": low}) for low in (found.low_per_s, 0.0, None)]
    x, y = (measured(Domain(10.0, 1e4, "log"), name) for name in "xy")
    drawn = [str(rate_curves._picture(windows, [row], x, y, 600.0)).count(BAND) for row in rows]
    assert drawn[0] == drawn[1] > drawn[2]


def test_capacity_of_each_size_is_read_from_the_trials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_waiting(monkeypatch)
    script = Script(tmp_path, milliseconds=queued_ms)
    sizes = [1, 2, 3, 4, 5]
    chosen = study(
        load=LOAD,
        data={"state": "continue"},
        factors={"nodes": sizes},
        design={"starts": 2, "trials": 1},
        analysis={"response": "capacity_per_s"},
    )
    conduct(script, chosen)
    records = stored(script).trials()
    results = analyse(records, chosen, seed=1)
    assert {summary.treatment["nodes"]: summary.n for summary in results.main(Summary)} == dict.fromkeys(sizes, 2)
    laws = results.of(LawFit)
    assert {(law.response, law.refusal) for law in laws if not law.refusal} == {("capacity_per_s", "")}
    speedups = [row for row in results.of(Scaling) if row.speedup is not None]
    assert {row.response for row in speedups} == {"capacity_per_s"}
