"""A system on paper: hard settings, an easy one, and a free table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from steelyard.model.errors import StudyError
from steelyard.model.load import Load
from steelyard.model.replication import replication_problems
from steelyard.model.value import Value
from steelyard.model.workload_shape import WorkloadShape
from steelyard.system.base import ClusterTimes


class Settings(Value):
    heap_mb: int = Field(default=256, ge=96)
    replication_factor: int = Field(default=1, ge=1)
    compression: Literal["lz4", "snappy", "none"] = "lz4"
    yaml: dict[str, str | int | float | bool] = Field(default_factory=dict)
    tracing: bool = Field(default=False, json_schema_extra={"easy": True})


@dataclass(frozen=True)
class System:
    settings: Settings
    protocol: str = "cql"

    @property
    def memory_mb_per_node(self) -> int:
        return self.settings.heap_mb * 2

    def times(self, shape: WorkloadShape, nodes: int, cores: int) -> ClusterTimes:
        return ClusterTimes(
            start_s=4.0 * nodes, schema_s=0.5, fill_s=1.0 + shape.records / (2_500 * cores), snapshot_s=0.5,
            restore_s=0.5, wipe_s=0.2, service_ms=0.5 * max(1.0, nodes / cores), most_per_s=3_000.0 * cores,
        )  # fmt: skip

    def copies(self, nodes: int) -> int:
        return min(self.settings.replication_factor, nodes)

    def disk_bytes(self, stored_bytes: float, nodes: int) -> int:
        return int(3 * stored_bytes)

    def problems(self, nodes: int, load: Load) -> Iterator[StudyError]:
        yield from replication_problems(self.settings.replication_factor, nodes, load)


def create(settings: Any, cache_folder: Path) -> System:
    return System(settings)
