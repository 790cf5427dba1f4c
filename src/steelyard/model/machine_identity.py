"""What of a machine's facts a measurement of it depends on: on another one it says nothing. Pure."""

from __future__ import annotations

from collections.abc import Mapping

IDENTITY = ("cpu_model", "cores", "kernel", "architecture")
"""Facts that make a machine another one."""


def identity(facts: Mapping[str, str]) -> dict[str, str]:
    """What of a machine's facts a measurement depends on; empty text where a fact is not known."""
    return {name: facts.get(name, "") for name in IDENTITY}


def difference(then: Mapping[str, str], now: Mapping[str, str]) -> str:
    """The first fact in which another machine, or the same one after a change, differs; empty if none does."""
    for name, was in then.items():
        if (value := now.get(name, "")) != was:
            return f"{name} {was or 'unknown'}, here it is {value or 'unknown'}"
    return ""
