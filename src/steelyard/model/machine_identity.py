"""Machine identity: the facts that must be equal for a measurement of a machine to hold. Pure."""

from __future__ import annotations

from collections.abc import Mapping

IDENTITY = ("cpu_model", "cores", "kernel", "architecture")
"""Facts that identify a machine."""


def identity(facts: Mapping[str, str]) -> dict[str, str]:
    """The identifying facts of a machine; an empty text for an unknown one."""
    return {name: facts.get(name, "") for name in IDENTITY}


def difference(then: Mapping[str, str], now: Mapping[str, str]) -> str:
    """The first fact in which another machine, or the same one after a change, differs; empty if none does."""
    for name, was in then.items():
        if (value := now.get(name, "")) != was:
            return f"{name} {was or 'unknown'}, here it is {value or 'unknown'}"
    return ""
