"""`steelyard reference list | show NAME`: the published results that are shipped, with their sources and caveats."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from steelyard.cli import completion
from steelyard.cli.signature import Json
from steelyard.cli.terminal.help_text import Command, Group
from steelyard.cli.terminal.output import Terminal, data_console, print_table, say
from steelyard.model.errors import StudyError
from steelyard.reference import tables as shipped
from steelyard.reference.tables import Row
from steelyard.shown_text import json_text

EXAMPLES = (
    ("steelyard reference list", "Every shipped table, and where it was published."),
    ("steelyard reference list --json", "The same as JSON."),
    ("steelyard reference show richardson2017", "The tables of one study, with source and caveats."),
    ("steelyard reference show srinadhuni2018 --json", "The same as JSON."),
)
EXIT_DONE = 0
MOST_COLUMNS = 1_000


app = typer.Typer(no_args_is_help=True, cls=Group)


@app.command("list", cls=Command, help="Every shipped table, and where it was published.")
def list_all(as_json: Json = False) -> int:
    """Tables with study, rows, content and source; then the studies. Returns 0."""
    every = shipped.tables().values()
    if as_json:
        print(json_text([{**_about(table), "rows": len(table.rows)} for table in every], indent=1, ensure_ascii=False))
        return EXIT_DONE
    console = data_console()
    grid = _grid()
    for column in ("table", "study", "rows", "what it is, where it was printed"):
        last = column.startswith("what")
        grid.add_column(column, no_wrap=not last, justify="right" if column == "rows" else "left")
    for table in every:
        printed_in = Text.assemble(f"{table.title}\n", (table.printed_in, "dim"))
        grid.add_row(Text(table.name, style="bold"), table.source.name, f"{len(table.rows):,}", printed_in)
    print_table(grid, console)
    console.print()
    sources = _grid()
    sources.add_column("study", no_wrap=True)
    sources.add_column("published")
    for source in {table.source.name: table.source for table in every}.values():
        sources.add_row(Text(source.name, style="bold"), Text(source.words()))
    print_table(sources, console)
    return EXIT_DONE


@app.command(cls=Command, help="The numbers as printed, with source, units, rounding and caveats.")
def show(
    name: Annotated[
        str,
        typer.Argument(metavar="NAME", help="A table or a study by name, or all.", autocompletion=completion.published),
    ],
    number: Annotated[
        str | None, typer.Option("--table", metavar="N", help="Only the rows of this printed table.")
    ] = None,
    as_json: Json = False,
) -> int:
    """Tables by name or study, every number as printed. Returns 0.

    Raises UnknownReference for an unknown name, StudyError for a number that no row has.
    """
    chosen = shipped.named(name)
    picked = {table.name: _picked(table.wide(), number) for table in chosen}
    if not any(picked.values()):
        numbers = sorted({row.key["table"] for table in chosen for row in table.rows if "table" in row.key}, key=int)
        known = f"available: {', '.join(numbers)}" if numbers else "its rows have no table numbers"
        raise StudyError(f"{name} has no table {number}", known, key="--table", read=number)
    if as_json:
        data = [
            {**_about(table), "rows": [row.model_dump() for row in _picked(table.rows, number)]}
            for table in chosen
            if picked[table.name]
        ]
        print(json_text(data, indent=1, ensure_ascii=False))
        return EXIT_DONE
    console = data_console()
    for table in chosen:
        if picked[table.name]:
            _draw(table, picked[table.name], console)
    return EXIT_DONE


def _about(table: shipped.Table) -> dict[str, object]:
    return table.model_dump(exclude={"rows", "spread"})


def _picked(rows: Sequence[Row], number: str | None) -> tuple[Row, ...]:
    return tuple(row for row in rows if number is None or row.key.get("table") == number)


def _draw(table: shipped.Table, rows: Sequence[Row], console: Console) -> None:
    say(console, Text(f"{table.name}: {table.title}", style="bold"))
    roundings = dict.fromkeys(column.rounding.words() for column in table.columns.values())
    for head, text in (
        ("source", table.source.words()),
        ("printed in", table.printed_in),
        ("unit", table.unit),
        ("a row", table.row),
        ("rounding", "; ".join(roundings)),
        *(("caveat", caveat) for caveat in table.caveats),
    ):
        say(console, Text.assemble((f"{head:<11}", "dim"), text))
    keys = [name for name in rows[0].key if len(rows) == 1 or len({row.key[name] for row in rows}) > 1]
    same = ", ".join(f"{name} {text}" for name, text in rows[0].key.items() if name not in keys and text)
    if same:
        say(console, Text.assemble(("all rows   ", "dim"), same))
    numbers = list(dict.fromkeys(name for row in rows for name in row.numbers))
    grid = _grid()
    for column in keys:
        grid.add_column(column, no_wrap=True)
    for column in numbers:
        grid.add_column(column, justify="right", no_wrap=True)
    for row in rows:
        texts = (row.numbers[name].text if name in row.numbers else "" for name in numbers)
        grid.add_row(*(Text(row.key[name]) for name in keys), *(Text(text) for text in texts))
    _uncut(grid, console)
    console.print()


def _grid() -> Table:
    return Table(box=None, padding=(0, 2, 0, 0), header_style="dim")


def _uncut(grid: Table, console: Console) -> None:
    """A table of numbers is never cut to the terminal's width: an ellipsis is not a number."""
    needed = Measurement.get(console, console.options.update(max_width=MOST_COLUMNS), grid).maximum
    if needed > console.width:
        console = Terminal(file=console.file, width=needed, color_system=None, no_color=True)
    console.print(grid)
