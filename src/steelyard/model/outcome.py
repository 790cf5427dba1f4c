"""Outcomes of operations: which are answers, and which are errors.

The agent decides an operation's outcome (`enum Outcome` in `crates/`); these are the names of the outcomes, and a test
compares the two lists.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class Outcome(StrEnum):
    """Outcome of an operation, as counts and `errors_by_kind` name it; see docs/reference/wire.md."""

    OK = "ok"
    NOT_FOUND = "not-found"
    """Answered, but the requested row does not exist."""
    NOT_APPLIED = "not-applied"
    """Answered: a lightweight transaction whose condition was not met."""
    TIMEOUT = "timeout"
    UNAVAILABLE = "unavailable"
    READ_TIMEOUT = "read-timeout"
    WRITE_TIMEOUT = "write-timeout"
    OVERLOADED = "overloaded"
    CONNECTION = "connection"
    SERVER = "server"
    INVALID = "invalid"
    """Answered, but the row does not hold what was written to it."""


ANSWERED: Final[tuple[str, ...]] = (Outcome.OK.value, Outcome.NOT_FOUND.value, Outcome.NOT_APPLIED.value)
"""Outcomes that are not errors: their times count. Plain strings, as in the columns of a store."""


def is_error(outcome: str) -> bool:
    """Whether an operation with this outcome failed; also true for kinds that only a newer engine knows."""
    return outcome not in ANSWERED
