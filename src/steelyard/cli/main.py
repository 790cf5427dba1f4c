"""The command line as a table of contents: each command's body is in a file of its own.

Data go to stdout, all else to stderr. Exit codes: 0 done, 1 done but some trials invalid, 2 the study is wrong, 3
the laboratory
failed, 130 interrupted and everything released.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from steelyard import __version__
from steelyard.model.errors import SteelyardError, StudyError

EXIT_STUDY, EXIT_LABORATORY, EXIT_INTERRUPTED = 2, 3, 130

app = typer.Typer(
    name="steelyard",
    help="A laboratory that weighs distributed databases: how do they scale, on this hardware, and how sure are we?",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)

StudyFile = Annotated[Path, typer.Argument(metavar="STUDY", help="The study file, TOML.")]
StoreFolder = Annotated[Path, typer.Argument(metavar="STORE", help="A study's folder in a store.")]
StoreRoot = Annotated[Path, typer.Option("--store", help="Folder that holds the stores of studies.")]
Json = Annotated[bool, typer.Option("--json", help="Data as JSON on stdout.")]
Scale = Annotated[
    float, typer.Option("--scale", min=1e-6, help="Multiply records and operations, to try a long study small.")
]


def _console() -> Console:
    return Console(stderr=True)


@app.command(rich_help_panel="Measure")
def setup(system: Annotated[str, typer.Argument(help="What to get ready.")] = "cassandra") -> None:
    """Get what a system needs (Java, jars) into the cache, or say which command installs it."""
    from steelyard.cli.setup import setup as body

    raise typer.Exit(asyncio.run(body(system, console=_console())))


@app.command(rich_help_panel="Measure")
def check(
    study: StudyFile,
    store: StoreRoot = Path("store"),
    scale: Scale = 1.0,
    everything: Annotated[bool, typer.Option("--all", help="Print the whole order.")] = False,
    as_json: Json = False,
) -> None:
    """Validate a study; print treatments, order, hours, what it needs and what it can resolve. Starts nothing."""
    from steelyard.cli.check import check as body

    console = _console() if as_json else Console()
    raise typer.Exit(body(study, store=store, scale=scale, everything=everything, as_json=as_json, console=console))


@app.command(rich_help_panel="Measure")
def run(
    study: StudyFile,
    store: StoreRoot = Path("store"),
    scale: Scale = 1.0,
    plain: Annotated[bool, typer.Option("--plain", help="Log lines instead of a live screen.")] = False,
    as_json: Json = False,
) -> None:
    """Do what is missing of a study. The same command goes on where it stopped."""
    from steelyard.cli.run import run as body

    console = _console()
    plain = plain or not console.is_terminal
    raise typer.Exit(body(study, store=store, scale=scale, plain=plain, as_json=as_json, console=console))


@app.command(rich_help_panel="Read")
def status(store: StoreFolder, as_json: Json = False) -> None:
    """Where a study is, what failed and why."""
    from steelyard.cli.status import status as body

    raise typer.Exit(body(store, as_json=as_json, console=Console()))


@app.command(rich_help_panel="Read")
def report(
    store: StoreFolder,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="The HTML file.")] = None,
    tables: Annotated[Path | None, typer.Option("--tables", help="Folder for every table.")] = None,
    figures: Annotated[Path | None, typer.Option("--figures", help="Folder for every figure.")] = None,
    as_json: Json = False,
) -> None:
    """One HTML file that answers the study's question; works offline, prints, shows every trial."""
    from steelyard.cli.report import report as body

    raise typer.Exit(body(store, output=output, tables=tables, figures=figures, as_json=as_json, console=_console()))


@app.command(rich_help_panel="This machine")
def doctor(as_json: Json = False) -> None:
    """What this machine can do, and the mend for what it cannot."""
    from steelyard.cli.doctor import doctor as body

    raise typer.Exit(body(as_json=as_json, console=Console()))


@app.command(rich_help_panel="This machine")
def clean(
    sites: Annotated[list[str] | None, typer.Argument(help="Sites to look at.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be removed.")] = False,
    as_json: Json = False,
) -> None:
    """Find and remove what killed studies left behind."""
    from steelyard.cli.clean import clean as body

    raise typer.Exit(asyncio.run(body(sites or ["local"], dry_run=dry_run, console=_console(), as_json=as_json)))


@app.command(
    rich_help_panel="This machine",
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
    add_help_option=False,
)
def agent(context: typer.Context) -> None:
    """The agent by itself: load, probe, sim, ops, cql. Arguments go through unchanged."""
    _become_agent(context.args)


@app.command(
    rich_help_panel="Measure",
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
    add_help_option=False,
)
def load(context: typer.Context) -> None:
    """The load engine by itself: carry out an order, print records. `load --help` is the agent's own."""
    _become_agent(["load", *context.args])


def _become_agent(arguments: list[str]) -> None:
    from steelyard.node.agent import find

    program = str(find())
    os.execv(program, [program, *arguments])


def _version(wanted: bool) -> None:
    if wanted:
        print(f"steelyard {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print it.")] = False,
) -> None:
    """Steelyard."""


def main() -> None:
    """Run the command line; errors for people, exit codes as documented."""
    console = _console()
    try:
        app()
    except StudyError as error:
        _complain(console, error)
        sys.exit(EXIT_STUDY)
    except SteelyardError as error:
        _complain(console, error)
        sys.exit(EXIT_LABORATORY)
    except KeyboardInterrupt:
        console.print("interrupted", style="yellow")
        sys.exit(EXIT_INTERRUPTED)
    except Exception as error:  # the command line's main is the last place: say it for people, keep the facts
        kept = Path(tempfile.mkstemp(prefix="steelyard-", suffix=".txt")[1])
        kept.write_text(traceback.format_exc(), encoding="utf-8")
        message = f"{type(error).__name__}: {error}"
        _complain(console, SteelyardError(message, f"this was not foreseen; details: {kept}"))
        sys.exit(EXIT_LABORATORY)


def _complain(console: Console, error: SteelyardError) -> None:
    console.print(f"steelyard: {error.message}", style="red", highlight=False, markup=False, soft_wrap=True)
    if error.hint:
        console.print(f"  {error.hint}", highlight=False, markup=False, soft_wrap=True)
    for note in getattr(error, "__notes__", ()):
        console.print(f"  {note}", highlight=False, markup=False, soft_wrap=True)
