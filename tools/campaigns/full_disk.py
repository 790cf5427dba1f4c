"""The campaign of full disks: the disk of the store fills at each place where a study or a reader writes."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

from steelyard.store import StoreWriter
from steelyard.store.write import TrialDraft
from tools.campaigns.campaign import LIMITS_LIFTED, Case, Finding, Outcome
from tools.campaigns.command import Call, call, lines_of
from tools.campaigns.small_disk import SmallDisk, mounted

LIMIT_S: Final = 240.0
CALL_LIMIT_S: Final = 90.0
STUDY: Final = """
[study]
name = "full"
question = "what does a full disk cost?"
[site]
name = "local"
[system]
name = "simulated"
[workload]
name = "ycsb-a"
records = 100
[load]
operations = 200
[design]
starts = 1
trials = 2
[factors]
nodes = [1, 2]
"""
TRIALS: Final = 4
PLACES: Final[dict[str, tuple[type, str, int]]] = {
    "the study and its plan": (StoreWriter, "intend", 0),
    "the journal at the beginning": (StoreWriter, "event", 1),
    "the journal later": (StoreWriter, "event", 6),
    "the folder of a draft": (StoreWriter, "draft", 2),
    "what is about to be done": (TrialDraft, "intend", 2),
    "facts": (TrialDraft, "facts", 10),
    "intervals": (TrialDraft, "intervals", 2),
    "samples": (TrialDraft, "samples", 4),
    "a log": (TrialDraft, "log", 2),
    "links": (TrialDraft, "links", 2),
    "the seal": (TrialDraft, "seal", 2),
}
"""The function of the writer that meets the full disk, and how many of its calls go well before."""
OUTPUTS: Final = ("page", "tables", "figures")


def _filling(disk: SmallDisk, original: Callable[..., Any], calls: int) -> Callable[..., Any]:
    left = [calls]

    def act(*arguments: Any, **named: Any) -> Any:
        if left[0] == 0:
            disk.fill()
        left[0] -= 1
        return original(*arguments, **named)

    return act


class FullDisk:
    """A disk that fills at a place."""

    name = "disk"
    about = f"the disk of the store fills at {len(PLACES) + len(OUTPUTS)} places"
    limit_s = LIMIT_S

    def cases(self, seed: int) -> Sequence[Case]:
        """Each place once."""
        del seed
        return [*(Case(name, "run") for name in PLACES), *(Case(name, "report") for name in OUTPUTS)]

    @contextmanager
    def world(self, folder: Path) -> Iterator[Path]:
        """The study's file, and a folder for the laboratory's state."""
        (folder / "full.toml").write_text(STUDY + LIMITS_LIFTED, encoding="utf-8")
        with patch.dict(os.environ, {"STEELYARD_STATE": str(folder / "state")}):
            yield folder

    def run(self, world: Path, case: Case, folder: Path) -> Outcome:
        """Fill, judge, make room, go on, verify."""
        with mounted(folder / "disk", "8m") as disk:
            if case.stratum == "run":
                return _ran(world, disk, *PLACES[case.name])
            return _reported(world, disk, case.name)


def _run(world: Path, disk: SmallDisk) -> Call:
    return call("run", world / "full.toml", "--store", disk.folder, "--plain", limit_s=CALL_LIMIT_S)


def _ran(world: Path, disk: SmallDisk, holder: type, name: str, calls: int) -> Outcome:
    store = disk.folder / "full"
    with patch.object(holder, name, _filling(disk, getattr(holder, name), calls)):
        first = _run(world, disk)
    findings = _foreseen(first)
    sealed = _sealed(store)
    left = [path.name for pattern in ("trials/.*", ".*.tmp") for path in store.glob(pattern)]
    left += [path.name for path in (world / "state").glob("leases/*.json")]
    if left:
        findings.append(Finding("leftover", ", ".join(left)))
    disk.empty()
    again, verified = _run(world, disk), call("verify", store, limit_s=CALL_LIMIT_S)
    if again.code not in (0, 1):
        findings.append(Finding("unlike", f"the same command again: {again.code}: {again.err[-300:]}"))
    if not sealed <= _sealed(store):
        findings.append(Finding("lost", ", ".join(sealed - _sealed(store))))
    if verified.code != 0:
        findings.append(Finding("unlike", f"verify: {verified.out[:300]}"))
    return Outcome(findings, {"calls": lines_of([first, again, verified]), "sealed": len(sealed)})


def _reported(world: Path, disk: SmallDisk, output: str) -> Outcome:
    store = disk.folder / "full"
    ran = _run(world, disk)
    disk.fill()
    before = set(disk.folder.rglob("*"))
    words = () if output == "page" else ("--methods", f"--{output}", str(disk.folder / output))
    first = call("report", store, *words, limit_s=CALL_LIMIT_S)
    findings = _foreseen(first)
    written = [path for path in set(disk.folder.rglob("*")) - before if path.is_file() and path.stat().st_size]
    if written:
        findings.append(Finding("leftover", ", ".join(str(path) for path in written)))
    disk.empty()
    again = call("report", store, *words, limit_s=CALL_LIMIT_S)
    if again.code not in (0, 1):
        findings.append(Finding("unlike", f"with room: {again.code}: {again.err[-300:]}"))
    return Outcome(findings, {"calls": lines_of([ran, first, again])})


def _foreseen(called: Call) -> list[Finding]:
    if called.unforeseen:
        return [Finding("traceback", called.err[-300:])]
    if called.code != 3 or "free" not in called.err:
        return [Finding("unlike", f"exit code {called.code}: {called.err[-300:]}")]
    return []


def _sealed(store: Path) -> set[str]:
    """Names and contents of sealed trials."""
    records = (path for path in store.glob("trials/[!.]*/trial.json"))
    return {f"{path.parent.name} {json.loads(path.read_text(encoding='utf-8'))['ended_s']}" for path in records}


CAMPAIGN: Final = FullDisk()
