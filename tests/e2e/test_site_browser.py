"""The documentation as a site (`make docs`): built, then read in a real browser, from a server and from its folder."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import threading
from collections import Counter
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from tools.docs.site.__main__ import ROOT, build
from tools.docs.site.sources import pages

from tests.e2e.chromium import Tab, tab

CHROMIUM = os.environ.get("STEELYARD_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
LOADED = re.compile(r"""<(?:(?:script|img|iframe|source)\b[^>]*\bsrc|link\b[^>]*\bhref)=["']?(https?:)?//""")
LOADED_BY_STYLE = re.compile(r"""@import\s+(url\()?["']?(https?:)?//|url\(["']?(https?:)?//""")
ELEMENTS = re.compile(r"<(li|tr|h[1-6]|pre|img|ol|blockquote)[ >]")
SEARCHED = "noise floor"
RESULTS = "[...document.querySelectorAll('.md-search-result__link')].map((link) => link.href)"
SCHEME = "document.body.getAttribute('data-md-color-scheme')"

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium: apt install chromium"),
    pytest.mark.skipif(importlib.util.find_spec("mkdocs") is None, reason="needs MkDocs: make docs"),
]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site; MkDocs ends with an error if a link or an anchor leads nowhere."""
    folder = tmp_path_factory.mktemp("site")
    assert build(folder) == 0
    return folder


class Silent(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def address(site: Path) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Silent, directory=str(site))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def searched(browser: Tab) -> list[str]:
    """Addresses that the search box finds."""
    browser.value("document.querySelector('label[for=__search]').click()")
    box = "document.querySelector('.md-search__input')"
    browser.value(f"{box}.focus(), {box}.value = {json.dumps(SEARCHED)}, {box}.dispatchEvent(new Event('keyup'))")
    browser.until(f"{RESULTS}.length > 0")
    found: list[str] = browser.value(RESULTS)
    return found


def test_a_reader_searches_changes_colours_and_fetches_nothing_from_elsewhere(
    site: Path, address: str, tmp_path: Path
) -> None:
    assert CHROMIUM is not None
    with tab(CHROMIUM, f"{address}/docs/howto/read-the-report.html", tmp_path / "profile") as browser:
        sidebar = "document.querySelector('.md-sidebar--primary')"
        assert browser.value(f"{sidebar}.getBoundingClientRect().width") > 100
        assert "Compare two stores" in browser.value(f"{sidebar}.innerText")
        assert browser.value(SCHEME) == "default"
        browser.value("document.querySelector('label[title=\"Switch to dark mode\"]').click()")
        browser.until(f"{SCHEME} === 'slate'")
        assert any("measure-the-noise-floor.html" in found for found in searched(browser))
        requested = browser.value("performance.getEntriesByType('resource').map((entry) => entry.name)")
        assert [url for url in requested if not url.startswith(f"{address}/")] == []
        assert any("search" in url for url in requested)
        assert browser.complaints == []


def test_search_works_without_a_server(site: Path, tmp_path: Path) -> None:
    assert CHROMIUM is not None
    with tab(CHROMIUM, (site / "index.html").as_uri(), tmp_path / "profile") as browser:
        assert any("measure-the-noise-floor.html" in found for found in searched(browser))


def test_no_file_of_the_site_loads_from_elsewhere(site: Path) -> None:
    files = {path: path.read_text(encoding="utf-8") for path in site.rglob("*") if path.suffix in (".html", ".css")}
    assert len(files) > len(pages(ROOT))
    for path, text in files.items():
        found = (LOADED if path.suffix == ".html" else LOADED_BY_STYLE).search(text)
        assert found is None, f"{path.relative_to(site)}: {found and found[0]}"


def test_reports_of_the_gallery_are_pages_of_the_site(site: Path) -> None:
    for report in ROOT.glob("docs/gallery/*/*.html"):
        page = site / report.parent.relative_to(ROOT) / "index.html"
        assert f'href="{report.name}"' in page.read_text(encoding="utf-8")
        assert (page.parent / report.name).read_bytes() == report.read_bytes()


def test_pages_have_the_elements_that_other_readers_of_markdown_give_them(site: Path) -> None:
    """Python's Markdown and CommonMark differ in lists: an indent of four, an empty line before the first item."""
    markdown = MarkdownIt("commonmark").enable("table")
    for page in pages(ROOT):
        name = page.relative_to(ROOT).with_suffix(".html")
        html = (site / (name.with_name("index.html") if page.name == "README.md" else name)).read_text(encoding="utf-8")
        article = html.partition("<article")[2].partition("</article>")[0]
        wanted = Counter(ELEMENTS.findall(markdown.render(page.read_text(encoding="utf-8"))))
        assert Counter(ELEMENTS.findall(article)) == wanted, name
