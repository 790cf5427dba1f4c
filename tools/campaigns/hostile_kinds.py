"""Kinds of hostile stores: each is made of a sound one by somebody who wants to harm whoever reads it or goes on with
it, and who computes every checksum anew."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from tools.campaigns import hostile_contents, hostile_tables
from tools.campaigns.hostile_place import Act, Place, file, gone, instead, record

SPARSE_BYTES: Final = 10 << 30
OTHER_USER: Final = 65534
"""nobody."""


@dataclass(frozen=True)
class Kind:
    """One kind of hostile store."""

    name: str
    stratum: str
    act: Act
    sealed: bool = True
    """Whether checksums are computed anew afterwards."""


def every() -> tuple[Kind, ...]:
    """All kinds, in order."""
    return tuple(
        Kind(f"{stratum}: {name}", stratum, act, sealed)
        for stratum, sealed, kinds in (
            ("link", True, _links()),
            ("hard link", True, _hard_links()),
            ("no file", True, _special()),
            ("name", True, _names()),
            ("JSON", True, hostile_contents.broken()),
            ("number", True, hostile_contents.numbers()),
            ("table", True, _tables()),
            ("program", True, hostile_contents.programs()),
            ("text", True, hostile_contents.texts()),
            ("size", False, _sizes()),
            ("rights", False, _rights()),
        )
        for name, act in kinds.items()
    )


def _link(name: str, to: str, place: Place) -> None:
    targets = {"victim": place.victim, "precious": place.precious, "page": place.outside / "victim.html"}
    gone(file(name, place)).symlink_to(targets.get(to, Path(to)))


def _links() -> Mapping[str, Act]:
    files = (
        "study.toml", "study.json", "plan.jsonl", "events.jsonl", "noise-floor.json", ".lock", ".live.json",
        ".live.json.tmp", ".study.json.1.tmp", "T/trial.json", "T/facts/n1.json", "T/links.json",
        "T/intervals/l1.parquet", "T/samples/n1.parquet", "T/logs/n1/sim.out", "trials.parquet", "junit.xml",
    )  # fmt: skip
    folders = ("trials", "T", "T/facts", "T/intervals", "T/samples", "T/logs", "tables", "figures", "trials/.x.partial")
    return {
        **{f"{name} to a file": partial(_link, name, "victim") for name in files},
        **{f"{name} to a folder": partial(_link, name, "precious") for name in folders},
        "report.html to a page": partial(_link, "report.html", "page"),
        "report.html to nowhere": partial(_link, "report.html", "/nowhere/at/all.html"),
        "set-aside to a folder": _set_aside_linked,
        "the study's folder itself": _store_linked,
        "drafts of this process": _foreseen_drafts,
        "trial.json to a device": partial(_link, "T/trial.json", "/dev/zero"),
        "events.jsonl to itself": partial(_link, "events.jsonl", "events.jsonl"),
    }


def _set_aside_linked(place: Place) -> None:
    _link("set-aside", "precious", place)
    (place.store / "trials" / "no trial").mkdir()


def _store_linked(place: Place) -> None:
    """The folder that `run` would make is a link to the victim's."""
    moved = place.store.with_name("moved")
    place.store.rename(moved)
    place.store.symlink_to(place.precious)


def _foreseen_drafts(place: Place) -> None:
    """Links with names that a writer could choose for its drafts."""
    for name in ("report.html", "study.json", "study.toml", "plan.jsonl"):
        (place.store / f".{name}.{os.getpid()}.tmp").symlink_to(place.victim)


def _hard_link(name: str, place: Place) -> None:
    """A file of the victim in a folder of somebody else: an ordinary user cannot make one, and reads his own."""
    path = file(name, place)
    if os.geteuid() == 0:
        os.link(place.victim, gone(path))
        os.chown(path.parent, OTHER_USER, OTHER_USER)
    elif not name.startswith("T/"):
        os.link(place.victim, gone(path))


def _hard_links() -> Mapping[str, Act]:
    names = ("events.jsonl", "report.html", ".lock", "study.json", "T/facts/n1.json", "T/logs/n1/sim.out", "tables.md")
    return {name: partial(_hard_link, name) for name in names}


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as one, contextlib.chdir(path.parent):
        one.bind(path.name)


def _device(path: Path) -> None:
    """The device of endless zeros; a link to it where this user may make none."""
    try:
        os.mknod(path, 0o600 | 0o020000, os.makedev(1, 5))
    except PermissionError:
        path.symlink_to("/dev/zero")


