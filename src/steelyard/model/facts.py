"""Facts of a trial by name: facts about nodes, about the system under test on them, and the nodes' roles.

Facts about a node are stored under its name, those about the system on it under `system:NODE`, and those about a
machine that all nodes share under `machine`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final, Literal, TypeVar

Role = Literal["database", "load"]
"""Role of a node in a trial: runs the system under test, or drives load."""
MACHINE: Final = "machine"
_OF_SYSTEM: Final = "system:"
_LOAD_LETTER: Final = "l"
PROTOCOL: Final = "protocol"
"""Fact about the system under test: the protocol of its clients."""
CAVEAT: Final = "caveat: "
"""Beginning of the names of facts about the system under test that every answer repeats: whole sentences."""
PROMISE: Final = "promise: "
"""Beginning of the names of facts about what a system's commits and reads promise: whole sentences, which the answers
of studies of several systems repeat."""
CONTAINER_ENGINE: Final = "container_engine"
"""Fact of a node in a container: what runs it, and its version."""
_VM_EMULATOR: Final = "vm_emulator"
"""Fact of a node in a virtual machine: what runs it, and its version."""
_VM_ACCELERATOR: Final = "vm_accelerator"
_EMULATION: Final = "tcg"

Isolation = Literal["", "container", "virtual machine"]
"""Enclosure of a node; empty: none, its processes are plain ones of its machine."""

_Facts = TypeVar("_Facts")


def system_facts_name(node: str) -> str:
    """Name under which the facts about the system under test on a node are stored."""
    return f"{_OF_SYSTEM}{node}"


def of_systems(facts: Mapping[str, _Facts]) -> dict[str, _Facts]:
    """Facts about the system under test, by node: only nodes that run it have them."""
    return {name.removeprefix(_OF_SYSTEM): found for name, found in facts.items() if name.startswith(_OF_SYSTEM)}


def of_machines(facts: Mapping[str, _Facts]) -> dict[str, _Facts]:
    """Facts about nodes of both roles, and about the machine that they share (`MACHINE`)."""
    return {name: found for name, found in facts.items() if not name.startswith(_OF_SYSTEM)}


def isolation(node_facts: Mapping[str, str]) -> Isolation:
    """Enclosure of the node with these facts; empty if they do not say."""
    if CONTAINER_ENGINE in node_facts:
        return "container"
    return "virtual machine" if _VM_EMULATOR in node_facts else ""


def emulated_processor(node_facts: Mapping[str, str]) -> bool:
    """Whether the node's processor is emulated in software, so that its times are not hardware's."""
    return node_facts.get(_VM_ACCELERATOR) == _EMULATION


def role_of(node: str, facts: Collection[str]) -> Role | None:
    """Role of a node in a trial with facts under these names; None for the machine that nodes share. In a store without
    system facts, only the first letter of a node's name gives its role."""
    if node == MACHINE:
        return None
    if any(name.startswith(_OF_SYSTEM) for name in facts):
        return "database" if system_facts_name(node) in facts else "load"
    return "load" if node.startswith(_LOAD_LETTER) else "database"
