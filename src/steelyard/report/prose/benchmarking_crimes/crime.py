"""Result of one check for a benchmarking crime, and the wording that all checks share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

MOST_NAMED: Final = 4


@dataclass(frozen=True)
class Crime:
    """One check: whether the study is guilty, the evidence in numbers, and a hint."""

    name: str
    guilty: bool
    evidence: str
    hint: str = ""


def some(names: Sequence[str]) -> str:
    """The first few names, and the number of the others."""
    more = len(names) - MOST_NAMED
    return "; ".join(names[:MOST_NAMED]) + (f"; and {more} more" if more > 0 else "")
