"""Routes and refusals, over a real socket of this machine."""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from steelyard.cli.commands import serve as serve_command
from steelyard.model.errors import SteelyardError, StudyError
from steelyard.serve import report_jobs, routes
from steelyard.serve.finished_answers import StudyAnswer
from steelyard.serve.store_cache import Shelf, StoreLook
from steelyard.serve.web import CONNECTIONS, PageServer, allowed_names
from steelyard.store import layout
from tests.unit.serve.served import REPORT, TOKEN, Served
from tests.unit.serve.stores import a_record, write


def test_pages_have_every_header_that_keeps_others_out(untouched: Served) -> None:
    for path in ("/", "/s/s", "/api/stores", "/api/s/s", "/assets/serve.js", "/nothing"):
        _, headers, _ = untouched.ask(path)
        policy = headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["Cache-Control"] == "no-store"
        assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
        assert "Access-Control-Allow-Origin" not in headers
        assert "Python" not in str(headers)


def test_the_list_and_a_study(untouched: Served) -> None:
    status, _, text = untouched.ask("/")
    assert status == 200
    assert 'href="/s/s"' in text
    status, _, text = untouched.ask("/s/s")
    assert status == 200
    assert "does the laboratory work?" in text
    assert "<script>" not in text
    assert "style=" not in text
    assert "//" not in re.sub(r"<!doctype html>", "", text).replace("://www.w3.org", "")


def test_news_leave_out_what_the_page_has(served: Served) -> None:
    news = json.loads(served.ask("/api/s/s")[2])
    assert all(part["html"] is not None for part in news["parts"])
    have = ".".join(part["hash"] for part in news["parts"])
    again = json.loads(served.ask(f"/api/s/s?have={have}")[2])
    assert [part["html"] for part in again["parts"]] == [None] * len(news["parts"])
    write(served.root / "s", [a_record(0), a_record(1)])
    for _ in range(100):
        later = json.loads(served.ask(f"/api/s/s?have={have}")[2])
        if any(part["html"] for part in later["parts"]):
            break
        threading.Event().wait(0.05)
    assert {part["name"] for part in later["parts"] if part["html"]} >= {"head", "cells"}


def test_a_head_has_no_body(untouched: Served) -> None:
    status, headers, text = untouched.ask("/s/s", "HEAD")
    assert (status, text) == (200, "")
    assert int(headers["Content-Length"]) > 1000


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_nothing_can_be_changed(untouched: Served, method: str) -> None:
    status, headers, _ = untouched.ask("/s/s", method)
    assert (status, headers["Allow"]) == (405, "GET, HEAD")


@pytest.mark.parametrize(
    "name",
    ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example:{port}", "", "[::1]",
     "0.0.0.0:{port}", "127.0.0.1:{port}@evil.example", "127.0.0.2:{port}"],
)  # fmt: skip
def test_other_names_are_refused(untouched: Served, name: str) -> None:
    status, _, text = untouched.ask("/", headers={"Host": name.format(port=untouched.server.port)})
    assert status == 421
    assert "evil" not in text


@pytest.mark.parametrize("name", ["127.0.0.1:{port}", "localhost:{port}", "LOCALHOST:{port}", "[::1]:{port}"])
def test_own_names_are_served(untouched: Served, name: str) -> None:
    assert untouched.ask("/", headers={"Host": name.format(port=untouched.server.port)})[0] == 200


@pytest.mark.parametrize(
    ("request_text", "status"),
    [
        ("GET / HTTP/1.1\r\n\r\n", 421),
        ("GET / HTTP/1.1\r\nHost: {own}\r\nHost: evil.example\r\n\r\n", 421),
        ("GET / HTTP/1.0\r\n\r\n", 421),
        ("GET http://{own}/ HTTP/1.1\r\nHost: {own}\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: {own}\r\nContent-Length: 5\r\n\r\nGET /", 400),
        ("GET / HTTP/1.1\r\nHost: {own}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: {own}\r\nSec-Fetch-Site: cross-site\r\n\r\n", 403),
        ("GET / HTTP/1.1\r\nHost: {own}\r\nSec-Fetch-Site: same-site\r\n\r\n", 403),
        ("GET / HTTP/1.1\r\nHost: {own}\r\nOrigin: http://127.0.0.1:1\r\n\r\n", 403),
        ("GET / HTTP/1.1\r\nHost: {own}\r\nOrigin: null\r\n\r\n", 403),
        ("BREW / HTTP/1.1\r\nHost: {own}\r\n\r\n", 501),
        ("nonsense\r\n\r\n", 400),
        ("GET /" + "a" * 70000 + " HTTP/1.1\r\n\r\n", 414),
    ],
)
def test_odd_requests_are_refused(untouched: Served, request_text: str, status: int) -> None:
    own = f"127.0.0.1:{untouched.server.port}"
    found = untouched.raw(request_text.format(own=own).encode() if "{own}" in request_text else request_text.encode())
    # The last has no version that headers could go with.
    head = found if found.startswith(b"HTTP/") else b"HTTP/1.1 400 "
    assert head.split(b" ")[1] == str(status).encode()
    assert b"<" not in found.split(b"\r\n\r\n", 1)[-1]
    assert b"nosniff" in found or not found.startswith(b"HTTP/")


