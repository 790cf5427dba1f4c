"""The command line: a table of commands; each is `cli/commands/NAME.py`, imported when it is called.

Data go to stdout, everything else to stderr. Exit codes: 0 done, 1 done but some trials invalid, 2 the study is wrong,
3 the laboratory failed, 4 (`gate`) undecided, 5 (`check`) parts that the study names do not exist yet, 130 interrupted
and everything released.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
import tempfile
import traceback
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer

from steelyard import __version__
from steelyard.cli import completion
from steelyard.cli.terminal.help_text import Command, Group
from steelyard.cli.terminal.output import complain, message_console, say
from steelyard.file_errors import foreseen
from steelyard.model.errors import SteelyardError, StudyError
from steelyard.node.folders import state_folder
from steelyard.node.reading_commands import recorded
from steelyard.shown_text import visible

EXIT_STUDY, EXIT_LABORATORY, EXIT_INTERRUPTED = 2, 3, 130

HELP = "Benchmarks distributed databases: how do they scale, on this hardware, and how sure are we?"
CONTENTS = {
    "Measure": {
        "new": "Write a first study file: a commented NAME.toml for a kind of question.",
        "setup": "Fetch what a system or another load generator needs (Java, jars, latte) into the cache, or name the "
        "command that installs it.",
        "check": "Validate a study. Print its treatments, order, time, memory and disk, and which differences it can "
        "find. Starts nothing; executes a Python file that the study names only if you trust it.",
        "run": "Run a study's remaining trials, then print the answer. Run it again to resume.",
        "load": "Run a workload against an existing cluster: create the tables, fill them, drive the load, and print "
        "the results.",
        "stress": "Command lines of cassandra-stress, unchanged: read, write, mixed, counter_write, counter_read, "
        "user, help.",
        "ycsb": "Command lines of YCSB for cassandra-cql, unchanged, with Steelyard's load engine. `ycsb --help` "
        "lists the options.",
    },
    "Read": {
        "status": "Show the progress of a study, what failed and why. Exit code 1 if a trial is missing or not valid, "
        "or a file of the store is damaged.",
        "report": "Write one HTML file that answers the study's question. It works offline and can be printed.",
        "export": "Write trials, histograms and samples for other tools: HdrHistogram logs, OpenMetrics, Apache Otava, "
        "Parquet, Markdown.",
        "serve": "Show stores, a study in progress and its report in the browser of this machine. Read-only; ctrl-C "
        "ends it.",
        "compare": "Compare two stores, two treatments of one store, or a store with published results. Exit code 1 "
        "if a comparison is undecided.",
        "gate": "Pass or fail a build: is it worse than the baseline by more than a margin? Exit codes: 0 not worse, 1 "
        "worse, 4 undecided.",
        "replay": "Show which size a scaling policy would have desired in stored trials, when, and in how many.",
        "verify": "Check a store: checksums, formats, plan, journal, and every number again from the raw files. Exit "
        "code 1 if something differs.",
        "merge": "Put the trials of several stores of one study, as of several laboratories, into one. Exit code 1 if "
        "a planned trial was lost by damage, 3 after a conflict.",
        "audit": "Find numbers of a summary table that contradict each other, allowing for rounding. Exit code 1 if "
        "there are any, 4 if nothing could be checked.",
        "reference": "Show the published results that come with Steelyard, with their sources.",
    },
    "This machine": {
        "doctor": "Check what this machine can do, and say how to fix what it cannot.",
        "calibrate": "Measure the most that the load engine can do on this machine. Later trials near it are marked "
        "generator-bound.",
        "clean": "Find and remove what killed studies left behind.",
        "agent": "Run the agent alone: load, probe, sim, ops, cql. Arguments are passed on unchanged.",
        "schema": "Print the JSON schema of study files, with which editors complete and check them.",
        "completion": "Print the script that makes bash, zsh or fish complete commands, studies, stores and levels.",
        "selftest": "Prove on this machine that the measured times are honest.",
    },
}
"""Panel, command, its help. A command is the function of its name in its module; if it has subcommands, they
are the module's `app`. Functions return the exit code. What else a command is made of: `cli/commands/__init__.py`."""
USAGE_ERROR: Any = typer.BadParameter.__mro__[1]
"""Errors raised by the library for arguments that it does not understand."""
READING = frozenset(CONTENTS["Read"])
"""Commands that may be used while a study is measured: then they run at idle priority."""
EXAMPLES = (
    ("steelyard new first", "Write a study file to begin with."),
    ("steelyard check studies/quickstart.toml", "What would this study do, and how long would it take?"),
    ("steelyard run studies/quickstart.toml", "Measure; the same command resumes."),
    ("steelyard report store/quickstart", "Write the page that answers the question."),
)
"""Examples of the whole, a line to type with its effect; those of a command are the `EXAMPLES` of its module."""
UNCHANGED = ("stress", "ycsb", "agent")
"""Commands whose arguments, `--help` too, are read by themselves."""


