"""Counting how often an interval held its truth, with the error of the count, and what to call it."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from steelyard.model.estimate import Estimate

Outcome = bool | None
"""Whether the interval held the truth (a test was not significant); None where none was given."""
Draw = Callable[[np.random.Generator, int], Iterable[Outcome | tuple[Outcome, ...]]]
Promise = Literal["covers", "errs"]
Use = Literal["ours", "replication", "not used"]

CONFIDENCE = 0.95
TOLERANCE = 0.01
"""95% +- 1."""
CERTAIN = 2.0
"""Monte-Carlo errors beyond the tolerance from which a cell is called narrow or wide."""
FEWEST_STUDIES = 50


@dataclass(frozen=True)
class Case:
    """One cell of the report: a method, a truth, a number of units."""

    family: str
    method: str
    truth: str
    n: str
    draw: Draw
    promise: Promise = "covers"
    """covers: an interval holds the truth in 95%; errs: a test is significant where nothing is in at most 5%."""
    use: Use = "ours"
    """replication: as a paper printed it, and marked so; not used: what was looked at and left."""
    share: float = 1.0
    """Of the studies asked for: dear methods are drawn less often."""
    beside: tuple[tuple[str, Use], ...] = ()
    """Further methods on the same draws, each with its use; `draw` then yields one outcome for each."""

    @property
    def key(self) -> str:
        """What the case's random numbers are seeded with: another case more changes no figure."""
        return "|".join((self.family, self.method, self.truth, self.n))


@dataclass(frozen=True)
class Line:
    """What was counted."""

    case: Case
    method: str
    use: Use
    studies: int
    given: int
    held: int

    @property
    def rate(self) -> float | None:
        """Share that held the truth (covers), or was significant (errs); None where nothing was given."""
        if not self.given:
            return None
        return self.held / self.given if self.case.promise == "covers" else 1 - self.held / self.given

    @property
    def error(self) -> float:
        """Standard error of the rate."""
        rate = self.rate
        return 0.0 if rate is None else math.sqrt(max(rate * (1 - rate), 1 / self.given / 4) / self.given)

    @property
    def verdict(self) -> str:
        """holds, narrow, wide; no interval."""
        if self.rate is None:
            return "none given"
        covered = self.rate if self.case.promise == "covers" else 1 - self.rate
        room = TOLERANCE + CERTAIN * self.error
        if covered < CONFIDENCE - room:
            return "narrow" if self.case.promise == "covers" else "errs too often"
        if covered > CONFIDENCE + room:
            return "wide" if self.case.promise == "covers" else "cautious"
        return "holds"


def count(case: Case, studies: int, seed: int) -> list[Line]:
    """Draw a case and count, one line a method."""
    wanted = max(FEWEST_STUDIES, round(studies * case.share))
    rng = np.random.default_rng([seed, zlib.crc32(case.key.encode())])
    methods = ((case.method, case.use), *case.beside)
    drawn, given, true = 0, [0] * len(methods), [0] * len(methods)
    for outcomes in case.draw(rng, wanted):
        drawn += 1
        for place, outcome in enumerate(outcomes if isinstance(outcomes, tuple) else (outcomes,)):
            given[place] += outcome is not None
            true[place] += bool(outcome)
    return [Line(case, *method, drawn, *counts) for method, *counts in zip(methods, given, true, strict=True)]


def held(estimate: Estimate | None, truth: float) -> Outcome:
    """Whether an estimate's interval holds the truth; None without an interval. One end alone leaves the other open."""
    if estimate is None or (estimate.low is None and estimate.high is None):
        return None
    return (estimate.low is None or estimate.low <= truth) and (estimate.high is None or truth <= estimate.high)


def each(estimates: Iterable[Estimate | None], truth: float) -> Iterator[Outcome]:
    """The same of many estimates of one truth."""
    return (held(one, truth) for one in estimates)
