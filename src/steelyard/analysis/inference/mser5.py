"""MSER-5 truncation rule: the warm-up cut of a series that minimises the standard error of the rest.

MSER: K. P. White, An effective truncation heuristic for bias reduction in simulation output, Simulation 69(6), 1997,
323-334. MSER-5, over means of five: K. P. White, M. J. Cobb, S. C. Spratt, A comparison of five steady-state
truncation heuristics for simulation, Winter Simulation Conference 2000.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from steelyard.heavy import np

BATCH = 5
FEWEST_BATCHES = 4
"""With fewer batches a cut could only fall in the second half, which MSER forbids."""


@dataclass(frozen=True)
class Cut:
    """Observations to drop, and whether the rule stopped at its bound, half of the series."""

    drop: int
    at_bound: bool


def mser5(series: Sequence[float]) -> Cut | None:
    """The truncation point of MSER-5; None below 20 values.

    With batch means z_1..z_k of 5 values each: d* = argmin over 0 <= d <= k/2 of
    sum_{j>d} (z_j - mean_{j>d})^2 / (k - d)^2; the cut is 5 d* values. Values behind the last whole batch are not
    used to find it.
    """
    batches = len(series) // BATCH
    if batches < FEWEST_BATCHES:
        return None
    z = np.asarray(series[: batches * BATCH], dtype=float).reshape(batches, BATCH).mean(axis=1)
    candidates = range(batches // 2 + 1)
    scores = [float(np.sum((z[d:] - z[d:].mean()) ** 2)) / (batches - d) ** 2 for d in candidates]
    best = int(np.argmin(scores))
    return Cut(drop=best * BATCH, at_bound=best == batches // 2)
