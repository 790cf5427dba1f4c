"""`steelyard serve`: where it listens, how it ends, what it refuses."""

from __future__ import annotations

import os
import queue
import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from steelyard.cli.commands.serve import scratch_folder, serve
from steelyard.model.errors import SteelyardError, StoreError, StudyError
from steelyard.node import signals
from tests.unit.cli.screen import printed
from tests.unit.serve.stores import a_record, write

STEELYARD = Path(sys.executable).parent / "steelyard"


def start(*words: str | Path, scratch: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [str(STEELYARD), "serve", *map(str, words)],
        env={**os.environ, "TMPDIR": str(scratch), "STEELYARD_STATE": str(scratch.parent / "state"), "NO_COLOR": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Temporary files are made in the test's folder: Python reads TMPDIR only once."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


def test_it_prints_its_address_and_ends_cleanly(tmp_path: Path) -> None:
    store, scratch = write(tmp_path / "root" / "s", [a_record(0)]), tmp_path / "scratch"
    scratch.mkdir()
    process = start(store, "--port", "0", scratch=scratch)
    assert process.stdout is not None
    url = process.stdout.readline().strip()
    address, _, query = url.partition("?")
    assert re.fullmatch(r"token=[0-9a-f]{48}", query)
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(address, timeout=60)
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    with browser.open(url, timeout=60) as answer:
        assert b"does the laboratory work?" in answer.read()
        assert answer.url == address
    # What is being made when it ends is ended too.
    browser.open(f"{address}/report", timeout=60).close()
    process.send_signal(signal.SIGTERM)
    output, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert output == ""
    assert said.splitlines() == [
        f"1 store in {store.resolve()}",
        "this machine only, read-only; the token keeps other users out",
        "press ctrl-C to stop",
        "ended",
    ]
    assert list(scratch.iterdir()) == []


@pytest.mark.parametrize(
    ("folder", "address", "kind", "told"),
    [
        ("gone", "127.0.0.1", StoreError, "gone is not a folder"),
        (".", "0.0.0.0", StudyError, "pages are served on this machine only"),
        (".", "example.org", StudyError, "pages are served on this machine only"),
    ],
)
@pytest.mark.usefixtures("temporary")
def test_what_is_refused(
    tmp_path: Path, folder: str, address: str, kind: type[SteelyardError], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEELYARD_STATE", str(tmp_path.parent / f"{tmp_path.name}-state"))
    with pytest.raises(kind, match=told):
        serve(tmp_path / folder, port=0, address=address)
    assert list(tmp_path.iterdir()) == []


def test_a_taken_port_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEELYARD_STATE", str(tmp_path / "state"))
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(SteelyardError, match=r"is in use") as caught:
            serve(tmp_path, port=port)
    assert "--port 0" in caught.value.hint


@pytest.mark.usefixtures("temporary")
def test_the_browser_is_started_without_the_token_in_its_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: queue.SimpleQueue[tuple[str, str, int]] = queue.SimpleQueue()

    def browser(address: str) -> None:
        page = Path(urllib.request.url2pathname(address.removeprefix("file:")))
        started.put((address, page.read_text(), page.stat().st_mode & 0o777))
        os.kill(os.getpid(), signal.SIGINT)

    write(tmp_path / "root" / "s", [a_record(0)])
    monkeypatch.setenv("STEELYARD_STATE", str(tmp_path / "state"))
    # No browser is started.
    monkeypatch.setattr("webbrowser.open", browser)
    before = {number: signal.getsignal(number) for number in signals.ENDING}
    try:
        shown = printed(lambda: serve(tmp_path / "root", port=0, open_browser=True))
    finally:  # A served process ends now, and ignores what else would end it.
        for number, handler in before.items():
            signal.signal(number, handler)
    address, page, mode = started.get_nowait()
    token = shown.out.strip().partition("?token=")[2]
    assert (shown.code, len(token), mode) == (130, 48, 0o600)
    assert token not in address
    assert shown.out.strip() in page


KILLED = """
import os, signal
from steelyard.cli.commands.serve import scratch_folder
held = scratch_folder()
held.__enter__()
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.usefixtures("temporary")
def test_what_a_killed_server_left_is_removed_by_the_next_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "steelyard-serve-no-lock").mkdir()
    subprocess.run(
        [sys.executable, "-c", KILLED], env={**os.environ, "TMPDIR": str(tmp_path)}, check=False, timeout=120
    )
    assert len(list(tmp_path.iterdir())) == 2
    with scratch_folder() as first, scratch_folder() as second:
        assert first.stat().st_mode & 0o077 == 0
        assert {one.name for one in tmp_path.iterdir()} == {first.name, second.name, "steelyard-serve-no-lock"}
    assert [one.name for one in tmp_path.iterdir()] == ["steelyard-serve-no-lock"]


def test_under_nohup_it_does_not_end_with_the_terminal(tmp_path: Path) -> None:
    write(tmp_path / "root" / "s", [a_record(0)])
    (tmp_path / "scratch").mkdir()
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        process = start(tmp_path / "root", "--port", "0", scratch=tmp_path / "scratch")
    finally:
        signal.signal(signal.SIGHUP, before)
    assert process.stdout is not None
    url = process.stdout.readline().strip()
    process.send_signal(signal.SIGHUP)
    with urllib.request.build_opener(urllib.request.HTTPCookieProcessor()).open(url, timeout=60) as answer:
        assert answer.status == 200
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
