"""Demand for nodes: what each size of a cluster carries, as a study declares it or its searches find it. Section
`analysis.demand`."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, Field, ValidatorFunctionWrapHandler, WrapValidator, field_serializer

from steelyard.model.value import Value

SEARCHED: Final = "searched"
Capacity = tuple[Annotated[int, Field(ge=1, le=1000)], Annotated[float, Field(gt=0)]]
"""A number of nodes, and the operations per second that they carry."""


def _rising(capacity: tuple[Capacity, ...]) -> tuple[Capacity, ...]:
    if any(after[0] <= before[0] or after[1] <= before[1] for before, after in pairwise(capacity)):
        raise ValueError("each size of capacity must be larger than the one before, and carry more")
    return capacity


Capacities = Annotated[tuple[Capacity, ...], Field(min_length=1, max_length=1000), AfterValidator(_rising)]
"""Capacities in order of size."""


def _or_searched(given: Any, validate: ValidatorFunctionWrapHandler) -> Any:
    return () if given == SEARCHED else validate(given)


class Demand(Value):
    """What each size of the cluster carries: with it, the measures of elasticity compare the nodes in service with the
    nodes that the offered rate needs."""

    capacity: Annotated[
        Capacities, WrapValidator(_or_searched, json_schema_input_type=Capacities | Literal["searched"])
    ]
    """Pairs of a number of nodes and the operations per second that they carry within the limits that matter, in order
    of size: [[3, 2885], [4, 3774]]; or "searched": those that the searches of this study have found, which have the
    settings of the other trials but for nodes, load and policy (docs/howto/grow-a-cluster-under-load.md). The demand of
    a rate is the smallest of these sizes that carries it."""

    @field_serializer("capacity")
    def _stated(self, capacity: tuple[Capacity, ...]) -> Any:
        return capacity or SEARCHED
