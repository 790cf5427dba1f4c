"""Coverage tally: how often an interval held the truth, its Monte-Carlo error and a verdict."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from steelyard.model.estimate import Estimate

Outcome = bool | None
"""Whether the interval held the truth, or the test was not significant; None if there was no interval or test."""
Draw = Callable[[np.random.Generator, int], Iterable[Outcome | tuple[Outcome, ...]]]
Promise = Literal["covers", "errs", "finds"]
Use = Literal["ours", "replication", "not used"]

CONFIDENCE = 0.95
TOLERANCE = 0.01
"""Coverage from 94% to 96% counts as 95%."""
CERTAIN = 2.0
"""A cell is called narrow or wide if it is this many Monte-Carlo errors beyond the tolerance."""
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
    """covers: an interval holds the truth in 95%; errs: a test without an effect is significant in at most 5%; finds: a
    test with an effect is significant in at least 95%."""
    use: Use = "ours"
    """replication: as a paper printed it, and marked so; not used: considered and rejected."""
    promised: float = CONFIDENCE
    """Share in which it promises that."""
    share: float = 1.0
    """Share of the requested studies that is drawn: expensive methods are drawn less often."""
    beside: tuple[tuple[str, Use], ...] = ()
    """Further methods on the same draws, each with its use; `draw` then yields one outcome for each."""

    @property
    def key(self) -> str:
        """Seed of the case's random numbers: an added case changes no figure of the others."""
        return "|".join((self.family, self.method, self.truth, self.n))


@dataclass(frozen=True)
class Line:
    """Counts of one method in one case."""

    case: Case
    method: str
    use: Use
    studies: int
    given: int
    held: int

    @property
    def rate(self) -> float | None:
        """Share that held the truth (covers) or was significant (errs, finds); None if no study gave an outcome."""
        if not self.given:
            return None
        return 1 - self.held / self.given if self.case.promise == "errs" else self.held / self.given

    @property
    def error(self) -> float:
        """Standard error of the rate."""
        rate = self.rate
        return 0.0 if rate is None else math.sqrt(max(rate * (1 - rate), 1 / self.given / 4) / self.given)

    @property
    def verdict(self) -> str:
        """holds; narrow or wide (an interval); errs too often, cautious or misses (a test); none or too few given."""
        if self.rate is None:
            return "none given"
        if self.given < FEWEST_STUDIES:
            return "too few given"
        covered, promised = 1 - self.rate if self.case.promise == "errs" else self.rate, self.case.promised
        room = TOLERANCE + CERTAIN * self.error
        if self.case.promise == "finds":
            return "misses" if covered < promised - room else "holds"
        if covered < promised - room:
            return "narrow" if self.case.promise == "covers" else "errs too often"
        if covered > promised + room:
            return "wide" if self.case.promise == "covers" else "cautious"
        return "holds"


def count(case: Case, studies: int, seed: int) -> list[Line]:
    """Draw the studies of a case and count; one line per method."""
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
    """Whether an estimate's interval holds the truth; None without an interval. A missing end is infinite."""
    if estimate is None or (estimate.low is None and estimate.high is None):
        return None
    return (estimate.low is None or estimate.low <= truth) and (estimate.high is None or truth <= estimate.high)


def each(estimates: Iterable[Estimate | None], truth: float) -> Iterator[Outcome]:
    """`held` for each of many estimates of one truth."""
    return (held(one, truth) for one in estimates)
