"""`steelyard report STORE`: the report of a store as one page, and its tables and figures as files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from steelyard.analysis.tables import columns
from steelyard.atomic_file import write_output
from steelyard.cli.signature import Cluster, Json, StoreFolder, Workers
from steelyard.cli.terminal.output import message_console, open_page, say, say_address, warn_of_damages
from steelyard.file_errors import foreseen
from steelyard.judging.attempts import without_valid_attempt
from steelyard.model.errors import StudyError
from steelyard.reading.parallel import readers
from steelyard.reading.reading import read
from steelyard.report import export
from steelyard.report.figures import catalogue
from steelyard.report.page import PAGE, build
from steelyard.report.prose.method_and_facts import paragraph
from steelyard.report.tables.for_paper import for_paper
from steelyard.shown_text import visible

EXAMPLES = (
    ("steelyard report store/quickstart", "Write store/quickstart/report.html."),
    ("steelyard report store/quickstart --open", "The same, and show it in the browser."),
    ("steelyard report store/quickstart --tables t --figures f", "Tables and figures as files, too."),
    ("steelyard report store/quickstart --json", "Every table as JSON on standard output."),
)
EXIT_DONE, EXIT_SOME_INVALID = 0, 1


def report(
    store: StoreFolder,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="The HTML file to write; otherwise report.html in the store."
        ),
    ] = None,
    tables: Annotated[
        Path | None, typer.Option("--tables", metavar="FOLDER", help="Write every table here (CSV, Markdown, LaTeX).")
    ] = None,
    figures: Annotated[
        Path | None, typer.Option("--figures", metavar="FOLDER", help="Write every figure here (SVG, PNG, PDF).")
    ] = None,
    open_browser: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
    methods: Annotated[bool, typer.Option("--methods", help="Print a methods section for a paper.")] = False,
    as_json: Json = False,
    workers: Workers = 1,
    cluster: Cluster = "",
) -> int:
    """Write the page (to `output`, by default `report.html` in the study's folder) and the other requested files.

    With `as_json` all tables go to stdout, with `methods` the methods text of a paper; the page is then written only
    if `output` names it or it is to be opened. Returns 0, or 1 if a trial that was tried has no valid attempt or a file
    of the store is damaged. Raises StoreError if the store has no sealed trial, StudyError if both are asked for.
    """
    if as_json and methods:
        raise StudyError(
            "--json and --methods both write to standard output",
            "ask for one at a time",
            key="--methods",
        )
    console = message_console()
    page_wanted = output is not None or open_browser or not (as_json or methods)
    with readers(workers, cluster) as executor:
        reading = read(store, executor)
        page_input = reading.report_input(courses=page_wanted or figures is not None)
    warn_of_damages(console, page_input.damages)
    if as_json:
        print(export.as_json(page_input.tables, columns(page_input.results)))
    if methods:
        print(visible(paragraph(page_input), lines=True), end="")
    if page_wanted:
        path = output or reading.store.folder / PAGE
        try:
            write_output(path, build(page_input))
        except OSError as error:
            if (failure := foreseen(error)) is None or output is not None:
                raise
            failure.hint += "; or write the page to another disk with `--output FILE`"
            raise failure from error
        say_address(console, "report  ", path)
        if open_browser:
            open_page(path, console)
        else:
            say(console, "        --open shows it in the browser; it begins with the answer and what limits it")
    if tables is not None:
        written = export.tables(page_input.tables, for_paper(page_input.results), tables)
        say(console, f"tables  {tables} ({len(written)} files)")
    if figures is not None:
        written = export.figures(catalogue.of_page(page_input), figures)
        say(console, f"figures {figures} ({len(written)} files)")
    whole = all(damage.harmless for damage in page_input.damages)
    return EXIT_DONE if whole and not without_valid_attempt(page_input.records) else EXIT_SOME_INVALID
