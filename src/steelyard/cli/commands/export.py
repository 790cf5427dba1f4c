"""`steelyard export STORE`: trials, histograms and samples of a store in the formats of other tools."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console
from rich.progress import track

from steelyard.cli.signature import StoreFolder
from steelyard.cli.terminal.output import message_console, say, warn_of_damages
from steelyard.format import count, listed
from steelyard.model.errors import StudyError
from steelyard.model.trial import TrialRecord
from steelyard.reading.report_input import report_input, sealed_trials
from steelyard.store.read import open_store

EXIT_DONE, EXIT_DAMAGED = 0, 1
SAY_EVERY_S: Final = 10.0
"""Between lines of progress where there is no terminal."""
FORMATS: Final = ("--hdr", "--openmetrics", "--otava", "--parquet", "--markdown")


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
        bool, typer.Option("--voided", help="Export voided attempts too: those that the laboratory spoilt.")
    ] = False,
) -> int:
    """Write every format that is asked for. Returns 0, or 1 if a file of the store is damaged: what rests on it is left
    out. Raises StudyError if no format is asked for or two have the same place, StoreError if the store has no sealed
    trial."""
    if all(place is None for place in (hdr, openmetrics, otava, parquet, markdown)):
        raise StudyError("no format is named", f"name one or more of {listed(FORMATS)}, each with a place")
    _refuse_shared((openmetrics, parquet, markdown), (hdr, otava))
    console = message_console()
    opened = open_store(store)
    records = sealed_trials(opened)
    from steelyard.export import hdr as hdr_logs
    from steelyard.export import markdown as markdown_page
    from steelyard.export import openmetrics as openmetrics_text
    from steelyard.export import otava as otava_history
    from steelyard.export import parquet as parquet_table
    from steelyard.export.attempts import exported

    chosen = exported(records, voided=voided)
    if len(chosen) < len(records):
        say(console, f"without {count(len(records) - len(chosen), 'voided attempt')}: --voided exports them too")
    if parquet is not None:
        from steelyard.analysis.frame import frame_of

        rows = parquet_table.write(frame_of(records, opened.study), chosen, parquet)
        say(console, f"parquet      {parquet} ({count(rows, 'row')})")
    if otava is not None:
        cells = otava_history.write(chosen, otava)
        say(console, f"otava        {otava} ({count(cells, 'cell')})")
    if hdr is not None:
        logs = hdr_logs.write(opened, _followed(chosen, "hdr", console), hdr)
        say(console, f"hdr          {hdr} ({count(logs, 'log')})")
    if openmetrics is not None:
        families = openmetrics_text.write(opened, _followed(chosen, "openmetrics", console), openmetrics)
        say(console, f"openmetrics  {openmetrics} ({count(families, 'metric')})")
    if markdown is not None:
        markdown_page.write(report_input(opened, courses=False, records=records), markdown)
        say(console, f"markdown     {markdown}")
    warn_of_damages(console, opened.damages)
    return EXIT_DONE if all(damage.harmless for damage in opened.damages) else EXIT_DAMAGED


def _refuse_shared(files: Sequence[Path | None], folders: Sequence[Path | None]) -> None:
    """Raises StudyError if a file has the place of another file or of a folder, or is where a folder should be."""
    for folder in folders:
        if folder is not None and folder.exists() and not folder.is_dir():
            raise StudyError(f"{folder} is a file, where a folder should be", "name another place")
    taken = {folder.resolve() for folder in folders if folder is not None}
    for file in files:
        if file is not None and file.resolve() in taken:
            raise StudyError(f"{file} is named twice", "give each format a place of its own")
        if file is not None:
            taken.add(file.resolve())


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
