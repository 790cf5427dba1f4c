"""What a store still lacks of a plan, and whether a changed study may go on in it. Pure."""

from __future__ import annotations

import difflib
from collections import defaultdict
from collections.abc import Iterable, Sequence

from steelyard.model.errors import StudyError
from steelyard.model.plan import Plan, PlannedTrial
from steelyard.model.study import Study
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


def missing(plan: Plan, records: Iterable[TrialRecord], limit: int) -> list[PlannedTrial]:
    """Trials of the plan that are still to be done, in order."""
    found = attempts_by_id(records)
    return [trial for trial in plan.trials if not settled(found.get(trial.id, ()), limit)]


def refuse_change(before: Study, after: Study, plan: Plan, records: Sequence[TrialRecord]) -> None:
    """A study may be widened: more levels, starts or trials. A change that would orphan sealed trials is refused
    with the
    difference. Raises StudyError."""
    seeds = {trial.id: trial.seed for trial in plan.trials}
    orphans = sorted({record.id for record in records if seeds.get(record.id) != record.seed})
    if not orphans:
        return
    old = before.model_dump_json(indent=1).splitlines()
    new = after.model_dump_json(indent=1).splitlines()
    changed = [
        line for line in difflib.unified_diff(old, new, "stored study", "this file", n=1, lineterm="") if line.strip()
    ]
    count = len(orphans)
    raise StudyError(
        f"this study file does not go on where the store is: {count} sealed trials would lose their treatment or seed",
        "give the changed study another name, or another --store; the difference:\n" + "\n".join(changed),
        key="study.name",
        read=after.study.name,
    )
