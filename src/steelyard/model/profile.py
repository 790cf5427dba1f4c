"""Node profile: hardware that a database node represents, as one TOML file states it."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from steelyard.model.node_limits import NodeLimits
from steelyard.model.value import Value


class Profile(Value):
    """A named value of `node.profile`. A field that the hardware leaves open is absent, and limits nothing."""

    title: str
    """The hardware in a few words."""
    source: str
    """Where each number comes from: data sheets, publications, measurements."""
    not_modelled: str
    """Differences of a limited node from this hardware."""
    cores: int | None = Field(default=None, ge=1)
    """Cores of the hardware."""
    relative_speed: float | None = Field(default=None, gt=0, le=100)
    """Speed of one of its cores, relative to the reference core: one core of an Intel Core i3-3220 of 2012 at 3.3 GHz.
    A processor of the machine that lends the nodes counts as one reference core, see `steelyard-agent gauge`."""
    memory_mb: int | None = Field(default=None, ge=16)
    """RAM in MiB."""
    swap_mb: int | None = Field(default=None, ge=0)
    """Swap in MiB."""
    heap_mb: int | None = Field(default=None, ge=16)
    """JVM heap in MiB that fits; the default of `system.heap_mb`."""
    disk_gb: float | None = Field(default=None, gt=0)
    """Size of the disk in GB (10^9 bytes)."""
    disk_read_mb_per_s: float | None = Field(default=None, gt=0)
    """Sequential reads, MB/s (10^6 bytes)."""
    disk_write_mb_per_s: float | None = Field(default=None, gt=0)
    """Sequential writes, MB/s (10^6 bytes)."""
    disk_read_ops_per_s: int | None = Field(default=None, ge=1)
    """Random reads of 4 KiB per second."""
    disk_write_ops_per_s: int | None = Field(default=None, ge=1)
    """Random writes of 4 KiB per second."""

    @property
    def cpus(self) -> float | None:
        """Processors of the machine that lends the node: cores times relative speed; None: no limit."""
        return None if self.cores is None else round(self.cores * (self.relative_speed or 1.0), 3)

    @property
    def limits(self) -> dict[str, Any]:
        """Fields of section `node` that the profile gives values; those without one are absent."""
        named = {name: getattr(self, name, None) for name in NodeLimits.model_fields if name != "profile"}
        return {name: value for name, value in named.items() if value is not None}
