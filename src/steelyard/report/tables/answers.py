"""Table of the answer on the page: every level next to the baseline, with its change and verdict.

The texts are those of `AnswerTable`; nothing is computed here. Two levels are side by side, a row for each line
(workload); more levels have a row each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from steelyard.analysis.narrative.answer_display import (
    BASELINE,
    Notes,
    against,
    both_sides,
    factor_of,
    level_alone,
    level_in_head,
    names_both_sides,
)
from steelyard.analysis.narrative.answer_table import AnswerRow, AnswerTable
from steelyard.analysis.narrative.undecided import TO_DECIDE, WITHIN, explanation
from steelyard.analysis.results import Results
from steelyard.analysis.wording import capital, change_value
from steelyard.format import NONE
from steelyard.report.tables.generic import Cell, ShownColumn, Table

DECIDED: Final = ("slower", "faster", "higher", "lower", "equivalent")
TWO: Final = 2
BAR: Final = "█"
LEAST_BAR: Final = 8
"""Minimum width of the bars; below it nothing is drawn."""
NAME: Final = "answers"
OTHERS: Final = "other-responses"
MOST_ACROSS: Final = 8
"""With more cells than this, they are rows."""
MARKS: Final = {
    "faster": "\N{BLACK UP-POINTING TRIANGLE}",
    "slower": "\N{BLACK DOWN-POINTING TRIANGLE}",
    "higher": "\N{UPWARDS ARROW}",
    "lower": "\N{DOWNWARDS ARROW}",
    "equivalent": "\N{ALMOST EQUAL TO}",
    "undecided": "\N{WHITE CIRCLE}",
}
"""A shape for each verdict, for those who do not see its colour."""


def answers(found: AnswerTable | None) -> Table | None:
    """The table of the answer; None without a comparison."""
    if found is None or not found.rows:
        return None
    lines = [rows for _, rows in found.by_line()]
    notes = Notes(found.rows)
    alike = len({row.factor for row in found.rows}) == 1 and all(len(rows) == TWO for rows in lines)
    if alike and any(row.verdict == BASELINE for row in found.rows):
        columns, rows = _side_by_side(found, lines, notes)
    else:
        columns, rows = _one_below_another(found, lines, notes)
    same_n = f" Each value: {found.same_n.removesuffix(' each')}." if found.same_n else ""
    return Table(NAME, f"{found.caption}.{same_n}{_legend(found, notes)}", columns, rows)


def every_pair(found: AnswerTable | None) -> Table | None:
    """Every pair of levels; None below three levels."""
    if found is None or not found.rows:
        return None
    notes = Notes(found.rows)
    columns, rows = _one_below_another(found, [rows for _, rows in found.by_line()], notes)
    title = "Every pair of levels"
    return Table("every-pair", f"{title}. {found.caption}.{_legend(found, notes)}", columns, rows, title)


def other_responses(results: Results) -> Table | None:
    """Both values, change and verdict of further responses in every cell; None without a comparison of any.

    A row per response, or, with many cells, per cell.
    """
    shown = [one for one in results.further if _compared(one)]
    changes = {one.response: _compared(one) for one in shown}
    places = list(dict.fromkeys(place for of in changes.values() for place in of))
    if not places:
        return None
    first = next(row for of in changes.values() for row in of.values())
    several = len({level for _, level in places}) > 1
    names = [", ".join(filter(None, [line, level if several or not line else ""])) for line, level in places]
    cells = [[_mark(changes[one.response].get(place), one.response) for place in places] for one in shown]
    responses = [Cell(capital(one.response_label), link=f"response-{one.response}") for one in shown]
    if len(places) > MOST_ACROSS:
        heads = [response.text for response in responses]
        rows = [(Cell(name), *marks) for name, marks in zip(names, zip(*cells, strict=True), strict=True)]
    else:
        heads, rows = names, [(response, *marks) for response, marks in zip(responses, cells, strict=True)]
    columns = (ShownColumn("", numeric=False), *(ShownColumn(head, numeric=False) for head in heads))
    verdicts = {row.verdict for of in changes.values() for row in of.values()}
    key = [f"{mark} {verdict}" for verdict, mark in MARKS.items() if verdict in verdicts]
    doubted = any("*" in cell.text for row in cells for cell in row)
    key += ["* not after Holm's correction, or not final"] if doubted else []
    versus = "" if several or first.line == first.factor else f", {against(first)}"
    explained = f": {', '.join(key)}" if key else ""
    return Table(OTHERS, f"The other responses{versus}{explained}.", columns, tuple(rows))


def uncompared(results: Results) -> list[Results]:
    """The further responses that this table lacks, because no cell has two values: what they have is in words."""
    return [one for one in results.further if not _compared(one)]


def _compared(further: Results) -> dict[tuple[str, str], AnswerRow]:
    rows = () if further.answer_table is None else further.answer_table.rows
    return {_place(row): row for row in rows if row.verdict != BASELINE and (row.change is not None or _values(row))}


def _place(row: AnswerRow) -> tuple[str, str]:
    return row.line, against(row)


def _values(row: AnswerRow) -> str:
    """The baseline's value and the level's, in one unit: `902 → 318 ms`; empty if one is missing."""
    if row.value is None or row.baseline_value is None:
        return ""
    return f"{row.baseline_value_text.partition(' ')[0]} → {row.value_text}"


def _mark(row: AnswerRow | None, response: str) -> Cell:
    if row is None:
        return Cell(NONE)
    doubted = "*" if row.verdict in DECIDED and row.verdict_text != row.verdict else ""
    # Of a difference, the two values say how large it is.
    change = "" if row.ratio is None else f" {change_value(row.ratio, response)}"
    mark = f"{MARKS.get(row.verdict, '')}{doubted}{change}".strip()
    return Cell(": ".join(filter(None, (_values(row), mark))), tone="mark" if doubted else f"mark {row.verdict}")


def _legend(found: AnswerTable, notes: Notes) -> str:
    return "".join(f" {sentence}" for sentence in (explanation(found.rows), *notes.sentences) if sentence)


def _further(found: AnswerTable) -> list[tuple[ShownColumn, Callable[[AnswerRow], str]]]:
    """Columns that only some tables need: what would decide, and n."""
    every: list[tuple[ShownColumn, Callable[[AnswerRow], str]]] = [
        (ShownColumn(TO_DECIDE, numeric=False), lambda row: row.to_decide),
        (ShownColumn(WITHIN, numeric=False), lambda row: row.cheaper),
    ]
    filled = [(column, text) for column, text in every if any(map(text, found.rows))]
    return filled if found.same_n else [*filled, (ShownColumn("n", term="n of a level"), lambda row: row.n_text)]


def _verdict(row: AnswerRow, notes: Notes) -> Cell:
    relied_on = row.verdict in DECIDED and row.verdict_text == row.verdict
    return Cell(notes.verdict(row), tone="strong" if relied_on else "quiet")


def _value(text: str, value: float | None) -> Cell:
    return Cell(text or NONE, "" if value is None else repr(value), "value")


def _change(row: AnswerRow) -> Cell:
    return Cell(row.change_text or NONE, "" if row.change is None else repr(row.change.value))


def _side_by_side(
    found: AnswerTable, lines: Sequence[Sequence[AnswerRow]], notes: Notes
) -> tuple[tuple[ShownColumn, ...], tuple[tuple[Cell, ...], ...]]:
    first = lines[0]
    named = any(rows[0].line for rows in lines)
    further = _further(found)
    columns = (
        *((ShownColumn("", numeric=False),) if named else ()),
        *(ShownColumn(level_in_head(row), term="value of a level") for row in first),
        ShownColumn(against(first[1]), term="change from the baseline"),
        ShownColumn("verdict", numeric=False, term="verdict of a level"),
        *(column for column, _ in further),
    )
    rows = tuple(
        (
            *((Cell(base.line),) if named else ()),
            _value(base.value_text, base.value),
            _value(level.value_text, level.value),
            _change(level),
            _verdict(level, notes),
            *(Cell(_both(base, level, text)) for _, text in further),
        )
        for base, level in lines
    )
    return columns, rows


def _both(base: AnswerRow, level: AnswerRow, text: Callable[[AnswerRow], str]) -> str:
    return "; ".join(dict.fromkeys(filter(None, (text(base), text(level)))))


def _one_below_another(
    found: AnswerTable, lines: Sequence[Sequence[AnswerRow]], notes: Notes
) -> tuple[tuple[ShownColumn, ...], tuple[tuple[Cell, ...], ...]]:
    named = any(rows[0].line for rows in lines)
    valued = any(row.value_text for row in found.rows)
    pairs, further = names_both_sides(found), _further(found)
    baselines = {level_alone(row, baseline=True) for row in found.rows}
    change = f"against {baselines.pop()}" if len(baselines) == 1 and not pairs else "change"
    columns = (
        *((ShownColumn("", numeric=False),) if named else ()),
        ShownColumn("compared" if pairs else factor_of(found), term="comparison" if pairs else "factor", numeric=False),
        *((ShownColumn("value", term="value of a level"),) if valued else ()),
        ShownColumn(change, term="change from the baseline"),
        ShownColumn("verdict", numeric=False, term="verdict of a level"),
        *(column for column, _ in further),
    )
    rows = tuple(
        (
            *((Cell(row.line if index == 0 else ""),) if named else ()),
            Cell(both_sides(row) if pairs else level_alone(row) if row.factor == found.factor else row.level_text),
            *((_value(row.value_text, row.value),) if valued else ()),
            _change(row),
            _verdict(row, notes),
            *(Cell(text(row)) for _, text in further),
        )
        for line in lines
        for index, row in enumerate(line)
    )
    return columns, rows


def bars(rows: Sequence[AnswerRow], width: int) -> list[str]:
    """A bar from 0 per level, on one scale for all; nothing if values are missing or the lines have no room."""
    known = [row for row in rows if row.value is not None and row.value >= 0]
    greatest = max((row.value or 0.0 for row in known), default=0.0)
    names = [f"{row.line}, {row.level_text}" if row.line else row.level_text for row in known]
    name_room = max(map(len, names), default=0)
    value_room = max((len(row.value_text) for row in known), default=0)
    room = width - name_room - value_room - 3
    if len(known) < 2 or greatest <= 0 or room < LEAST_BAR:
        return []
    return [
        f"{name:<{name_room}} |{BAR * max(1, round(room * (row.value or 0.0) / greatest))} {row.value_text}"
        for name, row in zip(names, known, strict=True)
    ]
