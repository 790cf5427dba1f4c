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
    """Get what a system or a foreign engine needs (Java, jars, latte) into the cache, or say which command installs
    it."""
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
    methods: Annotated[bool, typer.Option("--methods", help="Print the methods text of a paper.")] = False,
    as_json: Json = False,
) -> None:
    """One HTML file that answers the study's question; works offline, prints, shows every trial."""
    from steelyard.cli.report import report as body

    raise typer.Exit(
        body(
            store,
            output=output,
            tables=tables,
            figures=figures,
            as_json=as_json,
            methods=methods,
            console=_console(),
        )
    )


@app.command(rich_help_panel="Read")
def serve(
    store: Annotated[Path, typer.Argument(metavar="STORE", help="A study's folder, or several's.")] = Path("store"),
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="0 takes any that is free.")] = 8765,
    address: Annotated[str, typer.Option("--address", help="127.0.0.1 or ::1; nothing else.")] = "127.0.0.1",
    open_browser: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False,
) -> None:
    """Stores, a study in progress and its report in the browser; this machine only, read-only. Ctrl-C ends it."""
    from steelyard.cli.serve import Asked
    from steelyard.cli.serve import serve as body

    raise typer.Exit(body(Asked(store=store, address=address, port=port, open=open_browser), _console()))


@app.command(rich_help_panel="Read")
def compare(
    a: Annotated[str, typer.Argument(metavar="A", help="A store.")],
    b: Annotated[
        str | None, typer.Argument(metavar="B", help="Another store, or a published result such as richardson2017.")
    ] = None,
    fixed_a: Annotated[
        list[str] | None, typer.Option("--a", metavar="FACTOR=LEVEL", help="What side a is; with commas for several.")
    ] = None,
    fixed_b: Annotated[list[str] | None, typer.Option("--b", metavar="FACTOR=LEVEL", help="What side b is.")] = None,
    response: Annotated[
        str | None,
        typer.Option("--response", "--metric", help="throughput, time, p99 or any response; else the study's."),
    ] = None,
    margin: Annotated[
        float | None, typer.Option("--margin", min=0.01, max=100.0, help="Per cent that count as equivalent.")
    ] = None,
    figure: Annotated[Path | None, typer.Option("--figure", help="Draw it: FILE.svg, .png or .pdf.")] = None,
    as_json: Json = False,
) -> None:
    """Side b against side a: two stores, two treatments of one (--a nodes=1 --b nodes=3), or a store and a reference.
    Exit 1 if a comparison is undecided."""
    from steelyard.cli.compare import Asked
    from steelyard.cli.compare import compare as body

    asked = Asked(
        a=a,
        b=b,
        fixed_a=tuple(fixed_a or ()),
        fixed_b=tuple(fixed_b or ()),
        response=response,
        margin_percent=margin,
        figure=figure,
        as_json=as_json,
    )
    raise typer.Exit(body(asked, Console()))


