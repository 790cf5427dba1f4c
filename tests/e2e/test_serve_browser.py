"""`steelyard serve` as a user has it: a study goes on, the page in a real browser follows it to its report.

Nothing here is a matter of time: the study has more trials than are waited for, and is ended when the page has shown
what it should.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.e2e.chromium import Tab, tab
from tests.e2e.laboratory import Laboratory
from tests.unit.serve.stores import a_record, write

CHROMIUM = os.environ.get("STEELYARD_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
ENDS_S = 300.0
"""A limit for a machine that is very slow; nothing is waited for longer than it takes."""
SILENT_S = 4.0
"""A page that asks by itself does so once per second."""
TRIALS = 400
STUDY = f"""
format = 1
probes = ["os"]

[study]
name = "watched"
title = "Watched <from> outside"
question = "Does the page in the browser say what the laboratory does?"

[site]
name = "local"

[system]
name = "simulated"
service_us = 1000.0

[workload]
name = "ycsb-c"
records = 1000

[load]
schedule = "constant"
rate_per_s = 200.0
threads = 32
duration_s = 2

[data]
state = "continue"

[design]
starts = 1
trials = {TRIALS}

[limits]
background_cpu_fraction = 1.0
lag_p99_ms = 5000.0
offered_rate_fraction = 0.1
generator_cpu_fraction = 100.0
attempts = 1

