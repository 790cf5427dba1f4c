"""Limits of a database node: section `node` of a study, with the numbers of a profile where it names one."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from steelyard.model.value import Value

LIMIT_SETTLE_S = 2.0
"""Seconds from when limits begin on a warm cluster until the first trial: twenty periods of a quota."""
DEFAULT_DISK_GB = 16.0
"""Size of a node's own disk where only its rates are said, GB (10^9 bytes)."""
DISK_RATES = ("disk_read_mb_per_s", "disk_write_mb_per_s", "disk_read_ops_per_s", "disk_write_ops_per_s")
"""The fields that are rates of a disk."""


def fact_of_rate(field: str) -> str:
    """The fact that says a rate of DISK_RATES in force, in bytes/s or operations/s: `limit_disk_write_bytes_per_s`."""
    return f"limit_{field.replace('_mb_per_s', '_bytes_per_s')}"


class NodeLimits(Value):
    """Limits of a database node, whatever site lends it. Load nodes have none, because they would limit the
    measurement."""

    memory_mb: int | None = Field(default=None, ge=16)
    """Memory in MiB that each database node may use, including page cache; none: no limit."""
    cpus: float | None = Field(default=None, gt=0)
    """Number of processors that each database node may use; none: no limit."""
    cpus_from: Literal["warm", "start"] | None = None
    """From when on `cpus` is in force. warm (default): nodes start, are filled and warmed up without it, and it is set
    right before the first trial; start: from when the nodes are lent, as always with `cpu_limit = "cpuset"`."""
    dilation: float = Field(default=1.0, ge=1, le=1000)
    """By how much time is stretched (k), so that more or faster nodes fit into a machine than it has processors for:
    `cpus`, rates of disks and links and offered rates are divided by k, delays, durations and timeouts multiplied, when
    the study is run. Trials keep the times of the clock; the analysis divides times by k and multiplies rates,
    and says so."""
    profile: str = ""
    """Hardware that each database node represents: a shipped profile, or the path of a TOML file next to the study. It
    gives the fields of this section, and `system.heap_mb`, their values where the study writes none."""
    cpu_limit: Literal["quota", "cpuset"] | None = None
    """How `cpus` is enforced. quota (default): processor time in each period of 100 ms, on any core; cpuset: that many
    cores of its own, whole ones only."""
    swap_mb: int | None = Field(default=None, ge=0)
    """Swap in MiB that each database node may use beyond `memory_mb`; none: no swap where `memory_mb` is limited."""
    disk_gb: float | None = Field(default=None, gt=0, le=16_000)
    """Size in GB (10^9 bytes) of each database node's own file system; none: no own file system, or 16 GB where
    a limit of the disk needs one. Its file takes no more room than is written."""
    disk_read_mb_per_s: float | None = Field(default=None, gt=0)
    """Bytes that each database node may read from its disk, MB/s (10^6 bytes); none: no limit."""
    disk_write_mb_per_s: float | None = Field(default=None, gt=0)
    """Bytes that each database node may write to its disk, MB/s (10^6 bytes); none: no limit."""
    disk_read_ops_per_s: int | None = Field(default=None, ge=1)
    """Read operations of its disk per second that each database node may use; none: no limit."""
    disk_write_ops_per_s: int | None = Field(default=None, ge=1)
    """Write operations of its disk per second that each database node may use; none: no limit."""

    disk_rates_from: Literal["warm", "start"] | None = None
    """From when on the four rates of the disk are in force. start (default): from when the nodes are lent; warm: tables
    are filled for the first trial of a start without them, what is in memory is written out, and they are set right
    before that trial. A memory card takes minutes for rows that a trial reads in seconds."""

    @model_validator(mode="after")
    def _cores_from_the_start(self) -> NodeLimits:
        if self.cpu_limit == "cpuset" and self.cpus_from == "warm":
            raise ValueError('cpu_limit = "cpuset" binds nodes to cores when they are lent: cpus_from = "start"')
        return self

    @property
    def processors_from_warm(self) -> bool:
        """Whether processors are limited only once the cluster is ready and warm."""
        return self.cpus is not None and self.cpus_from == "warm"

    @property
    def disks_from_warm(self) -> bool:
        """Whether the rates of disks are limited only once the cluster is ready and warm."""
        return self.disk_rates_from == "warm" and self.slow_disk

    @property
    def limited_when_warm(self) -> bool:
        """Whether some limits begin only once the cluster is ready and warm."""
        return self.processors_from_warm or self.disks_from_warm

    @property
    def disk_size_bytes(self) -> float | None:
        """Size of a node's own disk; None if it has none of its own."""
        return (self.disk_gb or DEFAULT_DISK_GB) * 1e9 if self.own_disk else None

    @property
    def own_disk(self) -> bool:
        """Whether a node needs its own file system."""
        return self.disk_gb is not None or self.slow_disk

    @property
    def slow_disk(self) -> bool:
        """Whether any rate of a node's disk is limited."""
        return any(getattr(self, name) is not None for name in DISK_RATES)
