"""Words to a running load, one JSON object per line on its standard input, as frozen values.

The definitions match `crates/steelyard-wire/src/word.rs`; `schema/words.example.jsonl` is the common test of both.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Literal

from steelyard.wire.schedule import Schedule


@dataclass(frozen=True, slots=True, kw_only=True)
class Go:
    """Begin: the order's warm-up, if it has one, starts `in_s` seconds after the word is read."""

    word: Literal["go"] = "go"
    in_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseWord:
    """Run one more phase."""

    word: Literal["phase"] = "phase"
    name: str
    """Name in records; each name once, not `populate`, `warm-up` or `search-settle`."""
    schedule: Schedule
    """As in an order; with as many in flight as the order's schedule at most."""
    duration_s: float
    settle_s: float = 0.0
    """Seconds of the same schedule right before it, recorded as phase `search-settle`."""
    in_s: float = 0.0
    """Seconds from reading the word, or from the end of the previous phase if that is later, to its start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """End the load at once, also within a phase."""

    word: Literal["stop"] = "stop"


Word = Go | PhaseWord | Stop
"""One line of input."""


def line_of(word: Word) -> str:
    """The word's line, without its line ending."""
    return json.dumps(asdict(word), default=lambda value: value.model_dump(), separators=(",", ":"), ensure_ascii=False)
