"""Kinds of damage to a store: each harms one file or folder in one way, and says who has to name it."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal

Harmful = Callable[[Path, random.Random], None]
Weight = Literal["difference", "remark", "nothing"]

VERIFY, REPORT, STATUS, RUN = "verify", "report", "status", "run"
EVERYBODY: Final = frozenset({VERIFY, REPORT, STATUS})
READERS: Final = frozenset({VERIFY, REPORT})
NOBODY: Final[frozenset[str]] = frozenset()
TRIAL: Final = "TRIAL"
"""Stands in a path for the folder of the trial that is harmed."""


@dataclass(frozen=True)
class Harm:
    """One kind of damage."""

    name: str
    stratum: str
    path: str
    """What is harmed, relative to the study's folder."""
    harm: Harmful
    named_by: frozenset[str] = EVERYBODY
    """Commands that must name the file, or the folder that it is in."""
    weight: Weight = "difference"
    """What `verify` finds."""
    repaired: bool = True
    """Whether `verify` finds no difference after the next `run` (and a new report); else a copy has to be restored."""


def _bytes(change: Callable[[bytes], bytes], path: Path, _: random.Random) -> None:
    path.write_bytes(change(path.read_bytes()))


def _flip(path: Path, rng: random.Random) -> None:
    content = bytearray(path.read_bytes())
    content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    path.write_bytes(bytes(content))


def _delete(path: Path, _: random.Random) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()


def _empty_file(path: Path, rng: random.Random) -> None:
    _delete(path, rng)
    path.touch()


def _folder(path: Path, rng: random.Random) -> None:
    _delete(path, rng)
    path.mkdir()


def _pipe(path: Path, rng: random.Random) -> None:
    _delete(path, rng)
    os.mkfifo(path)


def _loop(path: Path, rng: random.Random) -> None:
    _delete(path, rng)
    path.symlink_to(path.name)


def _copy(suffix: str, path: Path, _: random.Random) -> None:
    target = path.with_name(path.name + suffix)
    if path.is_dir():
        shutil.copytree(path, target)
    else:
        shutil.copy2(path, target)


def _beside(name: str, path: Path, _: random.Random) -> None:
    shutil.copy2(path, path.with_name(name))


def _exchange(path: Path, _: random.Random) -> None:
    """The same file of two trials, exchanged."""
    trial = next(parent for parent in path.parents if parent.parent.name == "trials")
    other = next(one for one in sorted(trial.parent.iterdir()) if one != trial and _cell(one) != _cell(trial))
    theirs = other / path.relative_to(trial)
    content = path.read_bytes()
    path.write_bytes(theirs.read_bytes())
    theirs.write_bytes(content)


def _cell(folder: Path) -> str:
    return folder.name.partition("-")[0]


def _edit(change: Callable[[Any], Any], path: Path, _: random.Random) -> None:
    read = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(change(read) or read, indent=1), encoding="utf-8")


def _lines(change: Callable[[list[bytes]], Sequence[bytes]], path: Path, _: random.Random) -> None:
    path.write_bytes(b"".join(change(path.read_bytes().splitlines(keepends=True))))


def _text(old: str, new: str, path: Path, _: random.Random) -> None:
    text = path.read_text(encoding="utf-8")
    if old not in text:
        raise ValueError(f"{path.name} does not hold {old!r}")
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def _seal(**change: Callable[[Any], Any]) -> Harmful:
    """Fields of the first line about a sealed trial, edited."""

    def edited(lines: list[bytes]) -> list[bytes]:
        place = next(place for place, line in enumerate(lines) if b"trial-sealed" in line)
        seal = json.loads(lines[place])
        seal |= {name: to(seal[name]) for name, to in change.items()}
        return [*lines[:place], json.dumps(seal).encode() + b"\n", *lines[place + 1 :]]

    return partial(_lines, edited)


