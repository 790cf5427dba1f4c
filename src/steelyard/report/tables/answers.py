"""Table of the answer on the page: every level next to the baseline, with its change and verdict.

The texts are those of `AnswerTable`; nothing is computed here. Two levels are side by side, a row for each line
(workload); more levels have a row each.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from steelyard.analysis.narrative.answer_display import BASELINE, Notes, both_sides, names_both_sides
from steelyard.analysis.narrative.answer_table import AnswerRow, AnswerTable
from steelyard.format import NONE
from steelyard.report.tables.generic import Cell, ShownColumn, Table

DECIDED: Final = ("slower", "faster", "higher", "lower", "equivalent")
TWO: Final = 2
NAME: Final = "answers"


def answers(found: AnswerTable | None) -> Table | None:
    """The table of the answer; None without a comparison."""
    if found is None or not found.rows:
        return None
    lines = [rows for _, rows in found.by_line()]
    notes = Notes(found.rows)
    if any(row.verdict == BASELINE for row in found.rows) and all(len(rows) == TWO for rows in lines):
        columns, rows = _side_by_side(found, lines, notes)
    else:
        columns, rows = _one_below_another(found, lines, notes)
    same_n = f" Each value: {found.same_n.removesuffix(' each')}." if found.same_n else ""
    return Table(NAME, f"{found.caption}.{same_n}{_legend(notes)}", columns, rows)


def every_pair(found: AnswerTable | None) -> Table | None:
    """Every pair of levels; None below three levels."""
    if found is None or not found.rows:
        return None
    notes = Notes(found.rows)
    columns, rows = _one_below_another(found, [rows for _, rows in found.by_line()], notes)
    title = "Every pair of levels"
    return Table("every-pair", f"{title}. {found.caption}.{_legend(notes)}", columns, rows, title)


def is_of_line(sentence: str, found: AnswerTable | None) -> bool:
    """Whether a sentence of the answer says what a row of the table says: it quotes one of its texts."""
    if found is None:
        return False
    texts = {text for row in found.rows for text in (row.value_text, row.change_text, row.sentence) if text}
    return any(re.search(rf"(?<![\d,.]){re.escape(text)}", sentence) for text in texts)


def _legend(notes: Notes) -> str:
    return "".join(f" {sentence}" for sentence in notes.sentences)


def _verdict(row: AnswerRow, notes: Notes) -> Cell:
    relied_on = row.verdict in DECIDED and row.verdict_text == row.verdict
    return Cell(notes.verdict(row), tone="strong" if relied_on else "quiet")


def _value(text: str, value: float | None) -> Cell:
    return Cell(text or NONE, "" if value is None else repr(value), "value")


def _change(row: AnswerRow) -> Cell:
    return Cell(row.change_text or NONE, "" if row.ratio is None else repr(row.ratio.value))


def _side_by_side(
    found: AnswerTable, lines: Sequence[Sequence[AnswerRow]], notes: Notes
) -> tuple[tuple[ShownColumn, ...], tuple[tuple[Cell, ...], ...]]:
    first = lines[0]
    named = any(rows[0].line for rows in lines)
    columns = (
        *((ShownColumn("", numeric=False),) if named else ()),
        *(ShownColumn(row.level_text, term="value of a level") for row in first),
        ShownColumn(f"{first[1].level_text} against {first[0].level_text}", term="change from the baseline"),
        ShownColumn("verdict", numeric=False, term="verdict of a level"),
        *(() if found.same_n else (ShownColumn("n", numeric=False, term="n of a level"),)),
    )
    rows = tuple(
        (
            *((Cell(base.line),) if named else ()),
            _value(base.value_text, base.value),
            _value(level.value_text, level.value),
            _change(level),
            _verdict(level, notes),
            *(() if found.same_n else (Cell(_both(base, level)),)),
        )
        for base, level in lines
    )
    return columns, rows


def _both(base: AnswerRow, level: AnswerRow) -> str:
    return base.n_text if base.n_text == level.n_text else f"{base.n_text}; {level.n_text}"


def _one_below_another(
    found: AnswerTable, lines: Sequence[Sequence[AnswerRow]], notes: Notes
) -> tuple[tuple[ShownColumn, ...], tuple[tuple[Cell, ...], ...]]:
    named = any(rows[0].line for rows in lines)
    valued = any(row.value_text for row in found.rows)
    pairs = names_both_sides(found)
    baselines = {row.baseline_text for row in found.rows}
    against = f"against {baselines.pop()}" if len(baselines) == 1 and not pairs else "change"
    columns = (
        *((ShownColumn("", numeric=False),) if named else ()),
        ShownColumn("compared" if pairs else found.factor, term="comparison" if pairs else "factor", numeric=False),
        *((ShownColumn("value", term="value of a level"),) if valued else ()),
        ShownColumn(against, term="change from the baseline"),
        ShownColumn("verdict", numeric=False, term="verdict of a level"),
        *(() if found.same_n else (ShownColumn("n", numeric=False, term="n of a level"),)),
    )
    rows = tuple(
        (
            *((Cell(row.line if index == 0 else ""),) if named else ()),
            Cell(both_sides(row) if pairs else row.level_text),
            *((_value(row.value_text, row.value),) if valued else ()),
            _change(row),
            _verdict(row, notes),
            *(() if found.same_n else (Cell(row.n_text),)),
        )
        for line in lines
        for index, row in enumerate(line)
    )
    return columns, rows
