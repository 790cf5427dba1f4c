"""Rows of the answer: every level of the main factor against its baseline, as the answer's sentences quote them."""

from __future__ import annotations

from steelyard.analysis.narrative.answer_table import AnswerRow, answer_table, factor_asked, of_main_effects
from steelyard.analysis.statistic import Context, Section, Statistic
from steelyard.analysis.statistics.comparison import Comparison
from steelyard.analysis.statistics.main_effect import MainEffect


def rows(context: Context) -> tuple[AnswerRow, ...]:
    """The rows of the answer's table; of a fractional design one per factor; none without a factor."""
    effects = context.of(MainEffect)
    if effects:
        return of_main_effects(effects, context.study).rows
    compared = context.of(Comparison)
    factor = factor_asked(context.study, context.size, compared, context.frame.factors)
    if factor is None:
        return ()
    return answer_table(context.frame, context.study, factor, compared, context.floors).rows


STATISTIC = Statistic(
    name="answer",
    row=AnswerRow,
    title="The answer: every level against its baseline, by {response}",
    section=Section.ANSWER,
    compute=rows,
    order=5,
)
