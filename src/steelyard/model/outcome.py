"""Outcomes of operations: which are answers, and which are errors.

The agent decides what an operation came to (`enum Outcome` in `crates/`); these are its names, and a test holds them
against it.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class Outcome(StrEnum):
    """What an operation came to, as counts and `errors_by_kind` name it; see docs/reference/wire.md."""

    OK = "ok"
    NOT_FOUND = "not-found"
    """Answered, but the row that was read is not there."""
    NOT_APPLIED = "not-applied"
    """Answered: a light-weight transaction whose condition did not hold."""
    TIMEOUT = "timeout"
    UNAVAILABLE = "unavailable"
    READ_TIMEOUT = "read-timeout"
    WRITE_TIMEOUT = "write-timeout"
    OVERLOADED = "overloaded"
    CONNECTION = "connection"
    SERVER = "server"
    INVALID = "invalid"
    """Answered, but the row does not hold what was written into it."""
    BACKLOG = "backlog"
    """Never sent: too many operations were waiting when it became due."""


ANSWERED: Final[tuple[str, ...]] = (Outcome.OK.value, Outcome.NOT_FOUND.value, Outcome.NOT_APPLIED.value)
"""Outcomes that are no errors: those whose times count. Plain strings, as columns of a store hold them."""


def is_error(outcome: str) -> bool:
    """Whether an operation with this outcome failed; also of kinds that only a newer engine knows."""
    return outcome not in ANSWERED
