"""The look at the study: whether it is finished, which look this is, and at which confidence."""

from __future__ import annotations

from typing import Annotated

from steelyard.analysis.row import NO_UNIT, Column, Row
from steelyard.analysis.statistic import Context, Section, Statistic


class LookRow(Row):
    """Which look at the study its trials give."""

    sentence: str
    """What a reader must know first: `unfinished: 3 of 4 blocks; no verdict is final`; empty at the only look of a
    finished study."""
    final: bool
    """Whether verdicts are final: the plan is finished, and its looks are not spent."""
    number: int
    """Which look it is, from 1: a further one is after blocks were added to a finished plan."""
    several: bool
    """Whether the study has said beforehand that it may go on."""
    confidence: Annotated[float, Column(unit=NO_UNIT)]
    """Confidence of the intervals at this look."""
    blocks_done: int
    """Blocks that are whole."""
    blocks_planned: int
    """Blocks of the plan; 0 where it is not known."""
    trials_missing: int
    """Trials that the plan still needs."""


def look(context: Context) -> tuple[LookRow]:
    """The one row of the study."""
    this = context.frame.look
    return (
        LookRow(
            sentence=this.sentence, final=this.final, number=this.number, several=this.several,
            confidence=this.confidence, blocks_done=this.done, blocks_planned=this.planned,
            trials_missing=this.missing,
        ),
    )  # fmt: skip


STATISTIC = Statistic(
    name="look",
    row=LookRow,
    title="The look at the study",
    section=Section.ANSWER,
    compute=look,
    order=1,
    own_form=True,
)
"""Its sentence stands before the answer."""
