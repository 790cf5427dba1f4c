"""Percentiles of response time over all operations of a cell: the histograms of its used trials added up.

A single trial often has too few operations for a p99; a cell has more. Trials and starts are not distinguished, so
there is no interval: it describes the cell and is compared with nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from steelyard.analysis.row import Column, MeasuredTreatment
from steelyard.analysis.statistic import Section, Statistic
from steelyard.format import count


class PooledPercentile(MeasuredTreatment):
    """One percentile of response time over all operations of the used trials of a treatment."""

    trials: int
    """Used trials whose histograms were added up."""
    own: int
    """Those of them that have enough operations for a percentile of their own."""
    starts: int
    """Starts that these trials came from."""
    operations: int
    """Operations answered, over these trials."""
    needed: int
    """Operations that the percentile needs to be given."""
    pooled: Annotated[float | None, Column(unit="in the unit of column `unit`")] = None
    """Percentile of the histograms of these trials added up, without an interval; none of too few operations."""


def sentences(rows: Sequence[PooledPercentile], response: str) -> tuple[str, ...]:
    """The p99 of a cell, where its trials have none of their own."""
    del response
    mine = [one for one in rows if one.response == "response_ms_p99" and one.own < one.trials]
    given = [one for one in mine if one.pooled is not None]
    if not given:
        return ()
    operations = sorted({one.operations for one in given})
    ends = " to ".join(f"{end:,}" for end in dict.fromkeys((operations[0], operations[-1])))
    return (
        f"Where trials have no p99 of their own, the p99 of a cell is that of all operations of its used trials "
        f"together ({ends} operations in {count(len(given), 'cell')}); it has no interval.",
    )


STATISTIC = Statistic(
    name="pooled_percentile",
    row=PooledPercentile,
    title="Percentiles of response time over all operations of a cell, the histograms of its used trials added up",
    section=Section.RESPONSE_TIME,
    compute=lambda context: (row for row in context.within.pooled if isinstance(row, PooledPercentile)),
    sentences=sentences,
    order=5,
    sentence_order=91,
)