[factors]
nodes = [1]
"""

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium: apt install chromium"),
]

DONE = "parseInt(document.querySelector('[data-part=head] .strip dd').textContent)"
STATE = "document.querySelector('[data-part=head] .state').textContent"
COUNTS = "[...document.querySelectorAll('[data-part=cells] tbody td')].map((cell) => cell.textContent)"
LINKS = "[...document.querySelectorAll('.files a')]"
LINK = "document.getElementById('link').textContent"
ASK = "dispatchEvent(new Event('online'))"
HEADING = "document.querySelector('h1').textContent"


@contextlib.contextmanager
def served(laboratory: Laboratory, *words: str) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """The server's address, and the server, which is interrupted at the end. Its state folder is not the study's: at
    idle priority it would wait for all other tests."""
    elsewhere = Laboratory(laboratory.folder, state=laboratory.folder / "state-of-serve")
    process = elsewhere.start("serve", laboratory.store, *words)
    try:
        assert process.stdout is not None
        url = process.stdout.readline().decode().strip()
        assert url.startswith("http://127.0.0.1:"), f"ended with {process.wait(ENDS_S)}"
        yield url, process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        assert process.wait(ENDS_S) == 130


def at(url: str, path: str) -> str:
    """A page by the address that the command printed, with its token."""
    address, mark, token = url.partition("?")
    return f"{address}{path}{mark}{token}"


def test_a_browser_without_the_token_is_told_what_to_do(laboratory: Laboratory, tmp_path: Path) -> None:
    assert CHROMIUM is not None
    write(laboratory.store / "watched", [a_record(0)])
    with (
        served(laboratory, "--port", "0") as (url, _),
        tab(CHROMIUM, url.partition("?")[0], tmp_path / "profile") as page,
    ):
        assert "Open the address that it printed" in page.value("document.body.textContent")
        page.complaints.clear()  # the browser says 403, too
        page.call("Page.navigate", url=url)
        page.until(f"document.querySelector('h1') !== null && {HEADING} === 'Stores'")
        assert page.value("location.search") == ""
        page.call("Page.navigate", url=url.partition("?")[0])
        page.until(f"document.querySelector('h1') !== null && {HEADING} === 'Stores'")
        door = tmp_path / "open.html"
        door.write_text(f'<meta http-equiv="refresh" content="0;url={url}">', encoding="utf-8")
        page.call("Network.enable")
        page.call("Network.clearBrowserCookies")
        page.call("Page.navigate", url=door.as_uri())
        page.until(f"location.protocol === 'http:' && document.querySelector('h1') !== null && {HEADING} === 'Stores'")
        assert page.value("location.search") == ""


@pytest.mark.agent
@pytest.mark.root
def test_a_study_is_followed_to_its_report(laboratory: Laboratory, tmp_path: Path) -> None:
    assert CHROMIUM is not None
    study = tmp_path / "watched.toml"
    study.write_text(STUDY, encoding="utf-8")
    laboratory.store.mkdir()
    with served(laboratory, "--port", "0") as (url, _), tab(CHROMIUM, url, tmp_path / "profile") as page:
        assert page.value(HEADING) == "Stores"
        page.value("window.never = 'loaded again'")
        running = laboratory.start("run", study, "--store", laboratory.store, "--plain")
        try:
            # The list finds the new store by itself.
            page.until("document.querySelector('.stores .in-progress') !== null")
            assert page.value("window.never") == "loaded again"
            follow(page, at(url, "s/watched"))
        finally:
            running.send_signal(signal.SIGINT)
            code = running.wait(ENDS_S)
        assert code == 130
        page.until(f"{STATE} === 'interrupted'")
        page.until(f"{LINK} === 'up to date'")
        done = len(list(laboratory.store.glob("watched/trials/[!.]*/trial.json")))
        assert page.value(DONE) == done
        assert page.value("window.never") == "still here"
        said = page.value("document.getElementById('say').textContent")
        assert said.startswith(f"interrupted: {done} of {TRIALS} trials done")
        before = listing(laboratory.store)
        report(page, done)
        assert listing(laboratory.store) == before
        assert page.complaints == []


def follow(page: Tab, url: str) -> None:
    """The page of the study: counts grow without another load, and what the reader does with it stays."""
    page.call("Page.navigate", url=url)
    page.until(f"location.pathname === '/s/watched' && document.readyState === 'complete' && {STATE} === 'in progress'")
    page.value("window.never = 'still here'")
    assert page.value(HEADING) == "Watched <from> outside"
    page.until("document.querySelector('.course path') !== null")
    page.value("document.querySelector('[data-part=log] summary').focus()")
    page.value("document.querySelector('[data-part=log] details').open = true")
    page.value("document.documentElement.style.minHeight = '5000px'; scrollTo(0, 137)")
    first = page.value(DONE)
    page.until(f"{DONE} > {first}")
    page.until(f"{COUNTS}.some((text) => /^[1-9][0-9]* of {TRIALS}$/.test(text))")
    assert page.value("scrollY") == 137
    assert page.value("document.activeElement.tagName") == "SUMMARY"
    assert page.value("document.querySelector('[data-part=log] details').open")
    assert page.value("window.never") == "still here"
    page.until("document.getElementById('say').textContent.includes('trials done')")


def report(page: Tab, trials: int) -> None:
    """By the keyboard to the report of these trials, which is made meanwhile; then its tables."""
    page.value("document.querySelector('[data-part=files] a').focus()")
    page.key("Enter")
    page.until("document.readyState === 'complete' && document.getElementById('answer') !== null")
    assert page.value("document.documentElement.classList.contains('scripted')")
    assert page.value(HEADING) == "Watched <from> outside"
    page.value("location.href = '/s/watched/tables'")
    page.until(f"document.readyState === 'complete' && {LINKS}.length > 3")
    text = page.value(f"fetch({LINKS}.find((a) => a.textContent === 'trials.csv').href).then((found) => found.text())")
    assert len(text.splitlines()) == 1 + trials


def listing(folder: Path) -> set[tuple[str, int]]:
    """Every file below, with the instant of its last change."""
    return {(str(path), path.stat().st_mtime_ns) for path in folder.rglob("*")}


def test_the_page_outlives_store_and_server(laboratory: Laboratory, tmp_path: Path) -> None:
    """The store goes and comes back, then the server ends, and another program takes its port: the page says so and
    keeps what it shows. The other gets nothing that opens the next server."""
    assert CHROMIUM is not None
    write(laboratory.store / "watched", [a_record(place) for place in range(8)])
    with contextlib.ExitStack() as stack:
        with served(laboratory, "--port", "0") as (url, _):
            page = stack.enter_context(tab(CHROMIUM, at(url, "s/watched"), tmp_path / "profile"))
            page.until(f"{LINK} === 'up to date'")
            away = laboratory.store.rename(tmp_path / "away")
            page.value(ASK)
            page.until(f"{LINK}.startsWith('There is no store of this name here now')")
            assert page.value(STATE) == "finished"
            away.rename(laboratory.store)
            page.value(ASK)
            page.until(f"{LINK} === 'up to date'")
        page.value(ASK)
        page.until(f"{LINK}.startsWith('no answer since')")
        assert page.value(STATE) == "finished"
        port = urlsplit(url).port
        assert port is not None
        with impostor(port) as asked:
            threading.Event().wait(SILENT_S)
            assert asked == []
            page.value("document.getElementById('again').click()")
            page.until(f"{LINK}.startsWith('another program answers here')")
            threading.Event().wait(SILENT_S)
            assert [path.partition("?")[0] for path, _ in asked] == ["/api/s/watched"]
            assert all(cookie is None for _, cookie in asked)
            assert page.value(STATE) == "finished"
            page.call("Page.reload")
            page.until("document.title === 'impostor'")
        # A page that the reader loads again takes its cookie along: that of a process which has ended.
        cookies = [cookie for _, cookie in asked if cookie is not None]
        assert len(cookies) > 0
        with served(laboratory, "--port", str(port)) as (next_url, _):
            for cookie in cookies:
                request = urllib.request.Request(next_url.partition("?")[0], headers={"Cookie": cookie})
                with pytest.raises(urllib.error.HTTPError, match="403"):
                    urllib.request.urlopen(request, timeout=ENDS_S)
            page.call("Page.navigate", url=at(next_url, "s/watched"))
            page.until(f"document.getElementById('link') !== null && {LINK} === 'up to date'")


@contextlib.contextmanager
def impostor(port: int) -> Iterator[list[tuple[str, str | None]]]:
    """Another user's server on a port that has become free: what it is asked, and with which cookie."""
    asked: list[tuple[str, str | None]] = []

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append((self.path, self.headers["Cookie"]))
            body = b'{"parts": [], "title": "impostor", "go": "/evil"}'
            self.send_response(200)
            self.send_header("Content-Type", "text/html" if not self.path.startswith("/api") else "application/json")
            self.send_header("X-Steelyard-Proof", "00" * 32)
            self.end_headers()
            self.wfile.write(body if self.path.startswith("/api") else b"<title>impostor</title>")

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    accepted: list[socket.socket] = []

    class Server(ThreadingHTTPServer):
        def get_request(self) -> tuple[socket.socket, Any]:
            connection, address = super().get_request()
            accepted.append(connection)
            return connection, address

    with Server(("127.0.0.1", port), Answers) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield asked
        finally:
            server.shutdown()
            thread.join()
            # As if its process had ended. A browser opens connections in advance, and would use one of these to ask
            # the next server on the port.
            for connection in accepted:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
