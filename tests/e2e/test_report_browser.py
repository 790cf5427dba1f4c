"""The page as a browser shows it: both themes, the print, no complaint on the console, no request to anywhere."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import zlib
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from steelyard.report.draw.scales import Domain
from steelyard.report.page import build
from tests.e2e.chromium import Tab, tab
from tests.unit.report import synthetic
from tests.unit.report.test_page import page_input

CHROMIUM = os.environ.get("STEELYARD_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
TIMEOUT_S = 120.0
BROWSERS_OWN = ("google.com", "googleapis.com")
LIGHT, DARK = (255, 255, 255), (18, 22, 28)

pytestmark = [pytest.mark.browser, pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium: apt install chromium")]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    html = build(page_input(synthetic.study(nodes=(1, 3, 6))))
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


def pages_of(page: Path, profile: Path, address: str = "") -> int:
    """Number of pages that Chromium prints."""
    pdf = profile.with_suffix(".pdf")
    browse(f"{page.as_uri()}{address}", profile, f"--print-to-pdf={pdf}", "--no-pdf-header-footer")
    content = pdf.read_bytes()
    assert content.startswith(b"%PDF")
    return len(re.findall(rb"/Type\s*/Page[^s]", content))


def test_a_quickstart_prints_on_5_to_10_pages_and_whole_if_asked(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    page.write_text(build(page_input(synthetic.study(starts=3))), encoding="utf-8")
    short = pages_of(page, tmp_path / "short")
    assert 5 <= short <= 10
    assert pages_of(page, tmp_path / "whole", "?print=all") > 2 * short


SHOWN = "figure#main svg.chart [stroke='var(--s1)']:not(.off)"


@pytest.fixture(scope="module")
def opened(page: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    assert CHROMIUM is not None
    with tab(CHROMIUM, page.as_uri(), tmp_path_factory.mktemp("profile")) as found:
        yield found


def test_a_key_hides_and_shows_its_series_by_the_keyboard(opened: Tab) -> None:
    count = f'document.querySelectorAll("{SHOWN}").length'
    key = "document.querySelector('figure#main button.key-item')"
    before = opened.value(count)
    assert before > 0
    opened.value(f"{key}.focus()")
    opened.key("Enter")
    assert opened.value(f"{key}.getAttribute('aria-pressed')") == "false"
    assert opened.value(count) == 0
    opened.key("Enter")
    assert opened.value(f"{key}.getAttribute('aria-pressed')") == "true"
    assert opened.value(count) == before


def test_the_numbers_of_a_moment_are_told_to_pointer_and_keys(opened: Tab) -> None:
    chart = "[...document.querySelectorAll('#within [data-values] svg.chart')].find((one) => one.checkVisibility())"
    told = "document.getElementById('tip').textContent"
    opened.value(f"{chart}.scrollIntoView({{ block: 'center', behavior: 'instant' }}); {chart}.focus()")
    opened.key("Home")
    assert opened.value(told).startswith("0 s · ")
    opened.key("ArrowRight")
    assert opened.value(told).startswith("1 s · ")
    assert "op/s" in opened.value(told)
    box = opened.value(
        f"(() => {{ const b = {chart}.getBoundingClientRect(); return [b.left, b.top, b.width, b.height] }})()"
    )
    opened.move(box[0] + box[2] * 0.6, box[1] + box[3] / 2)
    second = int(opened.value(told).split(" ")[0])
    assert 6 <= second <= 10
    assert opened.value("document.getElementById('tip').hidden") is False


LABELS = (
    "[...{chart}.querySelectorAll('[data-axis^=\"{axis} {kind}\"] [data-part=label] text')].map((one) => "
    "Number(one.textContent.replaceAll(',', '')))"
)
SEEN = "[...document.querySelectorAll('{figure} svg.chart')].find((one) => one.checkVisibility())"


def _box(tab: Tab, chart: str) -> list[float]:
    tab.value(f"{chart}.scrollIntoView({{ block: 'center', behavior: 'instant' }})")
    return list(
        tab.value(
            f"(() => {{ const b = {chart}.getBoundingClientRect(); return [b.left, b.top, b.width, b.height] }})()"
        )
    )


def test_a_drag_looks_closer_at_a_course_and_a_button_gives_it_back(opened: Tab) -> None:
    chart = SEEN.format(figure="#within figure")
    seconds = LABELS.format(chart=chart, axis="x", kind="linear")
    whole = opened.value(seconds)
    left, top, width, height = _box(opened, chart)
    opened.drag((left + width * 0.4, top + height * 0.3), (left + width * 0.6, top + height * 0.5))
    closer = opened.value(seconds)
    assert whole[0] == 0
    assert min(closer) >= 4
    assert max(closer) <= 10
    assert closer == sorted(closer)
    assert len(closer) >= 2
    opened.move(left + width * 0.5, top + height / 2)
    told = opened.value("document.getElementById('tip').textContent")
    assert min(closer) - 1 <= float(told.split(" ")[0]) <= max(closer)
    figure = f"{chart}.closest('figure')"
    assert opened.value(f"{figure}.classList.contains('zoomed')") is True
    opened.value(f"[...{figure}.querySelectorAll('.zoom button')].at(-1).click()")
    assert opened.value(seconds) == whole
    assert opened.value(f"{figure}.classList.contains('zoomed')") is False


def test_keys_look_closer_at_the_main_chart_and_axes_follow(opened: Tab) -> None:
    chart = SEEN.format(figure="#main")
    values = LABELS.format(chart=chart, axis="y", kind="linear")
    place = f"(() => {{ const b = {chart}.querySelector('circle').getBoundingClientRect(); return b.width }})()"
    whole, size = opened.value(values), opened.value(place)
    opened.value(f"{chart}.scrollIntoView({{ block: 'center', behavior: 'instant' }}); {chart}.focus()")
    opened.key("+")
    closer = opened.value(values)
    assert min(whole) < min(closer)
    assert max(closer) < max(whole)
    assert opened.value(place) == pytest.approx(size, abs=0.1)
    opened.key("ArrowDown")
    assert min(opened.value(values)) < min(closer)
    opened.key("0")
    assert opened.value(values) == whole
    assert opened.complaints == []


DOMAINS = (
    Domain(0.0, 63.7),
    Domain(-3.2, 11.9),
    Domain(1000.2, 1000.9),
    Domain(1000.625, 1000.9375),
    Domain(0.0, 0.00043),
    Domain(0.9, 4200.0, "log"),
    Domain(13.0, 31.0, "log"),
    Domain(1e-3, 1e8, "log"),
)


@pytest.mark.parametrize("domain", DOMAINS, ids=str)
def test_the_zoom_and_the_pen_have_one_rule_for_ticks(opened: Tab, domain: Domain) -> None:
    for most in (3, 5, 8):
        ticks = domain.ticks(most)
        drawn = opened.value(f"zoom.ticksOf('{domain.kind}', {domain.low!r}, {domain.high!r}, {most})")
        assert drawn == pytest.approx(list(ticks), rel=1e-12)
        words = opened.value(f"zoom.labelsOf({list(ticks)!r}, {domain.high - domain.low!r})")
        assert words == list(domain.labels(ticks))


def test_looking_closer_leaves_marks_and_grid_at_one_place(opened: Tab) -> None:
    """A grid line's label, its line, and where a mark of that value would be stand on one height, however close."""
    chart = SEEN.format(figure="#main")
    opened.value(f"{chart}.focus()")
    opened.key("+")
    label, line, axis = (
        opened.value(f"[...{chart}.querySelectorAll('[data-axis^=y] {part}')].map((one) => {what})")
        for part, what in (
            ("[data-part=label] text", "[Number(one.textContent.replaceAll(',', '')), Number(one.getAttribute('y'))]"),
            (
                "[data-part=grid]",
                "one.getAttribute('d').match(/,([\\d.]+)H/g).map((part) => Number(part.slice(1, -1)))",
            ),
            ("[data-part=grid]", "one.parentNode.dataset.axis"),
        )
    )
    opened.key("0")
    low, high, first, last = (float(part) for part in axis[0].split(" ")[2:6])
    middle, quarter = (low + high) / 2, (high - low) / 4
    assert len(label) == len(line[0]) > 2
    for (value, y), at in zip(label, line[0], strict=True):
        assert y == pytest.approx(at + 3.5, abs=0.11)
        expected = first + (value - (middle - quarter)) / (2 * quarter) * (last - first)
        assert at == pytest.approx(expected, abs=0.11)


