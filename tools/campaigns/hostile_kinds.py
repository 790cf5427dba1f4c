"""Kinds of hostile stores: each is made of a sound one by somebody who wants to harm whoever reads it or goes on with
it, and who computes every checksum anew."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import socket
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from steelyard.report.basics import embedded_data
from tools.campaigns import hostile_tables

SECRET: Final = "nobody-else-may-read-this"
FORMULA: Final = '=HYPERLINK("http://127.0.0.1/"&A1)'
MARKUP: Final = '</script><img src=x onerror="fetch(1)"><svg onload=alert(1)>'
CONTROL: Final = "a\x1b[2J\x07\u202egnp.exe\nb"
SPARSE_BYTES: Final = 10 << 30
LINES: Final = 200_000
OTHER_USER: Final = 65534
"""nobody."""


@dataclass(frozen=True)
class Place:
    """A store that is made hostile, and what is around it."""

    store: Path
    """The study's folder."""
    trial: Path
    """The folder of one of its trials."""
    outside: Path
    """Files of the victim: nothing here may change, and none of them may be told."""

    @property
    def victim(self) -> Path:
        """A file of the victim."""
        return self.outside / "victim.json"

    @property
    def precious(self) -> Path:
        """A folder of the victim."""
        return self.outside / "precious"


Act = Callable[[Place], None]


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
            ("JSON", True, _json()),
            ("number", True, _numbers()),
            ("table", True, _tables()),
            ("program", True, _programs()),
            ("text", True, _texts()),
            ("size", False, _sizes()),
            ("rights", False, _rights()),
        )
        for name, act in kinds.items()
    )


def _gone(path: Path) -> Path:
    """The path, with nothing there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
    return path


def _file(name: str, place: Place) -> Path:
    """A file of the store; `T/` stands for the trial's folder."""
    return place.trial / name[2:] if name.startswith("T/") else place.trial if name == "T" else place.store / name


def _link(name: str, to: str, place: Place) -> None:
    targets = {"victim": place.victim, "precious": place.precious, "page": place.outside / "victim.html"}
    _gone(_file(name, place)).symlink_to(targets.get(to, Path(to)))


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
    """Links with the names that drafts of earlier versions had."""
    for name in ("report.html", "study.json", "study.toml", "plan.jsonl"):
        (place.store / f".{name}.{os.getpid()}.tmp").symlink_to(place.victim)


def _hard_link(name: str, place: Place) -> None:
    os.link(place.victim, _gone(_file(name, place)))


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


def _instead(make: Callable[[Path], object], name: str, place: Place) -> None:
    make(_gone(_file(name, place)))


def _special() -> Mapping[str, Act]:
    pipes = (
        "study.json", "study.toml", "plan.jsonl", "events.jsonl", "noise-floor.json", ".live.json", ".lock",
        "report.html", "T/trial.json", "T/facts/n1.json", "T/links.json", "T/intervals/l1.parquet",
        "T/samples/n1.parquet", "T/logs/n1/sim.out", "trials",
    )  # fmt: skip
    some = ("study.json", "events.jsonl", "T/trial.json", "T/facts/n1.json", "T/intervals/l1.parquet", "report.html")
    return {
        **{f"a pipe as {name}": partial(_instead, _pipe, name) for name in pipes},
        **{f"a socket as {name}": partial(_instead, _socket, name) for name in some},
        **{f"a device as {name}": partial(_instead, _device, name) for name in some},
        **{f"a folder as {name}": partial(_instead, Path.mkdir, name) for name in (*some, ".lock", "noise-floor.json")},
    }


def _record(change: Callable[[dict[str, Any]], object], place: Place) -> None:
    path = place.trial / "trial.json"
    record = json.loads(path.read_text(encoding="utf-8"))
    change(record)
    path.write_text(json.dumps(record), encoding="utf-8")


def _named(name: str, place: Place) -> None:
    _record(
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
        "a trial id of ../": partial(_record, lambda record: record.update(id="../../../outside/precious")),
        "facts with control characters": partial(_copied_as, b"\x1b]0;x\x07\n.json", facts),
        "facts with a right-to-left mark": partial(_copied_as, "n1\u202enosj.json".encode(), facts),
        "facts that are not UTF-8": partial(_copied_as, b"n\xff\xfe.json", facts),
        "a load node of 247 characters": partial(_copied_as, b"l" * 247 + b".parquet", intervals),
        "a load node of control characters": partial(_copied_as, b"l\n\x1b[2J.parquet", intervals),
        "a load node that is not UTF-8": partial(_copied_as, b"l\xff.parquet", intervals),
        "a load node like an option": partial(_copied_as, b"-rf *.parquet", intervals),
        "folders 300 deep": _deep,
    }


