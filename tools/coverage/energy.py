"""Coverage of the intervals of energy, which a meter's gain error widens."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from steelyard.analysis.inference import estimates
from tools.coverage.planted import MEAN_MS, Plot
from tools.coverage.tally import CONFIDENCE, Case, Draw, Outcome, held

ENERGY = "Energy by a meter with a gain error"
GAIN_PERCENT = 2.0
IDLE_SHARE = 0.4
IDLE_CV = 0.02
MEAN_J = MEAN_MS
"""The same number: the planted truths have no unit."""


def cases() -> Iterator[Case]:
    """Every cell of the table."""
    for idle in (False, True):
        for starts in (3, 5, 10, 20):
            what = "above idle, 40% of it with 2% noise" if idle else "whole"
            yield Case(
                ENERGY, "t over start means, and twice the gain error", f"{what}; {Plot().words}; gain 2%",
                f"{starts} x 3", _metered(starts, idle=idle), beside=(("t over start means alone", "not used"),),
            )  # fmt: skip


def _metered(starts: int, *, idle: bool) -> Draw:
    """Energy of trials, by a meter that is the same in all trials of a study, without its idle part or with it."""
    plot, truth = Plot(), MEAN_J * (1 - IDLE_SHARE if idle else 1)

    def draw(rng: np.random.Generator, studies: int) -> Iterable[tuple[Outcome, ...]]:
        whole = plot.values(rng, studies, starts, MEAN_J)
        taken_out = IDLE_SHARE * MEAN_J * (1 + IDLE_CV * rng.standard_normal(whole.shape)) if idle else 0.0
        gains = 1 + GAIN_PERCENT / 100 * rng.standard_normal((studies, 1))
        for means in (gains * (whole - taken_out).mean(axis=2)).tolist():
            alone = estimates.mean_over_starts(means, "J", CONFIDENCE)
            yield held(estimates.with_gain_error(alone, GAIN_PERCENT), truth), held(alone, truth)

    return draw
