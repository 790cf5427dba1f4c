"""Measure: how a response is computed from the samples of probes, as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

POINT_S: Final = 30.0
"""Length of a point, seconds: `sar -u 30 40` and `iostat -d 30 40` of chekkilla2016."""
KIB: Final = 1024.0
MIB: Final = 1024.0**2

JOB_SPAN: Final = "span_of_job_s"
"""Metric of engines that submit jobs: one sample for each job, at the end of its work, of the seconds since its
submission."""

Over = Literal["database", "load", "each"]
"""database: all database nodes together; load: all load nodes together; each: each database node separately, of which
the highest value counts."""
How = Literal["mean", "max", "max_30s", "sum", "integral", "longest"]
"""mean: over time and nodes, each reading weighted by the time that it covers; max: the highest reading of a node;
max_30s: the highest mean of a node over 30 s, counted from the beginning; sum: of all readings of all nodes; integral:
over time, added up over nodes; longest: the longest time, seconds, that one reading of a node covers."""
Per = Literal["", "cores", "operation"]
"""Divisor: cores: the cores that the node was given; operation: operations answered without error."""

During = Literal["measured", "idle", "jobs"]
"""measured: the measured span; idle: the phase before the load; jobs: of the measured span, the times in which at least
one job was at work (`JOB_SPAN`), without the rests between jobs and the checks of outputs."""


@dataclass(frozen=True)
class Measure:
    """Definition of a number that samples give: which metrics, over which nodes, and how they become one number."""

    metrics: tuple[str, ...]
    """Added up reading by reading. A node without the first one gives no number; of the others, those that it has."""
    how: How = "mean"
    over: Over = "database"
    per: Per = ""
    scale: float = 1.0
    """Multiplies the number, to get its unit."""
    shift: float = 0.0
    """Is added to the multiplied number."""
    probe: str = "os"
    """The probe that reads the metrics: a study that wants the number must run it. Empty: the engine says them."""
    power: bool = False
    """Whether it is of power: then each node's own metrics in watts, of whatever probe, stand in for `metrics`
    (`model/power.py`)."""
    during: During = "measured"
    """The times over which it is taken; a trial without such a time has no such number."""
    above_idle: bool = False
    """Whether each node's mean over the idle phase is subtracted from its readings."""
    shared: str = ""
    """Resource, as in `TrialRecord.shares`: where nodes share it, every node reads the same, and the first counts."""
