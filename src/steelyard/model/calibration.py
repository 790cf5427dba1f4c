"""Calibration of the load engine: the most that one worker can do on this machine, checked in every trial. Pure.

A generator that is busy for a share u of its time makes an operation wait u / (1 - u) of the generator's own cost per
operation before it is sent (M/M/1: Kleinrock 1975, Queueing Systems I, section 3.2). At one half that is once its own
cost, a microsecond or two; beyond, it grows without bound, and what is measured is the generator. Hence the limit
`generator_ceiling_fraction` of a study is 0.5 unless it says otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import model_validator

from steelyard.model import former_words
from steelyard.model.value import Value

Kind = Literal["read", "write"]
KINDS_OF: Mapping[str, tuple[Kind, ...]] = {
    "read": ("read",),
    "scan": ("read",),
    "update": ("write",),
    "insert": ("write",),
    "write": ("write",),
    "read-modify-write": ("read", "write"),
}
"""Operation of the engine's records to what it asks of the generator; any other counts as the dearer of both."""


class Ceiling(Value):
    """One worker against a server that answers at once, closed loop."""

    kind: Kind
    """read: a row of 10 fields of 100 bytes is asked for; write: all 10 fields are written, 1 KB."""
    in_flight: int
    measured_per_s: float
    """Operations per second that came about."""
    busiest_thread_fraction: float
    """CPU time of the worker over the time: below 1 the server, or other programs, took turns."""
    cpu_us_per_operation: float
    """User and system time of the whole generator."""

    @property
    def per_s(self) -> float:
        """Operations per second of a worker that is busy all the time: measured / busy share."""
        return self.measured_per_s / min(1.0, max(self.busiest_thread_fraction, 0.01))


class Slip(Value):
    """How late the generator sends although a place in flight is free, open loop."""

    rate_per_s: float
    operations: int
    pacing_ms_p50: float
    pacing_ms_p99: float


class Calibration(Value):
    """What `steelyard calibrate` found, and of what."""

    format: Literal[1] = 1
    made_s: float
    """Seconds since the epoch."""
    machine: dict[str, str]
    """Processor, cores, kernel, architecture."""
    agent: str
    """Version and fingerprint of the program."""
    optimised: bool
    ceilings: tuple[Ceiling, ...]
    slip: Slip
    memory_bytes: int
    """Most resident memory of the generator in any step."""
    background_cpu_fraction: float
    """Share of all cores that other programs took meanwhile."""
    steal_fraction: float
    """Share of all cores that other guests of the hardware took meanwhile."""

    @model_validator(mode="before")
    @classmethod
    def _keys_of_today(cls, written: Any) -> Any:
        return former_words.keys(written, former_words.LIMITS)

    def ceiling(self, kind: Kind, in_flight: int) -> Ceiling | None:
        """The ceiling that holds for so many operations in flight: of the largest measured number that is not above it,
        else of the smallest, which is too high for fewer in flight, never too low for them to be called free."""
        mine = sorted((one for one in self.ceilings if one.kind == kind), key=lambda one: one.in_flight)
        below = [one for one in mine if one.in_flight <= in_flight]
        return below[-1] if below else mine[0] if mine else None

    def used_fraction(self, rates_per_s: Mapping[str, float], in_flight: int) -> float | None:
        """Share of one worker's time that operations at these rates take: the sum of rate / ceiling over what each asks
        for. None if a ceiling is missing."""
        used = 0.0
        for operation, rate_per_s in rates_per_s.items():
            costs: dict[Kind, float] = {}
            for kind in ("read", "write"):
                ceiling = self.ceiling(kind, in_flight)
                if ceiling is None or ceiling.per_s <= 0:
                    return None
                costs[kind] = 1 / ceiling.per_s
            asked = KINDS_OF.get(operation)
            used += rate_per_s * (max(costs.values()) if asked is None else sum(costs[kind] for kind in asked))
        return used
