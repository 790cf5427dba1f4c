"""Samples from probes, and the metrics that they belong to."""

from __future__ import annotations

from typing import NamedTuple

from steelyard.model.value import Value


class Metric(Value):
    """One quantity that a probe reads."""

    name: str
    unit: str
    description: str
    cumulative: bool = False
    """Whether the raw reading never decreases (the probe reports the change per second)."""


class Sample(NamedTuple):
    """One reading: seconds since the epoch, node, metric, value."""

    t_s: float
    node: str
    metric: str
    value: float
