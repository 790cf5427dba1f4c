"""Curves of fitted scalability laws: the value at each size, with a pointwise interval."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated

from steelyard.analysis.inference.law_fit import Law
from steelyard.analysis.row import IN_UNIT, Column, Levels, NumberInUnit, Row
from steelyard.analysis.statistic import Section, Statistic
from steelyard.analysis.statistics.law import LawFit


class LawValue(Row):
    """A fitted law at one size."""

    law: Law
    """Linear, Amdahl's, or the universal scalability law (usl), or a broken line (broken)."""
    others: Levels
    unit: str
    """Unit of value, low and high."""
    size: Annotated[float, Column(unit="nodes")]
    """Size."""
    value: NumberInUnit
    """Fitted value."""
    low: Annotated[float | None, Column(unit=IN_UNIT)] = None
    """Low end of the pointwise interval of the fitted value."""
    high: Annotated[float | None, Column(unit=IN_UNIT)] = None
    """High end of the pointwise interval of the fitted value."""


def values(fits: Sequence[LawFit]) -> Iterator[LawValue]:
    """The curve of each law, point by point."""
    for fit in fits:
        for point in fit.curve:
            yield LawValue(
                law=fit.law, others=fit.others, unit=fit.unit, size=point.level, value=point.value, low=point.low,
                high=point.high,
            )  # fmt: skip


STATISTIC = Statistic(
    name="law_curve",
    row=LawValue,
    title="Fitted scalability laws as curves",
    section=Section.SIZE,
    least_sizes=3,
    compute=lambda context: values(context.of(LawFit)),
    order=40,
    without_size=True,
)
