"""`steelyard serve` as a user has it: a study goes on, the page in a real browser follows it to its report."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.chromium import Tab, tab
from tests.e2e.laboratory import Laboratory

CHROMIUM = os.environ.get("STEELYARD_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
ENDS_S = 30.0
STUDY = """
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
duration_s = 3

[data]
state = "continue"

[design]
starts = 1
trials = 3

[limits]
foreign_cpu_fraction = 1.0
lag_p99_ms = 5000.0
offered_rate_fraction = 0.1
generator_cpu_fraction = 100.0
attempts = 1

[factors]
nodes = [1]
"""

pytestmark = [
    pytest.mark.agent,
    pytest.mark.root,
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium: apt install chromium"),
]

DONE = "parseInt(document.querySelector('[data-part=head] .strip dd').textContent)"
STATE = "document.querySelector('[data-part=head] .state').textContent"
COUNTS = "[...document.querySelectorAll('[data-part=cells] tbody td')].map((cell) => cell.textContent)"
LINKS = "[...document.querySelectorAll('.files a')]"
HEADING = "document.querySelector('h1').textContent"


@contextlib.contextmanager
def served(laboratory: Laboratory, *words: str) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """The server's address, and the server, which is interrupted at the end."""
    process = laboratory.start("serve", laboratory.store, *words)
    try:
        assert process.stdout is not None
        url = process.stdout.readline().decode().strip()
        assert url.startswith("http://127.0.0.1:"), f"ended with {process.wait(ENDS_S)}"
        yield url, process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        assert process.wait(ENDS_S) == 130


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
            follow(page, f"{url}s/watched")
            assert running.wait(ENDS_S) == 0
        finally:
            if running.poll() is None:
                running.send_signal(signal.SIGINT)
                running.wait(ENDS_S)
        page.until(f"{STATE} === 'finished'")
        page.until("document.getElementById('link').textContent === 'up to date'")
        assert page.value(DONE) == 3
        assert page.value("window.never") == "still here"
        assert page.value("document.getElementById('say').textContent").startswith("finished: 3 of 3 trials done")
        before = listing(laboratory.store)
        report(page)
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
    page.until(f"{COUNTS}.some((text) => /^[1-3] of 3$/.test(text))")
    assert page.value("scrollY") == 137
    assert page.value("document.activeElement.tagName") == "SUMMARY"
    assert page.value("document.querySelector('[data-part=log] details').open")
    assert page.value("window.never") == "still here"
    page.until("document.getElementById('say').textContent.includes('trials done')")


def report(page: Tab) -> None:
    """By the keyboard to the report, which is made meanwhile; then its tables."""
    page.value("document.querySelector('[data-part=files] a').focus()")
    page.key("Enter")
    page.until("document.readyState === 'complete' && document.getElementById('answer') !== null")
    assert page.value("document.documentElement.classList.contains('scripted')")
    assert page.value(HEADING) == "Watched <from> outside"
    page.value("location.href = '/s/watched/tables'")
    page.until(f"document.readyState === 'complete' && {LINKS}.length > 3")
    text = page.value(f"fetch({LINKS}.find((a) => a.textContent === 'trials.csv').href).then((found) => found.text())")
    assert len(text.splitlines()) == 4


def listing(folder: Path) -> set[tuple[str, int]]:
    """Every file below, with the instant of its last change."""
    return {(str(path), path.stat().st_mtime_ns) for path in folder.rglob("*")}


def test_the_page_outlives_server_and_store(laboratory: Laboratory, tmp_path: Path) -> None:
    """The server restarts, the store goes and comes back: the page says so, keeps what it shows, and goes on."""
    assert CHROMIUM is not None
    study = tmp_path / "watched.toml"
    study.write_text(STUDY.replace("duration_s = 3", "duration_s = 1").replace("trials = 3", "trials = 1"))
    assert laboratory.run(study).returncode == 0
    link = "document.getElementById('link').textContent"
    with contextlib.ExitStack() as stack:
        with served(laboratory, "--port", "0") as (url, _):
            page = stack.enter_context(tab(CHROMIUM, f"{url}s/watched", tmp_path / "profile"))
            page.until(f"{link} === 'up to date'")
        page.value("dispatchEvent(new Event('online'))")
        page.until(f"{link}.startsWith('no answer since')")
        assert page.value(STATE) == "finished"
        port = url.rstrip("/").rpartition(":")[2]
        with served(laboratory, "--port", port):
            page.until(f"{link} === 'up to date'")
            away = laboratory.store.rename(tmp_path / "away")
            page.value("dispatchEvent(new Event('online'))")
            page.until(f"{link}.startsWith('There is no store of this name here now')")
            assert page.value(STATE) == "finished"
            away.rename(laboratory.store)
            page.until(f"{link} === 'up to date'")
