"""Processor limits of the database nodes in a sentence: how much, and from when on."""

from __future__ import annotations

from collections.abc import Sequence

from steelyard.format import count, listed
from steelyard.model.trial import TrialRecord


def sentence(records: Sequence[TrialRecord]) -> str:
    """`Processor limits (0.4 of a node) were in force from ... on.`; empty where no trial has one."""
    limits = {record.settings.node for record in records if record.settings.node.cpus is not None}
    amounts = listed([f"{cpus:g}" for cpus in sorted({node.cpus for node in limits if node.cpus is not None})], "or")
    when = [
        f"from when its cluster was ready{' and warm' if any(one.server_warm_up for one in records) else ''} on: nodes "
        "started and were filled without them"
        if since == "warm"
        else "from when its nodes were lent on: also while they started, were filled and warmed up"
        for since in sorted({node.cpus_from or "start" for node in limits}, reverse=True)
    ]
    if not limits:
        return ""
    without = sum(record.settings.node.cpus is None for record in records)
    rest = f"; {count(without, 'attempt')} had none" if without else ""
    return (
        f"Processor limits ({amounts} processors for each database node) were in force in each start "
        f"{', or '.join(when)}{rest}."
    )
