"""`steelyard compare STORE REFERENCE`: own trials beside published numbers, with what makes them incomparable."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from steelyard.analysis.analyse import frame_of
from steelyard.analysis.results import LABELS
from steelyard.cli.terminal.output import data_console, say
from steelyard.cli.terminal.wide_table import uncut
from steelyard.model.errors import StudyError
from steelyard.reading import published
from steelyard.reference import tables as shipped
from steelyard.reference.audit.finding import figure
from steelyard.reference.comparison import Beside
from steelyard.reference.mapping import Own, unpublished
from steelyard.report.figures import forest

if TYPE_CHECKING:
    from steelyard.cli.commands.compare import Opened

EXIT_AGREES, EXIT_OTHERWISE = 0, 1
METRICS = {"time": "execution_time_ms", "execution_time": "execution_time_ms"}
NOTHING_PUBLISHED = ("nothing was published",)
MOST_REASONS = 6
"""Lines on the screen about numbers that have none of ours beside them."""
STYLES = {"agrees": "green", "differs": "red", "not comparable": "yellow"}


def beside(
    ours: Opened,
    name: str,
    *,
    fixed_a: Sequence[str],
    fixed_b: Sequence[str],
    metric: str | None,
    margin_percent: float | None,
    figure_path: Path | None,
    as_json: bool,
) -> int:
    """Print or give as JSON. Returns 0 if every number of ours that has an interval agrees, else 1.

    Raises StudyError for an unknown reference, or where own treatments cannot be told apart.
    """
    tables = _tables(name)
    _refuse(tables, metric, margin_percent)
    if figure_path is not None:
        forest.refuse_other(figure_path)
    frame = frame_of(ours.records, ours.study)
    from steelyard.cli.commands.compare import levels

    fixed = levels(fixed_a, frame.factors, "--a")
    chosen = _chosen(tables, fixed_b)
    placed = _placed(tables, chosen)
    laid_beside, own = published.lay(tables, ours, fixed, placed)
    kept = {column: level for column, level in chosen.items() if column not in placed}
    found = [one for one in laid_beside if all(one.cell.get(column) in (None, kept[column]) for column in kept)]
    if not found and placed:
        needs = "; ".join(f"{table.name}: {table.form.needs}" for table in tables if table.form and table.form.needs)
        hint = f"it needs {needs}" if needs else f"`steelyard reference show {name}` lists its cells"
        raise StudyError(f"nothing of ours can be laid beside {name}", hint, read=name)
    remarks = tuple(_remarks(tables, found, own, placed))
    if as_json:
        _print_json(name, found, remarks, own)
    else:
        _draw(found, remarks, ours.study.study.name, name, data_console())
    if figure_path is not None:
        _figure(found, f"{ours.study.study.name} beside {name}", figure_path)
    judged = [one for one in found if one.verdict != "no number" and one.ours is not None and one.ours.low is not None]
    return EXIT_AGREES if judged and all(one.verdict == "agrees" for one in judged) else EXIT_OTHERWISE


def _chosen(tables: Sequence[shipped.Table], texts: Sequence[str]) -> dict[str, str]:
    """The rows, or the cells that ours are laid beside, that `--b replication_factor=3` chooses. Raises StudyError with
    what there is."""
    known: dict[str, list[str]] = {}
    forms = [table.form for table in tables if table.form is not None and table.form.placed]
    sources = [shipped.tables()[form.cells_of] for form in forms] or tables
    for row in (row for table in sources for row in table.rows):
        for name, text in row.key.items():
            if (not forms or name in forms[0].placed) and text not in known.setdefault(name, []):
                known[name].append(text)
    found = {}
    for text in (part for one in texts for part in one.split(",")):
        name, _, wanted = (part.strip() for part in text.partition("="))
        if wanted not in known.get(name, ()):
            there = "; ".join(f"{one}: {', '.join(values)}" for one, values in known.items())
            raise StudyError(f"--b {text}: nothing like it was published", f"there are: {there}", key="--b", read=text)
        found[name] = wanted
    return found


def _tables(name: str) -> tuple[shipped.Table, ...]:
    """The tables of a study, or the one table, that were asked for."""
    try:
        found = shipped.named(name)
    except shipped.UnknownReference as error:
        raise shipped.UnknownReference(f"{name!r} is no store, no shipped table and no study", error.hint) from error
    if len({table.source.name for table in found}) > 1:
        names = ", ".join(dict.fromkeys(table.source.name for table in found))
        raise StudyError(f"{name}: one publication at a time", f"one of {names}", read=name)
    return found


def _refuse(tables: Sequence[shipped.Table], metric: str | None, margin_percent: float | None) -> None:
    """Options that mean nothing beside published numbers. Raises StudyError."""
    response = tables[0].form.response if tables[0].form is not None else ""
    if metric is not None and (not response or METRICS.get(metric, metric) != response):
        what = f"{LABELS[response]}s only" if response else "numbers of its own, each of which is laid beside ours"
        raise StudyError(f"--metric {metric}", f"{tables[0].source.name} published {what}", key="--metric")
    if margin_percent is not None:
        raise StudyError("--margin is for two sides of trials", "what agrees is decided by the printed digits")


def _placed(tables: Sequence[shipped.Table], chosen: Mapping[str, str]) -> dict[str, str]:
    """Columns that nothing of ours decides, with the level that ours are laid beside: the one chosen, else what goes
    with another that was chosen, else the form's."""
    forms = [table.form for table in tables if table.form is not None and table.form.placed]
    found: dict[str, str] = {}
    for form in forms:
        found |= form.placed
        for level in chosen.values():
            found |= form.follows.get(level, {})
        found |= {name: level for name, level in chosen.items() if name in form.placed}
    return found


