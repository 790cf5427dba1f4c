"""HTML pages made of parts: each part is rendered here, for the full page and for its updates.

No text of a store can become markup: the templates escape all of it, and no page has inline script or style.
"""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import jinja2
from markupsafe import Markup

import steelyard
from steelyard.format import clock, confidence_text, count, duration, number
from steelyard.progress.session_state import FINISHED, IN_PROGRESS
from steelyard.progress.state import expected_finish
from steelyard.report.prose.provenance import coded
from steelyard.report.tables import answers
from steelyard.serve import cells_table, live_view, study_state
from steelyard.serve.finished_answers import SHOWN_LIMITS, FinishedAnswers, StudyAnswer
from steelyard.serve.report_jobs import Job
from steelyard.serve.store_cache import StoreLook
from steelyard.serve.study_state import BEING_READ, Standing
from steelyard.shown_text import json_text, visible

FAST_MS, SLOW_MS = 1000, 5000
"""Until a page asks again: of a study in progress, of any other."""
SPARK_WIDTH, SPARK_HEIGHT = 60.0, 16.0
ASSETS: Final = {"serve.css": "text/css; charset=utf-8", "serve.js": "text/javascript; charset=utf-8"}


@dataclass(frozen=True)
class Part:
    """A part of a page; `hash` changes with it."""

    name: str
    html: Markup
    hash: str


@dataclass(frozen=True)
class Page:
    """A page: what it consists of, and what is said about it."""

    title: str
    parts: tuple[Part, ...]
    say: str = ""
    """Read out by screen readers when it changes."""
    poll: str = ""
    """Address of its updates; empty if it never changes."""
    live: bool = False
    """Whether a study is in progress on it."""
    next_ms: int = SLOW_MS
    go: str = ""
    """Where to continue."""
    links: tuple[tuple[str, str], ...] = ()
    here: str = ""


@dataclass(frozen=True)
class Listed:
    """A file of a list."""

    text: str
    href: str
    picture: bool = False
    others: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class _Entry:
    name: str
    href: str
    title: str
    question: str
    standing: Standing
    damages: str = ""
    """Number of files of the store that are not as they were written, in words; empty if none is."""
    answer: StudyAnswer | None = None
    """The answer of a finished study; None while it is computed."""


def address(name: str) -> str:
    """Path of a store's page."""
    return f"/s/{quoted(name)}"


def quoted(name: str) -> str:
    """A file's name as a word of a path; also one that is no UTF-8."""
    return quote(os.fsencode(name), safe="")


def encoded(text: str) -> bytes:
    """UTF-8, with `?` for what is not text: one invalid byte must not hide the rest of the file."""
    return text.encode("utf-8", errors="replace")


def _links(name: str) -> tuple[tuple[str, str], ...]:
    base = address(name)
    return ((name, base), ("report", f"{base}/report"), ("tables", f"{base}/tables"), ("figures", f"{base}/figures"))


def index(root: Path, looks: Sequence[tuple[str, StoreLook | None]], answers: FinishedAnswers, now_s: float) -> Page:
    """Every store, those in progress first, then the newest; None is a store that is still being read."""
    entries = [_entry(name, look, now_s) for name, look in looks]
    # While a study is measured, a list computes nothing.
    ask = all(one.standing.state != IN_PROGRESS for one in entries)
    finished = {look.name: look for _, look in looks if look is not None}
    entries = [
        replace(one, answer=answers.of(finished[one.name], ask=ask)) if one.standing.state == FINISHED else one
        for one in entries
    ]
    entries.sort(key=lambda one: (one.standing.state != IN_PROGRESS, -(one.standing.last_s or 0.0), one.name))
    part = _part("stores", "index.html.j2", root=root, gone=not root.is_dir(), stores=entries, now_s=now_s)
    running = [one for one in entries if one.standing.state == IN_PROGRESS]
    reading = any(
        one.standing.state == BEING_READ or (one.standing.state == FINISHED and one.answer is None) for one in entries
    )
    return Page(
        title="Stores · Steelyard",
        parts=(part,),
        say=f"{count(len(entries), 'store')}, {len(running)} in progress",
        poll="/api/stores",
        live=bool(running),
        next_ms=FAST_MS if reading or running else SLOW_MS,
        here="/",
    )


