"""Results of the analysis: the question, the answer in words, and the rows of every statistic.

The report and the command line read these. Every uncertain number is an `Estimate`; every table has its n and its
exclusions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import Field, SerializeAsAny, field_validator

from steelyard.analysis import statistics
from steelyard.analysis.narrative.answer_table import AnswerTable
from steelyard.analysis.row import MeasuredTreatment, Row
from steelyard.judging.stopping import Decision
from steelyard.model.look import ONE_LOOK, Look
from steelyard.model.named_level import Level
from steelyard.model.value import Value

AnyRow = TypeVar("AnyRow", bound=Row)
Measured = TypeVar("Measured", bound=MeasuredTreatment)


class Results(Value):
    """Everything that the report and the command line show."""

    study: str
    title: str
    question: str
    response: str
    """The main response."""
    response_label: str
    unit: str
    confidence: float
    factors: dict[str, tuple[Level, ...]]
    numbers: dict[str, tuple[float, ...]] = Field(default_factory=dict)
    """Named factor to the numbers of its levels, in their order."""
    number_units: dict[str, str] = Field(default_factory=dict)
    """Named factor to the unit of these numbers; may be empty."""
    hard: tuple[str, ...]
    size_factor: str | None
    """The numeric factor over which regressions, medians and laws run: nodes, or the first numeric hard factor."""
    factor_asked: str | None = None
    """The factor whose levels the answer compares; None without one."""
    trials: int
    """Attempts in the store."""
    used: int
    starts: int
    shares: tuple[str, ...]
    own_limits: bool = False
    """Whether each node had a processor limit of its own in every trial."""
    look: Look = ONE_LOOK
    """Which look at the study this is; its sentence precedes the answer."""
    answer: tuple[str, ...] = ()
    """The answer in words: two to five sentences."""
    answer_table: AnswerTable | None = None
    """Every level of the main factor against its baseline; None if nothing was compared."""
    answer_pairs: AnswerTable | None = None
    """Every pair of levels; None below three levels."""
    caveats: tuple[str, ...] = ()
    """Limits of the answer, with reasons."""
    stopping: Decision | None = None
    """Decision of the stopping rule after the last whole block; None without a rule or a plan."""
    further: tuple[Results, ...] = ()
    """The same for each further response that the study names: its answer, and the rows of its statistics only."""
    rows: dict[str, tuple[SerializeAsAny[Row], ...]] = Field(default_factory=dict)
    """Name of a statistic to its rows; `of` gives them by their type."""

    @field_validator("rows", mode="before")
    @classmethod
    def _of_their_types(cls, rows: Mapping[str, Any]) -> dict[str, tuple[Any, ...]]:
        """Convert rows read from JSON to the row type of their statistic."""
        types = {statistic.name: statistic.row for statistic in statistics.every()}
        return {
            name: tuple(row if isinstance(row, Row) else types[name].model_validate(row) for row in of)
            for name, of in rows.items()
        }

    def of(self, row: type[AnyRow]) -> tuple[AnyRow, ...]:
        """The rows of a statistic by row type. Raises KeyError if no statistic has this row type."""
        rows = self.rows.get(statistics.by_row()[row].name, ())
        return tuple(one for one in rows if isinstance(one, row))

    def main(self, row: type[Measured]) -> tuple[Measured, ...]:
        """Rows of the main response."""
        return tuple(one for one in self.of(row) if one.response == self.response)

    def others(self, row: type[Measured]) -> tuple[Measured, ...]:
        """Rows of every other response."""
        return tuple(one for one in self.of(row) if one.response != self.response)

    def every(self, row: type[AnyRow]) -> tuple[AnyRow, ...]:
        """The rows of a statistic by every response that the study names."""
        rows = list(self.of(row))
        known = {getattr(one, "response", "") for one in rows}
        for results in self.further:
            rows += () if results.response in known else (
                one for one in results.of(row) if getattr(one, "response", "") == results.response
            )  # fmt: skip
        return tuple(rows)
