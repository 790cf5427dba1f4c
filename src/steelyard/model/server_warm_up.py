"""Server warm-up: the phase of each start before its first trial, as a study asks for it and as it came out.

Not to be mixed up with `load.warm_up_s` (seconds before each trial is measured) and `analysis.warm_up_trials` (trials
that are dropped): these begin again with each trial or only leave out, and a larger cluster, whose nodes serve fewer
operations each, stays colder through both.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from steelyard.model.value import Value

BUSY_FACTOR = 3.0
"""Seconds at high concurrency in each round, of all workloads together, over those at the study's own load."""


class ServerWarmUp(Value):
    """Server warm-up: between the start of a cluster and its first trial all workloads of the start are driven, at high
    concurrency and then at the study's own load, again and again until every node is warm. So all clusters are measured
    equally warm. The data are put back afterwards."""

    mode: Literal["auto", "on", "off"] = "auto"
    """auto: on if the system says that its servers compile code while they run (Cassandra does). A store that was begun
    without server warm-up continues without it."""
    deadline_s: float = Field(default=60.0, gt=0, le=86_400)
    """No round is begun that would end after this many seconds; what was not reached by then is recorded."""
    threads: int = Field(default=64, ge=1, le=100_000)
    """Operations in flight at high concurrency."""
    steady_s: float = Field(default=3.0, gt=0, le=3600)
    """Seconds at the study's own load in which a node must be seen to be warm; each workload's share of them is rounded
    up to whole seconds."""
    compiler_fraction: float = Field(default=0.05, gt=0, le=1)
    """A node is warm when its compiler takes less than this fraction of a core."""

    @property
    def longest_s(self) -> float:
        """Seconds that the rounds may take: until the deadline, or one round where that takes longer."""
        return max(self.deadline_s, (1 + BUSY_FACTOR) * self.steady_s)


class NodeWarmth(Value):
    """State of one node in the last round of a server warm-up."""

    compiler_fraction: float | None = None
    """Cores that its compiler took at the study's own load; None if the system does not say."""
    cpu_us_per_operation: float | None = None
    """CPU time of the node at the study's own load, divided by the operations of the whole cluster; None if it cannot
    be read, or is not needed because the compiler is known."""
    cpu_change_percent: float | None = None
    """Its change since the previous round."""


class WorkloadWarmth(Value):
    """Service time of one workload at the study's own load in the last round of a server warm-up."""

    service_ms: float
    """Mean."""
    change_percent: float | None = None
    """Its change since the previous round; None after one round."""
    noise_percent: float | None = None
    """A fall of less than this is noise."""


class ServerWarmth(Value):
    """Outcome of the server warm-up of one start."""

    seconds: float
    rounds: int
    operations: int
    """Answered in all rounds, by all nodes."""
    reached: bool
    """Whether every node was warm at the end."""
    reasons: tuple[str, ...] = ()
    """Conditions not reached."""
    nodes: dict[str, NodeWarmth] = Field(default_factory=dict)
    workloads: dict[str, WorkloadWarmth] = Field(default_factory=dict)