def _remarks(
    tables: Sequence[shipped.Table], found: Sequence[Beside], own: Sequence[Own], placed: Mapping[str, str]
) -> Iterator[str]:
    """What holds for all numbers, and what could not be laid beside any."""
    if placed:
        options = ", ".join(f"{name}=" for name in placed)
        yield f"ours are laid beside {' '.join(placed.values())}; --b {options} choose others"
        without = dict.fromkeys(cell for table in tables for cell in unpublished(table, own))
        if without:
            yield f"nothing was published of {'; '.join(without)}"
        if not any("platform" in one.facets for one in own):
            yield "our platform is not known: no facts of a node"
    there = {one.table for one in found}
    for table in tables:
        yield from table.form.remarks if table.form is not None and table.form.computed else table.caveats
    for table in tables:
        if table.form is not None and table.form.needs and table.name not in there:
            yield f"no {table.name} is recomputed: it needs {table.form.needs}"


def _print_json(name: str, found: Sequence[Beside], remarks: Sequence[str], own: Sequence[Own]) -> None:
    told = {
        "reference": name,
        "beside": [{**one.model_dump(mode="json"), "sentence": one.sentence()} for one in found],
        "own": [{"treatment": one.name, "n": one.n, "facets": dict(one.facets)} for one in own],
        "remarks": list(remarks),
    }
    print(json.dumps(told, indent=1, ensure_ascii=False, allow_nan=False))


def _draw(found: Sequence[Beside], remarks: Sequence[str], study: str, name: str, console: Console) -> None:
    reasons: dict[str, str] = {}
    for table in dict.fromkeys(one.table for one in found):
        of_table = [one for one in found if one.table == table]
        form = _form(table)
        rows = [one for one in of_table if one.ours is not None and one.statistic in (form.shown or (one.statistic,))]
        say(console, Text(f"{study} beside {name}: {_title(table)}", style="bold"))
        if rows:
            _grid(rows, rows if form.computed else of_table, reasons, console)
        for line in _without(of_table):
            say(console, Text(f" {line}"))
        console.print()
    for why, mark in reasons.items():
        say(console, Text(f"({mark}) {why}"))
    counts = {verdict: sum(one.verdict == verdict for one in found) for verdict in (*STYLES, "no number")}
    told = ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count)
    say(console, Text(f"{len(found)} numbers: {told}", style="bold"))
    for hidden in dict.fromkeys(_form(one.table).hidden for one in found):
        if hidden:
            say(console, f"{hidden}: --json", style="dim")
    for remark in remarks:
        say(console, Text(remark, style="dim"))


