"""Policy `scheduled`: sizes at given times, whatever is measured. Growth that does not depend on a rule."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Final

from pydantic import Field, model_validator

from steelyard.model.scaling import Desired
from steelyard.model.value import Value
from steelyard.policy.base import Bounds, History, Policy

MOST_STEPS: Final = 200
"""Largest number of changes of size in one trial: each is an activity in the trial's record."""

Step = tuple[Annotated[float, Field(ge=0, le=1e6)], Annotated[int, Field(ge=1, le=1000)]]


class Settings(Value):
    """Sizes over time."""

    times: tuple[Step, ...] = Field(default=(), max_length=MOST_STEPS)
    """Pairs of seconds since the beginning of the measured phase and number of database nodes, in order of time: [[40,
    4], [120, 3]]."""

    @model_validator(mode="after")
    def _in_order(self) -> Settings:
        if not self.times:
            raise ValueError("scheduled needs times, such as [[40, 4]]: 4 nodes from 40 s on")
        moments = [at_s for at_s, _ in self.times]
        if any(later_s <= before_s for before_s, later_s in pairwise(moments)):
            raise ValueError(f"times {moments} are not in order: each must be later than the one before")
        return self


class Scheduled:
    """Desires the size of the last time that has come."""

    name, metric, period_s, every_s = "scheduled", "", 0.0, 1.0

    def __init__(self, settings: Settings, bounds: Bounds) -> None:
        self.at_s = [at_s for at_s, _ in settings.times]
        self._settings = settings
        self._bounds = bounds

    def desired(self, history: History, now_s: float) -> Desired:
        """The size of the last time that has come; that of the beginning before the first."""
        del history
        for at_s, nodes in reversed(self._settings.times):
            if at_s <= now_s:
                return Desired(now_s, nodes, f"scheduled: {nodes} nodes at {at_s:g} s")
        return Desired(now_s, self._bounds.nodes, "")


def create(settings: Settings, bounds: Bounds) -> Policy:
    """The policy for a cluster."""
    return Scheduled(settings, bounds)
