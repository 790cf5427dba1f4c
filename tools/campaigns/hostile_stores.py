"""The campaign of hostile stores: a store that somebody made to harm whoever reads it, or goes on with it.

A sound store is made hostile in every way of `hostile_kinds`, checksums computed anew. Then every command that reads a
store is called, `serve` answers, and `run` goes on. Beside the store lie files of a victim. Counted are: files written
outside of the store and of the named outputs, files of the victim that were told, programs that were executed, errors
that nobody foresaw, memory and time beyond a bound.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final
from unittest.mock import patch

from steelyard.node.folders import STATE_VARIABLE
from steelyard.store import layout
from tools.campaigns import damage, hostile_kinds
from tools.campaigns.campaign import Case, Finding, Outcome
from tools.campaigns.command import Call, call, lines_of
from tools.campaigns.damage import World
from tools.campaigns.hostile_kinds import OTHER_USER, Kind
from tools.campaigns.hostile_place import Place, resealed

SECRET: Final = "nobody-else-may-read-this"
COMMAND_LIMIT_S: Final = 120.0
MOST_BYTES: Final = 3 << 30
"""Of memory, at the worst moment of a case; a sound store needs 0.4 GB."""
DRAWN: Final = ("link", "name", "text")
"""Strata with tables and pictures as files: to make those takes most of a case's time."""
MOST_MESSAGE_CHARS: Final = 100_000
CLEAR_PEAK: Final = "5"
"""What proc(5) wants in clear_refs, to begin a new peak of memory."""


class HostileStores:
    """A store made to harm, in one way."""

    name = "hostile_stores"
    about = "stores that were made to harm whoever reads them"
    limit_s = 900.0

    def cases(self, seed: int) -> Sequence[Case]:
        """One case per kind."""
        return [Case(kind.name, kind.stratum, {"kind": kind}) for kind in hostile_kinds.every()]

    def world(self, folder: Path) -> AbstractContextManager[World]:
        """A study of four trials on folders and plain processes, measured once."""
        return damage.CAMPAIGN.world(folder)

    def run(self, world: World, case: Case, folder: Path) -> Outcome:
        """Make a copy hostile, call every command, judge."""
        kind: Kind = case.values["kind"]
        place = _placed(world, folder)
        kind.act(place)
        if kind.sealed and not place.store.is_symlink():
            resealed(place.store)
        before = _seen(place.outside)
        _begin_peak()
        with _as_other(folder, asked=kind.stratum == "rights" and place.store.owner() != "nobody"):
            calls = _read(place.store, folder / "out", files=kind.stratum in DRAWN)
            fell_over = _served(place.store)
            calls.append(call("run", world.study, "--store", place.store.parent, "--plain", limit_s=COMMAND_LIMIT_S))
        findings = [*_of_calls(calls), *_of_files(place, before, folder)]
        if fell_over:
            findings.append(Finding("traceback", f"serve: {fell_over}"))
        peak = _peak_bytes()
        if peak > MOST_BYTES:
            findings.append(Finding("memory", f"{peak / 1e9:.1f} GB"))
        return Outcome(tuple(findings), {"commands": lines_of(calls), "peak_mb": peak >> 20})


def _placed(world: World, folder: Path) -> Place:
    """A copy of the sound store, and files of a victim beside it."""
    store, outside = folder / "store" / damage.NAME, folder / "outside"
    shutil.copytree(world.store, store)
    (outside / "precious" / "folder").mkdir(parents=True)
    (outside / "victim.json").write_text(f'{{"secret": "{SECRET}"}}', encoding="utf-8")
    (outside / "victim.html").write_text(f"<p>{SECRET}</p>", encoding="utf-8")
    for name in ("mine.txt", "folder/trial.json", ".draft.partial", ".mine.tmp"):
        (outside / "precious" / name).write_text(SECRET, encoding="utf-8")
    return Place(store, min((store / layout.TRIALS).iterdir()), outside)