def _write(name: str, content: bytes | str, place: Place) -> None:
    _gone(_file(name, place)).write_bytes(content.encode("utf-8") if isinstance(content, str) else content)


def _added(name: str, content: bytes, place: Place) -> None:
    with _file(name, place).open("ab") as file:
        file.write(content)


def _changed(name: str, change: Callable[[bytes], bytes], place: Place) -> None:
    path = _file(name, place)
    path.write_bytes(change(path.read_bytes()))


def _json() -> Mapping[str, Act]:
    ways: Mapping[str, Callable[[bytes], bytes]] = {
        "nested 200,000 deep": lambda content: (
            content.rstrip()[:-1] + b',"x":' + b"[" * 200_000 + b"]" * 200_000 + b"}"
        ),
        "wide": lambda content: content.rstrip()[:-1] + b',"x":[' + b"[]," * 2_000_000 + b"[]]}",
        "of 0 bytes": lambda content: b"",
        "a byte order mark": lambda content: b"\xef\xbb\xbf" + content,
        "not UTF-8": lambda content: content.replace(b'"', b'"\xff\xfe', 1),
        "keys twice": lambda content: b'{"id":"x","format":1,"verdict":5,' + content.lstrip()[1:],
        "an integer of 10,000 digits": lambda content: content.rstrip()[:-1] + b',"x":' + b"9" * 10_000 + b"}",
    }
    files = ("study.json", "T/trial.json", "T/facts/n1.json")
    laughs = b'{"event":"later","t_s":1,"x":["' + b'ha","' * 400_000 + b'"]}\n'
    return {
        **{f"{name} {way}": partial(_changed, name, change) for name in files for way, change in ways.items()},
        "an event of 2 MB": partial(_added, "events.jsonl", laughs),
        f"{LINES:,} unknown events": partial(_added, "events.jsonl", b'{"event":"from-tomorrow","t_s":1}\n' * LINES),
        "events of wrong fields": partial(_added, "events.jsonl", _wrong_events()),
        "200,000 lines that are none": partial(_added, "events.jsonl", b"}\n" * LINES),
        "a live file of wrong fields": partial(_write, ".live.json", _live()),
        "a plan of 100,000 trials": _long_plan,
        "links that are no links": partial(_write, "T/links.json", '[{"x": [[]]}, {"from": 1, "to": {}}]'),
    }


def _wrong_events() -> bytes:
    values = (None, -1, 1e308, "x", [], {}, [[]], True, "\u202e")
    names = ("trial-sealed", "seal-corrected", "set-aside", "study-written", "noise-floor", "session-began", "judged")
    keys = ("trial", "attempt", "folder", "to", "sha256", "line", "t_s", "command", "record_sha256", "outcome")
    lines = [{"event": name, "t_s": 1.0, **dict.fromkeys(keys, value)} for name in names for value in values]
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def _live() -> str:
    return json.dumps({"format": 1, "t_s": 1e308, "seconds": [{"t_s": "x"}], "nodes": [1], "troubles": {}, "quiet": 5})


def _long_plan(place: Place) -> None:
    path = place.store / "plan.jsonl"
    head, first, *_ = path.read_text(encoding="utf-8").splitlines()
    trial = json.loads(first)
    lines = (json.dumps({**trial, "id": f"{number:012x}-s1-t1", "settings": {}}) for number in range(100_000))
    path.write_text("\n".join([head, *lines]) + "\n", encoding="utf-8")


def _times(place: Place, begun_s: float, ended_s: float) -> None:
    _record(lambda record: record.update(begun_s=begun_s, ended_s=ended_s), place)


def _response(value: Any, place: Place) -> None:
    def change(record: dict[str, Any]) -> None:
        numbers = {name: value for name, old in record["responses"].items() if isinstance(old, int | float)}
        record["responses"].update(numbers)

    _record(change, place)


