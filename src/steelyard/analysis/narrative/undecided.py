"""Undecided rows of an answer in words: what their intervals bound, and what would decide them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from steelyard.analysis.comparisons.forecast import BEYOND, USUAL_MARGIN_PERCENT
from steelyard.analysis.comparisons.level_ratios import judge
from steelyard.analysis.narrative.answer_table import AnswerRow, AnswerTable
from steelyard.analysis.wording import bound_text, capital
from steelyard.format import count
from steelyard.judging.t_interval import POWER
from steelyard.model.estimate import Estimate

TO_DECIDE: Final = "to decide"
WITHIN: Final = f"within \N{PLUS-MINUS SIGN}{USUAL_MARGIN_PERCENT:g}%"
"""Head of the column of the cheaper question."""
SIGN: Final = "\N{PLUS-MINUS SIGN}"
BLOCKS: Final = {True: "further blocks (+)", False: "blocks of a new study"}
DIRECTIONS: Final = {
    upper: Estimate(value=value, low=value, high=value, n=1, unit="", method="direction")
    for upper, value in ((True, 2.0), (False, 0.5))
}
"""A ratio of each direction, to name it."""


def explanation(rows: Sequence[AnswerRow]) -> str:
    """What the columns `to decide` and `within` hold, in a sentence; empty if nothing would decide a row."""
    texts = [text for row in rows for text in (row.to_decide, row.cheaper) if text]
    if not texts:
        return ""
    further = {"+" in text for text in texts if not text.startswith(BEYOND)}
    blocks = " or ".join(words for known, words in BLOCKS.items() if known in further) or "blocks"
    alone = ", uncorrected" if sum(row.ratio is not None for row in rows) > 1 else ""
    within = f" (with {SIGN}: that it lies within)" if any(SIGN in text for text in texts) else ""
    smaller = f"; {WITHIN}: to show that it is smaller" if any(row.cheaper for row in rows) else ""
    what = f"show the change as measured{within} with a chance of {POWER:.0%}{alone}"
    return f"{capital(TO_DECIDE)}: {blocks} that would {what}{smaller}."


def in_words(table: AnswerTable | None) -> str:
    """The undecided rows in a sentence or two, of several rows the bounds only; empty if none is undecided."""
    rows = [row for row in table.rows if row.to_decide] if table is not None else []
    if table is None or not rows:
        return ""
    levels = len({row.level for row in table.rows if row.ratio is not None})
    names = [", ".join(filter(None, [row.line, row.level_text if levels > 1 or not row.line else ""])) for row in rows]
    sides = (_bound(table.response, rows, names, upper=upper) for upper in (True, False))
    bounds = "; ".join(filter(None, sides)) or "the interval bounds it neither way within tenfold"
    if len(rows) > 1:
        return f"Undecided in {count(len(rows), 'row')}: {bounds}."
    margin, known, blocks = rows[0].to_decide.rpartition(": ")
    costs = f"To show {f'that it lies within {margin}' if known else 'the change as measured'}: {_spelt(blocks)}"
    if rows[0].cheaper:
        costs += f"; to show that it changes less than {USUAL_MARGIN_PERCENT:g}%: {_spelt(rows[0].cheaper)}"
    return f"{capital(bounds)}. {costs}, {'each ' if rows[0].cheaper else ''}with a chance of {POWER:.0%}."


def _spelt(blocks: str) -> str:
    """`246 more blocks, 9.7 h`, `24 blocks of a new study, 57 min`."""
    if blocks.startswith(BEYOND):
        return blocks
    words, _, lasts = blocks.removeprefix("+").partition(", ")
    kind = words.replace(" ", " more ", 1) if blocks.startswith("+") else f"{words} of a new study"
    return f"{kind}, {lasts}" if lasts else kind


def _bound(response: str, rows: Sequence[AnswerRow], names: Sequence[str], *, upper: bool) -> str:
    """`if slower, by less than 44%`; of several rows the least and the greatest bound, with their rows."""
    known = []
    for row, name in zip(rows, names, strict=True):
        if row.ratio is not None and (text := bound_text(row.ratio, response, upper=upper)):
            end = row.ratio.high if upper else row.ratio.low
            known.append((abs(math.log(end or 1.0)), text, name))
    if not known:
        return ""
    word = judge(response, DIRECTIONS[upper])
    if len(rows) == 1:
        return f"if {word}, {known[0][1]}"
    (_, least, first), (_, greatest, last) = min(known), max(known)
    several = f" to {greatest.removeprefix('by ')} ({last})" if last != first else ""
    lacks = f", without a bound in {len(rows) - len(known)}" if len(known) < len(rows) else ""
    return f"if {word}, {least} ({first}){several}{lacks}"
