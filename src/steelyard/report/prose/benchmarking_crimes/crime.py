"""One check of the report's suspicion of itself, and the words that all of them use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

MOST_NAMED: Final = 4


@dataclass(frozen=True)
class Crime:
    """One check: whether the study is guilty of it, the numbers that say so, and what would mend it."""

    name: str
    guilty: bool
    evidence: str
    mend: str = ""


def some(names: Sequence[str]) -> str:
    """The first few of them, and how many more there are."""
    more = len(names) - MOST_NAMED
    return "; ".join(names[:MOST_NAMED]) + (f"; and {more} more" if more > 0 else "")
