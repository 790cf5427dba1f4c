"""The page as a browser shows it: both themes, the print, no complaint on the console, no request to anywhere."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import zlib
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from steelyard.analysis.analyse import analyse
from steelyard.analysis.tables import tables
from steelyard.report import traces
from steelyard.report.page import PageInput, build
from tests.unit.report import synthetic

CHROMIUM = os.environ.get("STEELYARD_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
TIMEOUT_S = 120.0
BROWSERS_OWN = ("google.com", "googleapis.com")
LIGHT, DARK = (255, 255, 255), (18, 22, 28)

pytestmark = [pytest.mark.browser, pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium: apt install chromium")]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    study = synthetic.study()
    records = synthetic.records(study)
    results = analyse(records, study, seed=1)
    used = {(point.trial_id, point.attempt): point.value for point in results.points if point.used}
    html = build(
        PageInput(
            study=study,
            results=results,
            records=records,
            traces=[traces.Trace(record, synthetic.samples(record)) for record in traces.chosen(records, used)],
            facts=synthetic.facts(records[-1]),
            tables=tables(results),
        )
    )
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(html, encoding="utf-8")
    return path


def browse(url: str, profile: Path, *what: str) -> subprocess.CompletedProcess[str]:
    """Open a page in headless Chromium, which does `what` and ends."""
    assert CHROMIUM is not None
    quiet = ("--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-quic")
    argv = [
        CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--hide-scrollbars", *quiet,
        f"--user-data-dir={profile}", *what, url,
    ]  # fmt: skip
    return subprocess.run(argv, capture_output=True, text=True, timeout=TIMEOUT_S, check=True)


def first_pixel(png: Path) -> tuple[int, ...]:
    """Colour at the top left: no filter of PNG changes the first pixel of the first line."""
    content, data, at = png.read_bytes(), b"", 8
    while at < len(content):
        size = int.from_bytes(content[at : at + 4], "big")
        if content[at + 4 : at + 8] == b"IDAT":
            data += content[at + 8 : at + 8 + size]
        at += size + 12
    return tuple(zlib.decompress(data)[1:4])


def requests(log: Path) -> set[str]:
    """URLs that a network was asked for, without those that Chromium asks for on its own behalf whatever the page."""
    found = set()
    for event in json.loads(log.read_text(encoding="utf-8"))["events"]:
        url = str(event.get("params", {}).get("url", ""))
        host = urlsplit(url).hostname or ""
        if url.startswith(("http:", "https:", "ws:", "wss:")) and not host.endswith(BROWSERS_OWN):
            found.add(url)
    return found


@pytest.mark.parametrize(("theme", "colour"), [("light", LIGHT), ("dark", DARK)])
def test_both_themes_are_drawn(page: Path, tmp_path: Path, theme: str, colour: tuple[int, ...]) -> None:
    png = tmp_path / "page.png"
    browse(f"{page.as_uri()}#{theme}", tmp_path / "profile", f"--screenshot={png}", "--window-size=1200,2400")
    assert first_pixel(png) == colour
    assert png.stat().st_size > 100_000


def test_nothing_is_asked_of_a_network_and_nothing_complains(page: Path, tmp_path: Path) -> None:
    log = tmp_path / "net.json"
    done = browse(page.as_uri(), tmp_path / "profile", "--dump-dom", f"--log-net-log={log}", "--enable-logging=stderr")
    assert [line for line in done.stderr.splitlines() if ":CONSOLE" in line] == []
    assert requests(log) == set()


def test_the_script_ran_and_the_texts_are_there(page: Path, tmp_path: Path) -> None:
    dom = browse(page.as_uri(), tmp_path / "profile", "--dump-dom").stdout
    assert '<html lang="en" class="scripted">' in dom
    assert ">Dark theme</button>" in dom
    assert "How does the execution time of YCSB workloads change" in dom
    assert ">CSV</button>" in dom
    for number in (1, 2, 3):
        assert f"Figure {number}." in dom


def test_it_prints(page: Path, tmp_path: Path) -> None:
    pdf = tmp_path / "page.pdf"
    browse(page.as_uri(), tmp_path / "profile", f"--print-to-pdf={pdf}", "--no-pdf-header-footer")
    content = pdf.read_bytes()
    assert content.startswith(b"%PDF")
    assert content.count(b"/Type /Page\n") + content.count(b"/Type /Page ") + content.count(b"/Type/Page/") >= 5