def test_panels_with_axes_of_their_own_are_looked_at_one_by_one(opened: Tab) -> None:
    charts = "[...document.querySelectorAll('#dots svg.chart')]"
    values = [LABELS.format(chart=f"{charts}[{place}]", axis="y", kind="linear") for place in (0, 1)]
    before = [opened.value(one) for one in values]
    left, top, width, height = _box(opened, f"{charts}[0]")
    opened.drag((left + width * 0.2, top + height * 0.2), (left + width * 0.6, top + height * 0.5))
    assert opened.value(values[0]) != before[0]
    assert opened.value(values[1]) == before[1]
    opened.value("dispatchEvent(new Event('beforeprint')); dispatchEvent(new Event('afterprint'))")
    assert [opened.value(one) for one in values] == before


def test_commands_and_the_citation_have_a_copy_button(opened: Tab) -> None:
    copy = "[...document.querySelectorAll('.pairs .copy button')]"
    assert opened.value(f"{copy}.length") == 4
    before = "one.parentNode.previousElementSibling.textContent.split(/[ {]/)[0]"
    assert opened.value(f"{copy}.map((one) => {before})") == ["steelyard"] * 3 + ["@software"]
    opened.value(
        "window.copied = ''; Object.defineProperty(navigator, 'clipboard', "
        "{ value: { writeText: async (text) => { window.copied = text; } }, configurable: true }); "
        f"{copy}[0].click()"
    )
    opened.until("window.copied !== ''")
    assert opened.value("window.copied") == "steelyard run STORE/study.toml --store again"