def command_line(wanted: str) -> typer.Typer:
    """Every command by its name and help; only the one that is `wanted` with its signature and body."""
    known = any(wanted in commands for commands in CONTENTS.values())
    module = importlib.import_module(f"steelyard.cli.commands.{wanted}") if known else None
    app = typer.Typer(
        help=HELP,
        context_settings={"obj": (EXAMPLES, getattr(module, "EXAMPLES", ()))},
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        cls=Group,
        result_callback=_exit,
    )
    app.callback()(_root)
    for panel, commands in CONTENTS.items():
        for name, line in commands.items():
            body = module if name == wanted else None
            commands_of_its_own = getattr(body, "app", None)
            if commands_of_its_own is not None:
                app.add_typer(commands_of_its_own, name=name, help=line, rich_help_panel=panel)
            else:
                free = name in UNCHANGED
                settings = {"allow_extra_args": free, "ignore_unknown_options": free}
                register = app.command(
                    name,
                    cls=Command,
                    help=line,
                    rich_help_panel=panel,
                    context_settings=settings,
                    add_help_option=not free,
                )
                register(getattr(body, name, _not_wanted))
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
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Options before the command."""


def main(words: Sequence[str] | None = None) -> None:
    """Run the command line, of this process unless `words` are given; errors for people, exit codes as documented."""
    words = sys.argv[1:] if words is None else words
    if (line := os.environ.pop(completion.VARIABLE, None)) is not None:
        completion.answer(line, command_line)
        return
    wanted = next((word for word in words if not word.startswith("-")), "")
    try:
        with recorded(wanted, state_folder()) if wanted in READING else nullcontext():
            code = command_line(wanted)(list(words), prog_name="steelyard", standalone_mode=False)
            sys.stdout.flush()
            sys.exit(code)
    except StudyError as error:
        complain(message_console(), error)
        sys.exit(EXIT_STUDY)
    except SteelyardError as error:
        complain(message_console(), error)
        sys.exit(EXIT_LABORATORY)
    except USAGE_ERROR as error:
        _misused(error, wanted)
        sys.exit(EXIT_STUDY)
    except KeyboardInterrupt:
        say(message_console(), "interrupted", style="yellow")
        sys.exit(EXIT_INTERRUPTED)
    except Exception as error:  # the command line's main is the last place: say it for people, keep the facts
        complain(message_console(), foreseen(error) or _unforeseen(error))
        sys.exit(EXIT_LABORATORY)


def _unforeseen(error: Exception) -> SteelyardError:
    details = "".join(traceback.format_exception(error))
    try:
        kept = Path(tempfile.mkstemp(prefix="steelyard-", suffix=".txt")[1])
        kept.write_text(details, encoding="utf-8")
        hint = f"this was not foreseen; details: {kept}"
    except OSError:
        hint = f"this was not foreseen; details:\n{details}"
    return SteelyardError(f"{type(error).__name__}: {error}", hint)


def _misused(error: Any, wanted: str) -> None:
    """Words that no command understands, in the style of all other errors."""
    message = re.sub(r"Input should be (.*?)(, unable to parse.*)?$", r"must be \1", error.format_message())
    message = message.replace(": Value error, ", ": ")
    if type(error).__name__ == "NoArgsIsHelpError":
        print(visible(message, lines=True))
        return
    # An option without its argument has no context in its error.
    known = any(wanted in commands for commands in CONTENTS.values())
    path = error.ctx.command_path if error.ctx is not None else f"steelyard {wanted}" if known else "steelyard"
    complain(message_console(), StudyError(message[:1].lower() + message[1:].removesuffix("."), f"see: {path} --help"))
