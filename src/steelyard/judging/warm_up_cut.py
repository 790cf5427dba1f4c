"""Fixed cut of warm-up trials: which attempt of its treatment a start served.

The cluster warms up by what it serves, whether the attempt counts or was voided. So each attempt that was answered
anything moves the cut, whatever its verdict. Stopping and analysis must drop the same trials, so both call this.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from steelyard.model.trial import TrialRecord


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
