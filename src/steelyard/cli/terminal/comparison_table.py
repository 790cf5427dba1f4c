"""Terminal table of comparisons: as many columns as the width has room for; no number is cut in two."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from steelyard.analysis.comparisons import identical_systems
from steelyard.analysis.comparisons.judgement import shown
from steelyard.analysis.comparisons.two_sided import Contrast, Side
from steelyard.analysis.wording import capital, change_of, change_text, scale
from steelyard.cli.terminal.output import print_wrapped, say
from steelyard.cli.terminal.wide_table import MOST_COLUMNS, forest_line, forest_span, uncut
from steelyard.format import confidence_text, number, p_value, signed
from steelyard.model.responses import label_of

STYLES: Final = {"faster": "green", "slower": "red", "equivalent": "cyan", "undecided": "yellow"}
LONGEST_HEAD: Final = 24
"""With longer names of the sides the column is headed `a -> b`."""

Cell = Callable[[Contrast], Text | str]


def draw(a: Side, b: Side, done: Sequence[Contrast], console: Console) -> None:
    """The table, one sentence per comparison, and remarks on all of them."""
    first = done[0]
    say(console, Text(f"{label_of(first.response)}: {a.name} -> {b.name}", style="bold"))
    _grid(a, b, done, console)
    console.print()
    for contrast in done:
        print_wrapped(Text(capital(contrast.sentence)), console)
        if contrast.cheaper:
            print_wrapped(Text(f"  To show that it changes less than 10% (--margin 10%): {contrast.cheaper}"), console)
    print_wrapped(Text(_told(done), style="dim"), console)


def _grid(a: Side, b: Side, done: Sequence[Contrast], console: Console) -> None:
    """The richest of the tables that fit."""
    ends = forest_span([one.change_percent for one in done])
    axis = " to ".join(change_of(1 + end / 100, done[0].response) for end in ends)
    factor, unit = scale([mean.value for one in done for mean in (one.mean_a, one.mean_b)], done[0].unit)
    head = f"{a.name} -> {b.name}"
    unit = unit.replace("operations/s", "op/s").replace("operations", "op")
    head = f"{head if len(head) <= LONGEST_HEAD else 'a -> b'}, {unit}"
    known = [one for one in done if one.p is not None]

    def values(contrast: Contrast) -> str:
        means = (contrast.mean_a.value, contrast.mean_b.value)
        return " -> ".join(number(mean * factor, digits=3, trim=False) for mean in means)

    def drawn(contrast: Contrast) -> Text:
        return forest_line(contrast.change_percent, *ends)

    base: list[tuple[str, bool, Cell]] = [(head, True, values), ("change", True, changed)]
    counts: list[tuple[str, bool, Cell]] = [] if _all_alike(done) else [("trials (starts)", True, _counts)]
    p: list[tuple[str, bool, Cell]] = []
    if known:
        p.append(("p (Holm)" if known[0].family > 1 else "p", True, lambda one: p_value(one.p_holm)))
    full: tuple[str, bool, Cell] = ("effect", False, lambda one: effect(one, interval=True))
    short: tuple[str, bool, Cell] = ("effect", False, lambda one: effect(one, interval=False))
    narrow: list[tuple[str, bool, Cell]] = [*base, short, *counts]
    columns = ([*base, (axis, False, drawn), full, *counts, *p], [*base, full, *counts, *p], [*narrow, *p], narrow)
    for wanted in columns:
        grid = _table(done, [*wanted, ("verdict", False, _verdict)])
        if _width(grid, console) <= console.width:
            uncut(grid, console)
            return
    _stacked(done, _table(done, columns[-1]), console)


def _stacked(done: Sequence[Contrast], grid: Table, console: Console) -> None:
    """Form for a terminal narrower than any table: the verdict below its line."""
    options = console.options.update(max_width=_width(grid, console))
    heading, *lines = (
        Text.assemble(*((part.text, part.style or "") for part in line)) for line in console.render_lines(grid, options)
    )
    for line in (heading, *lines):
        line.rstrip()
    say(console, heading)
    for line, contrast in zip(lines, done, strict=True):
        say(console, line)
        say(console, Text("   ").append_text(_verdict(contrast)))


def _table(done: Sequence[Contrast], columns: Sequence[tuple[str, bool, Cell]]) -> Table:
    grid = Table(box=None, padding=(0, 2, 0, 1), header_style="dim")
    for name in done[0].cell:
        grid.add_column(name, no_wrap=True)
    for name, right, _ in columns:
        grid.add_column(name, justify="right" if right else "left", no_wrap=True)
    for contrast in done:
        grid.add_row(*map(str, contrast.cell.values()), *(cell(contrast) for _, _, cell in columns))
    return grid


def _verdict(contrast: Contrast) -> Text:
    return Text(verdict_of(contrast), style=STYLES.get(contrast.verdict, ""))


def _width(grid: Table, console: Console) -> int:
    return Measurement.get(console, console.options.update(max_width=MOST_COLUMNS), grid).maximum


def changed(contrast: Contrast) -> str:
    """The change with its interval: `+18% [3, 35]`, `3.1 times as long [2.2, 4.4]`."""
    return change_text(contrast.ratio, contrast.response)


def effect(contrast: Contrast, *, interval: bool) -> str:
    """Hedges' g and the word for its size: `+3.3 [+0.93, +7.3] large`."""
    if contrast.effect is None:
        return "-"
    ends = ""
    if interval and contrast.effect.low is not None and contrast.effect.high is not None:
        ends = f" [{signed(contrast.effect.low)}, {signed(contrast.effect.high)}]"
    return f"{signed(contrast.effect.value)}{ends} {contrast.effect_words}"