def test_a_table_is_downloaded_whole(opened: Tab) -> None:
    opened.value(
        "window.saved = []; URL.createObjectURL = (blob) => { window.saved.push(blob); return '#'; }; "
        "[...document.querySelectorAll('[data-table=trials] button')][0].click()"
    )
    opened.until("window.saved.length === 1")
    rows = str(opened.value("window.saved[0].text()")).strip().splitlines()
    assert rows[0].startswith("nodes,workload,trial_id")
    assert len(rows) > 40


CLOSED = "[...document.querySelectorAll('details:not(.choice):not([open])')].length"
SEEN_IN = "[...document.querySelectorAll('{what}')].filter((one) => one.checkVisibility()).length"


def test_what_is_folded_is_printed_on_request_only(opened: Tab) -> None:
    before = opened.value(CLOSED)
    assert before > 5
    opened.call("Emulation.setEmulatedMedia", media="print")
    opened.value("dispatchEvent(new Event('beforeprint'))")
    assert opened.value(CLOSED) == before
    assert opened.value(SEEN_IN.format(what="details:not([open]) > summary")) == 0
    assert opened.value(SEEN_IN.format(what=".on-request")) == 0
    for name in ("#answers", "#main", "#comparisons", "#cells", "#method"):
        assert opened.value(SEEN_IN.format(what=name)) == 1
    opened.value("document.documentElement.classList.add('print-all'); dispatchEvent(new Event('beforeprint'))")
    assert opened.value(CLOSED) == 0
    assert opened.value(SEEN_IN.format(what=".on-request")) > 5
    wide = (
        "[...document.querySelectorAll('.scroll')].filter((one) => one.checkVisibility() && "
        "one.scrollWidth > document.querySelector('main').clientWidth + 1).map((one) => one.getAttribute('aria-label'))"
    )
    opened.call("Emulation.setDeviceMetricsOverride", width=700, height=1000, deviceScaleFactor=1, mobile=False)
    opened.until("innerWidth === 700")
    assert opened.value(wide) == []
    opened.call("Emulation.clearDeviceMetricsOverride")
    opened.call("Emulation.setEmulatedMedia", media="")
    opened.value("dispatchEvent(new Event('afterprint')); document.documentElement.classList.remove('print-all')")
    assert opened.value(CLOSED) == before


