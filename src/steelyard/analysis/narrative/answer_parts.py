"""Parts of an answer around its table, as page, terminal, `serve` and notebooks show them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from steelyard.analysis.narrative.answer_display import SHOWN_CAVEATS, repeats_a_caveat
from steelyard.analysis.narrative.answer_table import AnswerTable
from steelyard.analysis.results import Results
from steelyard.analysis.statistics import carried
from steelyard.analysis.statistics.carried import Carried


@dataclass(frozen=True)
class AnswerParts:
    """Sentences of an answer by their place; none begins as a caveat that is shown with it."""

    lead: tuple[str, ...]
    """Before the table: of searches what each treatment carries; every sentence if there is no table."""
    beside: tuple[str, ...] = ()
    """After the table."""
    in_words: tuple[str, ...] = ()
    """What the table's rows say, in words."""


def parts_of(results: Results) -> AnswerParts:
    """The parts of a study's answer."""
    table, shown = results.answer_table, results.caveats[:SHOWN_CAVEATS]
    sentences = tuple(one for one in results.answer if not repeats_a_caveat(one, shown))
    if table is None or not table.rows:
        return AnswerParts(sentences)
    rates = carried.headline(results.main(Carried))
    lead = tuple(one for one in sentences if one in rates)
    in_words = tuple(one for one in sentences if one not in lead and _is_of_row(one, table))
    return AnswerParts(lead, tuple(one for one in sentences if one not in (*lead, *in_words)), in_words)


def _is_of_row(sentence: str, table: AnswerTable) -> bool:
    """Whether a sentence says what a row of the table says: it quotes one of its texts."""
    texts = {text for row in table.rows for text in (row.value_text, row.change_text, row.sentence) if text}
    return any(re.search(rf"(?<![\d,.]){re.escape(text)}", sentence) for text in texts)
