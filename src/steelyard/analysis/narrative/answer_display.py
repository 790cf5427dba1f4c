"""Display rules of the answer that page and terminal share: what a row compares, notes by letters, repeated caveats."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from steelyard.analysis.comparisons.forecast import ONE_LOOK_SPENT, WITH_POWER
from steelyard.analysis.narrative.answer_table import NOT_SHOWN, AnswerRow, AnswerTable
from steelyard.analysis.wording import capital
from steelyard.format import note_letter

BASELINE: Final = "baseline"
SHOWN_CAVEATS: Final = 3
"""Caveats shown with the answer on the page; the others are folded."""
SAID_ONCE: Final = {
    f"{NOT_SHOWN}; ": NOT_SHOWN,
    f", {WITH_POWER}": f"such blocks (of all rows) would decide {WITH_POWER}, uncorrected, if changes are as measured",
    f"; {ONE_LOOK_SPENT}": ONE_LOOK_SPENT,
}  # fmt: skip
"""Parts of notes on undecided rows, and how they are said for all of them."""
WORDS_ALIKE: Final = 5
"""A sentence that begins with this many words of a caveat repeats it."""


def names_both_sides(table: AnswerTable) -> bool:
    """Whether each row names both of its levels: where every pair is compared, or no level has its own row."""
    return table.every_pair or not any(row.value_text for row in table.rows)


def both_sides(row: AnswerRow) -> str:
    """`1 node → 3 nodes`: baseline and level of a row, without the factor's name where the line has it."""
    if row.line == row.factor:
        return f"{row.baseline} → {row.level}"
    return f"{row.baseline_text} → {row.level_text}"


class Notes:
    """Explanations of the verdicts of a table: one note for all of it if it holds for all, otherwise by letters; what
    several of them say is said once."""

    def __init__(self, rows: Sequence[AnswerRow]) -> None:
        compared = [row for row in rows if row.verdict != BASELINE]
        distinct = list(dict.fromkeys(row.why for row in compared if row.why))
        self._letters: dict[str, str] = {}
        self.sentences: tuple[str, ...] = ()
        """The notes, to show below the table: `(a) Within the study's margin of 5%.`, or one without a letter."""
        if len(distinct) == 1 and all(row.why for row in compared):
            self.sentences = (_sentence(distinct[0]),)
        else:
            self._letters = {why: note_letter(place) for place, why in enumerate(distinct)}
            once = [part for part in SAID_ONCE if sum(part in why for why in distinct) > 1]
            self.sentences = tuple(f"({letter}) {_sentence(why, once)}" for why, letter in self._letters.items())
            if once:
                self.sentences += (_sentence(f"undecided: {'; '.join(SAID_ONCE[part] for part in once)}"),)

    def verdict(self, row: AnswerRow) -> str:
        """The verdict of a row with the letter of its note: `undecided (b)`."""
        letter = self._letters.get(row.why) if row.verdict != BASELINE else None
        return f"{row.verdict_text} ({letter})" if letter else row.verdict_text


def repeats_a_caveat(sentence: str, caveats: Sequence[str]) -> bool:
    """Whether one of the caveats shown with the answer begins as this sentence does, and so says the same."""
    return _beginning(sentence) in map(_beginning, caveats)


def _beginning(sentence: str) -> list[str]:
    return [word.strip(",.:;") for word in sentence.split()[:WORDS_ALIKE]]


def _sentence(text: str, without: Sequence[str] = ()) -> str:
    for part in without:
        text = text.replace(part, "")
    return f"{capital(text)}."