def _numbers() -> Mapping[str, Act]:
    values = {"NaN": float("nan"), "Infinity": float("inf"), "-0": -0.0, "1e308": 1e308, "1e-320": 1e-320,
              "-1": -1, "10^400": 10**400, "a text": "1", "a truth value": True}  # fmt: skip
    times = {"the year 30,000": (9e11, 9e11), "before the epoch": (-1e11, -1e11), "1e300 s": (1e300, 1e300),
             "an end before the beginning": (1.8e9, 1.7e9), "no number": (float("nan"), float("nan"))}  # fmt: skip
    return {
        **{f"responses of {name}": partial(_response, value) for name, value in values.items()},
        **{f"a trial in {name}": partial(_times, begun_s=a, ended_s=b) for name, (a, b) in times.items()},
        "a literal of 1e400": partial(
            _changed, "T/trial.json", lambda text: text.replace(b'"attempt": 1', b'"attempt": 1e400')
        ),
        "facts of 1e400 processors": partial(_write, "T/facts/n1.json", '{"cores": "1e400", "memory_bytes": "-inf"}'),
        "an attempt of 10^30": partial(_record, lambda record: record.update(attempt=10**30)),
    }


def _tables() -> Mapping[str, Act]:
    kinds: dict[str, Act] = {}
    for name, make in hostile_tables.KINDS.items():
        kinds[f"intervals: {name}"] = partial(_instead, make, "T/intervals/l1.parquet")
    for name in (
        "300 million rows of one value",
        "texts of 2 GB",
        "values that are missing",
        "pages that are no pages",
    ):
        kinds[f"samples: {name}"] = partial(_instead, hostile_tables.samples(name), "T/samples/n1.parquet")
    return kinds


def _programs() -> Mapping[str, Act]:
    return {
        "a system as ./evil.py": partial(_plug_in, "system"),
        "a site as ./evil.py": partial(_plug_in, "site"),
        "a workload as ./evil.py": partial(_plug_in, "workload"),
        "a probe as ./evil.py": _probe,
        "an engine as ./evil.py": partial(_plug_in, "engine"),
        "modules beside the store": _modules,
        "YAML tags as levels": partial(_texts_of, "!!python/object/apply:os.system ['touch executed']"),
        "a page that unpacks to 2 GB": _page_bomb,
    }


def _evil(place: Place) -> str:
    """A program that leaves a mark when it is run, beside the store and where commands are said."""
    text = f"open({str(place.outside / 'executed')!r}, 'w').close()\ndef create(*_, **__): ...\n"
    for folder in (place.store, place.store.parent, place.trial):
        (folder / "evil.py").write_text(text, encoding="utf-8")
    return str(place.store / "evil.py")


def _everywhere(place: Place, change: Callable[[Any], Any]) -> None:
    """Every JSON of study, plan and trials, changed."""
    for path in [place.store / "study.json", *place.store.glob("trials/*/trial.json")]:
        path.write_text(json.dumps(change(json.loads(path.read_text(encoding="utf-8")))), encoding="utf-8")
    plan = place.store / "plan.jsonl"
    lines = [json.dumps(change(json.loads(line))) for line in plan.read_text(encoding="utf-8").splitlines()]
    plan.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _plug_in(kind: str, place: Place) -> None:
    evil = _evil(place)

    def change(read: Any) -> Any:
        for of in (read, read.get("settings", {})):
            if isinstance(of.get(kind), dict):
                of[kind]["name"] = evil
            elif kind == "engine":
                of["engine"] = {"name": "./evil.py"}
        return read

    _everywhere(place, change)


def _probe(place: Place) -> None:
    evil = _evil(place)
    _everywhere(place, lambda read: {**read, "probes": ["./evil.py", evil]} if "probes" in read else read)


def _modules(place: Place) -> None:
    evil = Path(_evil(place)).read_bytes()
    for name in ("sitecustomize.py", "polars.py", "json.py", "steelyard.py", "conftest.py"):
        (place.store / name).write_bytes(evil)


def _page_bomb(place: Place) -> None:
    packed = embedded_data.pack({"trials": {"columns": ["a"], "rows": []}})
    import base64
    import zlib

    packer = zlib.compressobj(9)
    content = b"".join(packer.compress(b" " * (1 << 20)) for _ in range(2048)) + packer.flush()
    text = (place.store / "report.html").read_text(encoding="utf-8")
    begins = text.index('id="data"')
    begins = text.index(">", begins) + 1
    ends = text.index("<", begins)
    assert packed
    (place.store / "report.html").write_text(
        text[:begins] + base64.b64encode(content).decode() + text[ends:], encoding="utf-8"
    )


