"""`steelyard compare STORE REFERENCE`: own trials against published numbers, with reasons why some are not
comparable."""

from __future__ import annotations

from collections.abc import Sequence, Set
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from steelyard.analysis.wording import capital, change_text
from steelyard.cli.terminal.output import data_console, say
from steelyard.cli.terminal.wide_table import uncut
from steelyard.model.errors import StudyError
from steelyard.model.estimate import Estimate
from steelyard.model.responses import label_of, unit_of
from steelyard.reading.opened import Opened
from steelyard.reading.published import PublishedComparison, compare_with_published, tables_named
from steelyard.reference import tables as shipped
from steelyard.reference.audit.finding import figure
from steelyard.reference.comparison import STATISTICS, PublishedPair
from steelyard.report.figures import forest
from steelyard.shown_text import json_text

EXIT_AGREES, EXIT_OTHERWISE = 0, 1
SHORT_NAMES = {"time": "execution_time_ms", "execution_time": "execution_time_ms"}
NOTHING_PUBLISHED = ("nothing was published",)
MOST_REASONS = 6
"""Lines on the screen about published numbers without one of ours."""
STYLES = {"agrees": "green", "differs": "red", "not comparable": "yellow"}


def compare_with_reference(
    ours: Opened,
    name: str,
    *,
    fixed_a: Sequence[str],
    fixed_b: Sequence[str],
    response_name: str | None,
    margin_percent: float | None,
    figure_path: Path | None,
    as_json: bool,
) -> int:
    """Print or give as JSON. Returns 0 if every number of ours that has an interval agrees, otherwise 1.

    Raises StudyError for an unknown reference, or where own treatments cannot be distinguished.
    """
    _refuse(tables_named(name), response_name, margin_percent)
    if figure_path is not None:
        forest.refuse_other(figure_path)
    comparison = compare_with_published(ours, name, a=fixed_a, b=fixed_b)
    if as_json:
        _print_json(comparison)
    else:
        _draw(comparison, ours.study.study.name, data_console())
    if figure_path is not None:
        _figure(comparison.rows, f"{ours.study.study.name} against {name}", figure_path)
    return EXIT_AGREES if comparison.agrees else EXIT_OTHERWISE


def _refuse(tables: Sequence[shipped.Table], response_name: str | None, margin_percent: float | None) -> None:
    """Refuse options that have no meaning for published numbers. Raises StudyError."""
    response = tables[0].form.response if tables[0].form is not None else ""
    if response_name is not None and (not response or SHORT_NAMES.get(response_name, response_name) != response):
        what = f"{label_of(response)}s only" if response else "its own numbers, each compared with ours"
        raise StudyError(f"--response {response_name}", f"{tables[0].source.name} published {what}", key="--response")
    if margin_percent is not None:
        raise StudyError("--margin is for two sides of trials", "agreement is decided by the printed digits")


def _print_json(comparison: PublishedComparison) -> None:
    data = {
        "reference": comparison.name,
        "beside": [{**row.model_dump(mode="json"), "sentence": row.sentence()} for row in comparison.rows],
        "own": [{"treatment": own.name, "n": own.n, "facets": dict(own.facets)} for own in comparison.own],
        "remarks": list(comparison.remarks),
    }
    print(json_text(data, indent=1, ensure_ascii=False, allow_nan=False))


def _draw(comparison: PublishedComparison, study: str, console: Console) -> None:
    every, name = comparison.rows, comparison.name
    reasons: dict[str, str] = {}
    for table in dict.fromkeys(one.table for one in every):
        of_table = [one for one in every if one.table == table]
        form = _form(table)
        rows = [one for one in of_table if one.ours is not None and one.statistic in (form.shown or (one.statistic,))]
        say(console, Text(f"{study} against {name}: {_title(table)}", style="bold"))
        if rows:
            _grid(rows, rows if form.computed else of_table, reasons, console)
        for line in _without(of_table):
            say(console, Text(f" {line}"))
        console.print()
    for why, mark in reasons.items():
        say(console, Text(f"({mark}) {why}"))
    counts = {verdict: sum(one.verdict == verdict for one in every) for verdict in (*STYLES, "no number")}
    summary = ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count)
    say(console, Text(f"{len(every)} numbers: {summary}", style="bold"))
    for hidden in dict.fromkeys(_form(one.table).hidden for one in every):
        if hidden:
            say(console, f"{hidden}: --json", style="dim")
    for remark in comparison.remarks:
        say(console, Text(remark, style="dim"))


