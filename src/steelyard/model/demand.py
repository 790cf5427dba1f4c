"""Demand for nodes, as a study declares it: what each size of a cluster carries. Section `analysis.demand`."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated

from pydantic import AfterValidator, Field

from steelyard.model.value import Value

Capacity = tuple[Annotated[int, Field(ge=1, le=1000)], Annotated[float, Field(gt=0)]]
"""A number of nodes, and the operations per second that they carry."""


def _rising(capacity: tuple[Capacity, ...]) -> tuple[Capacity, ...]:
    if any(after[0] <= before[0] or after[1] <= before[1] for before, after in pairwise(capacity)):
        raise ValueError("each size of capacity must be larger than the one before, and carry more")
    return capacity


Capacities = Annotated[tuple[Capacity, ...], Field(min_length=1, max_length=1000), AfterValidator(_rising)]
"""Capacities in order of size."""


class Demand(Value):
    """What each size of the cluster carries: with it, the measures of elasticity compare the nodes in service with the
    nodes that the offered rate needs."""

    capacity: Capacities
    """Pairs of a number of nodes and the operations per second that they carry within the limits that matter, in order
    of size: [[3, 2885], [4, 3774]]. The demand of a rate is the smallest of these sizes that carries it. Measure them
    with schedule search (docs/howto/find-the-highest-rate.md)."""
