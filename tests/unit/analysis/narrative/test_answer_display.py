"""Display rules of the answer that page and terminal share."""

from __future__ import annotations

import pytest

from steelyard.analysis.comparisons.forecast import ONE_LOOK_SPENT, WITH_POWER
from steelyard.analysis.narrative.answer import _outcome
from steelyard.analysis.narrative.answer_display import Notes, repeats_a_caveat
from steelyard.analysis.narrative.answer_table import NOT_SHOWN, AnswerRow, AnswerVerdict

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


def row(level: int, why: str, verdict: AnswerVerdict = "undecided", text: str = "") -> AnswerRow:
    return AnswerRow(
        line="", factor="threads", level=level, level_text=f"{level} threads", baseline=1, baseline_text="1 thread",
        verdict=verdict, verdict_text=text or verdict, why=why,
    )  # fmt: skip


def test_what_several_notes_say_is_said_once() -> None:
    """With one note on an undecided row all of it stays there."""
    whys = [f"{NOT_SHOWN}; about {n} blocks would decide, {WITH_POWER}; {ONE_LOOK_SPENT}" for n in (2, 4)]
    rows = [*(row(level, why) for level, why in zip((2, 4), whys, strict=True)), row(8, "within the margin")]
    assert Notes(rows).sentences == (
        "(a) About 2 blocks would decide.", "(b) About 4 blocks would decide.", "(c) Within the margin.",
        "Undecided: neither a change nor its absence is shown; such blocks (of all rows) would "
        "decide with a chance of 80%, uncorrected, if changes are as measured; this study is looked at once: "
        "with blocks added to it no verdict would be final.",
    )  # fmt: skip
    assert Notes(rows[1:]).sentences[0] == f"(a) {whys[1][0].upper()}{whys[1][1:]}."


def test_a_verdict_that_does_not_survive_is_counted_as_such() -> None:
    assert _outcome(row(2, "", "equivalent", "equivalent, not after correction")) == "equivalent, not after correction"
    assert _outcome(row(2, "", "undecided", "undecided (within noise)")) == "undecided"


def test_thirty_reasons_have_thirty_letters() -> None:
    rows = [row(level, f"about {level} more blocks would decide") for level in range(2, 32)]
    notes = Notes(rows)
    assert len({notes.verdict(row) for row in rows}) == 30
    assert notes.verdict(rows[26]) == "undecided (aa)"
    assert notes.sentences[26] == "(aa) About 28 more blocks would decide."
