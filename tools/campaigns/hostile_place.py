"""A store that is made hostile: its files, what lies around it, and its checksums computed anew."""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

MOST_READ_BYTES: Final = 1 << 30


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


def gone(path: Path) -> Path:
    """The path, with nothing there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
    return path


def file(name: str, place: Place) -> Path:
    """A file of the store; `T/` stands for the trial's folder."""
    return place.trial / name[2:] if name.startswith("T/") else place.trial if name == "T" else place.store / name


def instead(make: Callable[[Path], object], name: str, place: Place) -> None:
    """What `make` makes, in the place of a file."""
    make(gone(file(name, place)))


def record(change: Callable[[dict[str, Any]], object], place: Place) -> None:
    """The trial's record, changed."""
    path = place.trial / "trial.json"
    read = json.loads(path.read_text(encoding="utf-8"))
    change(read)
    path.write_text(json.dumps(read), encoding="utf-8")


def write(name: str, content: bytes | str, place: Place) -> None:
    """A file of this content."""
    gone(file(name, place)).write_bytes(content.encode("utf-8") if isinstance(content, str) else content)


def added(name: str, content: bytes, place: Place) -> None:
    """A file with this at its end."""
    with file(name, place).open("ab") as whole:
        whole.write(content)


def changed(name: str, change: Callable[[bytes], bytes], place: Place) -> None:
    """A file with its content changed."""
    path = file(name, place)
    path.write_bytes(change(path.read_bytes()))


def everywhere(place: Place, change: Callable[[Any], Any]) -> None:
    """Every JSON of study, plan and trials, changed."""
    for path in [place.store / "study.json", *place.store.glob("trials/*/trial.json")]:
        path.write_text(json.dumps(change(json.loads(path.read_text(encoding="utf-8")))), encoding="utf-8")
    plan = place.store / "plan.jsonl"
    lines = [json.dumps(change(json.loads(line))) for line in plan.read_text(encoding="utf-8").splitlines()]
    plan.write_text("\n".join(lines) + "\n", encoding="utf-8")


def resealed(store: Path) -> None:
    """Compute every checksum anew, as whoever made the store can."""
    sealed = {}
    for path in store.glob("trials/*/trial.json"):
        if _is_plain(path):
            with contextlib.suppress(ValueError, RecursionError, OSError, TypeError, KeyError):
                _checksums_anew(path)
            sealed[path.parent.name] = _sha256(path)
    journal = store / "events.jsonl"
    if _is_plain(journal):
        lines = [_line_anew(line, sealed, store) for line in journal.read_bytes().splitlines()]
        journal.write_bytes(b"\n".join(lines) + b"\n")


def _checksums_anew(path: Path) -> None:
    record = json.loads(path.read_text(encoding="utf-8"))
    folder = path.parent
    files = [one for one in folder.rglob("*") if _is_plain(one) and one != path]
    sha256 = {str(one.relative_to(folder)): _sha256(one) for one in files}
    if any(record["checksums"].get(name) != of_file for name, of_file in sha256.items()):
        record["checksums"] |= sha256
        path.write_text(json.dumps(record), encoding="utf-8")


def _line_anew(line: bytes, sealed: Mapping[str, str], store: Path) -> bytes:
    """A line of the journal with the checksums of today."""
    try:
        event = json.loads(line)
        kind = event.get("event")
        if kind == "trial-sealed" and event.get("trial") in sealed:
            return json.dumps({**event, "record_sha256": sealed[event["trial"]]}).encode()
        if kind == "study-written" and isinstance(event["sha256"], dict):
            known = {name: _sha256(store / name) for name in event["sha256"] if _is_plain(store / name)}
            return json.dumps({**event, "sha256": known}).encode()
    except (ValueError, RecursionError, AttributeError, TypeError):
        pass
    return line


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _is_plain(path: Path) -> bool:
    """Whether it is a file of the store itself, and of a size that can be read."""
    try:
        status = path.lstat()
    except (OSError, ValueError):
        return False
    return stat.S_ISREG(status.st_mode) and status.st_nlink == 1 and status.st_size < MOST_READ_BYTES
