"""Fixed cut of warm-up trials: the rank of each trial of its treatment within its start.

Stopping and analysis must drop the same trials, so both call this.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from steelyard.model.trial import TrialRecord


def orders_of_treatment(records: Sequence[TrialRecord], factors: Iterable[str]) -> list[int | None]:
    """Rank of each record among the valid trials of its treatment within its start, from 1; None for trials that are
    not valid. Control trials count, because they have the same treatment."""
    names = tuple(factors)
    groups: dict[tuple[object, ...], list[int]] = {}
    for index, record in enumerate(records):
        if record.verdict.outcome == "valid":
            key = (record.start, *(record.treatment.get(name) for name in names))
            groups.setdefault(key, []).append(index)
    orders: list[int | None] = [None] * len(records)
    for indices in groups.values():
        for order, index in enumerate(sorted(indices, key=lambda i: (records[i].order_in_start, i)), start=1):
            orders[index] = order
    return orders
