"""Arguments and options that several commands have in common."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

StudyFile = Annotated[Path, typer.Argument(metavar="STUDY", help="The study file, TOML.")]
StoreFolder = Annotated[Path, typer.Argument(metavar="STORE", help="A study's folder in a store.")]
StoreRoot = Annotated[Path, typer.Option("--store", help="Folder that holds the stores of studies.")]
Json = Annotated[bool, typer.Option("--json", help="Data as JSON on stdout.")]
Scale = Annotated[
    float, typer.Option("--scale", min=1e-6, help="Multiply records and operations, to try a long study small.")
]