def test_the_button_prints_everything_and_the_words_open(opened: Tab) -> None:
    opened.value("window.printed = 0; window.print = () => { window.printed = document.documentElement.className; }")
    opened.value("document.getElementById('print-all').click()")
    assert opened.value("window.printed") == "scripted print-all"
    assert opened.value("document.documentElement.className") == "scripted"
    assert opened.value("document.getElementById('words').open") is False
    opened.value("document.querySelector('a[href=\"#words\"]').click()")
    assert opened.value("document.getElementById('words').open") is True
    opened.value("document.getElementById('words').open = false")


def test_another_trial_can_be_chosen(opened: Tab) -> None:
    chooser = "document.querySelector('.chooser')"
    choices = f"[...{chooser}.querySelectorAll('.choice')]"
    seen = f"{choices}.filter((one) => one.checkVisibility()).map((one) => one.dataset.name)"
    first = opened.value(seen)
    assert len(first) == 1
    assert "the median trial" in first[0]
    list_ = f"{chooser}.querySelector('select')"
    opened.value(f"{list_}.selectedIndex = 1; {list_}.dispatchEvent(new Event('change'))")
    second = opened.value(seen)
    assert len(second) == 1
    assert second != first
    visible = "document.querySelector('.chooser details.choice figure').checkVisibility()"
    assert opened.value(visible) is True


def test_tables_sort_by_a_column_and_are_copied(opened: Tab) -> None:
    opened.value("document.querySelector('#cells thead th:nth-child(2) button').click()")
    column = "[...document.querySelectorAll('#cells tbody tr')].map((row) => row.cells[1].textContent)"
    assert (
        opened.value("document.querySelector('#cells thead th:nth-child(2)').getAttribute('aria-sort')") == "ascending"
    )
    levels = opened.value(column)
    assert levels == sorted(levels)
    opened.value(
        "window.copied = []; Object.defineProperty(navigator, 'clipboard', "
        "{ value: { writeText: async (text) => { window.copied.push(text); } } })"
    )
    for index in (0, 1):
        opened.value(
            f"document.querySelector('#cells').closest('.table').querySelectorAll('.copy button')[{index}].click()"
        )
    opened.until("window.copied.length === 2")
    tsv, markdown = opened.value("window.copied")
    rows = [line.split("\t") for line in tsv.splitlines()]
    assert len({len(row) for row in rows}) == 1
    assert [row[1] for row in rows[1:]] == levels
    assert markdown.splitlines()[1].startswith("| --- | --- |")
    assert len(markdown.splitlines()) == len(rows) + 1


def test_everything_has_a_name_and_the_script_never_failed(opened: Tab) -> None:
    charts = "[...document.querySelectorAll('svg.chart')]"
    nameless = f"{charts}.filter((one) => !one.querySelector('title')?.textContent.trim()).length"
    assert opened.value(nameless) == 0
    controls = "[...document.querySelectorAll('button, select, summary')]"
    buttons = f"{controls}.filter((one) => !(one.textContent.trim() || one.labels?.length)).length"
    assert opened.value(buttons) == 0
    assert opened.complaints == []


def test_a_phone_does_not_scroll_sideways(page: Path, tmp_path: Path) -> None:
    assert CHROMIUM is not None
    with tab(CHROMIUM, page.as_uri(), tmp_path / "profile") as phone:
        phone.call("Emulation.setDeviceMetricsOverride", width=360, height=740, deviceScaleFactor=2, mobile=True)
        phone.until("innerWidth === 360")
        assert phone.value("document.documentElement.scrollWidth") <= 360
        answers = "document.getElementById('answers').closest('.scroll')"
        assert phone.value(f"{answers}.scrollWidth - {answers}.clientWidth") <= 1


def test_without_scripts_everything_is_there(page: Path, tmp_path: Path) -> None:
    assert CHROMIUM is not None
    with tab(CHROMIUM, "about:blank#", tmp_path / "profile") as bare:
        bare.call("Emulation.setScriptExecutionDisabled", value=True)
        bare.call("Page.navigate", url=page.as_uri())
        bare.until("document.querySelectorAll('footer').length === 1")
        assert bare.value("document.documentElement.className") == ""
        assert bare.value("document.querySelectorAll('details.choice > summary').length") > 0
        assert bare.value("document.querySelector('details.choice > summary').checkVisibility()") is True
        assert bare.value("document.querySelectorAll('#within svg.chart').length") > 0
