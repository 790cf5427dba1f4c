"""Rates that treatments carry within the limits of their searches, each with the sentence that says so."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Final

from steelyard.analysis.cells import cells_of
from steelyard.analysis.narrative.carried import carried
from steelyard.analysis.row import HIDDEN, InUnitOrNone, MeasuredTreatment
from steelyard.analysis.statistic import Context, Section, Statistic
from steelyard.format import count
from steelyard.model.responses import unit_of
from steelyard.model.responses.capacity import CAPACITY

MOST_SENTENCES: Final = 6
"""With more treatments than this, the answer leaves the others to the table."""


class Carried(MeasuredTreatment):
    """The rate of one treatment, over its searches."""

    n: int
    """Used trials: their searches found the rate."""
    starts: int
    """Starts that they came from."""
    value: InUnitOrNone = None
    """Geometric mean of start means, with its interval over starts; none if no search found the rate."""
    sentence: Annotated[str, HIDDEN] = ""
    """The rate with nodes, limits and interval; where no search found it, the bounds."""


def rates(context: Context) -> Iterator[Carried]:
    """Every treatment that searched, in the order of the levels."""
    for cell in cells_of(context.frame, CAPACITY, context.confidence):
        attempts = set(context.frame.where(cell.treatment).select("trial_id", "attempt").rows())
        records = [record for record in context.records if record.key in attempts]
        sentence = carried(cell.treatment, records, cell.value, cell.n, cell.starts)
        if sentence:
            yield Carried(
                treatment=cell.treatment, response=CAPACITY, unit=unit_of(CAPACITY), n=cell.n, starts=cell.starts,
                value=cell.value, sentence=sentence,
            )  # fmt: skip


def headline(rows: Sequence[Carried]) -> list[str]:
    """The sentences of the first treatments, and how many more the table has."""
    more = len(rows) - MOST_SENTENCES
    rest = [f"The table has {count(more, 'more treatment')}."] if more > 0 else []
    return [*(row.sentence for row in rows[:MOST_SENTENCES]), *rest]


STATISTIC = Statistic(
    name="carried",
    row=Carried,
    title="Rates within the limits of the searches",
    section=Section.ANSWER,
    compute=rates,
    order=4,
)
