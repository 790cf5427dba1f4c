"""Limits of the database nodes in sentences: how much, and from when."""

from __future__ import annotations

from collections.abc import Sequence

from steelyard.format import count, listed
from steelyard.model.trial import TrialRecord


def sentences(records: Sequence[TrialRecord]) -> list[str]:
    """A sentence on limits of processors, and one on those of disks, where trials have any."""
    nodes = [record.settings.node for record in records]
    warmed_up = any(record.server_warm_up for record in records)
    quotas = [node.cpus for node in nodes if node.cpus is not None]
    amounts = listed([f"{cpus:g}" for cpus in sorted(set(quotas))], "or")
    processors = f"Processor limits ({amounts} processors for each database node)"
    slow_disks = [node for node in nodes if node.slow_disk]
    return [
        *_sentence(processors, [node.cpus_from for node in nodes if node.cpus is not None], len(nodes), warmed_up),
        *_sentence(
            "Limits of the rates of each database node's disk",
            [node.disk_rates_from for node in slow_disks],
            len(nodes),
            warmed_up,
        ),
    ]


def _sentence(limits: str, begin: Sequence[str | None], attempts: int, warmed_up: bool) -> list[str]:
    """`LIMITS were in force in each start from ... on.`; nothing if no attempt has them. `begin`: `warm`, `start` or
    none, for each attempt that has."""
    if not begin:
        return []
    when = [
        f"once its cluster was ready{' and warm' if warmed_up else ''}: nodes started and were filled without them"
        if since == "warm"
        else "from the lease of its nodes: also while they started, were filled and warmed up"
        for since in sorted({since or "start" for since in begin}, reverse=True)
    ]
    without = attempts - len(begin)
    rest = f"; {count(without, 'attempt')} had none" if without else ""
    return [f"{limits} were in force in each start {', or '.join(when)}{rest}."]