def _texts_of(text: str, place: Place) -> None:
    """The text as title, question, level, cell, node fact, reason: wherever a text of the study is shown."""

    def change(read: Any) -> Any:
        if "question" in read.get("study", {}):
            read["study"] |= {"question": text, "title": text}
        if "treatment" in read:
            read["treatment"] = {
                "nodes": text,
                **{name: value for name, value in read["treatment"].items() if name != "nodes"},
            }
        return read

    _everywhere(place, change)
    facts = {"cpu_model": text, "kernel": text, "cores": "2", "hostname": text}
    _write("T/facts/n1.json", json.dumps(facts), place)
    event = {"event": "session-failed", "t_s": 1.0, "message": text, "hint": text}
    _added("events.jsonl", json.dumps(event).encode() + b"\n", place)


def _texts() -> Mapping[str, Act]:
    return {
        "formulas": partial(_texts_of, FORMULA),
        "markup": partial(_texts_of, MARKUP),
        "control characters": partial(_texts_of, CONTROL),
        "LaTeX": partial(_texts_of, "\\input{/etc/passwd}\\write18{touch executed}%"),
        "Markdown": partial(_texts_of, "[x](javascript:alert(1)) | <img src=x onerror=alert(1)> `"),
        "a lone surrogate": partial(_texts_of, "\ud800"),
        "200,000 characters": partial(_texts_of, "word " * 40_000),
        "console markup": partial(_texts_of, "[bold red]x[/nothing][link=file:///etc/passwd]y"),
        "TOML nested 5,000 deep": partial(_write, "study.toml", "x = " + "[" * 5000 + "]" * 5000),
    }


def _sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(SPARSE_BYTES)


def _sizes() -> Mapping[str, Act]:
    names = (
        "study.json", "study.toml", "plan.jsonl", "events.jsonl", "noise-floor.json", ".live.json", "report.html",
        "T/trial.json", "T/facts/n1.json", "T/links.json", "T/intervals/l1.parquet", "T/samples/n1.parquet",
        "T/logs/n1/sim.out",
    )  # fmt: skip
    return {f"10 GB of nothing as {name}": partial(_instead, _sparse, name) for name in names}


def _forbidden(name: str, place: Place) -> None:
    os.chmod(_file(name, place), 0)


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


def resealed(store: Path) -> None:
    """Compute every checksum anew, as whoever made the store can."""
    sealed = {}
    for record in store.glob("trials/*/trial.json"):
        with contextlib.suppress(ValueError, RecursionError, OSError, TypeError, KeyError):
            if record.is_symlink() or not record.is_file():
                continue
            read = json.loads(record.read_text(encoding="utf-8"))
            changed = False
            for path in _regular(record.parent):
                name = str(path.relative_to(record.parent))
                sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
                if read["checksums"].get(name) != sha256:
                    read["checksums"][name], changed = sha256, True
            if changed:
                record.write_text(json.dumps(read), encoding="utf-8")
        with contextlib.suppress(OSError):
            sealed[record.parent.name] = hashlib.sha256(record.read_bytes()).hexdigest()
    journal = store / "events.jsonl"
    if journal.is_symlink() or not journal.is_file():
        return
    lines = []
    for line in journal.read_bytes().splitlines():
        with contextlib.suppress(ValueError, RecursionError, AttributeError, TypeError):
            event = json.loads(line)
            if event.get("event") == "trial-sealed" and event.get("trial") in sealed:
                event["record_sha256"] = sealed[event["trial"]]
                line = json.dumps(event).encode()
            if event.get("event") == "study-written" and isinstance(event["sha256"], dict):
                event["sha256"] = {
                    name: hashlib.sha256((store / name).read_bytes()).hexdigest()
                    for name in event["sha256"]
                    if (store / name).is_file() and not (store / name).is_symlink()
                }
                line = json.dumps(event).encode()
        lines.append(line)
    if journal.stat().st_nlink == 1:
        journal.write_bytes(b"\n".join(lines) + b"\n")


def _regular(folder: Path) -> Iterator[Path]:
    for path in folder.rglob("*"):
        with contextlib.suppress(OSError):
            if path.is_file() and not path.is_symlink() and path.name != "trial.json":
                yield path
