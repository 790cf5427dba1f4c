"""Finding of `steelyard doctor`: one thing that was looked at, and how to mend it."""

from __future__ import annotations

from typing import Literal

from steelyard.model.value import Value


class Finding(Value):
    """One thing that was looked at."""

    name: str
    state: Literal["good", "poor", "bad"]
    """poor: studies run, with less than there could be; bad: some do not run at all."""
    found: str
    mend: str = ""
    machine: str = ""
    """The machine of the inventory; empty for this one."""


def judged(name: str, reading: str, good: bool, mend: str, *, bad: bool = False, machine: str = "") -> Finding:
    """The finding, with its mend if there is something to mend."""
    return Finding(
        name=name,
        state="good" if good else "bad" if bad else "poor",
        found=reading,
        mend="" if good else mend,
        machine=machine,
    )
