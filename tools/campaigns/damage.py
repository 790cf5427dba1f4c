"""The campaign of damage: a small store is harmed in every way of `harms`, and read, verified and resumed.

In a copy of the store one harm is done. Then `verify`, `status` and `report` are called, `run` goes on with the study,
and `report` and `verify` look at what it left. Nobody may fall over; whoever has to must name the file; no number may
change without a word; `run` leaves a store that verifies, or says what to do; no other trial is touched.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

from steelyard.node.folders import STATE_VARIABLE
from steelyard.serve.report_jobs import Maker
from steelyard.serve.routes import Routes
from steelyard.serve.store_cache import Shelf
from steelyard.store import layout
from steelyard.store.plain_file import sha256_of
from tools.campaigns import harms
from tools.campaigns.campaign import LIMITS_LIFTED, Case, Finding, Outcome
from tools.campaigns.command import Call, call, lines_of
from tools.campaigns.harms import Harm

NAME: Final = "harmed"
STUDY: Final = f"""
format = 1
probes = ["os"]
[study]
name = "{NAME}"
question = "Does a second node help?"
[site]
name = "fake"
address = "ADDRESS"
[system]
name = "simulated"
service_us = 200.0
[workload]
name = "ycsb-c"
records = 100
[load]
threads = 4
operations = 1200
[data]
state = "continue"
[design]
starts = 2
trials = 1
seed = 3
[factors]
nodes = [1, 2]
{LIMITS_LIFTED}"""
COMMAND_LIMIT_S: Final = 40.0
WORLD_LIMIT_S: Final = 300.0
"""Of the study that all cases share: a busy machine is no finding."""
REFUSED: Final = (2, 3)
"""Exit codes of a refusal."""


@dataclass(frozen=True)
class World:
    """A sound store with its page, and what is said of it."""

    study: Path
    store: Path
    """The study's folder."""
    status: Any
    tables: Any


class Damage:
    """A store that is harmed in one way."""

    name = "damage"
    about = "files of a store torn, deleted, copied, edited"
    limit_s = 120.0

    def cases(self, seed: int) -> Sequence[Case]:
        """One case per kind of damage."""
        return [Case(harm.name, harm.stratum, {"harm": harm, "seed": seed}) for harm in harms.every()]

    @contextmanager
    def world(self, folder: Path) -> Iterator[World]:
        """A study of four trials on folders and plain processes, measured once."""
        environment = {STATE_VARIABLE: str(folder / "state"), "COLUMNS": "400"}
        with patch.dict(os.environ, environment), patch.object(tempfile, "tempdir", str(folder)):
            study = folder / f"{NAME}.toml"
            study.write_text(STUDY.replace("ADDRESS", _address()), encoding="utf-8")
            ran = call("run", study, "--store", folder / "store", "--plain", limit_s=WORLD_LIMIT_S)
            store = folder / "store" / NAME
            page = call("report", store, limit_s=COMMAND_LIMIT_S)
            verified = call("verify", store, limit_s=COMMAND_LIMIT_S)
            if (ran.code, page.code, verified.code) != (0, 0, 0):
                raise RuntimeError(f"the sound store is not sound: {ran.err}{page.err}{verified.out}")
            yield World(study, store, _status(store)[1], _report(store)[1])

    def run(self, world: World, case: Case, folder: Path) -> Outcome:
        """Harm a copy, call every command, judge."""
        harm: Harm = case.values["harm"]
        store = folder / "store" / NAME
        shutil.copytree(world.store, store)
        trial = min((store / layout.TRIALS).iterdir()).name
        before = _contents(store)
        harm.harm(store / harm.path.replace(harms.TRIAL, trial), random.Random(f"{case.values['seed']} {case.name}"))
        harmed = _contents(store)
        verified = call("verify", store, limit_s=COMMAND_LIMIT_S)
        status, state = _status(store)
        report, tables = _report(store)
        shown = served(store)
        ran = call("run", world.study, "--store", store.parent, "--plain", limit_s=COMMAND_LIMIT_S)
        again = _page(store, ran)
        calls = [verified, status, report, ran, *again]
        judge = _Judge(harm, trial)
        judge.no_traceback(calls)
        judge.served(shown)
        judge.named({harms.VERIFY: verified, harms.STATUS: status, harms.REPORT: report})
        judge.verified(verified)
        judge.same(status, _counts(state), _counts(world.status))
        judge.same(report, tables, world.tables)
        judge.went_on(ran, again)
        judge.kept(before, harmed, _contents(store))
        return Outcome(tuple(judge.findings), {"commands": lines_of(calls)})


def _address() -> str:
    """Loopback addresses of this process: two campaigns at once would meet on the same ports."""
    process = os.getpid()
    return f"127.{1 + process % 250}.{process // 250 % 250}"


def _page(store: Path, ran: Call) -> list[Call]:
    """A new page and verification after a run that did not refuse."""
    if ran.code in REFUSED:
        return []
    return [call("report", store, limit_s=COMMAND_LIMIT_S), call("verify", store, limit_s=COMMAND_LIMIT_S)]


@dataclass(frozen=True)
class Shown:
    """What `serve` shows of a store."""

    records: Sequence[tuple[str, int]]
    statuses: Sequence[int]
    fell_over: str = ""


