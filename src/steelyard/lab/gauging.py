"""Measures the limits of the database nodes of a start, one node after another.

Together they would show what is left when all compute at once: whether a limit holds is a question to each node alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from steelyard.format import number
from steelyard.judging.gauge import SPEED, limits_of
from steelyard.model.errors import SteelyardError
from steelyard.model.gauged import Gauged
from steelyard.model.node_limits import NodeLimits
from steelyard.node import gauge
from steelyard.node.base import Node

NAMES = {
    SPEED: "speed of a core",
    gauge.WITH_SWAP: "node.memory_mb with node.swap_mb",
    gauge.MACHINE_MEMORY: "memory of its machine (node.memory_mb)",
}
"""Measured quantity, where it is not a field of section `node`."""
BUSY = (
    " (the machine was probably busy while it was measured: the limit is in force, but where the machine is busy in a "
    "trial, too, the node gets less than asked)"
)
"""Likely cause of fewer processors than asked: a limit gives none that others take."""


async def gauge_nodes(nodes: Sequence[Node], limits: NodeLimits, moment: Literal["before", "after"]) -> Gauged:
    """Limits asked for and measured. A node on which it fails is named with the reason: no start is lost for it."""
    asked: dict[str, float] = {}
    measured: dict[str, dict[str, float]] = {}
    problems: dict[str, str] = {}
    for node in nodes:
        try:
            asked, measured[node.name] = await gauge.gauge(node, limits)
        except SteelyardError as error:
            problems[node.name] = error.message
    return Gauged(moment=moment, asked=asked, measured=measured, problems=problems)


def deviations(gauged: Gauged) -> list[str]:
    """A sentence for each node that has not what was asked for, or could not be measured."""
    sentences = [f"{node}: its limits could not be measured: {problem}" for node, problem in gauged.problems.items()]
    for limit in limits_of([gauged]):
        expected = "the other nodes have" if limit.asked is None else "asked"
        beside = _short(limit.median if limit.asked is None else limit.asked)
        name = NAMES.get(limit.limit, f"node.{limit.limit}")
        for odd in limit.odd:
            less = limit.limit == "cpus" and limit.asked is not None and odd.value < limit.asked
            sentences.append(f"{odd.node}: {name} is {_short(odd.value)}, {expected} {beside}{BUSY if less else ''}")
    return sentences


def _short(value: float) -> str:
    return number(value, digits=3, trim=True)
