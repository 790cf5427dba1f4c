"""`steelyard gate STORE`: pass or fail a build: is it worse than the baseline by more than a margin?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from steelyard.analysis.gate import Gate
from steelyard.analysis.narrative.answer_display import SHOWN_CAVEATS
from steelyard.analysis.wording import capital
from steelyard.cli import completion
from steelyard.cli.signature import Json, Margin, StoreFolder, response_list
from steelyard.cli.terminal.answer_output import say_limits
from steelyard.cli.terminal.output import data_console, message_console, print_wrapped, say, warn_of_damages
from steelyard.export import gate_files
from steelyard.model.errors import StudyError
from steelyard.reading import gate as gating
from steelyard.reading.reading import read
from steelyard.shown_text import json_text

EXAMPLES = (
    ("steelyard gate store/gate", "This commit against main: the two builds of studies/gate.toml."),
    ("steelyard gate store/after --against store/before --margin 5%", "Two stores; up to 5% is not a loss."),
    ("steelyard gate store/gate --response time,p99 --junit gate.xml", "Two responses, a file for a service."),
)
JSON_TYPE = Gate
EXIT_NOT_WORSE, EXIT_WORSE, EXIT_UNDECIDED = 0, 1, 4
EXIT_CODES = {"not worse": EXIT_NOT_WORSE, "worse": EXIT_WORSE, "undecided": EXIT_UNDECIDED}
STYLES = {"not worse": "green", "worse": "bold red", "undecided": "yellow"}


def gate(
    store: StoreFolder,
    against: Annotated[
        Path | None,
        typer.Option(
            "--against", metavar="STORE", help="The baseline, in a separate store.", autocompletion=completion.stores
        ),
    ] = None,
    fixed_a: Annotated[
        list[str] | None,
        typer.Option(
            "--a",
            metavar="LEVEL",
            autocompletion=completion.levels,
            help="The baseline: a level (main), or FACTOR=LEVEL; several with commas.",
        ),
    ] = None,
    fixed_b: Annotated[
        list[str] | None,
        typer.Option(
            "--b",
            metavar="LEVEL",
            autocompletion=completion.levels,
            help="The build to judge: a level, or FACTOR=LEVEL.",
        ),
    ] = None,
    margin_percent: Margin = None,
    response_names: Annotated[
        list[str] | None,
        typer.Option(
            "--response",
            metavar="NAME",
            autocompletion=completion.response_names,
            help="Responses that must not get worse: throughput, time, p50, p95, p99 or another; may be repeated, or "
            "several with commas. By default those of the study.",
        ),
    ] = None,
    junit: Annotated[
        Path | None,
        typer.Option("--junit", metavar="FILE", help="Write a JUnit file: a case per cell and response."),
    ] = None,
    markdown: Annotated[
        Path | None,
        typer.Option(
            "--markdown", metavar="FILE", help="Write a summary; it is appended if FILE is $GITHUB_STEP_SUMMARY."
        ),
    ] = None,
    as_json: Json = False,
) -> int:
    """Print the verdict and write the files that are asked for.

    Returns 0 if side b is not worse by more than the margin, 1 if it is, 4 if that is undecided.

    Raises StudyError for what cannot be compared, StoreError for a study that is not finished or cannot be read,
    OSError if a file cannot be written.
    """
    _refuse_one_file(junit, markdown)
    judged = read(store)
    baseline = None if against is None else read(against)
    for side in (judged,) if baseline is None else (baseline, judged):
        warn_of_damages(message_console(), side.store.damages)
    verdict = gating.gate(
        judged,
        baseline,
        a=fixed_a or (),
        b=fixed_b or (),
        responses=response_list(response_names or ()),
        margin_percent=margin_percent,
    )
    if as_json:
        print(json_text(verdict.model_dump(mode="json"), indent=1, ensure_ascii=False, allow_nan=False))
    else:
        _print(verdict)
    _write(verdict, junit, markdown)
    return EXIT_CODES[verdict.verdict]


def _write(verdict: Gate, junit: Path | None, markdown: Path | None) -> None:
    """The files that are asked for."""
    if junit is not None:
        gate_files.write_junit(verdict, junit)
    if markdown is not None:
        gate_files.write_markdown(verdict, markdown)


def _refuse_one_file(junit: Path | None, markdown: Path | None) -> None:
    """Raises StudyError if both files are the same."""
    if junit is not None and markdown is not None and junit.resolve() == markdown.resolve():
        raise StudyError(f"--junit and --markdown both write {junit}", "name two files", key="--junit")


def _print(verdict: Gate) -> None:
    """A line per case, then the verdict."""
    console = data_console()
    for text in verdict.looks:
        say(console, Text(text, style="bold"))
    for case in verdict.cases:
        style = STYLES[case.verdict] if case.verdict != "not worse" else ""
        print_wrapped(Text(capital(case.sentence), style), console)
    # A noise floor that was not measured is a limit, too.
    limits = verdict.limits[:SHOWN_CAVEATS]
    remarks = [text for text in (*verdict.remarks, *verdict.noise_floor) if not any(limit in text for limit in limits)]
    if verdict.warnings or remarks:
        say(console)
    for text in verdict.warnings:
        print_wrapped(Text(f"! {text}", style="yellow"), console)
    for text in remarks:
        print_wrapped(Text(capital(text), style="dim"), console)
    say_limits(console, verdict.limits)
    print_wrapped(Text(gate_files.footer(verdict), style="dim"), console)
    print_wrapped(Text.assemble(("gate: ", "bold"), (verdict.sentence, STYLES[verdict.verdict])), console)