def served(store: Path) -> Shown:
    """The list of stores and the store's page, as `serve` answers them, without a socket."""
    scratch = store.parent.parent / "served"
    scratch.mkdir()
    with (
        contextlib.closing(Shelf(store.parent)) as shelf,
        contextlib.closing(Maker(lambda *_: ["true"], scratch)) as maker,
    ):
        routes = Routes(shelf, maker)
        try:
            statuses = [int(routes.answer(target).status) for target in ("/", f"/s/{NAME}", f"/api/s/{NAME}")]
            look = shelf.look(NAME, COMMAND_LIMIT_S) if NAME in shelf.names() else None
        except Exception as error:  # whatever it is, the server would have fallen over
            return Shown((), (), f"{type(error).__name__}: {error}")
    records = () if look is None else tuple((record.id, record.attempt) for record in look.records)
    return Shown(records, statuses)


def _status(store: Path) -> tuple[Call, Any]:
    called = call("status", store, "--json", limit_s=COMMAND_LIMIT_S)
    return called, _json(called)


def _report(store: Path) -> tuple[Call, Any]:
    """All tables, and the page beside the store so that the store's own stays as it was."""
    page = store.parent / "page.html"
    called = call("report", store, "--json", "--output", page, limit_s=COMMAND_LIMIT_S)
    return called, _json(called)


def _json(called: Call) -> Any:
    try:
        return json.loads(called.out)
    except ValueError:
        return None


def _counts(status: Any) -> Any:
    """What `status` says in numbers."""
    names = ("planned", "done", "valid", "attempts", "cells")
    return {name: status[name] for name in names} if isinstance(status, dict) else None


def _contents(store: Path) -> dict[str, str]:
    """Every regular file with its SHA-256."""
    files = (path for path in store.rglob("*") if path.is_file())
    return {str(path.relative_to(store)): sha256_of(path) for path in files}


class _Judge:
    """Collects the findings of one case."""

    def __init__(self, harm: Harm, trial: str) -> None:
        self.findings: list[Finding] = []
        self._harm = harm
        self._path = harm.path.replace(harms.TRIAL, trial)
        inside = self._path.startswith(f"{layout.TRIALS}/")
        self._names = (self._path, f"{layout.TRIALS}/{trial}") if inside else (self._path,)

    def no_traceback(self, calls: Sequence[Call]) -> None:
        """Nobody falls over, nobody waits for ever."""
        for one in calls:
            if one.unforeseen:
                self._add("traceback", f"{one.words[0]}: {one.err.strip()[:300]}")
            if one.code is None:
                self._add("late", f"{one.words[0]} was ended after {one.seconds:.0f} s")

    def served(self, shown: Shown) -> None:
        """`serve` answers, and counts nothing twice."""
        if shown.fell_over or any(status >= 500 for status in shown.statuses):
            self._add("traceback", f"serve: {shown.fell_over or shown.statuses}")
        if len(set(shown.records)) < len(shown.records):
            self._add("silently-wrong", "serve shows a trial twice")

    def named(self, calls: dict[str, Call]) -> None:
        """Whoever reads the file names it."""
        for command, called in calls.items():
            if command in self._harm.named_by and not self._is_named(called):
                self._add("unlike", f"{command} does not name {self._path}: {called.last_line[:200]}")

    def verified(self, called: Call) -> None:
        """`verify` finds a difference, or only a remark, or refuses by name."""
        wanted = {"difference": 1, "remark": 0, "nothing": 0}[self._harm.weight]
        if called.code != wanted and not (called.code in REFUSED and self._is_named(called)):
            self._add("unlike", f"verify: exit code {called.code}, not {wanted}: {called.last_line[:200]}")

    def same(self, called: Call, now: Any, before: Any) -> None:
        """No number changes without a word. What is not there any more is said by the numbers themselves."""
        if called.code in REFUSED or now == before or self._is_named(called):
            return
        if _fewer(now, before):
            return
        self._add("silently-wrong", f"{called.words[0]}: other numbers, and {self._path} is not named")

    def went_on(self, ran: Call, again: Sequence[Call]) -> None:
        """`run` goes on and leaves a store that verifies, or refuses with the file and what to do."""
        if ran.code in REFUSED:
            if not self._is_named(ran) or "\n  " not in ran.err:
                self._add("unlike", f"run refuses without file or hint: {ran.err[-300:]}")
            return
        # 1: a trial that was measured again was voided, on a busy machine.
        if ran.code not in (0, 1):
            self._add("unlike", f"run: exit code {ran.code}: {ran.last_line[:200]}")
        if self._harm.repaired and again and again[-1].code != 0:
            self._add("unlike", f"verify after run and report: {again[-1].out[:400]}")

    def kept(self, before: dict[str, str], harmed: dict[str, str], after: dict[str, str]) -> None:
        """Every file of a trial that the harm left is still there, in its place or set aside."""
        there = set(after.values())
        for name, content in {**before, **harmed}.items():
            if name.startswith(layout.TRIALS) and name in harmed and harmed[name] == content and content not in there:
                self._add("lost", f"{name} is gone after run")

    def _is_named(self, called: Call) -> bool:
        return any(name in called.out + called.err for name in self._names)

    def _add(self, kind: str, text: str) -> None:
        self.findings.append(Finding(kind, text))


def _fewer(now: Any, before: Any) -> bool:
    """Whether `status` or the tables count fewer attempts than there were: a trial is missing, and seen to be."""
    attempts = [_attempts(one) for one in (now, before)]
    return None not in attempts and attempts[0] < attempts[1]


def _attempts(of: Any) -> Any:
    if not isinstance(of, dict):
        return None
    return of["attempts"] if "attempts" in of else len(of["trials"]["rows"])


CAMPAIGN: Final = Damage()
