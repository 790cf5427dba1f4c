"""Routes of the web server: the answer to a path, from the stores and the report jobs.

Only names that were found are served: a path is compared with names, never joined to a folder.
"""

from __future__ import annotations

import functools
import json
import re
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs, unquote, urlsplit

from steelyard.progress.session_state import IN_PROGRESS
from steelyard.serve import pages
from steelyard.serve.cells_table import Cells
from steelyard.serve.finished_answers import FinishedAnswers
from steelyard.serve.pages import Listed, Page
from steelyard.serve.report_jobs import FIGURES, PAGE, TABLES, Crowded, Job, Kind, Maker
from steelyard.serve.store_cache import LEAST_S, Shelf, StoreLook
from steelyard.serve.study_state import standing

PATIENCE_S: Final = 1.5
"""Time that a request waits for a store that is being read; after that the page says so."""
INDEX_PATIENCE_S: Final = 0.5
"""The same for the list of all stores, for all of them together."""
QUERY_FIELDS: Final = 8
POLICY_BYTES: Final = 4096
"""The report's own policy is within its first bytes."""

_COMMON: Final = "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
OWN_POLICY: Final = (
    f"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; {_COMMON}"
)
BARE_POLICY: Final = f"default-src 'none'; style-src 'unsafe-inline'; sandbox; {_COMMON}"
"""Policy of files that are opened by themselves."""
_REPORT_POLICY: Final = re.compile(r'<meta http-equiv="Content-Security-Policy" content="([^"<>\x00-\x1f]+)">')

HTML, JSON = "text/html; charset=utf-8", "application/json; charset=utf-8"
FILE_TYPES: Final = {
    ".csv": "text/csv; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".pdf": "application/pdf",
    ".txt": "text/plain; charset=utf-8",
}
REPORT: Final = "report"
MADE_BY: Final[Mapping[str, Kind]] = {REPORT: "report", "tables": "report", "figures": "figures"}
"""Downloads, and the kind of job that makes each."""


@dataclass(frozen=True)
class Answer:
    """A response to a request."""

    status: HTTPStatus
    type: str
    body: bytes
    policy: str = OWN_POLICY
    headers: Mapping[str, str] = field(default_factory=dict)


