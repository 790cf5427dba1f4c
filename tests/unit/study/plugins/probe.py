"""A probe on paper, with settings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from steelyard.model.sample import Metric, Sample
from steelyard.model.value import Value
from steelyard.probe.base import Placement, Watched


class Settings(Value):
    """Settings of a power meter."""

    outlet: int
    """Outlet of the meter."""
    range: Literal["low", "high"] = "low"
    """Range of the meter."""
    login_password: str = ""
    """Password of the meter."""


class Meter:
    """A probe that reads nothing."""

    name = "meter"
    metrics = (Metric(name="node_power_watts", unit="watts", description="power"),)

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def placements(self, watched: Sequence[Watched], interval_s: float) -> Sequence[Placement]:
        return ()

    def parse(self, node: str, line: bytes) -> Iterable[Sample]:
        return ()


def create(settings: Settings) -> Meter:
    """The probe; no side effects."""
    return Meter(settings)
