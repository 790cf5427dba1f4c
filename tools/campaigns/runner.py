"""A campaign carried out: cases that are not done yet, one JSON line each, and the summary of all."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from tools.campaigns.campaign import FINDINGS, Campaign, Case, Finding, Outcome

GRACE_S = 30.0
"""So much longer than its limit may a case take before the process is ended."""
EXIT_BLOCKED = 4
World = TypeVar("World")
Line = Mapping[str, Any]
"""An outcome as written: `case`, `seed`, `stratum`, `seconds`, `findings` (`kind`, `text`), `facts`."""


def done(path: Path, seed: int = 0) -> dict[str, Line]:
    """Outcomes of this seed in a file by their case, the last of each. A torn line is no outcome: its case is done
    again."""
    lines: dict[str, Line] = {}
    if path.is_file():
        for text in path.read_text(encoding="utf-8").splitlines():
            try:
                line = json.loads(text)
                if line["seed"] == seed:
                    lines[line["case"]] = line
            except (ValueError, KeyError, TypeError):
                continue
    return lines


def carry_out(
    campaign: Campaign[World], cases: Sequence[Case], path: Path, scratch: Path | None = None, *, seed: int = 0
) -> dict[str, Line]:
    """Run those of `cases` that the file at `path` does not have, and return the outcomes of all `cases`. `scratch`:
    where folders are made; each is removed when its case is over."""
    known = done(path, seed)
    path.parent.mkdir(parents=True, exist_ok=True)
    left = [case for case in cases if case.name not in known]
    if left:
        with tempfile.TemporaryDirectory(prefix="campaign-", dir=scratch) as name:
            root = Path(name)
            with campaign.world(_made(root / "world")) as world:
                for number, case in enumerate(left, start=1):
                    with _watched(campaign, case, seed, path):
                        line = _line(campaign, world, case, seed, _made(root / "case"))
                    shutil.rmtree(root / "case", ignore_errors=True)
                    _append(path, line)
                    known[case.name] = line
                    said = ", ".join(f"{one['kind']}: {one['text']}" for one in line["findings"]) or "as it should be"
                    print(f"{number}/{len(left)}  {line['seconds']:6.1f} s  {case.name}: {said}", file=sys.stderr)
    return {case.name: known[case.name] for case in cases}


@contextlib.contextmanager
def _watched(campaign: Campaign[World], case: Case, seed: int, path: Path) -> Iterator[None]:
    """End this process if a case blocks where no signal reaches it: in a system call of a library. Its outcome is
    written first, so that the next call goes on behind it."""

    def ended() -> None:
        text = f"it blocked, and was ended after {campaign.limit_s + GRACE_S:g} s"
        _append(path, _as_line(case, seed, Outcome((Finding("late", text),)), campaign.limit_s + GRACE_S))
        print(f"{case.name}: {text}; say the same command again to go on", file=sys.stderr, flush=True)
        os._exit(EXIT_BLOCKED)

    timer = threading.Timer(campaign.limit_s + GRACE_S, ended)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def _line(campaign: Campaign[World], world: World, case: Case, seed: int, folder: Path) -> Line:
    begun_s = time.monotonic()
    try:
        outcome = campaign.run(world, case, folder)
    except Exception as error:  # a case that falls over is counted, and the campaign goes on
        facts = {"traceback": traceback.format_exc()}
        outcome = Outcome((Finding("campaign", f"{type(error).__name__}: {error}"),), facts)
    seconds = time.monotonic() - begun_s
    if seconds > campaign.limit_s:
        late = Finding("late", f"{seconds:.1f} s of at most {campaign.limit_s:g} s")
        outcome = Outcome((*outcome.findings, late), outcome.facts)
    return _as_line(case, seed, outcome, seconds)


def _as_line(case: Case, seed: int, outcome: Outcome, seconds: float) -> Line:
    return {
        "case": case.name,
        "seed": seed,
        "stratum": case.stratum,
        "seconds": round(seconds, 3),
        "findings": [{"kind": finding.kind, "text": finding.text} for finding in outcome.findings],
        "facts": dict(outcome.facts),
    }


def _append(path: Path, line: Line) -> None:
    torn = path.is_file() and (content := path.read_bytes()) and not content.endswith(b"\n")
    with path.open("a", encoding="utf-8") as handle:
        handle.write(("\n" if torn else "") + json.dumps(line) + "\n")


def table(lines: Sequence[Line]) -> str:
    """The summary as a Markdown table: each stratum with its cases, those as they should be, the findings by kind."""
    kinds = [kind for kind in FINDINGS if any(kind in _kinds(line) for line in lines)]
    strata = list(dict.fromkeys(str(line["stratum"]) for line in lines))
    rows = [_row(name, [line for line in lines if line["stratum"] == name], kinds) for name in strata]
    head = ["stratum", "cases", "as it should be", *kinds, "longest"]
    rules = ["---", *["---:"] * (len(head) - 1)]
    body = [head, rules, *rows, _row("all", lines, kinds)]
    return "\n".join(f"| {' | '.join(row)} |" for row in body)


def _row(name: str, lines: Sequence[Line], kinds: Sequence[str]) -> list[str]:
    counts = Counter(kind for line in lines for kind in _kinds(line))
    good = sum(not line["findings"] for line in lines)
    longest_s = max((float(line["seconds"]) for line in lines), default=0.0)
    return [name, str(len(lines)), str(good), *(str(counts[kind]) for kind in kinds), f"{longest_s:.1f} s"]


def _kinds(line: Line) -> set[str]:
    return {str(finding["kind"]) for finding in line["findings"]}
