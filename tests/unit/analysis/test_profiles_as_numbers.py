"""Profiles as a factor: their levels stand for the memory of the trials' complete settings."""

from __future__ import annotations

from typing import Any

from steelyard.analysis.frame import memory_of_profiles
from steelyard.model.named_level import Level
from steelyard.model.trial_settings import TrialSettings


class Record:
    """As much of a trial's record as is read."""

    def __init__(self, profile: str, memory_mb: int | None, **limits: float) -> None:
        self.treatment: dict[str, Level] = {"node.profile": profile}
        node: dict[str, Any] = {"profile": profile, **limits} | ({} if memory_mb is None else {"memory_mb": memory_mb})
        self.settings = TrialSettings.model_validate({"node": node})


def numbers(*records: Any) -> dict[str, dict[Level, float]]:
    return memory_of_profiles({"node.profile": [record.treatment["node.profile"] for record in records]}, records)


def test_levels_stand_for_their_memory() -> None:
    assert numbers(Record("vm-1gb", 1024), Record("vm-2gb", 2048)) == {
        "node.profile": {"vm-1gb": 1024.0, "vm-2gb": 2048.0}
    }


def test_equal_or_unlimited_memory_is_no_number() -> None:
    assert numbers(Record("vm-1gb", 1024), Record("raspberry-pi-2", 1024)) == {}
    assert numbers(Record("vm-1gb", 1024), Record("unlimited", None)) == {}
    assert numbers(Record("vm-1gb", 1024)) == {}


def test_profiles_that_differ_in_more_than_memory_are_names() -> None:
    assert numbers(Record("raspberry-pi-3", 1024, cpus=1.0), Record("raspberry-pi-4", 4096, cpus=2.0)) == {}
    limited_alike = numbers(Record("small", 1024, cpus=1.0), Record("large", 4096, cpus=1.0))
    assert limited_alike == {"node.profile": {"small": 1024.0, "large": 4096.0}}


def test_a_study_without_profiles_has_none() -> None:
    assert memory_of_profiles({"nodes": [1, 3]}, ()) == {}
