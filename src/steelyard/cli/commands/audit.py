"""`steelyard audit FILE|NAME`: consistency check of a summary table's own numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from steelyard.cli import completion
from steelyard.cli.signature import Json
from steelyard.cli.terminal.output import data_console, print_table, print_wrapped, say
from steelyard.format import count
from steelyard.model.errors import StudyError
from steelyard.reference.audit import csv_input, shipped_tables
from steelyard.reference.audit.finding import KINDS, Audit, AuditFinding, cell_words, column_label, figure
from steelyard.reference.audit.single_cell import Conventions
from steelyard.reference.printed import AS_PRINTED, Rounding
from steelyard.reference.tables import UnknownReference
from steelyard.shown_text import json_text

EXAMPLES = (
    ("steelyard audit summary.csv", "Do the numbers of this table agree with each other?"),
    ("steelyard audit srinadhuni2018", "The same for a published study."),
)
JSON_TYPE = Audit
EXIT_NOTHING, EXIT_CONTRADICTION, EXIT_UNCHECKED = 0, 1, 4
"""4, as of a gate that is undecided: no check could be made, which clears nothing."""


def audit(
    name: Annotated[
        str,
        typer.Argument(
            metavar="FILE|NAME",
            help="A CSV file, a published table or study by name, or all.",
            autocompletion=completion.tables,
        ),
    ],
    digits: Annotated[
        int | None,
        typer.Option(
            "--digits",
            min=1,
            max=15,
            metavar="N",
            help="Numbers are printed to N significant digits, trailing zeros dropped.",
        ),
    ] = None,
    count: Annotated[
        int | None, typer.Option("--count", min=1, metavar="N", help="By design a cell has N values.")
    ] = None,
    quartiles: Annotated[
        str, typer.Option("--quartiles", metavar="KIND", help="Definition of quartiles: any, or linear (pandas, R).")
    ] = "any",
    whole_numbers: Annotated[
        bool, typer.Option("--whole-numbers", help="The summarised values are whole numbers.")
    ] = False,
    as_json: Json = False,
) -> int:
    """Audit a file if there is one of this name, otherwise a shipped table or study. Data go to standard output.

    Returns 0, 1 if there is a contradiction (remarks do not count), or 4 if nothing could be checked. Raises StudyError
    (TableError) for a file that is not a table, an unknown name, or options of files with a shipped table.
    """
    if Path(name).is_file():
        if quartiles not in ("any", "linear"):
            raise StudyError(f"--quartiles {quartiles}", "any, or linear", key="--quartiles", allowed=("any", "linear"))
        how = Conventions(
            quartiles="linear" if quartiles == "linear" else "any", whole_numbers=whole_numbers, design_count=count
        )
        rounding = AS_PRINTED if digits is None else Rounding(kind="significant", digits=digits)
        outcome = csv_input.audit(Path(name), how, rounding)
    else:
        outcome = _shipped(name, asked=digits is not None or count is not None or whole_numbers or quartiles != "any")
    if as_json:
        print(json_text(outcome.model_dump(mode="json"), indent=1, ensure_ascii=False))
    else:
        draw(outcome, data_console())
    if any(one.weight == "contradiction" for one in outcome.findings):
        return EXIT_CONTRADICTION
    return EXIT_NOTHING if outcome.made else EXIT_UNCHECKED


def _shipped(name: str, asked: bool) -> Audit:
    try:
        outcome = shipped_tables.audit(name)
    except UnknownReference as error:
        raise UnknownReference(
            f"{name!r} is neither a file nor a shipped table or study", error.hint, read=name
        ) from error
    if asked:
        raise StudyError(
            "--digits, --count, --quartiles and --whole-numbers are for files",
            "a shipped table specifies its rounding and design",
        )
    return outcome


def draw(outcome: Audit, console: Console) -> None:
    """Every finding as a paragraph; then the checks by kind."""
    for finding in outcome.findings:
        print_wrapped(_head(finding), console)
        console.print(Padding(Text(_numbers(finding)), (0, 0, 0, 2)))
        console.print(Padding(Text(finding.because, style="dim"), (0, 0, 1, 2)))
    wrong = sum(one.weight == "contradiction" for one in outcome.findings)
    remarks = len(outcome.findings) - wrong
    checked = sum(outcome.made.values())
    verdict = (
        f"{count(wrong, 'contradiction')} and {count(remarks, 'remark')} in {count(checked, 'check')}; "
        "differences explained by rounding are left out"
        if checked
        else "nothing was checked: no two of its numbers are related"
    )
    say(console, Text(f"{outcome.name}: {verdict}", style="bold"))
    grid = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    grid.add_column("kind", no_wrap=True)
    grid.add_column("checks", justify="right", no_wrap=True)
    grid.add_column("found", justify="right", no_wrap=True)
    grid.add_column("what holds if nothing is found")
    for kind, checks in outcome.made.items():
        hits = sum(one.kind == kind for one in outcome.findings)
        grid.add_row(kind, f"{checks:,}", str(hits or "-"), KINDS[kind])
    if outcome.made:
        print_table(grid, console)
    if outcome.columns:
        taken = ", ".join(name if name == column else f"{column} as {name}" for column, name in outcome.columns.items())
        say(console, Text(f"read: {taken} ({outcome.form})", style="dim"))
    for why, times in outcome.left_out.items():
        say(console, Text(f"not checked ({times:,}): {why}", style="dim"))


def _head(finding: AuditFinding) -> Text:
    style = "bold red" if finding.weight == "contradiction" else "bold yellow"
    return Text.assemble(
        (f"{finding.weight}, {finding.kind}  ", style),
        f"{finding.table}, line {finding.line}: {cell_words(finding.cell)}",
    )


def _numbers(finding: AuditFinding) -> str:
    off = "" if finding.off_by is None else f"; off by {figure(abs(finding.off_by))}{_share(finding)}"
    return f"{column_label(finding.column)} {finding.printed}; should be {finding.should_be}{off}"


def _share(finding: AuditFinding) -> str:
    """Deviation in percent of the nearest possible value."""
    end = finding.high if finding.off_by is not None and finding.off_by > 0 else finding.low
    return f" ({abs(finding.off_by) / abs(end):.0%})" if end and finding.off_by else ""