def verdict_of(contrast: Contrast) -> str:
    """The verdict, and the blocks that would decide an undecided one: `undecided; for 3% 14 more blocks (about 2 h 50
    min)`."""
    if contrast.verdict == "equivalent":
        text = f"equivalent within {number(contrast.margin_percent or 0, digits=2)}%"
    elif contrast.within_noise:
        text = "undecided; within the noise floor"
    elif contrast.within_trend:
        text = "undecided; within a trend"
    elif contrast.within_cold:
        text = "undecided; cold servers"
    elif contrast.verdict == "undecided":
        text = f"undecided; {contrast.advice}"
    else:
        text = str(contrast.verdict)
    return shown(contrast.verdict, survives_holm=contrast.survives_holm, final=contrast.final, text=text)


def _counts(contrast: Contrast) -> str:
    return f"{contrast.n_a} ({contrast.starts_a}) / {contrast.n_b} ({contrast.starts_b})"


def _all_alike(done: Sequence[Contrast]) -> bool:
    return len({(one.n_a, one.starts_a, one.n_b, one.starts_b) for one in done}) == 1


def _told(done: Sequence[Contrast]) -> str:
    methods = "; ".join(dict.fromkeys(one.ratio.method.rsplit(", ", 1)[0] for one in done))
    first = done[0]
    counts = f" Trials (starts) per side: {_counts(first)}." if _all_alike(done) else ""
    family = (
        f" p: test of no change, after Holm's correction over {first.family} comparisons." if first.family > 1 else ""
    )
    return (
        f"Values are geometric means of start means. Brackets: {confidence_text(first.ratio.confidence)} intervals; "
        f"{methods}. Effect: Hedges' g.{counts}{family}"
    )


def footer(done: Sequence[Contrast], floors: Sequence[identical_systems.Floors], designs: Sequence[str]) -> str:
    """`noise floor of this machine (study noise-floor ...) 2.4% · unit: start · 10 randomised blocks, seed 7`."""
    known = [one.floor_percent.value for one in done if one.floor_percent is not None]
    if not known:
        why = "; ".join(dict.fromkeys(one.stored.why for one in floors if one.stored.why))
        floor_text = why or "no noise floor to judge by"
    else:
        ends = [number(end, digits=2) for end in (min(known), max(known))]
        sources = "; ".join(dict.fromkeys(one.floor_source for one in done if one.floor_source))
        floor_text = f"noise floor of this machine ({sources}) {' to '.join(dict.fromkeys(ends))}%"
    return " \N{MIDDLE DOT} ".join([floor_text, "unit: start", *designs])
