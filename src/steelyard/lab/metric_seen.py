"""Metric of a scaling policy as it comes in: each period is closed once its readings are there."""

from __future__ import annotations

import asyncio
import time
from bisect import insort
from collections.abc import Collection, Mapping, Sequence

from steelyard.judging import policy_points
from steelyard.judging.measures import metrics_of
from steelyard.judging.membership import serving
from steelyard.judging.policy_points import Seen
from steelyard.judging.trial_responses import merged
from steelyard.lab.cluster import Cluster
from steelyard.model import power, responses
from steelyard.model.activity import Activity
from steelyard.model.histogram import Bucket
from steelyard.model.scaling import Point
from steelyard.policy.base import Policy
from steelyard.wire.record import Interval

GRACE_S = 2.0
"""Longest wait for readings of a period that has ended."""
POLL_S = 0.05


class MetricSeen:
    """The closed periods of the metric of one policy in one trial."""

    def __init__(
        self, policy: Policy, cluster: Cluster, intervals: Mapping[str, Sequence[Interval]], phases: Collection[str]
    ) -> None:
        """`intervals`: of the load nodes, as they come in; `phases`: names of the measured ones."""
        self._policy = policy
        self._phases = phases
        self._cluster = cluster
        self._intervals = intervals
        self._metrics = metrics_of([policy.metric]) if policy.metric else frozenset[str]()
        self._readings: dict[str, dict[str, list[tuple[float, float]]]] = {}
        self._answers: dict[str, list[tuple[float, list[Bucket]]]] = {}
        self._heard_s: dict[str, float] = {}
        """When the last interval of each load node ended."""
        self._taken: dict[tuple[str, str], int] = {}
        self.points: list[Point] = []

    async def until(self, t_s: float, begun_s: float, activities: Sequence[Activity]) -> bool:
        """Close the periods that end by `t_s` of the measured phase, which began at `begun_s`, GRACE_S after their end
        at the latest. Whether every node had said something by then; True without a metric."""
        policy, whole = self._policy, True
        while policy.metric and (end_s := (len(self.points) + 1) * policy.period_s) <= t_s:
            last_s = begun_s + end_s + GRACE_S
            while not (whole := self._complete(begun_s + end_s, activities)) and time.time() < last_s:  # noqa: ASYNC110
                await asyncio.sleep(POLL_S)
            if whole or policy.metric not in policy_points.OF_CLIENTS:
                seen = self._seen(activities)
                self.points.append(policy_points.point(policy.metric, end_s, policy.period_s, begun_s, seen))
            else:
                self.points.append(Point(end_s, None, 0))
        return whole

    def _seen(self, activities: Sequence[Activity]) -> Seen:
        cluster = self._cluster
        return Seen(self._readings, cluster.facts, sorted(cluster.shares), self._answers, activities)

    def _complete(self, at_s: float, activities: Sequence[Activity]) -> bool:
        """Whether everything that measures the metric has said something at a time or after it."""
        cluster, loaders = self._cluster, [node.name for node in self._cluster.loaders]
        if self._policy.metric in policy_points.OF_CLIENTS:
            self._take_in_answers()
            return all(self._heard_s.get(name, 0.0) + policy_points.ROUNDING_S >= at_s for name in loaders)
        self._take_in_samples()
        measure = responses.of(self._policy.metric).measure
        names = loaders if measure and measure.over == "load" else [node.name for node in cluster.members.in_service]
        return all(
            any(readings[-1][0] >= at_s for readings in self._readings.get(name, {}).values())
            for name in serving(names, activities, at_s)
        )

    def _take_in_answers(self) -> None:
        """Take in the intervals that have come since the last time."""
        for name, intervals in self._intervals.items():
            for interval in intervals[self._taken.get((name, ""), 0) :]:
                self._heard_s[name] = interval.t_s + interval.seconds
                answers = self._answers.setdefault(name, [])
                if interval.phase in self._phases and (answered := merged([interval], "response")):
                    answers.append((self._heard_s[name], answered))
            self._taken[name, ""] = len(intervals)

    def _take_in_samples(self) -> None:
        """Take in the samples that have come since the last time."""
        for who, samples in self._cluster.readings.samples.items():
            for sample in samples[self._taken.get(who, 0) :]:
                watts = power.ANY in self._metrics and sample.metric.endswith(power.ENDING)
                if watts or sample.metric in self._metrics:
                    of_node = self._readings.setdefault(who[1], {})
                    insort(of_node.setdefault(sample.metric, []), (sample.t_s, sample.value))
            self._taken[who] = len(samples)
