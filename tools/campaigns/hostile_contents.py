"""Hostile contents of a store: JSON, numbers, names of programs, texts."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

from tools.campaigns.hostile_place import Act, Place, added, changed, everywhere, record, write

FORMULA: Final = '=HYPERLINK("http://127.0.0.1/"&A1)'
MARKUP: Final = '</script><img src=x onerror="fetch(1)"><svg onload=alert(1)>'
CONTROL: Final = "a\x1b[2J\x07\u202egnp.exe\nb"
LINES: Final = 200_000


def broken() -> Mapping[str, Act]:
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
    files = ("study.json", "T/trial.json")
    laughs = b'{"event":"later","t_s":1,"x":["' + b'ha","' * 400_000 + b'"]}\n'
    return {
        **{f"{name} {way}": partial(changed, name, change) for name in files for way, change in ways.items()},
        "an event of 2 MB": partial(added, "events.jsonl", laughs),
        f"{LINES:,} unknown events": partial(added, "events.jsonl", b'{"event":"from-tomorrow","t_s":1}\n' * LINES),
        "events of wrong fields": partial(added, "events.jsonl", _wrong_events()),
        "200,000 lines that are none": partial(added, "events.jsonl", b"}\n" * LINES),
        "a live file of wrong fields": partial(write, ".live.json", _live()),
        "a plan of 100,000 trials": _long_plan,
        "links that are no links": partial(write, "T/links.json", '[{"x": [[]]}, {"from": 1, "to": {}}]'),
    }


def _wrong_events() -> bytes:
    values: tuple[object, ...] = (None, -1, 1e308, "x", [], {}, [[]], True, "\u202e")
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
    record(lambda record: record.update(begun_s=begun_s, ended_s=ended_s), place)


def _response(value: Any, place: Place) -> None:
    def change(record: dict[str, Any]) -> None:
        numbers = {name: value for name, old in record["responses"].items() if isinstance(old, int | float)}
        record["responses"].update(numbers)

    record(change, place)


def numbers() -> Mapping[str, Act]:
    values: Mapping[str, object] = {
        "NaN": float("nan"),
        "Infinity": float("inf"),
        "-0": -0.0,
        "1e308": 1e308,
        "1e-320": 1e-320,
        "-1": -1,
        "10^400": 10**400,
        "a text": "1",
        "a truth value": True,
    }
    times = {
        "the year 30,000": (9e11, 9e11),
        "times before the epoch": (-1e11, -1e11),
        "1e300 s": (1e300, 1e300),
        "3,000 years": (1.0, 9e10),
        "an end before the beginning": (1.8e9, 1.7e9),
        "no number": (float("nan"), float("nan")),
    }
    return {
        **{f"responses of {name}": partial(_response, value) for name, value in values.items()},
        **{f"a trial in {name}": partial(_times, begun_s=a, ended_s=b) for name, (a, b) in times.items()},
        "a literal of 1e400": partial(
            changed, "T/trial.json", lambda text: text.replace(b'"attempt": 1', b'"attempt": 1e400')
        ),
        "facts of 1e400 processors": partial(write, "T/facts/n1.json", '{"cores": "1e400", "memory_bytes": "-inf"}'),
        "an attempt of 10^30": partial(record, lambda record: record.update(attempt=10**30)),
    }


def programs() -> Mapping[str, Act]:
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


def _plug_in(kind: str, place: Place) -> None:
    evil = _evil(place)

    def change(read: Any) -> Any:
        for of in (read, read.get("settings", {})):
            if isinstance(of.get(kind), dict):
                of[kind]["name"] = evil
            elif kind == "engine":
                of["engine"] = {"name": "./evil.py"}
        return read

    everywhere(place, change)


def _probe(place: Place) -> None:
    evil = _evil(place)
    everywhere(place, lambda read: {**read, "probes": ["./evil.py", evil]} if "probes" in read else read)


def _modules(place: Place) -> None:
    evil = Path(_evil(place)).read_bytes()
    for name in ("sitecustomize.py", "polars.py", "json.py", "steelyard.py", "conftest.py"):
        (place.store / name).write_bytes(evil)


def _page_bomb(place: Place) -> None:
    """The tables of the page, which unpack to 2 GB of blanks."""
    packer = zlib.compressobj(9)
    packed = b"".join(packer.compress(b" " * (1 << 20)) for _ in range(2048)) + packer.flush()
    path = place.store / "report.html"
    page = path.read_text(encoding="utf-8") if path.exists() else '<script id="data"></script>'
    begins = page.index(">", page.index('id="data"')) + 1
    ends = page.index("<", begins)
    path.write_text(page[:begins] + base64.b64encode(packed).decode() + page[ends:], encoding="utf-8")


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

    everywhere(place, change)
    facts = {"cpu_model": text, "kernel": text, "cores": "2", "hostname": text}
    write("T/facts/n1.json", json.dumps(facts), place)
    event = {"event": "session-failed", "t_s": 1.0, "message": text, "hint": text}
    added("events.jsonl", json.dumps(event).encode() + b"\n", place)


def texts() -> Mapping[str, Act]:
    return {
        "formulas": partial(_texts_of, FORMULA),
        "markup": partial(_texts_of, MARKUP),
        "control characters": partial(_texts_of, CONTROL),
        "LaTeX": partial(_texts_of, "\\input{/etc/passwd}\\write18{touch executed}%"),
        "Markdown": partial(_texts_of, "[x](javascript:alert(1)) | <img src=x onerror=alert(1)> `"),
        "a lone surrogate": partial(_texts_of, "\ud800"),
        "200,000 characters": partial(_texts_of, "word " * 40_000),
        "console markup": partial(_texts_of, "[bold red]x[/nothing][link=file:///etc/passwd]y"),
        "TOML nested 5,000 deep": partial(write, "study.toml", "x = " + "[" * 5000 + "]" * 5000),
    }
