"""Machine identity: facts that must be unchanged for a measurement of a machine to remain valid. Pure."""

from __future__ import annotations

from collections.abc import Mapping

IDENTITY = ("cpu_model", "cores", "kernel", "architecture")
"""Facts that identify a machine."""


def identity(facts: Mapping[str, str]) -> dict[str, str]:
    """The identifying facts of a machine; an unknown one is an empty string."""
    return {name: facts.get(name, "") for name in IDENTITY}


def difference(then: Mapping[str, str], now: Mapping[str, str]) -> str:
    """The first fact that differs, on another machine or after a change to this one; empty if none differs."""
    for name, was in then.items():
        if (value := now.get(name, "")) != was:
            return f"{name} {was or 'unknown'}, here it is {value or 'unknown'}"
    return ""
