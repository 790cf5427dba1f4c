"""Display rules of the answer that page, files and terminal share: what a row compares, notes by letters, repeated
caveats."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from steelyard.analysis.narrative.answer_table import AnswerRow, AnswerTable
from steelyard.analysis.treatments import factor_label
from steelyard.analysis.wording import capital
from steelyard.format import note_letter

BASELINE: Final = "baseline"
SHOWN_CAVEATS: Final = 3
"""Caveats shown with the answer on the page; the others are folded."""
WORDS_ALIKE: Final = 5
"""A sentence that begins with this many words of a caveat repeats it."""
NAMED: Final = {"not after correction": "would not survive", "within noise": "within the "}
"""Words of verdicts, and how the note begins that explains them; one note for all rows, whatever its numbers are."""
NUMBER: Final = re.compile(r"(\d[\d.,]*\d|\d)")


def names_both_sides(table: AnswerTable) -> bool:
    """Whether each row names both of its levels: where every pair is compared, or no level has its own row."""
    return table.every_pair or not any(row.value_text for row in table.rows)


def both_sides(row: AnswerRow) -> str:
    """`1 node → 3 nodes`: baseline and level of a row, without the factor's name where the line or the head has it."""
    if row.line == row.factor:
        return f"{row.baseline} → {row.level}"
    return f"{level_alone(row, baseline=True)} → {level_alone(row)}"


def factor_of(table: AnswerTable) -> str:
    """The factor as heads name it: `compression`."""
    return factor_label(table.factor, table.rows[0].others if table.rows else ())


def level_alone(row: AnswerRow, *, baseline: bool = False) -> str:
    """A level below a head that names its factor: `none`, `0.1`, `3 nodes`."""
    text = row.baseline_text if baseline else row.level_text
    return text.removeprefix(f"{factor_label(row.factor, row.others)} ")


def level_in_head(row: AnswerRow) -> str:
    """A level as the head of a column, below a caption that names the factor: `docker`, `1 node`, `contention 0.1`."""
    return level_alone(row) if isinstance(row.level, str) else row.level_text


def against(row: AnswerRow) -> str:
    """The head of a row's change, next to those of both levels: `docker against local`, `3 nodes against 1 node`."""
    return f"{level_alone(row)} against {level_alone(row, baseline=True)}"


class Notes:
    """Explanations of the verdicts of a table: one note for all of it if it holds for all, otherwise by letters, or by
    the words that verdicts have already. What would decide an undecided row is in its own column."""

    def __init__(self, rows: Sequence[AnswerRow]) -> None:
        compared = [row for row in rows if row.verdict != BASELINE]
        alike: dict[str, list[AnswerRow]] = {}
        for row in compared:
            if row.why:
                alike.setdefault(_kind(row), []).append(row)
        notes = {kind: _merged([_note(row) for row in of]) for kind, of in alike.items()}
        self._letters: dict[str, str] = {}
        self.sentences: tuple[str, ...] = ()
        """The notes, to show below the table: `(a) Within the study's margin of 5%.`, or one without a letter."""
        lettered = [kind for kind, of in alike.items() if not _named(of[0])]
        if len(notes) > 1 or not all(row.why for row in compared):
            self._letters = {kind: note_letter(place) for place, kind in enumerate(lettered)}
        for kind, note in notes.items():
            head = f"({self._letters[kind]}) " if kind in self._letters else ""
            self.sentences += (f"{head}{capital(note)}.",)

    def verdict(self, row: AnswerRow) -> str:
        """The verdict of a row with the letter of its note: `undecided (b)`."""
        letter = self._letters.get(_kind(row)) if row.verdict != BASELINE and row.why else None
        return f"{row.verdict_text} ({letter})" if letter else row.verdict_text


def _named(row: AnswerRow) -> str:
    """The words of a verdict that its note explains; empty if a letter must."""
    return next((word for word, begin in NAMED.items() if word in row.verdict_text and row.why.startswith(begin)), "")


def _note(row: AnswerRow) -> str:
    """A row's note; p-values are with every comparison."""
    named = _named(row)
    return f"{named}: {row.why.partition(' (p ')[0].removeprefix('would not survive ')}" if named else row.why


def _kind(row: AnswerRow) -> str:
    """Notes of one kind are merged."""
    note = _note(row)
    return NUMBER.sub("#", note) if _named(row) else note


def _merged(notes: Sequence[str]) -> str:
    """Notes that differ in numbers only, as one: `within the 2.4 to 3.1% that`."""
    parts = zip(*map(NUMBER.split, notes), strict=True)
    return "".join(_range(of) if place % 2 else of[0] for place, of in enumerate(parts))


def _range(numbers: Sequence[str]) -> str:
    ordered = sorted(dict.fromkeys(numbers), key=lambda text: float(text.replace(",", "")))
    return " to ".join(dict.fromkeys((ordered[0], ordered[-1])))


def repeats_a_caveat(sentence: str, caveats: Sequence[str]) -> bool:
    """Whether one of the caveats shown with the answer begins as this sentence does, and so says the same."""
    return _beginning(sentence) in map(_beginning, caveats)


def _beginning(sentence: str) -> list[str]:
    return [word.strip(",.:;") for word in sentence.split()[:WORDS_ALIKE]]
