"""The command line: a table of commands; each is `cli/commands/NAME.py`, imported when it is called.

Data go to stdout, all else to stderr. Exit codes: 0 done, 1 done but some trials invalid, 2 the study is wrong, 3 the
laboratory failed, 130 interrupted and everything released.
"""

from __future__ import annotations

import importlib
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Annotated

import typer

from steelyard import __version__
from steelyard.cli.terminal.output import message_console, say
from steelyard.model.errors import SteelyardError, StudyError

EXIT_STUDY, EXIT_LABORATORY, EXIT_INTERRUPTED = 2, 3, 130

HELP = "A laboratory that weighs distributed databases: how do they scale, on this hardware, and how sure are we?"
CONTENTS = {
    "Measure": {
        "setup": "Get what a system or a foreign engine needs (Java, jars, latte) into the cache, or say which command "
        "installs it.",
        "check": "Validate a study; print treatments, order, hours, what it needs and what it can resolve. Starts "
        "nothing.",
        "run": "Do what is missing of a study. The same command goes on where it stopped.",
        "load": "The load engine by itself, against a cluster that runs: create, fill, drive, and say what came of it.",
        "stress": "Command lines of cassandra-stress, unchanged: read, write, mixed, counter_write, counter_read, "
        "user, help.",
        "ycsb": "YCSB's command lines for cassandra-cql, unchanged, on our load engine. `ycsb --help` lists its "
        "options.",
    },
    "Read": {
        "status": "Where a study is, what failed and why.",
        "report": "One HTML file that answers the study's question; works offline, prints, shows every trial.",
        "serve": "Stores, a study in progress and its report in the browser; this machine only, read-only. Ctrl-C ends "
        "it.",
        "compare": "Side b against side a: two stores, two treatments of one (--a nodes=1 --b nodes=3), or a store and "
        "a reference. Exit 1 if a comparison is undecided.",
        "verify": "Check a store: checksums, forms, plan, journal, and every number again from the raw files. Exit 1 "
        "if something differs.",
        "audit": "What a summary table's own numbers contradict, rounding taken into account. Exit 1 if something is.",
        "reference": "Published results that are shipped, with their sources.",
    },
    "This machine": {
        "doctor": "What this machine can do, and the mend for what it cannot.",
        "calibrate": "What this machine's load engine can do at most; kept, so that trials near it are marked "
        "generator-bound.",
        "clean": "Find and remove what killed studies left behind.",
        "agent": "The agent by itself: load, probe, sim, ops, cql. Arguments go through unchanged.",
        "selftest": "Proofs that the figures are honest, on this machine, now.",
    },
}
"""Panel, command, its help. A command is the function of its name in its module; where it has commands of its own, they
are the module's `app`. Functions return the exit code."""
UNCHANGED = ("stress", "ycsb", "agent")
"""Commands whose arguments, `--help` too, are read by themselves."""


def command_line(wanted: str) -> typer.Typer:
    """Every command by its name and help; only the one that is `wanted` with its signature and body."""
    app = typer.Typer(
        help=HELP,
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode="rich",
        pretty_exceptions_enable=False,
        result_callback=_exit,
    )
    app.callback()(_root)
    for panel, commands in CONTENTS.items():
        for name, line in commands.items():
            module = importlib.import_module(f"steelyard.cli.commands.{name}") if name == wanted else None
            commands_of_its_own = getattr(module, "app", None)
            if commands_of_its_own is not None:
                app.add_typer(commands_of_its_own, name=name, help=line, rich_help_panel=panel)
            else:
                free = name in UNCHANGED
                settings = {"allow_extra_args": free, "ignore_unknown_options": free}
                register = app.command(
                    name, help=line, rich_help_panel=panel, context_settings=settings, add_help_option=not free
                )
                register(getattr(module, name, _not_wanted))
    return app


def _not_wanted() -> None:
    """Stands for the body of a command that is only listed."""


def _exit(code: int, version: bool) -> None:
    raise typer.Exit(code)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"steelyard {__version__}")
        raise typer.Exit


def _root(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print it.")] = False,
) -> None:
    """Options before the command."""


def main() -> None:
    """Run the command line; errors for people, exit codes as documented."""
    try:
        command_line(next((word for word in sys.argv[1:] if not word.startswith("-")), ""))()
    except StudyError as error:
        _complain(error)
        sys.exit(EXIT_STUDY)
    except SteelyardError as error:
        _complain(error)
        sys.exit(EXIT_LABORATORY)
    except KeyboardInterrupt:
        say(message_console(), "interrupted", style="yellow")
        sys.exit(EXIT_INTERRUPTED)
    except Exception as error:  # the command line's main is the last place: say it for people, keep the facts
        kept = Path(tempfile.mkstemp(prefix="steelyard-", suffix=".txt")[1])
        kept.write_text(traceback.format_exc(), encoding="utf-8")
        message = f"{type(error).__name__}: {error}"
        _complain(SteelyardError(message, f"this was not foreseen; details: {kept}"))
        sys.exit(EXIT_LABORATORY)


def _complain(error: SteelyardError) -> None:
    console = message_console()
    say(console, f"steelyard: {error.message}", style="red")
    for line in (error.hint, *getattr(error, "__notes__", ())):
        if line:
            say(console, f"  {line}")
