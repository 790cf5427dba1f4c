"""Calibration of the load engine: the highest rate of one worker on this machine, checked in every trial. Pure.

A generator that is busy for a share u of its time delays each operation by u / (1 - u) times the generator's own cost
per operation before it is sent (M/M/1: Kleinrock 1975, Queueing Systems I, section 3.2). At u = 0.5 the delay equals
that cost, a microsecond or two; beyond, it grows without bound, and the measurement describes the generator instead of
the system. Hence the default of 0.5 for a study's limit `generator_ceiling_fraction`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from steelyard.model.file_format import FileFormat
from steelyard.model.value import Value

Kind = Literal["read", "write", "connection"]
KINDS_OF: Mapping[str, tuple[Kind, ...]] = {
    "read": ("read",),
    "scan": ("read",),
    "update": ("write",),
    "insert": ("write",),
    "write": ("write",),
    "read-modify-write": ("read", "write"),
}
"""Operation in the engine's records to the kind of work it causes; any other counts as the more expensive kind."""


class Ceiling(Value):
    """Ceiling of one worker against a server that answers at once, closed loop."""

    kind: Kind
    """read: requests a row of 10 fields of 100 bytes, or a document of 1 KB; write: writes all 10 fields, 1 KB;
    connection: opens a connection for one read."""
    in_flight: int
    measured_per_s: float
    """Operations per second that were reached."""
    busiest_thread_fraction: float
    """CPU time of the worker over elapsed time: below 1, the server or other programs took turns with it."""
    cpu_us_per_operation: float
    """User and system time of the whole generator."""

    @property
    def per_s(self) -> float:
        """Operations per second of a worker that is busy all the time: measured rate / busy share."""
        return self.measured_per_s / min(1.0, max(self.busiest_thread_fraction, 0.01))


class Slip(Value):
    """Delay of sending while fewer operations than allowed are in flight, open loop."""

    rate_per_s: float
    operations: int
    pacing_ms_p50: float
    pacing_ms_p99: float


class Calibration(Value):
    """Results of `steelyard calibrate`, and the conditions they were measured under."""

    format: FileFormat = 1
    protocol: str = "cql"
    """What the load and the null server spoke."""
    made_s: float
    """Seconds since the epoch."""
    machine: dict[str, str]
    """Processor, cores, kernel, architecture."""
    agent: str
    """Version and fingerprint of the agent program."""
    optimised: bool
    ceilings: tuple[Ceiling, ...]
    slip: Slip
    memory_bytes: int
    """Peak resident memory of the generator over all steps."""
    background_cpu_fraction: float
    """Share of all cores that other programs used during calibration."""
    steal_fraction: float
    """Share of all cores that other guests of the same hardware used during calibration."""

    def ceiling(self, kind: Kind, in_flight: int) -> Ceiling | None:
        """The ceiling for this number of operations in flight: that of the largest measured number at or below it,
        otherwise that of the smallest measured number. For fewer in flight it may be too high, never too low."""
        mine = sorted((one for one in self.ceilings if one.kind == kind), key=lambda one: one.in_flight)
        below = [one for one in mine if one.in_flight <= in_flight]
        return below[-1] if below else mine[0] if mine else None

    def used_fraction(
        self, rates_per_s: Mapping[str, float], in_flight: int, *, keep_alive: bool = True
    ) -> float | None:
        """Share of one worker's time that operations at these rates take: the sum of rate / ceiling over the kinds of
        work. None if a ceiling is missing. `keep_alive`: over connections that stay open, not one for each operation.
        """
        ceilings = {one.kind: self.ceiling(one.kind, in_flight) for one in self.ceilings}
        costs = {kind: 1 / one.per_s for kind, one in ceilings.items() if one is not None and one.per_s > 0}
        used = 0.0
        for operation, rate_per_s in rates_per_s.items():
            dearest = sorted(costs.keys() - {"connection"}, key=costs.__getitem__)[-1:]
            kinds = KINDS_OF.get(operation, tuple(dearest)) if keep_alive else ("connection",)
            if not kinds or not costs.keys() >= set(kinds):
                return None
            used += rate_per_s * sum(costs[kind] for kind in kinds)
        return used
