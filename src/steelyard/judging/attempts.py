"""Whether a trial is settled, from its sealed attempts; used by measuring and by reading."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from steelyard.model.trial import TrialRecord


def settled(attempts: Sequence[TrialRecord], limit: int) -> bool:
    """Whether a trial needs no further attempt: valid, a result about the system, or voided `limit` times.

    Attempts that failed through a fault of the laboratory do not count: the study continues after the repair."""
    if any(record.verdict.final for record in attempts):
        return True
    return sum(not record.verdict.lab_fault for record in attempts) >= limit


def attempts_by_id(records: Iterable[TrialRecord]) -> dict[str, list[TrialRecord]]:
    """Sealed attempts by trial id."""
    by_id: dict[str, list[TrialRecord]] = defaultdict(list)
    for record in records:
        by_id[record.id].append(record)
    return dict(by_id)


def without_valid_attempt(records: Iterable[TrialRecord]) -> tuple[str, ...]:
    """Ids of the trials that were tried and have no valid attempt. A voided attempt that was repeated is none."""
    return tuple(
        trial
        for trial, attempts in attempts_by_id(records).items()
        if not any(record.verdict.outcome == "valid" for record in attempts)
    )
