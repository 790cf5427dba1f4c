"""Searches and further responses as a browser shows them: curves over rates, and a section per further response."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from steelyard.reading.reading import reading_of
from steelyard.reading.report_input import ReportInput
from steelyard.report.page import build
from tests.e2e.chromium import Tab, tab
from tests.unit.lab.fakes import Script, study, without_waiting
from tests.unit.lab.test_conductor import conduct, stored
from tests.unit.report.test_searches import LOAD, queued_ms

CHROMIUM = os.environ.get("STEELYARD_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")

pytestmark = [pytest.mark.browser, pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium: apt install chromium")]


def reported(folder: Path, **sections: Any) -> ReportInput:
    """Two levels of a factor, three starts each."""
    script = Script(folder, milliseconds=queued_ms)
    chosen = study(
        data={"state": "continue"}, factors={"nodes": [1, 2]}, design={"starts": 3, "trials": 1, "seed": 3}, **sections
    )
    with pytest.MonkeyPatch.context() as patch:
        without_waiting(patch)
        conduct(script, chosen)
    return reading_of(stored(script)).report_input(courses=False)


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    """Two responses besides the main one."""
    analysis = {"response": "execution_time_ms", "responses": ["throughput_per_s", "response_ms_p99"]}
    with _tab(tmp_path_factory.mktemp("further"), analysis=analysis) as shown:
        yield shown


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    """A search per trial."""
    with _tab(tmp_path_factory.mktemp("searched"), load=LOAD, analysis={"response": "capacity_per_s"}) as shown:
        yield shown


@contextlib.contextmanager
def _tab(folder: Path, **sections: Any) -> Iterator[Tab]:
    assert CHROMIUM is not None
    path = folder / "report.html"
    path.write_text(build(reported(folder, **sections)), encoding="utf-8")
    with tab(CHROMIUM, path.as_uri(), folder / "profile") as shown:
        yield shown


def test_each_further_response_has_a_section_that_can_be_seen(opened: Tab) -> None:
    # The trials have too few operations for a p99, so that nothing can be drawn of it.
    for name, drawn in (("throughput_per_s", True), ("response_ms_p99", False)):
        section = f"document.getElementById('response-{name}')"
        assert opened.value(f"{section} !== null"), name
        assert opened.value(f"{section}.querySelectorAll('table').length") >= 2
        assert (opened.value(f"{section}.querySelectorAll('svg.chart').length") >= 1) is drawn
        assert opened.value(f"{section}.getBoundingClientRect().height") > 200
    assert opened.complaints == []


def test_no_two_figures_or_tables_share_a_name(opened: Tab) -> None:
    ids = opened.value("[...document.querySelectorAll('[id]')].map((one) => one.id)")
    assert sorted(set(ids)) == sorted(ids)
    numbers = opened.value(
        "[...document.querySelectorAll('figcaption')].map((one) => (one.textContent.match(/Figure \\d+/) || [''])[0])"
    )
    named = [number for number in numbers if number]
    assert len(set(named)) == len(named) > 3


def test_the_curve_over_rates_is_drawn_within_its_picture(searched: Tab) -> None:
    figure = "document.getElementById('main')"
    assert searched.value(f"{figure}.querySelectorAll('svg.chart').length") == 2
    outside = (
        f"[...{figure}.querySelectorAll('svg.chart')].flatMap((chart) => {{ const box = chart.getBoundingClientRect();"
        " return [...chart.querySelectorAll('circle, text')].filter((one) => { const b = one.getBoundingClientRect();"
        " return b.width && (b.left < box.left - 1 || b.right > box.right + 1 || b.bottom > box.bottom + 1); }) })"
        ".length"
    )
    assert searched.value(outside) == 0
    assert "Dashed line: the limit" in searched.value(f"{figure}.textContent")


def test_a_narrow_window_scrolls_tables_and_not_the_page(opened: Tab) -> None:
    opened.call("Emulation.setDeviceMetricsOverride", width=700, height=1000, deviceScaleFactor=1, mobile=False)
    opened.until("innerWidth === 700")
    assert opened.value("document.documentElement.scrollWidth") <= 701
    opened.call("Emulation.clearDeviceMetricsOverride")
