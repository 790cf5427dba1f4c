"""Alarms on the points of a metric, as CloudWatch evaluates them, and adjustments of a size, as AWS Auto Scaling rounds
them. Policies threshold, simple, step, two-stage and target-tracking decide by these.

The evaluation of missing data follows "Configuring how CloudWatch alarms treat missing data" (CloudWatch User Guide),
both tables of which are tests: real points from further back are taken first, missing ones are filled in only if there
are too few, and an alarm does not wait for points that can no longer prevent it.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from pydantic import Field, model_validator

from steelyard.model.scaling import Point
from steelyard.model.value import Value

Comparison = Literal[
    "greater-than-or-equal-to-threshold",
    "greater-than-threshold",
    "less-than-threshold",
    "less-than-or-equal-to-threshold",
]
WhenMissing = Literal["missing", "not-breaching", "breaching", "ignore"]
AdjustmentType = Literal["change-in-capacity", "percent-change-in-capacity", "exact-capacity"]

OPERATORS: Final[Mapping[str, tuple[str, Callable[[float, float], bool]]]] = {
    "greater-than-or-equal-to-threshold": (">=", operator.ge),
    "greater-than-threshold": (">", operator.gt),
    "less-than-threshold": ("<", operator.lt),
    "less-than-or-equal-to-threshold": ("<=", operator.le),
}
FURTHER_BACK: Final = 2
"""Periods of the evaluation range beyond `evaluation_periods`, from which real points are taken in place of missing
ones: 2 in the tables of AWS, which does not publish the number."""
LONGEST_EVERY_S: Final = 60.0
"""CloudWatch evaluates an alarm with a longer period every minute."""
ROUNDING: Final = 1e-9


class AlarmSettings(Value):
    """Metric and alarm."""

    metric: str = "cpu_percent_mean"
    """Response that is followed, in periods."""
    period_s: float = Field(default=60.0, ge=1, le=86400)
    """Seconds of a period. Each period is one point."""
    comparison_operator: Comparison = "greater-than-or-equal-to-threshold"
    """Comparison with the threshold by which a point breaches it."""
    evaluation_periods: int = Field(default=5, ge=1, le=1440)
    """Number of periods that are looked at (CloudWatch: N of "M out of N")."""
    datapoints_to_alarm: int = Field(default=0, ge=0, le=1440)
    """Number of them that must breach (CloudWatch: M); 0: all."""
    when_missing: WhenMissing = "missing"
    """Treatment of a period without a reading if there are too few real points (CloudWatch: TreatMissingData). missing:
    it does not count; not-breaching, breaching: it counts as that; ignore: the alarm stays as it is."""
    held_seconds: float = Field(default=0.0, ge=0, le=86400)
    """If above 0: the alarm is on once all points of that many seconds on end breach. `evaluation_periods` and
    `datapoints_to_alarm` are not used then. A period without a reading ends the time, unless `when_missing` is
    breaching (it counts) or ignore (it is left out)."""

    @model_validator(mode="after")
    def _possible(self) -> AlarmSettings:
        if self.datapoints_to_alarm > self.evaluation_periods:
            raise ValueError(
                f"datapoints_to_alarm = {self.datapoints_to_alarm} of evaluation_periods = {self.evaluation_periods} "
                "can never breach"
            )
        if 0 < self.held_seconds < self.period_s:
            raise ValueError(f"held_seconds = {self.held_seconds:g} is shorter than period_s = {self.period_s:g}")
        return self

    @property
    def every_s(self) -> float:
        """Time between two evaluations."""
        return min(self.period_s, LONGEST_EVERY_S)

    def alarm(self, threshold: float) -> Alarm:
        """The alarm at a threshold."""
        sign, compare = OPERATORS[self.comparison_operator]
        held = math.ceil(self.held_seconds / self.period_s - ROUNDING)
        return Alarm(
            self.metric, self.period_s, threshold, sign, compare, self.evaluation_periods,
            self.datapoints_to_alarm or self.evaluation_periods, self.when_missing, held,
        )  # fmt: skip


@dataclass(frozen=True)
class Alarm:
    """An alarm at a threshold."""

    metric: str
    period_s: float
    threshold: float
    sign: str
    compare: Callable[[float, float], bool]
    periods: int
    """Periods that are looked at."""
    needed: int
    """Points of them that must breach."""
    when_missing: WhenMissing = "missing"
    held: int = 0
    """Periods on end that must breach; 0: `needed` of `periods`."""

    @property
    def upwards(self) -> bool:
        """Whether greater values breach."""
        return self.sign.startswith(">")

    def is_on(self, points: Sequence[Point]) -> bool:
        """Whether the state is ALARM after the last point. A state that is kept is the one after an earlier point."""
        if self.held:
            return self._held(points)
        length = self.periods + FURTHER_BACK
        for end in range(len(points), 0, -1):
            state = self._state(points[max(0, end - length) : end])
            if state is not None:
                return state
        return False

    def reason(self, points: Sequence[Point]) -> str:
        """The rule, and the last value."""
        last = next((point.value for point in reversed(points) if point.value is not None), None)
        how = f"for {self.held * self.period_s:g} s on end" if self.held else (
            f"in {self.needed} of {self.periods} periods of {self.period_s:g} s"
        )  # fmt: skip
        seen = "no reading" if last is None else f"last {last:.4g}"
        return f"{self.metric} {self.sign} {self.threshold:g} {how}, {seen}"

    def _state(self, window: Sequence[Point]) -> bool | None:
        """Whether the state is ALARM after the last point of the evaluation range; None if it stays as it was."""
        real = [point.value for point in window if point.value is not None][-self.periods :]
        breaching = sum(self.compare(value, self.threshold) for value in real)
        lacking = min(self.periods, len(window)) - len(real)
        if breaching >= self.needed:
            return True
        if lacking <= 0 or self.when_missing == "not-breaching":
            return False
        if self.when_missing == "breaching":
            return breaching + lacking >= self.needed
        if breaching < len(real):
            return False
        if self.when_missing == "ignore":
            return None
        # No real point speaks against it, and the oldest is as old as an alarm needs.
        ages = [len(window) - place for place, point in enumerate(window) if point.value is not None]
        return bool(ages) and ages[0] >= self.needed

    def _held(self, points: Sequence[Point]) -> bool:
        run = 0
        for point in reversed(points):
            if point.value is None:
                if self.when_missing == "ignore":
                    continue
                if self.when_missing != "breaching":
                    return False
            elif not self.compare(point.value, self.threshold):
                return False
            run += 1
            if run >= self.held:
                return True
        return False


def adjusted(nodes: int, kind: AdjustmentType, adjustment: float, least: int = 0) -> int:
    """A size after an adjustment. A percentage is rounded as AWS does: towards 0, but to 1 node at least; and to
    `least` nodes (AWS: MinAdjustmentMagnitude)."""
    if kind == "exact-capacity":
        return int(adjustment)
    if kind == "change-in-capacity" or not adjustment:
        return nodes + int(adjustment)
    change = nodes * abs(adjustment) / 100
    return nodes + int(math.copysign(max(1, least, math.floor(change + ROUNDING)), adjustment))
