"""When a trial is done: what its sealed attempts say. Both halves count by it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from steelyard.model.trial import TrialRecord


def settled(attempts: Sequence[TrialRecord], limit: int) -> bool:
    """Whether a trial needs no further attempt: valid, a result about the system, or voided `limit` times.

    Attempts that the laboratory itself spoilt do not count: whoever mended it may go on."""
    if any(record.verdict.final for record in attempts):
        return True
    return sum(not record.verdict.lab_fault for record in attempts) >= limit


def attempts_by_id(records: Iterable[TrialRecord]) -> dict[str, list[TrialRecord]]:
    """Sealed attempts of each trial."""
    found: dict[str, list[TrialRecord]] = defaultdict(list)
    for record in records:
        found[record.id].append(record)
    return dict(found)
