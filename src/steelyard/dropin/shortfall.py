"""Shortfall of an open loop: operations that were due and never sent, and the rate that was not reached, in words.

What was not sent is neither done nor failed: the cluster never saw it. It is counted and named separately, so that it
neither blames the cluster for errors nor lets a cluster look good that could not take what was offered.
"""

from __future__ import annotations

import math
from typing import Final

from steelyard.format import number
from steelyard.wire.record import Done

LEAST_SHARE: Final = 0.99
"""From this share of the offered rate on it was kept up."""
CHANCE: Final = 3.0
"""Standard deviations of a Poisson count that chance explains."""
DRAIN_S: Final = 2.0
"""Time after a time limit in which operations due before it are still sent."""


def least_per_s(totals: Done, rate_per_s: float) -> float:
    """The rate of answers from which the offered one counts as reached."""
    return rate_per_s * (LEAST_SHARE - CHANCE / math.sqrt(max(1, due(totals))))


def due(totals: Done) -> int:
    """Operations that were due: done, failed, or not sent."""
    return totals.operations + totals.errors + totals.unsent


def sentences(totals: Done, asked_per_s: float | None, duration_s: float | None) -> list[str]:
    """Operations not sent, and the rate not reached; none if the rate was reached. `asked_per_s`: None for a closed
    loop, and where the rate varies."""
    lines = []
    if totals.unsent:
        ending = (
            f"; what was due by the end, at {duration_s:g} s, was sent for {DRAIN_S:g} s more" if duration_s else ""
        )
        lines.append(
            f"{totals.unsent:,} of {due(totals):,} operations were due and not sent: neither done nor failed{ending}"
        )
    if asked_per_s is not None and due(totals) and totals.rate_per_s < least_per_s(totals, asked_per_s):
        lines.append(
            f"the rate was not reached: asked {rate_words(asked_per_s)}/s, reached {rate_words(totals.rate_per_s)}/s"
        )
    return lines


def rate_words(per_s: float) -> str:
    """Two digits, for a figure that is a bound; whole numbers stay whole."""
    return number(per_s, digits=2 if per_s != round(per_s) else 9, trim=True) if per_s < 100 else f"{_rounded(per_s):,}"


def _rounded(per_s: float) -> int:
    step = int(10 ** max(0, math.floor(math.log10(per_s)) - 2))
    return int(round(per_s / step) * step)