@pytest.mark.parametrize(
    "path",
    ["/s/..", "/s/../outside", "/s/%2e%2e", "/s/%2e%2e%2foutside", "/s/..%2foutside", "/s/s/..%2f..%2fsecret",
     "/s/s/tables/1/..%2f..%2fsecret", "/s/s/tables/1/%2fetc%2fpasswd", "/assets/..%2fbase.html.j2",
     "/assets/base.html.j2", "/assets/", "/s/", "/s/S", "/s/%00", "/s/s%00", "/s/%ff", "/api", "/api/s/no",
     "/s/s/made/1", "/api/s/s/made/99/report", "/api/s/s/made/x/report", "/api/s/s/made/²/report",
     "/api/s/s/made/1/other", "/s/s/study.json", "/s/s/.live.json", "/.lock", "/s/s/tables/1", "/secret"],
)  # fmt: skip
def test_only_what_was_found_is_served(untouched: Served, path: str) -> None:
    answer = untouched.raw(f"GET {path} HTTP/1.0\r\nHost: 127.0.0.1:{untouched.server.port}\r\n\r\n".encode())
    assert answer.split(b" ")[1] in (b"404", b"303")
    assert b"secret" not in answer.replace(path.encode(), b"")


def test_the_report_its_tables_and_figures(served: Served) -> None:
    assert served.made("s", "report") == REPORT
    _, headers, _ = served.ask("/s/s/report")
    policy = headers["Content-Security-Policy"]
    assert policy == "default-src 'none'; script-src 'sha256-x'; base-uri 'none'; frame-ancestors 'none'"
    text = served.made("s", "tables")
    assert [re.sub(r"/\d+/", "/N/", href) for href in re.findall(r'href="(/s/s/tables/[^"]+)"', text)] == [
        "/s/s/tables/N/a%20b.csv", "/s/s/tables/N/trials.csv",
    ]  # fmt: skip
    _, headers, text = served.ask(re.findall(r'href="(/s/s/tables/[^"]+)"', text)[0])
    assert (headers["Content-Type"], text) == ("text/csv; charset=utf-8", "a b.csv")
    assert headers["Content-Disposition"].startswith('attachment; filename="s-a_b.csv"')
    text = served.made("s", "figures")
    (picture,) = re.findall(r'<img src="([^"]+)"', text)
    _, headers, _ = served.ask(picture)
    assert headers["Content-Type"] == "image/svg+xml"
    assert "sandbox" in headers["Content-Security-Policy"]


def test_a_report_is_made_once_for_each_state_of_the_store(served: Served) -> None:
    served.made("s", "report")
    again = served.maker.ask("s", "report", served.root / "s", "other state")
    assert again.number == 2
    served.made("s", "tables")
    served.made("s", "report")
    assert served.maker.ask("s", "report", served.root / "s", "other state").number == 2
    assert served.maker.ask("s", "figures", served.root / "s", "other state").number == 3


def test_what_cannot_be_made_says_why(served: Served) -> None:
    (served.root / "s" / "fail").touch()
    served.ask("/s/s/report")
    for _ in range(600):
        news = json.loads(served.ask("/api/s/s/made/1/report")[2])
        if news["say"] == "it failed":
            break
        threading.Event().wait(0.05)
    assert "it has no &lt;sealed&gt; trial" in news["parts"][0]["html"]
    assert news["go"] == ""
    (served.root / "s" / "fail").unlink()
    assert served.made("s", "report") == REPORT


def test_other_requests_go_on_while_a_report_is_made_and_the_end_ends_it(served: Served) -> None:
    (served.root / "s" / "slow").touch()
    status, _, text = served.ask("/s/s/report")
    assert status == 202
    assert "Preparing the report" in text
    assert served.ask("/s/s")[0] == 200
    assert "Queued behind another report" in served.ask("/s/s/figures")[2]
    served.maker.close()
    assert served.maker.ask("s", "report", served.root / "s", "x").state == "waiting"


