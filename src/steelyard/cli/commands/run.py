"""`steelyard run STUDY`: run the missing trials of a study; safe to repeat, safe to interrupt."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from steelyard.analysis.narrative.answer_parts import parts_of
from steelyard.analysis.statistics.look import row_of
from steelyard.cli.plugin_trust import says_yes, trust_of
from steelyard.cli.progress_views import LiveView, PlainView
from steelyard.cli.signature import Json, Scale, StoreRoot, StudyFile, Trusted, WithoutMissing
from steelyard.cli.terminal.answer_output import print_answer, print_other_responses, say_limits
from steelyard.cli.terminal.interrupts import interruptible
from steelyard.cli.terminal.live_cells import LiveCells
from steelyard.cli.terminal.output import message_console, print_wrapped, say, say_address, say_marked, warn_of_damages
from steelyard.judging.looks import later
from steelyard.lab.labs import measure_on_laboratories
from steelyard.lab.session import Session, SessionEnd, begin
from steelyard.reading import Reading, read
from steelyard.shown_text import json_text

EXAMPLES = (
    ("steelyard run studies/quickstart.toml", "Measure what is missing, into store/quickstart."),
    ("steelyard run studies/chekkilla2016.toml --scale 0.01", "Try a long study with 1% of its data."),
    ("steelyard run studies/simulated.toml --store /tmp/try --plain", "Another folder; log lines."),
)
EXIT_DONE, EXIT_INVALID, EXIT_INTERRUPTED = 0, 1, 130
QUIET_WAIT_VARIABLE = "STEELYARD_QUIET_WAIT_S"
PAGE = "report.html"
"""Page that `report` writes into the study's folder."""


def run(
    study_path: StudyFile,
    store: StoreRoot = Path("store"),
    scale: Scale = 1.0,
    plain: Annotated[bool, typer.Option("--plain", help="Print log lines instead of a live screen.")] = False,
    quiet_wait_s: Annotated[
        float | None,
        typer.Option(
            "--quiet-wait",
            metavar="SECONDS",
            envvar=QUIET_WAIT_VARIABLE,
            help="Longest wait for a quiet machine, instead of limits.quiet_wait_s. 0: exit immediately with code 3.",
        ),
    ] = None,
    leave_out_missing: WithoutMissing = False,
    trust: Trusted = False,
    labs: Annotated[
        str, typer.Option("--labs", metavar="ADDRESS", help="Blocks go to workers of this Dask scheduler with lab=1.")
    ] = "",
    yes: Annotated[bool, typer.Option("--yes", help="Agree to what rented nodes may cost.")] = False,
    as_json: Json = False,
) -> int:
    """Run a study. Returns the exit code: 0 done, 1 done but some trials invalid, 130 interrupted. Raises NotQuiet,
    which ends with 3, if the machine stays busy."""
    console = message_console()
    options: dict[str, Any] = {
        "trust": trust_of(trust), "scale": scale, "quiet_wait_s": quiet_wait_s, "without_missing": leave_out_missing,
        "say": lambda line: say_marked(console, line), "command": sys.argv,
        "agree": lambda cost: yes or says_yes(f"this costs money: {cost}; go on?"),
    }  # fmt: skip
    if labs:
        end = measure_on_laboratories(study_path, labs, store, **options)
    else:
        with begin(study_path, store, **options) as session:
            asyncio.run(_measure(session, console, plain=plain or not console.is_terminal))
        end = session.end()
    _say(end, console, as_json=as_json)
    if end.interrupted:
        return EXIT_INTERRUPTED
    return EXIT_INVALID if end.outcome.invalid else EXIT_DONE


async def _measure(session: Session, console: Console, *, plain: bool) -> None:
    cells = LiveCells(later(session.study, session.look), session.records)
    view = PlainView(lambda line: say(console, line)) if plain else LiveView(console, cells)
    with view, interruptible(session, view, ask=not plain):
        await session.run(view)


def answer(folder: Path, console: Console, read: Callable[[Path], Reading] = read) -> None:
    """Print the study's result, and what limits it.

    The trials are safe in the store: failures here are reported and do not fail the run.
    """
    try:
        reading = read(folder)
        results = reading.results
        # Damage found when the session began has been reported; these are the files that the answer rests on.
        warn_of_damages(console, [damage for damage in reading.damages if not damage.harmless])
        say(console)
        parts = parts_of(results)
        for sentence in parts.lead:
            print_wrapped(sentence, console)
        if results.answer_table is not None:
            print_answer(results.answer_table, console)
        for sentence in parts.beside:
            print_wrapped(sentence, console)
        print_other_responses(results, console)
        say_limits(console, results.caveats)
        say(console)
    except Exception as error:  # an analysis that fails must not make a measured study look failed
        say(console, f"the answer cannot be shown here: {type(error).__name__}: {error}", style="yellow")


def _say(end: SessionEnd, console: Console, *, as_json: bool) -> None:
    outcome, decision, folder = end.outcome, end.decision, end.folder
    if as_json:
        until = {} if decision is None else {"until": decision.model_dump(mode="json")}
        ended = {**asdict(outcome), "store": str(folder), "interrupted": end.interrupted, **until}
        print(json_text({"look": row_of(end.look).model_dump(mode="json"), **ended}))
    if end.look.sentence:
        say(console, end.look.sentence, style="bold yellow")
    missing_words = f"at most {outcome.missing}" if decision is not None and decision.go_on else f"{outcome.missing}"
    if outcome.not_needed:
        missing_words = f"{outcome.not_needed} not needed, {missing_words}"
    if outcome.not_run:
        missing_words = f"{outcome.not_run} not run, {missing_words}"
    for why in outcome.why_not_run:
        say(console, f"not run: {why}", style="bold yellow")
    if decision is not None:
        say(console, f"The study {decision.sentence}")
    say(
        console,
        f"{outcome.valid} of {outcome.planned} trials valid, {outcome.invalid} invalid, {missing_words} missing",
    )
    if (outcome.valid or end.searched) and not outcome.missing and not end.interrupted:
        answer(folder, console)
    if outcome.missing:
        say(console, f"{'interrupted; ' if end.interrupted else ''}next: run the same command again to resume")
    else:
        say(console, f"next: steelyard report {folder} --open")
        say_address(console, "      writes and shows the page ", folder / PAGE)
