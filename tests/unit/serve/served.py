"""A server of stores over a real socket of this machine, whose reports are written by a stand-in."""

from __future__ import annotations

import contextlib
import http.client
import re
import socket
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from steelyard.serve import routes
from steelyard.serve.access import page_key
from steelyard.serve.finished_answers import StudyAnswer
from steelyard.serve.report_jobs import Maker
from steelyard.serve.store_cache import Shelf
from steelyard.serve.web import PageServer
from tests.unit.serve.stores import a_record, write

REPORT = (
    '<!doctype html><head><meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
    "script-src 'sha256-x'; base-uri 'none'\"></head><title>report</title>"
)
ANSWER = StudyAnswer(
    lead=("It is <slower>.", "The intervals rest on 4 starts."), limits=("first", "second", "third <limit>")
).model_dump_json()
FAKE = """
import pathlib, sys, time
kind, store, into = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
if (store / "slow").exists():
    time.sleep(60)
if (store / "fail").exists():
    sys.exit("it has no <sealed> trial")
(into / "report.html").write_text(sys.argv[4])
(into / "answer.json").write_text(sys.argv[5])
files = {"tables": ("trials.csv", "a b.csv", "trials.md"), "figures": ("m.svg", "m.pdf", "captions.txt")}
for folder, names in files.items():
    (into / folder).mkdir()
    for name in names:
        (into / folder / name).write_text(name)
"""

TOKEN = "0123456789abcdef" * 3


@dataclass
class Served:
    """A server, and what it serves."""

    root: Path
    server: PageServer
    maker: Maker
    complaints: list[str]

    @property
    def cookie(self) -> dict[str, str]:
        """The header of a browser that has been let in."""
        return {"Cookie": f"steelyard-{self.server.port}={TOKEN}"}

    def ask(
        self, path: str, method: str = "GET", headers: Mapping[str, str] | None = None
    ) -> tuple[int, http.client.HTTPMessage, str]:
        """One request on a connection of its own, with the cookie if `headers` has none."""
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=30)
        try:
            connection.request(method, path, headers={**self.cookie, **(headers or {})})
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read().decode("utf-8")
        finally:
            connection.close()

    def raw(self, request: bytes) -> bytes:
        """What comes back for these bytes, with the cookie, until the connection is closed."""
        request = request.replace(b"\r\n\r\n", f"\r\nCookie: {self.cookie['Cookie']}\r\n\r\n".encode(), 1)
        with socket.create_connection(("127.0.0.1", self.server.port), timeout=30) as connection:
            connection.sendall(request)
            found = b""
            while more := connection.recv(65536):
                found += more
            return found

    def made(self, name: str, what: str) -> str:
        """Where something is, once it is made."""
        for _ in range(600):
            status, _, text = self.ask(f"/s/{name}/{what}?now=1")
            if status == 200:
                return text
            found = re.search(r'data-poll="(/api/s/[^"]+)"', text)
            if found is None:
                return text
            threading.Event().wait(0.05)
        raise AssertionError("it was never made")


@contextlib.contextmanager
def serving(tmp_path: Path) -> Iterator[Served]:
    root = tmp_path / "root"
    write(root / "s", [a_record(0)])
    (tmp_path / "secret").write_text("secret")
    write(tmp_path / "outside", [a_record(0)])
    shelf, complaints = Shelf(root), list[str]()
    maker = Maker(
        lambda kind, store, into: [sys.executable, "-c", FAKE, kind, str(store), str(into), REPORT, ANSWER],
        tmp_path / "scratch",
    )
    respond = routes.Routes(shelf, maker, page_key=page_key(TOKEN)).answer
    with PageServer("127.0.0.1", 0, TOKEN, respond, complaints.append) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        yield Served(root, server, maker, complaints)
        server.shutdown()
        thread.join(10)
    shelf.close()
    maker.close()
    assert complaints == []