def test_too_much_that_waits_is_refused(served: Served) -> None:
    (served.root / "s" / "slow").touch()
    served.ask("/s/s/report")
    while (job := served.maker.find(1, "s")) is not None and job.state == "waiting":
        threading.Event().wait(0.01)  # the first does not count among those that wait
    for place in range(report_jobs.WAITING + 2):
        with contextlib.suppress(report_jobs.Crowded):
            served.maker.ask("s", "report", served.root / "s", f"state {place}")
    (served.root / "s" / layout.EVENTS).write_text('{"t_s": 1, "event": "session-interrupted"}\n')
    for _ in range(100):
        status, _, text = served.ask("/s/s/report")
        if status == 503:
            break
        threading.Event().wait(0.05)
    assert "try again" in text


def test_of_a_study_in_progress_a_report_is_asked_for_twice(served: Served) -> None:
    write(served.root / "t", [a_record(0)], live={"t_s": 4e9})
    status, _, text = served.ask("/s/t/report")
    assert status == 200
    assert 'href="/s/t/report?now=1"' in text
    assert served.made("t", "report") == REPORT


def until(served: Served, path: str, words: str) -> str:
    """The page, once it has these words."""
    for _ in range(600):
        text = served.ask(path)[2]
        if words in text:
            return text
        threading.Event().wait(0.1)
    raise AssertionError(f"{words!r} never came: {text}")


def test_a_finished_study_shows_its_answer_first_with_its_limits(served: Served) -> None:
    write(served.root / "done", [a_record(place) for place in range(8)])
    assert "Being computed" in served.ask("/s/done")[2]
    text = until(served, "/s/done", "It is &lt;slower&gt;.")
    places = [
        text.index(words) for words in ("It is &lt;slower", "first", "1 more limit", "third &lt;limit", ">Cells<")
    ]
    assert places == sorted(places)
    for empty in ("half-width", "left out", "not valid</h2>", "Waits for", "None of"):
        assert empty not in text
    listed = until(served, "/", "It is &lt;slower&gt;.")
    assert "8 of 8 trials valid" in listed
    assert '<a href="/s/done">3 limits</a>' in listed
    asked = served.maker.ask("done", "answer", served.root / "done", "another state").number
    served.ask("/s/done")
    assert served.maker.ask("done", "report", served.root / "done", "x").number == asked + 1, "it is kept"


def test_an_answer_that_cannot_be_computed_says_why(served: Served) -> None:
    write(served.root / "done", [a_record(place) for place in range(8)])
    (served.root / "done" / "fail").touch()
    assert "it has no &lt;sealed&gt; trial" in until(served, "/s/done", "It cannot be computed")


def test_a_list_computes_no_answer_while_a_study_is_in_progress(served: Served) -> None:
    write(served.root / "done", [a_record(place) for place in range(8)])
    write(served.root / "t", [a_record(0)], live={"t_s": 4e9})
    until(served, "/", "in progress")
    until(served, "/", "finished")
    assert served.maker.find(1, "done") is None


def test_the_command_of_an_answer_leaves_it_in_the_folder(tmp_path: Path) -> None:
    folder = write(tmp_path / "done", [a_record(place) for place in range(8)])
    with contextlib.closing(report_jobs.Maker(serve_command._argv, tmp_path / "scratch")) as maker:
        job = maker.ask("done", "answer", folder, "")
        while (found := maker.find(job.number, "done")) is not None and found.state in ("waiting", "making"):
            threading.Event().wait(0.05)
        assert found is not None
        assert found.failure == ""
        answer = StudyAnswer.model_validate_json((found.folder / report_jobs.ANSWER).read_bytes())
    assert answer.table is not None
    assert [row.n for row in answer.table.rows] == [4, 4]
    assert answer.limits


def test_stores_without_a_report(served: Served) -> None:
    write(served.root / "none")
    (served.root / "none" / "study.json").touch()
    write(served.root / "newer", [a_record(0)])
    (served.root / "newer" / "study.json").write_text('{"format": 2}')
    assert "no sealed trial yet" in served.ask("/s/none/report")[2]
    assert "format 2" in served.ask("/s/newer/report")[2]
    assert served.ask("/s/newer")[0] == 200
    assert "cannot be read" in served.ask("/")[2]


def test_the_list_says_which_stores_are_damaged(served: Served) -> None:
    (served.root / "s" / "plan.jsonl").write_text("{")
    (min((served.root / "s" / "trials").iterdir()) / "trial.json").write_text("{")
    text = served.ask("/")[2]
    assert '2 files are damaged, <a href="/s/s">named on its page</a>' in text, text


