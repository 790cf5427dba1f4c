"""Sealed attempts at trials: whether a trial is settled, which are missing, and which attempts are warm-up. Pure.

The cluster warms up by what it serves, whether the attempt counts or was voided. So each attempt that was answered
anything moves the cut of warm-up trials, whatever its verdict. Stopping and analysis must drop the same trials.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from steelyard.model.plan import Plan, PlannedTrial
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


def served(record: TrialRecord) -> bool:
    """Whether the cluster answered operations of this attempt; a valid trial did."""
    return record.verdict.outcome == "valid" or bool(record.responses.operations)


def is_cut(order: int | None, warm_up_trials: int) -> bool:
    """Whether a trial of this rank is left out as warm-up."""
    return order is not None and order <= warm_up_trials


def orders_of_treatment(records: Sequence[TrialRecord], factors: Iterable[str]) -> list[int | None]:
    """Rank of each valid trial among the attempts of its treatment that its start served, from 1; None for trials that
    are not valid. Voided attempts and control trials count: the cluster served them too."""
    names = tuple(factors)
    groups: dict[tuple[object, ...], list[int]] = {}
    for index, record in enumerate(records):
        if served(record):
            key = (record.start, *(record.treatment.get(name) for name in names))
            groups.setdefault(key, []).append(index)
    orders: list[int | None] = [None] * len(records)
    for indices in groups.values():
        in_order = sorted(indices, key=lambda i: (records[i].order_in_start, records[i].begun_s, i))
        for order, index in enumerate(in_order, start=1):
            if records[index].verdict.outcome == "valid":
                orders[index] = order
    return orders


def missing(plan: Plan, records: Iterable[TrialRecord], limit: int) -> list[PlannedTrial]:
    """Trials of the plan that are still to be done, in order."""
    by_id = attempts_by_id(records)
    return [trial for trial in plan.trials if not settled(by_id.get(trial.id, ()), limit)]