def _entry(name: str, look: StoreLook | None, now_s: float) -> _Entry:
    if look is None:
        return _Entry(name, address(name), name, "", Standing(BEING_READ))
    study = look.study
    return _Entry(
        name=name,
        href=address(name),
        title=(study.study.title or study.study.name) if study else name,
        question=study.study.question if study else "",
        standing=study_state.standing(look, now_s),
        damages=count(len(look.remarks), "file is damaged", "files are damaged") if look.remarks else "",
    )


def study(name: str, look: StoreLook | None, kept: cells_table.Cells, answers: FinishedAnswers, now_s: float) -> Page:
    """One store: its state, the answer of a finished study, current events, cells, attempts that are not valid, log."""
    base, links = address(name), _links(name)
    poll = f"/api{base}"
    if look is None:
        head = _head(name, Standing(BEING_READ), None, now_s)
        return Page(f"{name} · Steelyard", (head, *_rest()), "", poll, next_ms=FAST_MS, links=links, here=base)
    stands = study_state.standing(look, now_s)
    in_progress, finished = stands.state == IN_PROGRESS, stands.state == FINISHED
    answer = answers.of(look) if finished and look.records else None
    moment = live_view.now(look, now_s) if in_progress else None
    cells = kept.of(look)
    confidence = f"{confidence_text(look.study.analysis.confidence)}" if look.study else ""
    files = {"base": base, "trials": len(look.records), "in_progress": in_progress}
    lost = study_state.lost(look, stands.state)
    parts = (
        _head(name, stands, look, now_s),
        _answer(stands, answer),
        _part("files", "files.html.j2", **files),
        _part("now", "now.html.j2", now=moment),
        _part("nodes", "nodes.html.j2", now=moment),
        _part(
            "cells",
            "cells.html.j2",
            cells=cells,
            heads=cells_table.heads(look.study) if look.study else (),
            shown=_shown(cells),
            confidence=confidence,
            in_progress=in_progress,
            known=any(cell.half_percent is not None for cell in cells),
            narrowing=in_progress and any(len(cell.course) > 1 for cell in cells),
            left_out=any(cell.left_out or cell.infeasible for cell in cells),
        ),
        _part("lost", "lost.html.j2", lost=lost, now_s=now_s),
        _part("counts", "counts.html.j2", standing=stands, finished=finished, now_s=now_s),
        _part("log", "log.html.j2", lines=study_state.log(look), in_progress=in_progress, now_s=now_s),
    )
    title = f"{stands.done}/{stands.planned} · {name}" if in_progress else f"{name} · {stands.state}"
    return Page(
        title=f"{title} · Steelyard",
        parts=parts,
        say=_say(stands),
        poll=poll,
        live=in_progress,
        next_ms=FAST_MS if in_progress or (finished and answer is None) else SLOW_MS,
        links=links,
        here=base,
    )


def _shown(cells: Sequence[cells_table.Cell]) -> tuple[int, ...]:
    """Columns to show: the main response, and each other response that some cell has."""
    most = max((len(cell.values) for cell in cells), default=0)
    return tuple(place for place in range(most) if not place or any(cell.values[place].known for cell in cells))


def _rest() -> tuple[Part, ...]:
    """The parts of a study's page before it was read, so that there is a place for each."""
    return tuple(
        _hashed(name, Markup("")) for name in ("answer", "files", "now", "nodes", "cells", "lost", "counts", "log")
    )


def _say(stands: Standing) -> str:
    voided = f", {count(stands.voided, 'attempt')} voided" if stands.voided else ""
    return f"{stands.state}: {stands.done} of {count(stands.planned, 'trial')} done{voided}"


def _head(name: str, stands: Standing, look: StoreLook | None, now_s: float) -> Part:
    about = look.study.study if look is not None and look.study is not None else None
    live = look.live if look is not None and stands.state == IN_PROGRESS else None
    return _part(
        "head",
        "head.html.j2",
        name=name,
        standing=stands,
        heading=(about.title or about.name) if about else name,
        question=about.question if about else "",
        end=expected_finish(live, now_s) if live is not None else "",
        remarks=look.remarks if look is not None else (),
        now_s=now_s,
    )


def _answer(stands: Standing, answer: StudyAnswer | None) -> Part:
    if stands.state != FINISHED or not stands.done:
        return _hashed("answer", Markup(""))
    table = answers.answers(answer.table) if answer is not None else None
    limits = answer.limits if answer is not None else ()
    return _part(
        "answer", "answer.html.j2", answer=answer, table=table.without_empty_columns() if table else None,
        limits=limits[:SHOWN_LIMITS], folded=limits[SHOWN_LIMITS:],
    )  # fmt: skip


