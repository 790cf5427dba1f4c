"""`steelyard export STORE`: trials, histograms and samples of a store in the formats of other tools."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console
from rich.progress import track

from steelyard.cli.signature import StoreFolder
from steelyard.cli.terminal.output import message_console, say, warn_of_damages
from steelyard.export.attempts import exported
from steelyard.format import count, listed
from steelyard.model.errors import StudyError
from steelyard.model.trial import TrialRecord
from steelyard.reading.reading import Reading, read

EXAMPLES = (
    ("steelyard export store/quickstart --parquet trials.parquet", "One row per trial, for DuckDB, R and pandas."),
    ("steelyard export store/quickstart --openmetrics load.om", "Samples and seconds, for Grafana."),
    ("steelyard export store/quickstart --hdr logs --markdown page.md", "Histogram logs, and the answer on a page."),
)
EXIT_DONE, EXIT_DAMAGED = 0, 1
SAY_EVERY_S: Final = 10.0
"""Interval between lines of progress without a terminal."""


@dataclass(frozen=True)
class Trials:
    """Contents of an export."""

    reading: Reading
    chosen: Sequence[TrialRecord]
    """Those to export: without voided ones, unless they are asked for."""
    console: Console
    """Destination of the progress of long exports."""


@dataclass(frozen=True)
class Format:
    """One format, and where it was asked for."""

    name: str
    """Name of its option, without the dashes."""
    place: Path | None
    """File or folder to write; None if the format is not asked for."""
    write: Callable[[Trials, Path], str]
    """Writes it, and returns the amount in a few words, such as `8 rows`; empty if there is nothing to count."""
    folder: bool = False
    """Whether the place is a folder."""


def export(
    store: StoreFolder,
    hdr: Annotated[
        Path | None,
        typer.Option("--hdr", metavar="FOLDER", help="Write HdrHistogram logs here, one per trial and load node."),
    ] = None,
    openmetrics: Annotated[
        Path | None,
        typer.Option(
            "--openmetrics", metavar="FILE", help="Write samples and seconds as OpenMetrics text with time stamps."
        ),
    ] = None,
    otava: Annotated[
        Path | None,
        typer.Option("--otava", metavar="FOLDER", help="Write CSV files and otava.yaml for Apache Otava here."),
    ] = None,
    parquet: Annotated[
        Path | None, typer.Option("--parquet", metavar="FILE", help="Write one row per trial as Parquet.")
    ] = None,
    markdown: Annotated[
        Path | None,
        typer.Option("--markdown", metavar="FILE", help="Write answer, cells, comparisons and limits on one page."),
    ] = None,
    voided: Annotated[
        bool, typer.Option("--voided", help="Export voided attempts too: those invalidated by the laboratory.")
    ] = False,
) -> int:
    """Write every format that is asked for. Returns 0, or 1 if a file of the store is damaged: what rests on it is left
    out. Raises StudyError if no format is asked for or two have the same place, StoreError if the store has no sealed
    trial."""
    formats = (
        Format("parquet", parquet, _parquet),
        Format("otava", otava, _otava, folder=True),
        Format("hdr", hdr, _hdr, folder=True),
        Format("openmetrics", openmetrics, _openmetrics),
        Format("markdown", markdown, _markdown),
    )
    wanted = [(item, item.place) for item in formats if item.place is not None]
    if not wanted:
        options = listed([f"--{item.name}" for item in formats])
        raise StudyError("no format is named", f"name one or more of {options}, each with a path")
    _refuse_shared(
        [place for item, place in wanted if not item.folder], [place for item, place in wanted if item.folder]
    )
    console = message_console()
    reading = read(store)
    chosen = exported(reading.records, voided=voided)
    if left_out := len(reading.records) - len(chosen):
        say(console, f"without {count(left_out, 'voided attempt')}: --voided exports them too")
    for item, place in wanted:
        written = item.write(Trials(reading, chosen, console), place)
        say(console, f"{item.name:<11}  {place}" + (f" ({written})" if written else ""))
    warn_of_damages(console, reading.damages)
    return EXIT_DONE if all(damage.harmless for damage in reading.damages) else EXIT_DAMAGED


def _refuse_shared(files: Sequence[Path], folders: Sequence[Path]) -> None:
    """Raises StudyError if a file has the place of another file or of a folder, or is where a folder should be."""
    for folder in folders:
        if folder.exists() and not folder.is_dir():
            raise StudyError(f"{folder} is a file, but a folder is needed", "choose another path")
    taken = {folder.resolve() for folder in folders}
    for file in files:
        if file.resolve() in taken:
            raise StudyError(f"{file} is named twice", "give each format its own path")
        taken.add(file.resolve())


def _parquet(trials: Trials, place: Path) -> str:
    from steelyard.export import parquet

    return count(parquet.write(trials.reading.frame, trials.chosen, place, trials.reading.results.caveats), "row")


def _otava(trials: Trials, place: Path) -> str:
    from steelyard.export import otava

    return count(otava.write(trials.chosen, place, trials.reading.results.caveats), "cell")


def _hdr(trials: Trials, place: Path) -> str:
    from steelyard.export import hdr

    followed = _followed(trials.chosen, "hdr", trials.console)
    return count(hdr.write(trials.reading.store, followed, place, trials.reading.results.caveats), "log")


def _openmetrics(trials: Trials, place: Path) -> str:
    from steelyard.export import openmetrics

    followed = _followed(trials.chosen, "openmetrics", trials.console)
    return count(openmetrics.write(trials.reading.store, followed, place, trials.reading.results.caveats), "metric")


def _markdown(trials: Trials, place: Path) -> str:
    from steelyard.export import markdown

    markdown.write(trials.reading.report_input(courses=False), place)
    return ""


def _followed(records: Sequence[TrialRecord], what: str, console: Console) -> Iterator[TrialRecord]:
    """The records, with a bar on a terminal while they are exported, and lines elsewhere."""
    if console.is_terminal:
        yield from track(records, description=what, console=console, transient=True)
        return
    told_s = time.monotonic()
    for done, record in enumerate(records):
        if time.monotonic() - told_s >= SAY_EVERY_S:
            told_s = time.monotonic()
            say(console, f"{what:<11}  {done:,} of {count(len(records), 'trial')}")
        yield record