def _read(store: Path, out: Path, *, files: bool) -> list[Call]:
    """Every command that reads a store, with each output that it can have, in the store and outside."""
    sides = ("--a", "nodes=1", "--b", "nodes=2")
    commands: Sequence[Sequence[str | Path]] = (
        ("verify", store),
        ("status", store, "--all"),
        ("report", store, *(("--tables", store / "tables", "--figures", store / "figures") if files else ())),
        ("report", store, "--json", "--output", out / "page.html"),
        ("compare", store, *sides, "--figure", store / "compare.svg"),
        ("gate", store, *sides, "--margin", "5%", "--junit", store / "junit.xml", "--markdown", store / "tables.md"),
        ("export", store, "--hdr", store / "hdr", "--otava", out / "otava", "--parquet", store / "trials.parquet",
         "--openmetrics", out / "metrics.txt", "--markdown", store / "tables.md"),
        ("audit", store / "tables" / "medians.csv"),
        ("clean", "--dry-run"),
    )  # fmt: skip
    with contextlib.chdir(store):
        return [call(*words, limit_s=COMMAND_LIMIT_S) for words in commands]


def _served(store: Path) -> str:
    """How `serve` fell over; empty if it did not."""
    shown = damage.served(store)
    return shown.fell_over or (f"{shown.statuses}" if any(status >= 500 for status in shown.statuses) else "")


def _of_calls(calls: Sequence[Call]) -> Iterator[Finding]:
    for one in calls:
        if one.unforeseen:
            yield Finding("traceback", f"{one.words[0]}: {one.err.strip()[-300:]}")
        if one.code is None:
            yield Finding("late", f"{one.words[0]} was ended after {one.seconds:.0f} s")
        if SECRET in one.out + one.err:
            yield Finding("disclosed", f"{one.words[0]} prints a file of the victim")
        if len(one.err) > MOST_MESSAGE_CHARS:
            yield Finding("unlike", f"{one.words[0]}: a message of {len(one.err):,} characters")


def _of_files(place: Place, before: dict[str, str], folder: Path) -> Iterator[Finding]:
    """What was done to the victim, and what of the victim's is in an output."""
    after = _seen(place.outside)
    if "executed" in after:
        yield Finding("executed", "a program of the store was executed")
    changed = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
    if changed and changed != ["executed"]:
        yield Finding("outside", f"changed: {', '.join(changed)[:300]}")
    odd = {path.name for path in folder.iterdir()} - {"store", "outside", "out", "served"}
    if odd:
        yield Finding("outside", f"written beside the store: {', '.join(sorted(odd))}")
    for top in (place.store.parent, folder / "out"):
        for path in top.rglob("*"):
            if path.is_file() and not path.is_symlink() and path.stat().st_nlink == 1 and _tells(path):
                yield Finding("disclosed", f"{path.relative_to(folder)} has a file of the victim")


def _tells(path: Path) -> bool:
    return path.stat().st_blocks > 0 and path.stat().st_size < MOST_BYTES and SECRET.encode() in path.read_bytes()


def _seen(folder: Path) -> dict[str, str]:
    """Everything below a folder: kind, times and content."""
    seen = {}
    for path in folder.rglob("*"):
        status = path.lstat()
        content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        seen[str(path.relative_to(folder))] = f"{status.st_mode} {status.st_mtime_ns} {content}"
    return seen


@contextlib.contextmanager
def _as_other(folder: Path, *, asked: bool) -> Iterator[None]:
    """As a user whom permissions hold, if this one is root and `asked`."""
    if not asked or os.geteuid() != 0:
        yield
        return
    for path in (folder, *folder.rglob("*")):
        os.lchown(path, OTHER_USER, OTHER_USER)
    opened = [parent for parent in folder.parents if parent.stat().st_mode & 0o001 == 0]
    modes = {parent: parent.stat().st_mode for parent in opened}
    for parent in opened:
        parent.chmod(parent.stat().st_mode | 0o011)
    try:
        with patch.dict(os.environ, {STATE_VARIABLE: str(folder / "out" / "state")}):
            os.seteuid(OTHER_USER)
            yield
    finally:
        os.seteuid(0)
        for parent, mode in modes.items():
            parent.chmod(mode)


def _begin_peak() -> None:
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text(CLEAR_PEAK, encoding="ascii")


def _peak_bytes() -> int:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM:"))


CAMPAIGN: Final = HostileStores()
