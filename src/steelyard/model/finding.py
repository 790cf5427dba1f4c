"""Finding of `steelyard doctor`: one thing that was examined, and how to fix it; the ability to make findings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol, runtime_checkable

from steelyard.model.errors import SteelyardError
from steelyard.model.value import Value


class Finding(Value):
    """One thing that was examined."""

    name: str
    state: Literal["good", "poor", "bad"]
    """poor: studies run, with less than there could be; bad: some do not run at all."""
    found: str
    hint: str = ""
    machine: str = ""
    """The machine of the inventory; empty for this one."""


def judged(name: str, reading: str, good: bool, hint: str, *, bad: bool = False, machine: str = "") -> Finding:
    """The finding; a good one has no hint."""
    return Finding(
        name=name,
        state="good" if good else "bad" if bad else "poor",
        found=reading,
        hint="" if good else hint,
        machine=machine,
    )


def failed(name: str, error: SteelyardError, state: Literal["poor", "bad"] = "bad") -> Finding:
    """The finding of an examination that ended with an error."""
    return Finding(name=name, state=state, found=error.message, hint=error.hint)


@runtime_checkable
class Diagnoses(Protocol):
    """Ability of a site, system or engine: says what it needs of its machines and whether that is there.
    `steelyard doctor` asks each one that can be made with its default settings."""

    async def findings(self) -> Sequence[Finding]:
        """A finding for each thing that it needs. Takes seconds at most; creates and changes nothing."""
        ...
