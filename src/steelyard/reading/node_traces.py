"""Node samples of one trial per treatment, for the report's figures of CPU, memory, disk and network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from steelyard.heavy import pl
from steelyard.model.trial import Attempt, CellKey, TrialRecord


@dataclass(frozen=True)
class Trace:
    """The samples of one trial: columns t_s (seconds since the epoch), node, metric, value."""

    record: TrialRecord
    samples: pl.DataFrame
    databases: tuple[str, ...] = ()
    """Nodes of the system under test, shown first; all others are load nodes. Empty: not known."""


def median_trials(
    cells: Mapping[CellKey, Sequence[TrialRecord]], values: Mapping[Attempt, float]
) -> tuple[TrialRecord, ...]:
    """One trial of each treatment: the middle one of its used trials by the response (the lower of two middles)."""
    return tuple(
        sorted(records, key=lambda record: (values[record.key], record.begun_s))[(len(records) - 1) // 2]
        for records in cells.values()
    )
