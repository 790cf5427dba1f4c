"""Display rules of the answer that page and terminal share."""

from __future__ import annotations

import pytest

from steelyard.analysis.narrative.answer import _outcome
from steelyard.analysis.narrative.answer_display import Notes, repeats_a_caveat
from steelyard.analysis.narrative.answer_table import AnswerRow, AnswerVerdict

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


def row(level: float, why: str, verdict: AnswerVerdict = "undecided", text: str = "") -> AnswerRow:
    return AnswerRow(
        line="", factor="threads", level=level, level_text=f"{level} threads", baseline=1, baseline_text="1 thread",
        verdict=verdict, verdict_text=text or verdict, why=why,
    )  # fmt: skip


def test_what_would_decide_is_no_note() -> None:
    rows = [row(2, "").model_copy(update={"to_decide": "+12 blocks, 2 h"}), row(8, "within the margin")]
    notes = Notes(rows)
    assert notes.sentences == ("(a) Within the margin.",)
    assert [notes.verdict(one) for one in rows] == ["undecided", "undecided (a)"]


def test_notes_that_a_verdict_names_are_one_for_all_rows_without_letters() -> None:
    noise = "within the {}% that 95% of comparisons of identical systems stay below"
    holm = "would not survive Holm's correction over 33 comparisons (p {}, corrected 0.2)"
    rows = [
        *(row(n, noise.format(n), text="undecided (within noise)") for n in (12, 2, 8)),
        *(row(n, holm.format(n), "slower", "slower, not after correction") for n in (0.01, 0.02)),
        row(16, "no interval: too few starts", "no verdict"),
    ]
    notes = Notes(rows)
    assert notes.sentences == (
        "Within noise: within the 2 to 12% that 95% of comparisons of identical systems stay below.",
        "Not after correction: Holm's correction over 33 comparisons.",
        "(a) No interval: too few starts.",
    )
    assert [notes.verdict(one) for one in rows[2:5:2]] == ["undecided (within noise)", "slower, not after correction"]
    assert notes.verdict(rows[-1]) == "no verdict (a)"


def test_a_verdict_that_does_not_survive_is_counted_as_such() -> None:
    assert _outcome(row(2, "", "equivalent", "equivalent, not after correction")) == "equivalent, not after correction"
    assert _outcome(row(2, "", "undecided", "undecided (within noise)")) == "undecided"


def test_thirty_reasons_have_thirty_letters() -> None:
    rows = [row(level, f"about {level} more blocks would decide") for level in range(2, 32)]
    notes = Notes(rows)
    assert len({notes.verdict(row) for row in rows}) == 30
    assert notes.verdict(rows[26]) == "undecided (aa)"
    assert notes.sentences[26] == "(aa) About 28 more blocks would decide."