class Routes:
    """Answers to GET; the same without body is the answer to HEAD."""

    def __init__(
        self, shelf: Shelf, maker: Maker, clock: Callable[[], float] = time.time, *, page_key: str = ""
    ) -> None:
        self._shelf = shelf
        self._maker = maker
        self._answers = FinishedAnswers(maker)
        self._clock = clock
        self._page_key = page_key
        """Secret with which pages prove their requests, see `access`."""
        self._cells: defaultdict[str, Cells] = defaultdict(Cells)
        self._drawn: dict[str, tuple[tuple[StoreLook | None, ...], float, Page]] = {}

    def answer(self, target: str) -> Answer:
        """The answer to a request target: a path with or without a query. Never raises for what it says."""
        try:
            split = urlsplit(target)
            query = parse_qs(split.query, max_num_fields=QUERY_FIELDS)
        except ValueError:
            return _message(HTTPStatus.BAD_REQUEST, "Not understood", "That is not the address of a page.", data=False)
        words = [unquote(word, errors="surrogateescape") for word in split.path.split("/")[1:]]
        data = words[:1] == ["api"]
        try:
            return self._answer(words, {name: values[-1] for name, values in query.items()})
        except KeyError:
            what = "no store of this name here now" if words[-2:-1] == ["s"] else "nothing at this address"
            return _message(HTTPStatus.NOT_FOUND, "Not there", f"There is {what}.", data=data)
        except Crowded:
            text = "Too many reports wait for their turn; try again when one is done."
            return _message(HTTPStatus.SERVICE_UNAVAILABLE, "Too much at once", text, data=data)

    def _answer(  # noqa: PLR0911 - one a route
        self, words: Sequence[str], query: Mapping[str, str]
    ) -> Answer:
        """The answer of the route. Raises KeyError for an unknown path."""
        have = frozenset(query.get("have", "").split("."))
        match list(words):
            case [""]:
                return self._page(self._index())
            case ["api", "stores"]:
                return _news(self._index(), have)
            case ["assets", name]:
                return Answer(HTTPStatus.OK, pages.ASSETS[name], pages.asset(name))
            case ["s", name]:
                return self._page(self._study(name))
            case ["api", "s", name]:
                return _news(self._study(name), have)
            case ["api", "s", name, "made", number, what] if what in MADE_BY:
                job = self._job(name, number)
                return _news(pages.working(job, self._maker.gone_s(job), what), have)
            case ["s", name, what] if what in MADE_BY:
                return self._thing(name, what, query)
            case ["s", name, ("tables" | "figures") as what, number, file]:
                return self._file(self._job(name, number), what, file)
        raise KeyError("/".join(words))

    def _page(self, page: Page, status: HTTPStatus = HTTPStatus.OK) -> Answer:
        return _page(page, status, self._page_key)

    def _index(self) -> Page:
        end_s = time.monotonic() + INDEX_PATIENCE_S
        looks: list[tuple[str, StoreLook | None]] = []
        for name in self._shelf.names():
            try:
                looks.append((name, self._shelf.look(name, max(0.0, end_s - time.monotonic()))))
            except KeyError:
                # It went while the others were looked at.
                continue
        names = {f"/{name}" for name, _ in looks}
        for gone in [key for key in list(self._drawn) if key and key not in names]:
            self._drawn.pop(gone, None)
            self._cells.pop(gone[1:], None)
        self._answers.keep([name for name, _ in looks])
        draw = functools.partial(pages.index, self._shelf.root, looks, self._answers)
        return self._once("", [look for _, look in looks], draw)

    def _study(self, name: str) -> Page:
        look = self._shelf.look(name, PATIENCE_S)
        draw = functools.partial(pages.study, name, look, self._cells[name], self._answers)
        return self._once(f"/{name}", [look], draw)

    def _once(self, key: str, of: Sequence[StoreLook | None], draw: Callable[[float], Page]) -> Page:
        """A page, drawn once for each look at the stores on it: twenty open pages cost hardly more than one."""
        now_s = self._clock()
        kept = self._drawn.get(key)
        if kept is not None and 0 <= now_s - kept[1] < LEAST_S and list(map(id, kept[0])) == list(map(id, of)):
            return kept[2]
        page = draw(now_s)
        self._drawn[key] = (tuple(of), now_s, page)
        return page

    def _job(self, name: str, number: str) -> Job:
        job = self._maker.find(int(number), name) if number.isascii() and number.isdigit() else None
        if job is None:
            raise KeyError(number)
        return job

    def _thing(self, name: str, what: str, query: Mapping[str, str]) -> Answer:
        """Report, tables or figures: what was made, or that it is being made."""
        base = pages.address(name)
        look = self._shelf.look(name, PATIENCE_S)
        if "of" in query:
            try:
                job = self._job(name, query["of"])
                if what != REPORT and job.kind != MADE_BY[what]:
                    raise KeyError(what)
            except KeyError:
                return _elsewhere(f"{base}/{what}")
        elif look is None:
            return _elsewhere(base)
        elif not look.records or look.study is None:
            text = look.problem or "The study has no sealed trial yet."
            return _message(HTTPStatus.NOT_FOUND, "No report yet", text, data=False)
        else:
            in_progress = standing(look, self._clock()).state == IN_PROGRESS
            if in_progress and "now" not in query:
                return _page(pages.ask(name, f"the {what}", f"{base}/{what}?now=1"))
            job = self._maker.ask(name, MADE_BY[what], look.folder, look.changed)
        return self._what_became(job, what)

    def _what_became(self, job: Job, what: str) -> Answer:
        if job.state != "ready":
            return self._page(pages.working(job, self._maker.gone_s(job), what), HTTPStatus.ACCEPTED)
        try:
            return _report(job) if what == REPORT else self._listed(job, what)
        except OSError:
            # Others were made meanwhile, and this one had to go.
            return _elsewhere(f"{pages.address(job.name)}/{what}")

    def _listed(self, job: Job, what: str) -> Answer:
        base = f"{pages.address(job.name)}/{what}"
        folder = job.folder / what
        names = sorted(path.name for path in folder.iterdir() if path.is_file())

        def href(file: str) -> str:
            return f"{base}/{job.number}/{pages.quoted(file)}"

        if what == TABLES:
            files = [Listed(name, href(name)) for name in names if name.endswith(".csv")]
            return _page(pages.listed(job.name, "Tables", files, base))
        files = [
            Listed(
                text=name,
                href=href(name),
                picture=True,
                others=tuple(
                    (kind, href(other)) for kind in ("pdf", "png") if (other := f"{name[:-3]}{kind}") in names
                ),
            )
            for name in names
            if name.endswith(".svg")
        ]
        files += [Listed(name, href(name)) for name in names if name.endswith(".txt")]
        return _page(pages.listed(job.name, "Figures", files, base))

    def _file(self, job: Job, what: str, file: str) -> Answer:
        """One file of what was made. Raises KeyError if there is none of this name."""
        folder = job.folder / (TABLES if what == TABLES else FIGURES)
        if job.state != "ready":
            raise KeyError(file)
        try:
            path = {one.name: one for one in folder.iterdir() if one.is_file()}[file]
            body = path.read_bytes()
        except OSError as error:
            raise KeyError(file) from error
        kept = {} if path.suffix == ".svg" else {"Content-Disposition": _attached(f"{job.name}-{file}")}
        return Answer(HTTPStatus.OK, FILE_TYPES[path.suffix], body, BARE_POLICY, kept)


def _attached(name: str) -> str:
    plain = re.sub(r"[^A-Za-z0-9._-]", "_", name)
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{pages.quoted(name)}"


def _report(job: Job) -> Answer:
    """The page with the policy that it has of itself, which also names the hash of its script."""
    path: Path = job.folder / PAGE
    body = path.read_bytes()
    match = _REPORT_POLICY.search(body[:POLICY_BYTES].decode("utf-8", errors="replace"))
    policy = f"{match.group(1)}; frame-ancestors 'none'" if match else BARE_POLICY
    return Answer(HTTPStatus.OK, HTML, body, policy)


def _page(page: Page, status: HTTPStatus = HTTPStatus.OK, key: str = "") -> Answer:
    return Answer(status, HTML, pages.encoded(pages.html(page, key)))


def _news(page: Page, have: frozenset[str]) -> Answer:
    return Answer(HTTPStatus.OK, JSON, pages.encoded(pages.news(page, have)))


def _elsewhere(path: str) -> Answer:
    return Answer(HTTPStatus.SEE_OTHER, HTML, b"", headers={"Location": path})


def _message(status: HTTPStatus, heading: str, text: str, *, data: bool) -> Answer:
    if data:
        return Answer(status, JSON, json.dumps({"message": text}).encode("utf-8"))
    return _page(pages.message(heading, text), status)
