"""A second workload on paper, so that workload can be a factor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from pydantic import Field

from steelyard.model.data_model import Schema
from steelyard.model.value import Value
from steelyard.wire.order import Ycsb
from steelyard.workload import ycsb


class Settings(Value):
    records: int = Field(default=10_000, ge=1, json_schema_extra={"easy": False})
    request_distribution: Literal["zipfian", "uniform", "latest"] = "zipfian"


@dataclass(frozen=True)
class Workload:
    settings: Settings
    protocols: tuple[str, ...] = ("cql",)

    def schema(self) -> Schema:
        return Schema("ycsb", "usertable", "y_id", tuple(f"field{index}" for index in range(10)))

    def order(self) -> Ycsb:
        return ycsb.create(
            ycsb.Settings(records=self.settings.records, read_proportion=1.0, update_proportion=0.0)
        ).order()


def create(settings: Any) -> Workload:
    return Workload(settings)
