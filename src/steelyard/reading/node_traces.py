"""Node samples of one trial per treatment, for the report's figures of CPU, memory, disk and network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from steelyard.heavy import pl
from steelyard.model.named_level import Level
from steelyard.model.trial import TrialRecord


@dataclass(frozen=True)
class Trace:
    """The samples of one trial: columns t_s (seconds since the epoch), node, metric, value."""

    record: TrialRecord
    samples: pl.DataFrame
    databases: tuple[str, ...] = ()
    """Nodes of the system under test, shown first; all others are load nodes. Empty: not known."""


def median_trials(records: Sequence[TrialRecord], used: Mapping[tuple[str, int], float]) -> tuple[TrialRecord, ...]:
    """One trial of each treatment: the middle one of its used trials by the main response (the lower of two middles).

    `used` maps (trial id, attempt) of the used trials to their value.
    """
    groups: dict[tuple[tuple[str, Level], ...], list[TrialRecord]] = {}
    for record in records:
        if (record.id, record.attempt) in used and not record.control:
            groups.setdefault(tuple(sorted(record.treatment.items())), []).append(record)
    return tuple(
        sorted(group, key=lambda record: (used[record.id, record.attempt], record.begun_s))[(len(group) - 1) // 2]
        for group in groups.values()
    )
