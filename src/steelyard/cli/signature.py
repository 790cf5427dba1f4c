"""Arguments and options that several commands have in common."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from steelyard.cli import completion

LEAST_MARGIN, MOST_MARGIN = 0.01, 100.0
"""Per cent."""


def percent_of(text: str | float) -> float:
    """`2%` or `2`. Raises BadParameter for anything else, and beyond what a margin may be."""
    try:
        percent = float(str(text).strip().removesuffix("%").strip())
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not a percentage, such as 2%") from None
    if not LEAST_MARGIN <= percent <= MOST_MARGIN:
        raise typer.BadParameter(f"{text} is not from {LEAST_MARGIN:g}% to {MOST_MARGIN:g}%")
    return percent


def response_list(given: Iterable[str]) -> list[str]:
    """Names of responses from options that may be repeated, and may each name several with commas."""
    return [name.strip() for option in given for name in option.split(",") if name.strip()]


BenchProtocol = Annotated[str, typer.Option("--protocol", metavar="NAME", help="cql, resp, http, etcd or postgresql.")]
StudyFile = Annotated[
    Path, typer.Argument(metavar="STUDY", help="The study file (TOML).", autocompletion=completion.study_files)
]
StoreFolder = Annotated[
    Path,
    typer.Argument(
        metavar="STORE",
        help="The folder of a study's results, such as store/quickstart.",
        autocompletion=completion.stores,
    ),
]
StoreRoot = Annotated[
    Path,
    typer.Option("--store", metavar="FOLDER", help="Folder that holds the results of studies, one folder per study."),
]
Margin = Annotated[
    float | None,
    typer.Option(
        "--margin",
        parser=percent_of,
        metavar="PERCENT",
        help="Changes up to this many percent are equivalent, such as 2%; otherwise the study's margin.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print data as JSON on standard output.")]
Workers = Annotated[int, typer.Option("--workers", min=1, metavar="N", help="Read trials in N processes.")]
Cluster = Annotated[
    str, typer.Option("--cluster", metavar="ADDRESS", help="Read trials on the workers of this Dask scheduler.")
]
OtherSide = Annotated[
    str | None,
    typer.Argument(
        metavar="B",
        help="Another store, or a published study such as richardson2017.",
        autocompletion=completion.stores_and_published,
    ),
]
FixedA = Annotated[
    list[str] | None,
    typer.Option(
        "--a",
        metavar="FACTOR=LEVEL",
        help="Levels of side a; several with commas.",
        autocompletion=completion.levels,
    ),
]
FixedB = Annotated[
    list[str] | None,
    typer.Option("--b", metavar="FACTOR=LEVEL", help="Levels of side b.", autocompletion=completion.levels),
]
Scale = Annotated[
    float,
    typer.Option("--scale", metavar="FACTOR", help="Multiply records and operations by this, to try out a long study."),
]
Trusted = Annotated[
    bool,
    typer.Option(
        "--trust",
        help="Execute the files that the study names: plug-ins, jobs. Without it they are named and asked about.",
    ),
]
WithoutMissing = Annotated[
    bool,
    typer.Option(
        "--without-missing",
        help="Leave out every level that needs a site, system, link or profile that does not exist.",
    ),
]