def test_a_store_that_goes_is_missed_and_one_that_comes_is_found(served: Served) -> None:
    assert served.ask("/api/s/s")[0] == 200
    shutil.move(served.root / "s", served.root / "odd <name> & 'more'")
    status, _, text = served.ask("/api/s/s")
    assert (status, json.loads(text)["message"]) == (404, "There is no store of this name here now.")
    _, _, text = served.ask("/")
    (href,) = re.findall(r'<h2><a href="([^"]+)"', text)
    assert "odd <name>" not in text
    assert served.ask(href)[0] == 200
    shutil.rmtree(served.root)
    assert "There is no store here: the folder is not there" in served.ask("/")[2]


def test_texts_of_a_store_are_no_markup(served: Served) -> None:
    study = json.loads((served.root / "s" / "study.json").read_text())
    study["study"]["question"] = study["study"]["title"] = "<img src=x onerror=alert(1)>"
    (served.root / "s" / "study.json").write_text(json.dumps(study))
    live = {"format": 1, "t_s": 4e9, "waiting": "<script>1</script>", "nodes": {"<b>": {}}}
    (served.root / "s" / layout.LIVE).write_text(json.dumps(live))
    for path in ("/", "/s/s", "/api/s/s"):
        text = served.ask(path)[2]
        assert "<img" not in text
        assert "<script>1" not in text
        assert "<b>&" not in text
        assert 'data-key="<b>"' not in text


def test_the_page_of_a_study_shows_actual_and_desired_size(served: Served) -> None:
    size = {"in_service": 3, "desired": 5, "reason": "<b>busy", "metric": "cpu", "value": 90.0, "limit": "threshold 80"}
    (served.root / "s" / layout.LIVE).write_text(json.dumps({"format": 1, "t_s": 4e9, "size": size}))
    text = served.ask("/s/s")[2]
    assert "<dt>nodes</dt><dd>3 of 5 desired</dd>" in text
    assert "<p>&lt;b&gt;busy; now cpu 90, threshold 80</p>" in text


def test_who_sends_a_byte_now_and_then_is_not_waited_for(served: Served) -> None:
    served.server.request_s = 0.3
    with socket.create_connection(("127.0.0.1", served.server.port), timeout=30) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\n")
        with contextlib.suppress(ConnectionError):
            for _ in range(600):
                connection.sendall(b"X")
                if select.select([connection], [], [], 0.05)[0]:
                    break
            assert connection.recv(1) == b""
    assert served.ask("/")[0] == 200


def test_who_takes_nothing_does_not_hold_a_place_for_ever(served: Served) -> None:
    served.server.answer_s = 0.3
    served.server.respond = lambda target: routes.Answer(routes.HTTPStatus.OK, "", b"x" * 50_000_000)
    own = f"127.0.0.1:{served.server.port}"
    with socket.create_connection(("127.0.0.1", served.server.port), timeout=30) as connection:
        connection.sendall(f"GET / HTTP/1.1\r\nHost: {own}\r\nCookie: {served.cookie['Cookie']}\r\n\r\n".encode())
        for _ in range(600):
            if not served.server._ends:
                break
            threading.Event().wait(0.05)
        assert not served.server._ends


def test_a_big_answer_comes_whole(served: Served) -> None:
    body = bytes(range(256)) * 4000
    served.server.respond = lambda target: routes.Answer(routes.HTTPStatus.OK, "", body)
    own = f"127.0.0.1:{served.server.port}"
    found = served.raw(f"GET / HTTP/1.0\r\nHost: {own}\r\n\r\n".encode())
    assert found.partition(b"\r\n\r\n")[2] == body


def test_faults_of_our_own_are_told(served: Served) -> None:
    served.server.respond = lambda target: routes.Answer(routes.HTTPStatus.OK, "\u2026", b"")
    assert served.raw(f"GET / HTTP/1.0\r\nHost: 127.0.0.1:{served.server.port}\r\n\r\n".encode()) == b""
    assert "UnicodeEncodeError" in served.complaints.pop()


