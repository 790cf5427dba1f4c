"""Planted truths: simulated studies of known mean, spread between starts and spread between trials."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import polars as pl

from steelyard.analysis.frame import TrialFrame

Numbers = np.ndarray[Any, Any]
Kind = Literal["normal", "lognormal"]

MEAN_MS = 100.0
RESPONSE = "execution_time_ms"


@dataclass(frozen=True)
class Plot:
    """A split plot: variation between starts and between trials of a start, as coefficients of variation."""

    kind: Kind = "normal"
    start_cv: float = 0.03
    trial_cv: float = 0.02
    trials: int = 3

    def starts(self, rng: np.random.Generator, studies: int, starts: int) -> Numbers:
        """True means of starts about 1, shape (studies, starts)."""
        return _around_one(rng, (studies, starts), self.kind, self.start_cv)

    def values(self, rng: np.random.Generator, studies: int, starts: int, mean: float = MEAN_MS) -> Numbers:
        """One number per trial, shape (studies, starts, trials), with expectation `mean`."""
        return self.within(rng, mean * self.starts(rng, studies, starts))

    def within(self, rng: np.random.Generator, true_means: Numbers) -> Numbers:
        """Trials of starts with these true means; the result has one more axis, the trials."""
        shape = (*true_means.shape, self.trials)
        return np.asarray(true_means[..., None] * _around_one(rng, shape, self.kind, self.trial_cv))

    def means(self, rng: np.random.Generator, studies: int, starts: int, mean: float = MEAN_MS) -> Numbers:
        """Start means, shape (studies, starts)."""
        return np.asarray(self.values(rng, studies, starts, mean).mean(axis=-1))

    def pairs(
        self, rng: np.random.Generator, studies: int, starts: int, ratio: float, interaction_cv: float = 0.01
    ) -> tuple[Numbers, Numbers]:
        """Start means of two levels within the same starts; the ratio varies over starts by `interaction_cv`."""
        shared = MEAN_MS * self.starts(rng, studies, starts)
        changed = ratio * shared * _around_one(rng, shared.shape, self.kind, interaction_cv)
        return tuple(np.asarray(self.within(rng, one).mean(axis=-1)) for one in (shared, changed))  # type: ignore[return-value]

    @property
    def words(self) -> str:
        """The truth in words."""
        return f"{self.kind}, starts {self.start_cv:.0%}, trials {self.trial_cv:.0%}"


def _around_one(rng: np.random.Generator, shape: tuple[int, ...], kind: Kind, cv: float) -> Numbers:
    """Values with expectation 1 and coefficient of variation `cv`."""
    if kind == "normal":
        return 1 + cv * rng.standard_normal(shape)
    sd = math.sqrt(math.log1p(cv**2))
    return np.exp(sd * rng.standard_normal(shape) - sd**2 / 2)


def sample(rng: np.random.Generator, shape: tuple[int, ...], kind: Kind, cv: float) -> Numbers:
    """Single values about MEAN_MS without levels of repetition."""
    return MEAN_MS * _around_one(rng, shape, kind, cv)


def frame_of(values: Numbers, levels: Sequence[tuple[int, str]], *, sizes_are_hard: bool = True) -> TrialFrame:
    """A trial frame of one study: `values` has the shape (levels, starts, trials), each level (nodes, workload).

    Levels of the same number of nodes share their starts; block k holds the k-th start of each size. Nothing is warm-up
    or control, everything is valid. Built without records, which would cost more than the analysis.
    """
    count, starts, trials = values.shape
    level, start, trial = (axis.ravel() for axis in np.indices((count, starts, trials)))
    nodes = np.asarray([one for one, _ in levels])[level]
    workload = np.asarray([one for _, one in levels])[level]
    position = (start * count + level) * trials + trial
    data = pl.DataFrame(
        {
            "trial_id": [f"t{place}" for place in position], "attempt": 1, "block": start + 1,
            "start": [f"b{one}-n{size}" for one, size in zip(start, nodes, strict=True)], "start_replicate": start + 1,
            "replicate": trial + 1, "order_in_start": trial + 1, "position": position, "control": False,
            "outcome": "valid", "begun_s": 60.0 * position, "ended_s": 60.0 * position + 50.0, "nodes": nodes,
            "workload": workload, RESPONSE: values.ravel(), "order_of_treatment": trial + 1, "warm_up": False,
            "used": True, "place_in_block": np.unique(nodes, return_inverse=True)[1] + 1,
        }
    ).sort("begun_s")  # fmt: skip
    factors: dict[str, tuple[Any, ...]] = {
        "nodes": tuple(sorted({size for size, _ in levels})),
        "workload": tuple(sorted({name for _, name in levels})),
    }
    return TrialFrame(data, factors, ("nodes",) if sizes_are_hard else (), 0)