def working(job: Job, gone_s: float, what: str) -> Page:
    """Progress of a job; continues automatically to what was asked for: report, tables or figures."""
    base = address(job.name)
    again, ready = f"{base}/{what}?now=1", f"{base}/{what}?of={job.number}"
    part = _part("working", "working.html.j2", job=job, name=job.name, gone=duration(gone_s), again=again)
    failed = job.state == "failed"
    return Page(
        title=f"{'failed' if failed else 'preparing'} · {job.name} · Steelyard",
        parts=(part,),
        say="it failed" if failed else "being prepared",
        poll="" if failed else f"/api{base}/made/{job.number}/{what}",
        next_ms=FAST_MS,
        go=ready if job.state == "ready" else "",
        links=_links(job.name),
        here=f"{base}/{what}",
    )


def ask(name: str, what: str, href: str) -> Page:
    """Whether something shall be made although the study is in progress."""
    part = _part("ask", "ask.html.j2", name=name, what=what, href=href, back=address(name))
    return Page(f"{name} · Steelyard", (part,), links=_links(name), here=href.partition("?")[0])


def listed(name: str, heading: str, files: Sequence[Listed], here: str) -> Page:
    """A list of files."""
    part = _part("listed", "listed.html.j2", name=name, heading=heading, files=files)
    return Page(f"{heading} · {name} · Steelyard", (part,), links=_links(name), here=here)


def message(heading: str, text: str) -> Page:
    """A page that says one thing."""
    return Page(f"{heading} · Steelyard", (_part("message", "message.html.j2", heading=heading, text=text),))


def html(page: Page, key: str = "") -> str:
    """The whole page. `key`: with which it proves what it asks, see `steelyard.serve.access`."""
    text = (
        _templates()
        .get_template("base.html.j2")
        .render(
            title=page.title,
            parts=page.parts,
            poll=page.poll,
            key=key,
            refresh=bool(page.poll),
            links=page.links,
            here=page.here,
            version=steelyard.__version__,
        )
    )
    return visible(text, lines=True)


def news(page: Page, have: Collection[str]) -> str:
    """The page as JSON, without the parts whose hashes are in `have`."""
    parts = [
        {"name": part.name, "hash": part.hash, "html": None if part.hash in have else str(part.html)}
        for part in page.parts
    ]
    data = {"title": page.title, "say": page.say, "live": page.live, "next_ms": page.next_ms, "go": page.go}
    return json_text({**data, "parts": parts}, ensure_ascii=False, separators=(",", ":"))


def asset(name: str) -> bytes:
    """Style sheet or script. Raises KeyError for anything else."""
    if name not in ASSETS:
        raise KeyError(name)
    return resources.files("steelyard.serve").joinpath("templates", name).read_bytes()


def _part(part: str, template: str, /, **facts: Any) -> Part:
    return _hashed(part, Markup(_templates().get_template(template).render(facts)))


def _hashed(name: str, drawn: Markup) -> Part:
    drawn = Markup(visible(drawn, lines=True))
    return Part(name, drawn, hashlib.sha256(encoded(f"{name}\n{drawn}")).hexdigest()[:12])


@functools.cache
def _templates() -> jinja2.Environment:
    templates = jinja2.Environment(
        loader=jinja2.PackageLoader("steelyard.serve", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters["coded"] = coded
    helpers: Mapping[str, Any] = {
        "clock": functools.partial(clock, to_the_second=True),
        "width": cells_table.width,
        "spark": _spark,
        "spoken": _spoken,
    }
    templates.globals.update(helpers)
    return templates


def _spark(cell: cells_table.Cell) -> str:
    """Points of the course of a cell's half-width, from 0; empty for fewer than two."""
    top = max(cell.course, default=0.0)
    if len(cell.course) < 2 or top <= 0:
        return ""
    last = len(cell.course) - 1
    return " ".join(
        f"{SPARK_WIDTH * index / last:.1f},{SPARK_HEIGHT * (1 - value / top):.1f}"
        for index, value in enumerate(cell.course)
    )


def _spoken(cell: cells_table.Cell) -> str:
    return ", ".join(number(value, digits=2) for value in cell.course)