def test_a_page_is_drawn_once_for_all_who_ask_at_the_same_time(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[str] = []
    real = routes.pages.study
    # A page that is drawn again looks the same.
    monkeypatch.setattr(routes.pages, "study", lambda name, *facts: drawn.append(name) or real(name, *facts))
    now_s = [1_800_000_000.0]

    class StillShelf(Shelf):
        seen: StoreLook | None = None

        def look(self, name: str, patience_s: float) -> StoreLook | None:
            self.seen = self.seen or super().look(name, patience_s)
            return self.seen

    shelf = StillShelf(served.root)
    answering = routes.Routes(shelf, served.maker, lambda: now_s[0])
    with contextlib.closing(shelf):
        for _ in range(20):
            answering.answer("/api/s/s")
        assert drawn == ["s"]
        now_s[0] += 1.0
        answering.answer("/s/s")
        assert drawn == ["s", "s"]


def test_names_and_texts_that_are_no_text(served: Served) -> None:
    name = os.fsdecode(b"half\xff")
    write(served.root / name, [a_record(0)])
    live = {"format": 1, "t_s": 4e9, "waiting": "\ud800!", "nodes": {"\udfff": {}}}
    (served.root / name / layout.LIVE).write_text(json.dumps(live))
    assert 'href="/s/half%FF"' in served.ask("/")[2]
    text = served.ask("/s/half%FF")[2]
    assert "!</p>" not in text, "a live file with half of a character says nothing"
    assert 'data-poll="/api/s/half%FF"' in text
    assert served.ask("/api/s/half%FF")[0] == 200
    assert served.made("half%FF", "report") == REPORT


def test_numbers_of_what_was_made_are_of_their_own_kind(served: Served) -> None:
    served.made("s", "report")
    status, headers, _ = served.ask("/s/s/figures?of=1")
    assert (status, headers["Location"]) == (303, "/s/s/figures")
    shutil.rmtree(served.maker.find(1, "s").folder)  # type: ignore[union-attr]
    for what in ("report", "tables"):
        status, headers, _ = served.ask(f"/s/s/{what}?of=1")
        assert (status, headers["Location"]) == (303, f"/s/s/{what}")
    assert served.ask("/s/s/tables/1/trials.csv")[0] == 404


KILLED = """
import os, pathlib, signal, sys, threading
from steelyard.serve.report_jobs import ENDS_WITH_US, Maker
child = f"{ENDS_WITH_US}import pathlib, time; pathlib.Path('pid').write_text(str(os.getpid())); time.sleep(600)"
maker = Maker(lambda kind, store, into: [sys.executable, "-c", child], pathlib.Path(sys.argv[1]))
made = maker.ask("s", "report", pathlib.Path(), "")
while not (made.folder / "pid").is_file() or not (made.folder / "pid").read_text():
    threading.Event().wait(0.05)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_is_being_made_does_not_outlive_a_server_that_is_killed(tmp_path: Path) -> None:
    ended = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], check=False, timeout=120)
    assert ended.returncode == -signal.SIGKILL
    status = Path("/proc") / (tmp_path / "1" / "pid").read_text() / "status"
    for _ in range(600):
        # Nobody may be there to bury it.
        if not status.is_file() or "State:\tZ" in status.read_text():
            return
        threading.Event().wait(0.05)
    raise AssertionError("it lives on")


def test_a_crowd_is_turned_away_with_an_answer(served: Served) -> None:
    crowd = [socket.create_connection(("127.0.0.1", served.server.port)) for _ in range(CONNECTIONS)]
    try:
        status, headers, words = served.ask("/")
        assert (status, headers["Connection"]) == (503, "close")
        assert words == "Too many connections are open. Close some pages, and try again.\n"
        silent = socket.create_connection(("127.0.0.1", served.server.port))
        crowd.append(silent)
        silent.settimeout(30)
        assert silent.recv(100).startswith(b"HTTP/1.1 503"), "also to who asks nothing"
    finally:
        for one in crowd:
            one.close()
    for _ in range(600):
        if served.ask("/")[0] == 200:
            return
        threading.Event().wait(0.05)
    raise AssertionError("it did not recover")


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "192.168.1.2", "localhost", "", "example.org", "127.0.0.2"])
def test_other_addresses_are_refused_in_plain_words(address: str) -> None:
    with pytest.raises(StudyError, match="on this machine only") as caught:
        PageServer(address, 0, TOKEN, answer_nothing, print)
    assert "127.0.0.1 or ::1" in caught.value.hint


def answer_nothing(target: str) -> routes.Answer:
    return routes.Answer(routes.HTTPStatus.OK, "", b"")


def test_a_taken_port_is_an_error_for_people(untouched: Served) -> None:
    with pytest.raises(SteelyardError, match=f"port {untouched.server.port} of 127.0.0.1 is in use") as caught:
        PageServer("127.0.0.1", untouched.server.port, TOKEN, answer_nothing, print)
    assert "--port 0" in caught.value.hint


def test_names_of_this_machine() -> None:
    assert allowed_names(8765) == {"127.0.0.1:8765", "[::1]:8765", "localhost:8765"}
    assert allowed_names(80) == {"127.0.0.1:80", "[::1]:80", "localhost:80", "127.0.0.1", "[::1]", "localhost"}
