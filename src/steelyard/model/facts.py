"""Facts of a trial by name: those of nodes, of the system under test on them, and the roles of nodes.

A node's facts have its name, those of the system on it `system:NODE`, those of a machine that all share `machine`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final, Literal, TypeVar

Role = Literal["database", "load"]
"""Role of a node in a trial: runs the system under test, or drives load."""
MACHINE: Final = "machine"
_OF_SYSTEM: Final = "system:"
_LOAD_LETTER: Final = "l"

_Facts = TypeVar("_Facts")


def system_facts_name(node: str) -> str:
    """Name of the facts of the system under test on a node."""
    return f"{_OF_SYSTEM}{node}"


def of_systems(facts: Mapping[str, _Facts]) -> dict[str, _Facts]:
    """Facts of the system under test, by node: only nodes that run it have them."""
    return {name.removeprefix(_OF_SYSTEM): found for name, found in facts.items() if name.startswith(_OF_SYSTEM)}


def of_machines(facts: Mapping[str, _Facts]) -> dict[str, _Facts]:
    """Facts of nodes of both roles, and of the machine that they share (`MACHINE`)."""
    return {name: found for name, found in facts.items() if not name.startswith(_OF_SYSTEM)}


def role_of(node: str, facts: Collection[str]) -> Role | None:
    """Role of a node in a trial with facts of these names; None for the machine that nodes share. In a store without
    facts of systems the first letter of its name is the only mark."""
    if node == MACHINE:
        return None
    if any(name.startswith(_OF_SYSTEM) for name in facts):
        return "database" if system_facts_name(node) in facts else "load"
    return "load" if node.startswith(_LOAD_LETTER) else "database"
