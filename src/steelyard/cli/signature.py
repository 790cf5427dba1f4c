"""Arguments and options that several commands have in common."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

StudyFile = Annotated[Path, typer.Argument(metavar="STUDY", help="The study file (TOML).")]
StoreFolder = Annotated[
    Path, typer.Argument(metavar="STORE", help="The folder of a study's results, such as store/quickstart.")
]
StoreRoot = Annotated[
    Path,
    typer.Option("--store", metavar="FOLDER", help="Folder that holds the results of studies, one folder per study."),
]
Json = Annotated[bool, typer.Option("--json", help="Print data as JSON on standard output.")]
Scale = Annotated[
    float,
    typer.Option(
        "--scale", min=1e-6, metavar="FACTOR", help="Multiply records and operations by this, to try out a long study."
    ),
]
WithoutMissing = Annotated[
    bool,
    typer.Option(
        "--without-missing",
        help="Leave out every level that needs a site, system, link or profile that does not exist.",
    ),
]
