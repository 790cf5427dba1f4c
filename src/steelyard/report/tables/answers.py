"""Table of the answer on the page: every level beside the baseline, with its change and verdict.

The texts are those of `AnswerTable`; nothing is computed here. Two levels stand side by side, a row for each line
(workload); more levels have a row each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from steelyard.analysis.narrative.answer_table import AnswerRow, AnswerTable
from steelyard.format import NONE
from steelyard.report.tables.generic import Cell, Column, Table

BASELINE: Final = "baseline"
DECIDED: Final = ("slower", "faster", "higher", "lower", "equivalent")
TWO: Final = 2
NAME: Final = "answers"


def answers(found: AnswerTable | None) -> Table | None:
    """The table of the answer; None without a comparison."""
    if found is None or not found.rows:
        return None
    lines = [rows for _, rows in found.by_line()]
    notes = _Notes(found.rows)
    if any(row.verdict == BASELINE for row in found.rows) and all(len(rows) == TWO for rows in lines):
        columns, rows = _side_by_side(found, lines, notes)
    else:
        columns, rows = _one_below_another(found, lines, notes)
    same_n = f" n: {found.same_n}." if found.same_n else ""
    return Table(NAME, f"{found.caption}.{same_n}{notes.legend}", columns, rows)


def every_pair(found: AnswerTable | None) -> Table | None:
    """Every pair of levels; None below three levels."""
    if found is None or not found.rows:
        return None
    notes = _Notes(found.rows)
    columns, rows = _one_below_another(found, [rows for _, rows in found.by_line()], notes)
    title = "Every pair of levels"
    return Table("every-pair", f"{title}. {found.caption}.{notes.legend}", columns, rows, title)


def is_of_line(sentence: str, found: AnswerTable | None) -> bool:
    """Whether a sentence of the answer says what a row of the table says: it quotes one of its texts."""
    if found is None:
        return False
    texts = {text for row in found.rows for text in (row.value_text, row.change_text, row.sentence) if text}
    return any(text in sentence for text in texts)


class _Notes:
    """What explains the verdicts: once below the table if it holds for all, else by letters."""

    def __init__(self, rows: Sequence[AnswerRow]) -> None:
        compared = [row for row in rows if row.verdict != BASELINE]
        distinct = list(dict.fromkeys(row.why for row in compared if row.why))
        self._letters: dict[str, str] = {}
        self.legend = ""
        if len(distinct) == 1 and all(row.why for row in compared):
            self.legend = f" {_sentence(distinct[0])}"
        elif distinct:
            self._letters = {why: chr(ord("a") + index % 26) for index, why in enumerate(distinct)}
            self.legend = "".join(f" ({letter}) {_sentence(why)}" for why, letter in self._letters.items())

    def verdict(self, row: AnswerRow) -> Cell:
        """The verdict with the letter of its note."""
        letter = self._letters.get(row.why)
        text = f"{row.verdict_text} ({letter})" if letter else row.verdict_text
        return Cell(text, tone="strong" if row.verdict in DECIDED else "quiet")


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _value(text: str, value: float | None) -> Cell:
    return Cell(text or NONE, "" if value is None else repr(value), "value")


def _change(row: AnswerRow) -> Cell:
    return Cell(row.change_text or NONE, "" if row.ratio is None else repr(row.ratio.value))


def _side_by_side(
    found: AnswerTable, lines: Sequence[Sequence[AnswerRow]], notes: _Notes
) -> tuple[tuple[Column, ...], tuple[tuple[Cell, ...], ...]]:
    first = lines[0]
    named = any(rows[0].line for rows in lines)
    columns = (
        *((Column("", numeric=False),) if named else ()),
        *(Column(row.level_text, term="value of a level") for row in first),
        Column(f"{first[1].level_text} against {first[0].level_text}", term="change from the baseline"),
        Column("verdict", numeric=False, term="verdict of a level"),
        *(() if found.same_n else (Column("n", numeric=False, term="n of a level"),)),
    )
    rows = tuple(
        (
            *((Cell(base.line),) if named else ()),
            _value(base.value_text, base.value),
            _value(level.value_text, level.value),
            _change(level),
            notes.verdict(level),
            *(() if found.same_n else (Cell(_both(base, level)),)),
        )
        for base, level in lines
    )
    return columns, rows


def _both(base: AnswerRow, level: AnswerRow) -> str:
    return base.n_text if base.n_text == level.n_text else f"{base.n_text}; {level.n_text}"


def _compared(row: AnswerRow) -> str:
    """Both sides; without the factor's name where the line has it."""
    if row.line == row.factor:
        return f"{row.baseline} → {row.level}"
    return f"{row.baseline_text} → {row.level_text}"


def _one_below_another(
    found: AnswerTable, lines: Sequence[Sequence[AnswerRow]], notes: _Notes
) -> tuple[tuple[Column, ...], tuple[tuple[Cell, ...], ...]]:
    named = any(rows[0].line for rows in lines)
    valued = any(row.value_text for row in found.rows)
    pairs = found.every_pair or not valued
    baselines = {row.baseline_text for row in found.rows}
    against = f"against {baselines.pop()}" if len(baselines) == 1 and not pairs else "change"
    columns = (
        *((Column("", numeric=False),) if named else ()),
        Column("compared" if pairs else found.factor, term="comparison" if pairs else "factor", numeric=False),
        *((Column("value", term="value of a level"),) if valued else ()),
        Column(against, term="change from the baseline"),
        Column("verdict", numeric=False, term="verdict of a level"),
        *(() if found.same_n else (Column("n", numeric=False, term="n of a level"),)),
    )
    rows = tuple(
        (
            *((Cell(row.line if index == 0 else ""),) if named else ()),
            Cell(_compared(row) if pairs else row.level_text),
            *((_value(row.value_text, row.value),) if valued else ()),
            _change(row),
            notes.verdict(row),
            *(() if found.same_n else (Cell(row.n_text),)),
        )
        for line in lines
        for index, row in enumerate(line)
    )
    return columns, rows
