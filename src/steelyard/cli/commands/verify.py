"""`steelyard verify STORE`: check checksums, forms, plan, journal, report, and recompute numbers from raw files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from steelyard.cli.signature import Cluster, Json, StoreFolder, Workers
from steelyard.cli.terminal.output import data_console, print_table, say
from steelyard.model.errors import StoreError
from steelyard.reading.parallel import readers
from steelyard.shown_text import json_text
from steelyard.store.modelled import open_store
from steelyard.verify.checklist import CHECKS, HINTS, Verification
from steelyard.verify.store import verification

EXAMPLES = (
    ("steelyard verify store/quickstart", "Checksums, plan, journal, and every number again."),
    ("steelyard verify store/quickstart --report page.html", "A page that was saved elsewhere, too."),
)
EXIT_SOUND, EXIT_DIFFERENCE = 0, 1
MOST_FINDINGS = 50
"""On the screen; `--json` has all."""


def verify(
    store: StoreFolder,
    reports: Annotated[
        list[Path] | None,
        typer.Option(
            "--report",
            metavar="FILE",
            help="A page, or output of `report --json`, to check; otherwise the store's page.",
        ),
    ] = None,
    as_json: Json = False,
    workers: Workers = 1,
    cluster: Cluster = "",
) -> int:
    """Check a store and report what was checked. Returns 0, or 1 if something differs (remarks do not count).

    `reports`: pages or `report --json` output to check too; without, the store's own page if there is one. Raises
    StoreError where there is no store, or a named report is missing.
    """
    opened = open_store(store)
    chosen = tuple(reports or ())
    for path in chosen:
        if not path.is_file():
            raise StoreError(f"{path}: no such report", "name a page, or output of `report --json`", path=str(path))
    with readers(workers, cluster) as executor:
        outcome = verification(opened, chosen, executor)
    if as_json:
        data = {**outcome.model_dump(mode="json"), "sound": outcome.sound, "checks": CHECKS}
        print(json_text(data, indent=1, ensure_ascii=False))
    else:
        draw(outcome, data_console())
    return EXIT_SOUND if outcome.sound else EXIT_DIFFERENCE


def draw(outcome: Verification, console: Console) -> None:
    """Findings, then the checks by kind, what could not be checked, and the sentence."""
    for finding in outcome.findings[:MOST_FINDINGS]:
        style = "bold red" if finding.weight == "difference" else "bold yellow"
        say(console, Text.assemble((f"{finding.weight}, {finding.kind}  ", style), finding.words()))
    if len(outcome.findings) > MOST_FINDINGS:
        say(console, Text(f"and {len(outcome.findings) - MOST_FINDINGS:,} more: --json"))
    differ_in = {one.kind: None for one in outcome.findings if one.weight == "difference"}
    for hint in dict.fromkeys(HINTS[kind] for kind in differ_in):
        kinds = ", ".join(kind for kind in differ_in if HINTS[kind] == hint)
        say(console, Text.assemble((f"what to do, {kinds}  ", "bold"), hint))
    if outcome.findings:
        console.print()
    grid = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    grid.add_column("kind", no_wrap=True)
    grid.add_column("checks", justify="right", no_wrap=True)
    grid.add_column("differ", justify="right", no_wrap=True)
    grid.add_column("what holds if nothing differs")
    for kind, description in CHECKS.items():
        if kind in outcome.made:
            differ = sum(one.kind == kind and one.weight == "difference" for one in outcome.findings)
            grid.add_row(kind, f"{outcome.made[kind]:,}", str(differ or "-"), description)
    print_table(grid, console)
    for why, times in outcome.not_checked.items():
        say(console, Text(f"not checked ({times:,}): {why}", style="dim"))
    differ = sum(one.weight == "difference" for one in outcome.findings)
    remarks = len(outcome.findings) - differ
    summary = "nothing differs" if outcome.sound else f"{differ:,} difference{'' if differ == 1 else 's'}"
    summary += f", {remarks:,} remark{'' if remarks == 1 else 's'}" if remarks else ""
    checks = sum(outcome.made.values())
    trials = f"{outcome.trials:,} trial{'' if outcome.trials == 1 else 's'}"
    say(
        console,
        Text(
            f"{outcome.store}: {summary} in {checks:,} checks of {trials}",
            style="green" if outcome.sound else "bold red",
        ),
    )