def _grid(rows: Sequence[Beside], every: Sequence[Beside], reasons: dict[str, str], console: Console) -> None:
    """The rows with a number of ours; which keys vary, and so are shown, `every` row says."""
    keys = [name for name in rows[0].cell if len({one.cell[name] for one in every}) > 1 or name == "workload"]
    grid = Table(box=None, padding=(0, 2, 0, 1), header_style="dim")
    for name in [*keys, "number"]:
        grid.add_column(name.replace("_", " "), no_wrap=True)
    for name in ("published", "ours", "change"):
        grid.add_column(name, justify="right", no_wrap=True)
    grid.add_column("verdict", no_wrap=True)
    for one in rows:
        marks = [reasons.setdefault(why, f"{len(reasons) + 1}") for why in one.reasons]
        verdict = Text(one.verdict, style=STYLES.get(one.verdict, "dim"))
        verdict.append(f" ({', '.join(marks)})" if marks else "")
        values = (one.cell[name] for name in keys)
        grid.add_row(*values, one.statistic, one.printed, _ours(one), _change(one), verdict)
    uncut(grid, console)


def _without(rows: Sequence[Beside]) -> list[str]:
    """Published numbers with none of ours beside them, by reason."""
    alone = [one for one in rows if one.ours is None]
    groups: dict[tuple[str, tuple[str, ...]], int] = {}
    for one in alone:
        key = one.verdict, one.reasons
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


def _ours(one: Beside) -> str:
    if one.ours is None:
        return "-"
    ends = ""
    if one.ours.low is not None and one.ours.high is not None:
        ends = f" [{figure(one.ours.low)}, {figure(one.ours.high)}]"
    return f"{figure(one.ours.value)}{ends}"


def _change(one: Beside) -> str:
    if one.change_percent is None:
        return "-"
    ends = "" if one.low is None or one.high is None else f" [{_signed(one.low)}, {_signed(one.high)}]"
    return f"{_signed(one.change_percent)}%{ends}"


def _signed(percent: float) -> str:
    size = abs(percent)
    return f"{'-' if percent < 0 else '+'}{f'{size:,.0f}' if size >= 1000 else f'{size:.3g}'}"


def _figure(found: Sequence[Beside], what: str, path: Path) -> None:
    drawn = [one for one in found if one.change_percent is not None]
    vary = {name for one in drawn for name in one.cell if len({two.cell.get(name) for two in drawn}) > 1}
    rows = [
        forest.ForestRow(
            label=_row(one, vary), value=one.change_percent, low=one.low, high=one.high, verdict=one.verdict,
            decided=one.verdict == "differs",
        )
        for one in found
        if one.change_percent is not None
        and (not _form(one.table).computed or one.statistic in _form(one.table).drawn)
    ]  # fmt: skip
    if not rows:
        raise StudyError("no number of ours stands beside one that can be drawn", "leave --figure out")
    response = _form(found[0].table).response
    title = f"{LABELS[response].capitalize()} of {what}" if response else what
    caption = "100 (ours / published - 1); the intervals hold ours and the rounding of the printed digits"
    forest.write(forest.spec(rows, title, caption, None), path)


def _row(one: Beside, vary: Set[str]) -> str:
    """What a row of the figure is about, by the columns that `vary`."""
    levels = ", ".join(f"{name} {level}" for name, level in one.cell.items() if name in vary - {"table"})
    return f"{levels or one.table}: {one.statistic}".replace("_", " ")
