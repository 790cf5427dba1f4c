"""Policy `oracle`: knows the load beforehand, and orders nodes as early as they need. The optimum that no policy
without foresight reaches, for comparison."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated

from pydantic import Field, model_validator

from steelyard.model.demand import Capacities
from steelyard.model.errors import StudyError
from steelyard.model.scaling import Desired
from steelyard.model.value import Value
from steelyard.policy._alarm import ROUNDING
from steelyard.policy.base import Bounds, History, Policy

Rate = tuple[float, Annotated[float, Field(ge=0)]]


class Settings(Value):
    """Capacities, and the load to come."""

    capacity: Capacities
    """Pairs of number of nodes and the operations per second that they carry, in order of size: [[3, 9000], [4,
    11500]]."""
    t_scale_s: float = Field(ge=0, le=86400)
    """Seconds from the order of a node until it serves, as measured."""
    rates: tuple[Rate, ...] = ()
    """Pairs of seconds of the measured phase and the offered rate from then on, operations per second. Default: those
    of the load."""

    @model_validator(mode="after")
    def _in_order(self) -> Settings:
        moments = [from_s for from_s, _ in self.rates]
        if any(later_s <= before_s for before_s, later_s in pairwise(moments)):
            raise ValueError(f"rates at {moments} are not in order: each must be later than the one before")
        return self


class Oracle:
    """Desires the least size that carries the greatest rate until a node that is ordered now would serve."""

    name, metric, period_s, every_s = "oracle", "", 0.0, 1.0

    def __init__(self, settings: Settings, bounds: Bounds) -> None:
        self._settings = settings
        self._bounds = bounds

    def desired(self, history: History, now_s: float) -> Desired:
        """The size for the greatest rate from now until a scaling time later."""
        del history
        settings = self._settings
        until_s = now_s + settings.t_scale_s
        ends = [from_s for from_s, _ in settings.rates[1:]]
        due = [
            rate for (from_s, rate), to_s in zip(settings.rates, [*ends, float("inf")], strict=True)
            if from_s <= until_s and to_s > now_s
        ]  # fmt: skip
        if not due:
            return Desired(now_s, self._bounds.nodes, "")
        greatest = max(due)
        nodes = next((size for size, carried in settings.capacity if carried >= greatest * (1 - ROUNDING)), None)
        reason = f"oracle: up to {greatest:.6g} per s until {settings.t_scale_s:g} s from now"
        if nodes is None:
            return Desired(now_s, settings.capacity[-1][0], f"{reason}, more than the largest size carries")
        return Desired(now_s, nodes, reason)


def create(settings: Settings, bounds: Bounds) -> Policy:
    """The policy for a cluster. Raises StudyError if the offered rate is not known."""
    if not settings.rates:
        raise StudyError(
            "policy oracle does not know the offered rate",
            "give the load a rate, or say it in policy.rates: [[0, 5000], [60, 9000]]",
            key="policy.rates",
        )
    return Oracle(settings, bounds)
