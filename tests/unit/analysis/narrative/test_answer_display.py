"""Display rules of the answer that page and terminal share."""

from __future__ import annotations

import pytest

from steelyard.analysis.narrative.answer_display import Notes, repeats_a_caveat
from steelyard.analysis.narrative.answer_table import AnswerRow

CLOSING = "The nodes share one processor, so this says nothing about scaling out on separate machines."


@pytest.mark.parametrize(
    "caveat",
    [
        "The nodes share one processor: adding a node adds no hardware.",
        "The nodes share one processor, memory and disk: adding a node adds no hardware.",
        "The nodes share one processor.",
    ],
)
def test_a_sentence_that_begins_as_a_caveat_repeats_it(caveat: str) -> None:
    assert repeats_a_caveat(CLOSING, ["All else.", caveat])
    assert not repeats_a_caveat(CLOSING, ["The nodes share one disk.", "All else."])


def test_thirty_reasons_have_thirty_letters() -> None:
    rows = [
        AnswerRow(
            line="", factor="threads", level=level, level_text=f"{level} threads", baseline=1, baseline_text="1 thread",
            verdict="undecided", verdict_text="undecided", why=f"about {level} more blocks would decide",
        )
        for level in range(2, 32)
    ]  # fmt: skip
    notes = Notes(rows)
    assert len({notes.verdict(row) for row in rows}) == 30
    assert notes.verdict(rows[26]) == "undecided (aa)"
    assert notes.sentences[26] == "(aa) About 28 more blocks would decide."
