"""Covariates of a start: what a cluster was given, as numbers, from facts and measured links. Pure.

They stand beside the factors, which say what was asked for: a model of a node as memory, cores and round-trip time
takes them as they were.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from steelyard.judging.measures import cores_given
from steelyard.model.facts import MACHINE, of_machines, role_of
from steelyard.model.measure import MIB

RTT = ("rtt_ms_min", "rtt_ms_mean")


def covariates_of(facts: Mapping[str, Mapping[str, str]], links: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Covariates by name; those that were not measured, or not on every database node, are left out.

    `rtt_ms_min`, `rtt_ms_mean`: between load and database nodes, the mean over all measured links. `cores`,
    `memory_mb`: what a database node was given, its limit or all that its machine has, the mean over nodes.
    """
    values: dict[str, float] = {}
    for name in RTT:
        times = [float(link[name]) for link in links if isinstance(link.get(name), int | float)]
        if times and len(times) == len(links):
            values[name] = math.fsum(times) / len(times)
    machines = of_machines(facts)
    databases = [known for node, known in machines.items() if role_of(node, facts) == "database"]
    databases = databases or [known for node, known in machines.items() if node == MACHINE]
    for name, given in (("cores", cores_given), ("memory_mb", memory_mb_given)):
        amounts = [amount for known in databases if (amount := given(known)) is not None]
        if amounts and len(amounts) == len(databases):
            values[name] = math.fsum(amounts) / len(amounts)
    return values


def memory_mb_given(facts: Mapping[str, str]) -> float | None:
    """Memory that a node was given, MiB: its limit, at most that of its machine; None if neither is known."""
    limit, machine = facts.get("limit_memory_bytes", ""), facts.get("memory_mb", "")
    known = [int(limit) / MIB] if limit.isdecimal() else []
    known += [float(machine)] if machine.isdecimal() else []
    return min(known, default=None)