def _grid(
    rows: Sequence[PublishedPair], every: Sequence[PublishedPair], reasons: dict[str, str], console: Console
) -> None:
    """Table of the rows with a number of ours; the key columns are those that vary over `every`."""
    keys = [name for name in rows[0].cell if len({one.cell[name] for one in every}) > 1 or name == "workload"]
    grid = Table(box=None, padding=(0, 2, 0, 1), header_style="dim")
    for name in [*keys, "number"]:
        grid.add_column(name.replace("_", " "), no_wrap=True)
    for name in ("published", "ours", "change"):
        grid.add_column(name, justify="right", no_wrap=True)
    grid.add_column("verdict", no_wrap=True)
    for row in rows:
        marks = [reasons.setdefault(why, f"{len(reasons) + 1}") for why in row.reasons]
        verdict = Text(row.verdict, style=STYLES.get(row.verdict, "dim"))
        verdict.append(f" ({', '.join(marks)})" if marks else "")
        values = (row.cell[name] for name in keys)
        grid.add_row(*values, row.statistic, _printed(row), _ours(row), _change(row), verdict)
    uncut(grid, console)


def _without(rows: Sequence[PublishedPair]) -> list[str]:
    """Published numbers without one of ours, by reason."""
    alone = [one for one in rows if one.ours is None]
    groups: dict[tuple[str, tuple[str, ...]], int] = {}
    for row in alone:
        key = row.verdict, row.reasons
        groups[key] = groups.get(key, 0) + 1
    shown = [
        f"{count} of {len(rows)} {'not comparable' if verdict == 'not comparable' else 'without a number'}: "
        f"{'; '.join(reasons)}"
        for (verdict, reasons), count in groups.items()
        if reasons != NOTHING_PUBLISHED
    ]
    if len(shown) > MOST_REASONS:
        shown = [*shown[:MOST_REASONS], f"and {len(shown) - MOST_REASONS} further reasons: --json"]
    return shown


def _form(table: str) -> shipped.Form:
    return shipped.tables()[table].form or shipped.Form()


def _title(table: str) -> str:
    return shipped.tables()[table].title


def _printed(row: PublishedPair) -> str:
    """The published number with its unit, never as a power of ten."""
    text = f"{float(row.printed):,.0f}" if "e+" in row.printed else row.printed
    response = _form(row.table).response
    measured = response and row.statistic in STATISTICS and row.statistic != "count"
    return f"{text} {row.unit or (unit_of(response) if measured else '')}".strip()


def _ours(row: PublishedPair) -> str:
    if row.ours is None:
        return "-"
    ends = ""
    if row.ours.low is not None and row.ours.high is not None:
        ends = f" [{figure(row.ours.low)}, {figure(row.ours.high)}]"
    return f"{figure(row.ours.value)}{ends}"


def _change(row: PublishedPair) -> str:
    """The change of ours against the published number; none if the two are not comparable."""
    if row.change_percent is None or row.verdict == "not comparable":
        return "-"
    low, high = (None if end is None else max(1 + end / 100, 0.0) for end in (row.low, row.high))
    value = max(1 + row.change_percent / 100, 0.0)
    ratio = Estimate(value=value, low=low, high=high, n=1, unit="", method="ours over published")
    return change_text(ratio, row.statistic)


def _figure(every: Sequence[PublishedPair], what: str, path: Path) -> None:
    drawn = [one for one in every if one.change_percent is not None]
    vary = {name for one in drawn for name in one.cell if len({two.cell.get(name) for two in drawn}) > 1}
    rows = [
        forest.ForestRow(
            label=_row(one, vary), value=one.change_percent, low=one.low, high=one.high, verdict=one.verdict,
            decided=one.verdict == "differs",
        )
        for one in every
        if one.change_percent is not None
        and (not _form(one.table).computed or one.statistic in _form(one.table).drawn)
    ]  # fmt: skip
    if not rows:
        raise StudyError("none of our numbers matches one that can be drawn", "leave --figure out")
    response = _form(every[0].table).response
    title = f"{capital(label_of(response))} of {what}" if response else what
    caption = "100 (ours / published - 1); the intervals hold ours and the rounding of the printed digits"
    forest.write(rows, None, title, caption, path)


def _row(row: PublishedPair, vary: Set[str]) -> str:
    """Label of a row of the figure, by the columns that `vary`."""
    levels = ", ".join(f"{name} {level}" for name, level in row.cell.items() if name in vary - {"table"})
    return f"{levels or row.table}: {row.statistic}".replace("_", " ")
