"""Figures of merit as frozen values: percentiles within trials, speed-up with a base, overall ratios, cost, energy."""

from __future__ import annotations

from typing import Literal

from steelyard.model.estimate import Estimate
from steelyard.model.study import Level
from steelyard.model.value import Value

Basis = Literal["measured", "declared", "none"]


class TrialPercentile(Value):
    """A percentile of response time within one trial, over its operations; no number of other tables rests on its
    interval, because trials are what is counted."""

    trial_id: str
    attempt: int
    treatment: dict[str, Level]
    response: str
    unit: str
    operations: int
    """Answered operations."""
    needed: int
    """Operations that the percentile needs to be given."""
    percentile: Estimate | None = None
    """None below `needed` operations."""
    note: str = ""
    """Why there is none, or no end."""


class Scaling(Value):
    """Speed-up and efficiency of a size against a stated base, other factors fixed."""

    factor: str
    base: Level
    level: Level
    others: dict[str, Level]
    response: str
    starts_base: int
    starts_level: int
    speedup: Estimate | None = None
    """How many times faster than the base; times as base over level, throughput as level over base."""
    ideal: float
    """level / base: the speed-up of a system that scales without loss."""
    efficiency: Estimate | None = None
    """Speed-up over ideal."""
    sentence: str


class Overall(Value):
    """A level against its baseline over all levels of the other factors: the geometric mean of the ratios."""

    factor: str
    baseline: Level
    level: Level
    response: str
    cells: int
    """Combinations of the other factors that have both levels."""
    left_out: int
    """Combinations that lack one of them."""
    starts: int
    ratio: Estimate
    least: float
    """The least ratio of a cell, and where: a mean hides that cells differ."""
    least_at: str
    greatest: float
    greatest_at: str
    verdict: str
    sentence: str


class MainEffect(Value):
    """The effect of a factor of a fraction of a factorial design, with what cannot be told from it."""

    factor: str
    baseline: Level
    level: Level
    response: str
    n: int
    starts: int
    ratio: Estimate | None = None
    """Geometric mean of the treatments at the level over that at the baseline; None where a treatment has no trial."""
    verdict: str
    aliases: str
    """Interactions that would show as the same difference."""
    sentence: str


class Merit(Value):
    """Throughput, cost and energy of one treatment."""

    treatment: dict[str, Level]
    n: int
    starts: int
    nodes: int
    """Nodes that are paid for and fed."""
    throughput_per_s: Estimate
    cost_per_million_operations: Estimate | None = None
    cost_basis: Basis = "none"
    energy_j_per_million_operations: Estimate | None = None
    energy_basis: Basis = "none"
    note: str = ""
    """Why a number is missing, and what it holds."""
