"""A system on paper: hard settings, an easy one, and a free table."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from steelyard.model.value import Value


class Settings(Value):
    heap_mb: int = Field(default=256, ge=96)
    replication_factor: int = Field(default=1, ge=1)
    compression: Literal["lz4", "snappy", "none"] = "lz4"
    yaml: dict[str, str | int | float | bool] = Field(default_factory=dict)
    tracing: bool = Field(default=False, json_schema_extra={"easy": True})


@dataclass(frozen=True)
class System:
    memory_mb_per_node: int


def create(settings: Any, cache_folder: Path) -> System:
    return System(memory_mb_per_node=settings.heap_mb * 2)
