"""The look at the study: whether it is finished, which look this is, and at which confidence."""

from __future__ import annotations

from typing import Annotated

from steelyard.analysis.row import NO_UNIT, Column, Row
from steelyard.analysis.statistic import Section, Statistic
from steelyard.model.look import Look


class LookRow(Row):
    """Which look at the study its trials give."""

    sentence: str
    """First thing that a reader must know: `unfinished: 3 of 4 blocks; no verdict is final`; empty at the only look of
    a finished study."""
    final: bool
    """Whether verdicts are final: the plan is finished, and its looks are not spent."""
    number: int
    """Which look it is, from 1: a further one is after blocks were added to a finished plan."""
    confidence: Annotated[float, Column(unit=NO_UNIT)]
    """Confidence of the intervals at this look."""


def row_of(look: Look) -> LookRow:
    """A look as a row: every `--json` has this form."""
    return LookRow(sentence=look.sentence, final=look.final, number=look.number, confidence=look.confidence)


STATISTIC = Statistic(
    name="look",
    row=LookRow,
    title="The look at the study",
    section=Section.ANSWER,
    compute=lambda context: (row_of(context.frame.look),),
    order=1,
)
"""Its sentence precedes the answer."""
