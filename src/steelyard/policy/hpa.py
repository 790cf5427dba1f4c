"""Policy `hpa`: the HorizontalPodAutoscaler of Kubernetes (autoscaling/v2), with stabilization windows and rate limits.

The computation follows `pkg/controller/podautoscaler` of Kubernetes. Its recommendations are computed again from the
history each time, where Kubernetes remembers them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated, Final, Literal

from pydantic import Field

from steelyard.model.scaling import Desired
from steelyard.policy._alarm import ROUNDING
from steelyard.policy.base import Bounds, History, Policy, changes, in_service, known, latest, value
from steelyard.policy.target_tracking import TargetSettings, proportional

Limit = tuple[Literal["pods", "percent"], Annotated[int, Field(ge=1, le=10000)], Annotated[float, Field(gt=0, le=1800)]]
Select = Literal["max", "min", "disabled"]
ROUNDING_S: Final = 1e-6
"""Rounding error of earlier times, which are computed by subtraction."""


class Settings(TargetSettings):
    """Metric, its target, and the behaviour."""

    period_s: float = Field(default=15.0, ge=1, le=86400)
    """Seconds of a period. Each period is one point."""
    tolerance: float = Field(default=0.1, ge=0, le=10)
    """Relative distance from the target within which the size stays."""
    sync_period_s: float = Field(default=15.0, ge=1, le=3600)
    """Seconds between two recommendations."""
    stabilization_window_up_s: float = Field(default=0.0, ge=0, le=3600)
    """Seconds of which the lowest recommendation counts for a larger size."""
    stabilization_window_down_s: float = Field(default=300.0, ge=0, le=3600)
    """Seconds of which the highest recommendation counts for a smaller size."""
    policies_up: tuple[Limit, ...] = Field(
        default=(("pods", 4, 15.0), ("percent", 100, 15.0)), min_length=1, max_length=10
    )
    """Limits of growth: kind, value and seconds in which not more may be added; pods are nodes."""
    policies_down: tuple[Limit, ...] = Field(default=(("percent", 100, 15.0),), min_length=1, max_length=10)
    """Limits of shrinking: kind, value and seconds in which not more may be removed."""
    select_policy_up: Select = "max"
    """Which of several limits holds: that of the greatest change, of the smallest; disabled: the size never grows."""
    select_policy_down: Select = "max"
    """Which of several limits holds: that of the greatest change, of the smallest; disabled: the size never shrinks."""


class Hpa:
    """Desires the proportional size, stabilized and limited in its rate."""

    name = "hpa"

    def __init__(self, settings: Settings, bounds: Bounds) -> None:
        self.metric, self.period_s, self.every_s = settings.metric, settings.period_s, settings.sync_period_s
        self._settings = settings
        self._bounds = bounds

    def desired(self, history: History, now_s: float) -> Desired:
        """The stabilized size, within the limits of its rate; the present one without a metric."""
        history = known(history, now_s)
        keep, settings = latest(history, self._bounds, now_s), self._settings
        recommended = self._recommended(history, now_s)
        if recommended is None:
            return keep
        up_s, down_s = settings.stabilization_window_up_s, settings.stabilization_window_down_s
        earlier = list(self._earlier(history, now_s, max(up_s, down_s)))
        at_most = min((size for age_s, size in earlier if age_s < up_s), default=recommended)
        at_least = max((size for age_s, size in earlier if age_s < down_s), default=recommended)
        stable = min(max(keep.nodes, min(recommended, at_most)), max(recommended, at_least))
        nodes = self._limited(stable, keep.nodes, history, now_s)
        if nodes == keep.nodes:
            return keep
        why = f"{self.metric} {value(history):.4g}, target {settings.target:g}: recommended {recommended}"
        why += f", stabilized {stable}" if stable != recommended else ""
        return keep._replace(nodes=nodes, reason=why + (f", limited to {nodes}" if nodes != stable else ""))

    def _recommended(self, history: History, at_s: float) -> int | None:
        """The size that the metric asked for at a time; nodes that were still to join count as idle if it asked for
        more."""
        seen, before = known(history, at_s + ROUNDING_S), known(history, at_s - ROUNDING_S)
        metric, settings = value(seen), self._settings
        if metric is None:
            return None
        present = latest(before, self._bounds, at_s).nodes
        ready = min(present, in_service(seen, self._bounds))
        ratio = metric / settings.target
        if ratio > 1:
            ratio, ready = max(1.0, ratio * ready / present), present
        return present if abs(ratio - 1) <= settings.tolerance + ROUNDING else proportional(ready, ratio, 1.0)

    def _earlier(self, history: History, now_s: float, window_s: float) -> Iterator[tuple[float, int]]:
        """Age and size of the recommendations within a window before now. The first is the size at the beginning."""
        entries = (history.supply, history.desired)
        began_s = min([history.points[0].t_s - self.period_s, *(every[0].t_s for every in entries if every)])
        for times in range(1, math.ceil(window_s / self.every_s) + 1):
            age_s = times * self.every_s
            if now_s - age_s <= began_s + ROUNDING_S:
                break
            recommended = self._recommended(history, now_s - age_s)
            if recommended is not None:
                yield age_s, recommended
        yield now_s - began_s, self._bounds.nodes

    def _limited(self, wanted: int, present: int, history: History, now_s: float) -> int:
        """A size within the limits of the rate."""
        settings, up = self._settings, wanted > present
        limits = settings.policies_up if up else settings.policies_down
        select = settings.select_policy_up if up else settings.select_policy_down
        if wanted == present or select == "disabled":
            return present
        sizes = []
        for kind, amount, period_s in limits:
            begin = present - sum(nodes for t_s, nodes in changes(history, self._bounds) if t_s > now_s - period_s)
            change = amount if kind == "pods" else math.ceil(begin * amount / 100 - ROUNDING)
            sizes.append(begin + change if up else begin - change)
        limit = max(sizes) if up == (select == "max") else min(sizes)
        return max(present, min(wanted, limit)) if up else min(present, max(wanted, limit))


def create(settings: Settings, bounds: Bounds) -> Policy:
    """The policy for a cluster."""
    return Hpa(settings, bounds)