def _special() -> Mapping[str, Act]:
    pipes = (
        "study.json", "study.toml", "plan.jsonl", "events.jsonl", "noise-floor.json", ".live.json", ".lock",
        "report.html", "T/trial.json", "T/facts/n1.json", "T/links.json", "T/intervals/l1.parquet",
        "T/samples/n1.parquet", "T/logs/n1/sim.out", "trials",
    )  # fmt: skip
    some = ("events.jsonl", "T/trial.json", "T/intervals/l1.parquet", "report.html")
    return {
        **{f"a pipe as {name}": partial(instead, _pipe, name) for name in pipes},
        **{f"a socket as {name}": partial(instead, _socket, name) for name in some[1:3]},
        **{f"a device as {name}": partial(instead, _device, name) for name in some},
        **{f"a folder as {name}": partial(instead, Path.mkdir, name) for name in (*some, ".lock")},
    }


def _named(name: str, place: Place) -> None:
    record(
        lambda record: record["checksums"].update({name: hashlib.sha256(place.victim.read_bytes()).hexdigest()}), place
    )


def _copied_as(name: bytes, of: str, place: Place) -> None:
    source = place.trial / of
    shutil.copyfile(os.fsencode(source), os.fsencode(source.parent) + b"/" + name)


def _deep(place: Place) -> None:
    at = place.trial / "logs"
    for _ in range(300):
        at = at / "d"
        at.mkdir()
    (at / "x").write_text("deep", encoding="utf-8")


def _names() -> Mapping[str, Act]:
    facts, intervals = "facts/n1.json", "intervals/l1.parquet"
    return {
        "a checksum of ../": partial(_named, "facts/../../../../../outside/victim.json"),
        "a checksum of an absolute path": partial(_named, "/etc/hostname"),
        "a checksum of a name with NUL": partial(_named, "facts/a\0b.json"),
        "a checksum of a lone surrogate": partial(_named, "facts/\ud800.json"),
        "a checksum of 100,000 characters": partial(_named, f"facts/{'n' * 100_000}.json"),
        "a trial id of ../": partial(record, lambda record: record.update(id="../../../outside/precious")),
        "facts with control characters": partial(_copied_as, b"\x1b]0;x\x07\n.json", facts),
        "facts with a right-to-left mark": partial(_copied_as, "n1\u202enosj.json".encode(), facts),
        "facts that are not UTF-8": partial(_copied_as, b"n\xff\xfe.json", facts),
        "a load node of 247 characters": partial(_copied_as, b"l" * 247 + b".parquet", intervals),
        "a load node of control characters": partial(_copied_as, b"l\n\x1b[2J.parquet", intervals),
        "a load node that is not UTF-8": partial(_copied_as, b"l\xff.parquet", intervals),
        "a load node like an option": partial(_copied_as, b"-rf *.parquet", intervals),
        "folders 300 deep": _deep,
    }


def _tables() -> Mapping[str, Act]:
    kinds: dict[str, Act] = {}
    for name, make in hostile_tables.KINDS.items():
        kinds[f"intervals: {name}"] = partial(instead, make, "T/intervals/l1.parquet")
    for name in (
        "300 million rows of one value",
        "texts of 2 GB",
        "values that are missing",
        "pages that are no pages",
    ):
        kinds[f"samples: {name}"] = partial(instead, hostile_tables.samples(name), "T/samples/n1.parquet")
    return kinds


def _sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(SPARSE_BYTES)


def _sizes() -> Mapping[str, Act]:
    names = (
        "study.json", "study.toml", "plan.jsonl", "events.jsonl", "noise-floor.json", ".live.json", "report.html",
        "T/trial.json", "T/facts/n1.json", "T/links.json", "T/intervals/l1.parquet", "T/samples/n1.parquet",
        "T/logs/n1/sim.out",
    )  # fmt: skip
    return {f"10 GB of nothing as {name}": partial(instead, _sparse, name) for name in names}


def _forbidden(name: str, place: Place) -> None:
    os.chmod(file(name, place), 0)


def _owned(place: Place) -> None:
    if os.geteuid() == 0:
        for path in (place.store, *place.store.rglob("*")):
            os.lchown(path, OTHER_USER, OTHER_USER)


def _rights() -> Mapping[str, Act]:
    names = (
        "study.json",
        "plan.jsonl",
        "events.jsonl",
        "T/trial.json",
        "T",
        "T/facts",
        "T/intervals/l1.parquet",
        "trials",
    )
    return {**{f"000 on {name}": partial(_forbidden, name) for name in names}, "another user's folder": _owned}