half = partial(_bytes, lambda content: content[: len(content) // 2])
empty = partial(_bytes, lambda content: b"")
last_byte = partial(_bytes, lambda content: content[:-2])
not_utf8 = partial(_bytes, lambda content: content[: len(content) // 2] + b"\xff\xfe" + content[len(content) // 2 :])
bad_tail = partial(_bytes, lambda content: content + b"\xff\xfe\n")
zeros = partial(_bytes, lambda content: content + b"\0" * 512)
zeroed = partial(_bytes, lambda content: b"\0" * len(content))
deep = partial(_bytes, lambda content: b"[" * 100_000)
a_list = partial(_bytes, lambda content: b"[1, 2]")
garbage = partial(_bytes, lambda content: b"not what it was\n")
byte_order_mark = partial(_bytes, lambda content: b"\xef\xbb\xbf" + content)
twice = partial(_bytes, lambda content: content + content)


def _set(*path: str, to: Any) -> Harmful:
    def change(read: Any) -> None:
        for name in path[:-1]:
            read = read[name]
        read[path[-1]] = to

    return partial(_edit, change)


def _factor(times: float, *path: str) -> Harmful:
    def change(read: Any) -> None:
        for name in path[:-1]:
            read = read[name]
        read[path[-1]] = read[path[-1]] * times

    return partial(_edit, change)


def _of(path: str, stratum: str, ways: Mapping[str, Harmful], **rest: Any) -> list[Harm]:
    return [Harm(f"{path.replace(f'trials/{TRIAL}', 'TRIAL')}: {way}", stratum, path, harm, **rest)
            for way, harm in ways.items()]  # fmt: skip


def every() -> tuple[Harm, ...]:
    """All kinds of damage, in order."""
    return (*_of_the_study(), *_of_plan_and_journal(), *_of_records(), *_of_folders(), *_of_tables(), *_of_the_rest())


def _of_the_study() -> list[Harm]:
    torn = {"half": half, "empty": empty, "not UTF-8": not_utf8, "deep nesting": deep, "a list": a_list}
    return [
        *_of("study.json", "study", {**torn, "a pipe in its place": _pipe}, repaired=False),
        *_of("study.json", "study", {"edited response": _set("analysis", "response", to="throughput_per_s")}),
        *_of("study.json", "study", {"deleted": _delete, "a folder in its place": _folder}, repaired=False),
        *_of("study.toml", "study", {"edited": partial(_text, "operations = ", "operations = 1")},
             named_by=frozenset({VERIFY})),
        *_of("study.toml", "study", {"deleted": _delete, "not UTF-8": not_utf8}, named_by=frozenset({VERIFY})),
    ]  # fmt: skip


def _of_plan_and_journal() -> list[Harm]:
    plan, journal = "plan.jsonl", "events.jsonl"
    seed = partial(_text, '"seed":', '"seed":1')
    sealed = partial(_lines, lambda lines: [line for line in lines if b"trial-sealed" not in line])
    outcome = partial(_text, '"outcome": "valid"', '"outcome": "invalid"')
    return [
        *_of(plan, "plan", {"half": half, "empty": empty, "not UTF-8": not_utf8, "first line gone":
             partial(_lines, lambda lines: lines[1:]), "a line gone": partial(_lines, lambda lines: lines[:-1]),
             "a line twice": partial(_lines, lambda lines: [*lines, lines[-1]]), "another seed": seed,
             "deep nesting": deep, "deleted": _delete, "a pipe in its place": _pipe}),
        *_of(journal, "journal", {"half a line at its end": last_byte, "bytes that are not UTF-8": bad_tail,
             "a tail of zeros": zeros, "garbage in the middle": partial(
                 _lines, lambda lines: [lines[0], b"}{\n", *lines[1:]])},
             weight="remark"),
        *_of(journal, "journal", {"deleted": _delete, "empty": empty}),
        *_of(journal, "journal", {"a trial of another outcome": outcome, "a digit of a record's SHA-256": _seal(
             record_sha256=lambda was: ("0" if was[0] != "0" else "1") + was[1:]), "a trial of another attempt":
             _seal(attempt=lambda was: was + 1)}),
        *_of(journal, "journal", {"every line twice": twice, "lines of sealed trials gone": sealed}, weight="remark",
             named_by=NOBODY),
        *_of(journal, "journal", {"a folder in its place": _folder}, repaired=False),
    ]  # fmt: skip


def _of_records() -> list[Harm]:
    record = f"trials/{TRIAL}/trial.json"
    return [
        *_of(record, "record", {"half": half, "empty": empty, "not UTF-8": not_utf8, "zeroed": zeroed,
             "deep nesting": deep, "a list": a_list, "deleted": _delete, "a pipe in its place": _pipe,
             "a symbolic link to itself": _loop, "a folder in its place": _folder,
             "exchanged with another trial's": _exchange}),
        *_of(record, "record", {"a byte flipped": _flip, "byte order mark": byte_order_mark,
             "edited response": _factor(2.0, "responses", "execution_time_ms"),
             "edited outcome": _set("verdict", "outcome", to="invalid"),
             "edited attempt": _set("attempt", to=2), "edited id": _set("id", to="000000000000-s1-t1"),
             "edited treatment": _set("treatment", to={}), "a huge time": _set("begun_s", to=1e300)}),
        *_of(record, "record", {"another format": _set("format", to=99)}, repaired=False),
    ]  # fmt: skip


def _of_folders() -> list[Harm]:
    trial = f"trials/{TRIAL}"
    return [
        *_of(trial, "trial's folder", {"copied as attempt 7": partial(_copy, ".7"), "copied as attempt 2":
             partial(_copy, ".2"), "copied beside": partial(_copy, " (copy)"), "a file in its place": _empty_file,
             "emptied": _folder}),
        *_of(trial, "trial's folder", {"deleted": _delete}),
        *_of("trials", "trial's folder", {"deleted": _delete}),
        *_of("trials", "trial's folder", {"a file in its place": _empty_file}, repaired=False),
    ]  # fmt: skip


def _of_tables() -> list[Harm]:
    intervals, samples = f"trials/{TRIAL}/intervals/l1.parquet", f"trials/{TRIAL}/samples/n1.parquet"
    ways: Mapping[str, Harmful] = {
        "half": half,
        "empty": empty,
        "a byte flipped": _flip,
        "garbage": garbage,
        "deleted": _delete,
        "a folder in its place": _folder,
        "a pipe in its place": _pipe,
    }
    return [
        *_of(intervals, "table", {**ways, "exchanged with another trial's": _exchange, "copied beside":
             partial(_beside, "l2.parquet"), "a table of other columns": _samples_instead},
             named_by=READERS, repaired=False),
        *_of(f"trials/{TRIAL}/intervals", "table", {"deleted": _delete}, named_by=READERS, repaired=False),
        *_of(samples, "table", ways, named_by=frozenset({VERIFY}), repaired=False),
    ]  # fmt: skip


def _samples_instead(path: Path, _: random.Random) -> None:
    shutil.copy2(path.parent.parent / "samples" / "n1.parquet", path)


def _number_for_a_text(path: Path, _: random.Random) -> None:
    path.write_text('{"cores": 2, "limit_memory_bytes": null}', encoding="utf-8")


def _of_the_rest() -> list[Harm]:
    facts, links = f"trials/{TRIAL}/facts/n1.json", f"trials/{TRIAL}/links.json"
    only_verify = frozenset({VERIFY})
    texts: Mapping[str, Harmful] = {
        "half": half,
        "empty": empty,
        "not UTF-8": not_utf8,
        "a list": a_list,
        "a number for a text": _number_for_a_text,
        "deep nesting": deep,
        "deleted": _delete,
    }
    return [
        *_of(facts, "facts", texts, named_by=only_verify, repaired=False),
        *_of(links, "facts", {"half": half, "garbage": garbage, "deleted": _delete}, named_by=only_verify,
             repaired=False),
        *_of(f"trials/{TRIAL}/logs/n1/sim.out", "log", {"edited": bad_tail, "deleted": _delete}, named_by=only_verify,
             repaired=False),
        *_of("report.html", "report", {"half": half, "not UTF-8": not_utf8, "empty": empty}, named_by=only_verify),
        *_of("report.html", "report", {"deleted": _delete}, named_by=NOBODY, weight="nothing"),
        *_of(".lock", "other", {"deleted": _delete, "not UTF-8": bad_tail}, named_by=NOBODY, weight="nothing"),
    ]  # fmt: skip
