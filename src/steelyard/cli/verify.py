"""`steelyard verify STORE`: checksums, forms, plan, journal, every number that the raw files give, and the report."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from steelyard.model.errors import StoreError
from steelyard.store.read import open_store
from steelyard.verify.checklist import CHECKS, Verification
from steelyard.verify.store import verification

EXIT_SOUND, EXIT_DIFFERENCE = 0, 1
MOST_FINDINGS = 50
"""On the screen; `--json` has all."""


def verify(store: Path, *, reports: Sequence[Path], as_json: bool, console: Console) -> int:
    """Check a store and tell what was checked. Returns 0, or 1 if something differs (remarks do not count).

    `reports`: pages or `report --json` output to check too; without, the store's own page if there is one. Raises
    StoreError where there is no store, or a report that was named is not there.
    """
    opened = open_store(store)
    for path in reports:
        if not path.is_file():
            raise StoreError(f"{path}: no such report", "name a page, or what `report --json` printed", path=str(path))
    found = verification(opened, reports)
    if as_json:
        told = {**found.model_dump(mode="json"), "sound": found.sound, "checks": CHECKS}
        print(json.dumps(told, indent=1, ensure_ascii=False))
    else:
        draw(found, console)
    return EXIT_SOUND if found.sound else EXIT_DIFFERENCE


def draw(found: Verification, console: Console) -> None:
    """Findings, then the checks by kind, what could not be checked, and the sentence."""
    for one in found.findings[:MOST_FINDINGS]:
        style = "bold red" if one.weight == "difference" else "bold yellow"
        console.print(Text.assemble((f"{one.weight}, {one.kind}  ", style), one.words()), soft_wrap=True)
    if len(found.findings) > MOST_FINDINGS:
        console.print(Text(f"and {len(found.findings) - MOST_FINDINGS:,} more: --json"), soft_wrap=True)
    if found.findings:
        console.print()
    grid = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    grid.add_column("kind", no_wrap=True)
    grid.add_column("checks", justify="right", no_wrap=True)
    grid.add_column("differ", justify="right", no_wrap=True)
    grid.add_column("what holds where nothing differs")
    for kind, told in CHECKS.items():
        if kind in found.made:
            differ = sum(one.kind == kind and one.weight == "difference" for one in found.findings)
            grid.add_row(kind, f"{found.made[kind]:,}", str(differ or "-"), told)
    console.print(grid)
    for why, times in found.not_checked.items():
        console.print(Text(f"not checked ({times:,}): {why}", style="dim"), soft_wrap=True)
    differ = sum(one.weight == "difference" for one in found.findings)
    remarks = len(found.findings) - differ
    said = "nothing differs" if found.sound else f"{differ:,} difference{'' if differ == 1 else 's'}"
    said += f", {remarks:,} remark{'' if remarks == 1 else 's'}" if remarks else ""
    checks = sum(found.made.values())
    trials = f"{found.trials:,} trial{'' if found.trials == 1 else 's'}"
    console.print(
        Text(f"{found.store}: {said} in {checks:,} checks of {trials}", style="green" if found.sound else "bold red"),
        soft_wrap=True,
    )