@app.command(rich_help_panel="Read")
def verify(
    store: StoreFolder,
    reports: Annotated[
        list[Path] | None, typer.Option("--report", help="A page or `report --json` output; else the store's page.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Check a store: checksums, forms, plan, journal, and every number again from the raw files. Exit 1 if something
    differs."""
    from steelyard.cli.verify import verify as body

    raise typer.Exit(body(store, reports=tuple(reports or ()), as_json=as_json, console=Console()))


@app.command(rich_help_panel="Read")
def audit(
    name: Annotated[str, typer.Argument(metavar="FILE|NAME", help="A CSV file, a shipped table, a study, or all.")],
    digits: Annotated[
        int | None, typer.Option("--digits", min=1, max=15, help="Significant digits, trailing zeros dropped.")
    ] = None,
    count: Annotated[int | None, typer.Option("--count", min=1, help="Values a cell should have by design.")] = None,
    quartiles: Annotated[str, typer.Option("--quartiles", help="any definition, or linear (pandas, R).")] = "any",
    whole_numbers: Annotated[bool, typer.Option("--whole-numbers", help="The values summarised are whole.")] = False,
    as_json: Json = False,
) -> None:
    """What a summary table's own numbers contradict, rounding taken into account. Exit 1 if something is."""
    from steelyard.cli.audit import audit as body

    raise typer.Exit(
        body(
            name,
            digits=digits,
            count=count,
            quartiles=quartiles,
            whole_numbers=whole_numbers,
            as_json=as_json,
            console=Console(),
        )
    )


reference = typer.Typer(help="Published results that are shipped, with their sources.", no_args_is_help=True)
app.add_typer(reference, name="reference", rich_help_panel="Read")


@reference.command("list")
def reference_list(as_json: Json = False) -> None:
    """Every shipped table, and where it was published."""
    from steelyard.cli.reference import list_all as body

    raise typer.Exit(body(as_json=as_json, console=Console()))


@reference.command("show")
def reference_show(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A table, a study, or all.")],
    table: Annotated[str | None, typer.Option("--table", help="Only the rows of this printed table.")] = None,
    as_json: Json = False,
) -> None:
    """The numbers as printed, with source, units, rounding and caveats."""
    from steelyard.cli.reference import show as body

    raise typer.Exit(body(name, table, as_json=as_json, console=Console()))


@app.command(rich_help_panel="This machine")
def doctor(as_json: Json = False) -> None:
    """What this machine can do, and the mend for what it cannot."""
    from steelyard.cli.doctor import doctor as body

    raise typer.Exit(body(as_json=as_json, console=Console()))


@app.command(rich_help_panel="This machine")
def calibrate(
    seconds: Annotated[float, typer.Option("--seconds", min=5.0, max=3600.0, help="How long in all.")] = 20.0,
    as_json: Json = False,
) -> None:
    """What this machine's load engine can do at most; kept, so that trials near it are marked generator-bound."""
    from steelyard.cli.calibrate import body

    raise typer.Exit(body(seconds, as_json=as_json, console=_console()))


selftest = typer.Typer(help="Proofs that the figures are honest, on this machine, now.", no_args_is_help=True)
app.add_typer(selftest, name="selftest", rich_help_panel="This machine")


@selftest.callback()
def _selftest() -> None:
    """Proofs that the figures are honest, on this machine, now."""


@selftest.command()
def stall(
    seconds: Annotated[float, typer.Option("--seconds", min=4.0, max=3600.0, help="How long the load goes on.")] = 20.0,
    rate: Annotated[float, typer.Option("--rate", min=1.0, max=1e5, help="Operations due a second.")] = 1000.0,
    stall_s: Annotated[float, typer.Option("--stall", min=0.1, max=600.0, help="Seconds of standstill.")] = 2.0,
    as_json: Json = False,
) -> None:
    """Stop a server in the middle of a load: is everything sent, and is the stall in the figures? Exit 1 if not."""
    from steelyard.cli.selftest import stall as body
    from steelyard.selftest.stall import Asked

    asked = Asked(seconds=seconds, rate_per_s=rate, stall_s=stall_s)
    raise typer.Exit(body(asked, as_json=as_json, console=_console()))


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


@app.command(rich_help_panel="Measure")
def load(
    workload: Annotated[
        str | None, typer.Argument(metavar="WORKLOAD", help="A workload's TOML file, or one by name such as ycsb-a.")
    ] = None,
    contact: Annotated[
        list[str] | None,
        typer.Option("--contact", "-c", metavar="ADDRESS[:PORT]", help="A node; all of them, if token-aware."),
    ] = None,
    create: Annotated[
        bool, typer.Option("--create", help="Create keyspace and tables where they are missing.")
    ] = False,
    populate: Annotated[bool, typer.Option("--populate", help="Fill the tables first.")] = False,
    show: Annotated[int | None, typer.Option("--show", min=1, help="Print so many operations, send nothing.")] = None,
    order: Annotated[Path | None, typer.Option("--order", help="Carry out an order (JSON) instead.")] = None,
    threads: Annotated[int | None, typer.Option("--threads", "-t", min=1, help="Most operations in flight.")] = None,
    rate: Annotated[float | None, typer.Option("--rate", help="Operations per second, whatever the answers.")] = None,
    schedule: Annotated[str | None, typer.Option("--schedule", help="closed, constant, poisson, ...")] = None,
    duration: Annotated[float | None, typer.Option("--duration", "-d", help="Seconds; 10 if nothing is said.")] = None,
    operations: Annotated[int | None, typer.Option("--operations", "-n", min=1, help="How many operations.")] = None,
    warm_up: Annotated[float | None, typer.Option("--warm-up", help="Seconds before that, told apart.")] = None,
    consistency: Annotated[str | None, typer.Option("--consistency", help="Of reads and writes.")] = None,
    replication_factor: Annotated[int, typer.Option("--replication-factor", min=1, help="Of --create.")] = 1,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A setting of the workload, or load.NAME as studies have it."),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of the operations.")] = 1,
    workers: Annotated[int | None, typer.Option("--workers", min=1, help="Threads of the generator.")] = None,
    as_json: Json = False,
) -> None:
    """The load engine by itself, against a cluster that runs: create, fill, drive, and say what came of it."""
    from steelyard.cli.load import Asked
    from steelyard.cli.load import load as body

    fields = {
        "threads": threads,
        "rate_per_s": rate,
        "schedule": schedule,
        "duration_s": duration,
        "operations": operations,
        "warm_up_s": warm_up,
        "read_consistency": consistency,
        "write_consistency": consistency,
    }
    asked = Asked(
        workload=workload,
        order=order,
        contacts=tuple(contact or ()),
        create=create,
        populate=populate,
        replication_factor=replication_factor,
        show=show,
        load=fields,
        settings=tuple(settings or ()),
        seed=seed,
        workers=workers,
        as_json=as_json,
    )
    raise typer.Exit(body(asked, _console()))


@app.command(
    rich_help_panel="Measure",
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
    add_help_option=False,
)
def stress(context: typer.Context) -> None:
    """Command lines of cassandra-stress, unchanged: read, write, mixed, counter_write, counter_read, user, help."""
    from steelyard.cli.stress import stress as body

    raise typer.Exit(body(context.args, console=_console()))


@app.command(
    rich_help_panel="Measure",
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
    add_help_option=False,
)
def ycsb(context: typer.Context) -> None:
    """YCSB's command lines for cassandra-cql, unchanged, on our load engine. `ycsb --help` lists its options."""
    from steelyard.cli.ycsb import ycsb as body

    raise typer.Exit(body(context.args))


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
