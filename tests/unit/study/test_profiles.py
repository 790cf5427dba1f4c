"""Node profiles: resolved into complete settings, overridden by the study, read from files beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from steelyard.model.errors import StudyError
from steelyard.model.node_limits import NodeLimits
from steelyard.model.profile import Profile
from steelyard.plugins import find
from steelyard.plugins.find import Plugins
from steelyard.study import read, read_text, settings_of
from steelyard.study.profiles import profile_of

SHIPPED = (
    "raspberry-pi-2", "raspberry-pi-3", "raspberry-pi-4", "t2.medium", "t2.micro", "unlimited", "vm-1gb", "vm-2gb",
    "vm-4gb",
)  # fmt: skip
CASSANDRA = """\
format = 1
probes = []
[study]
name = "boards"
question = "?"
[system]
name = "cassandra"
[workload]
name = "ycsb-c"
[load]
operations = 100
"""
OWN = """\
title = "thin client"
source = "measured"
not_modelled = "nothing known"
cores = 2
relative_speed = 0.3
memory_mb = 2048
heap_mb = 768
disk_write_mb_per_s = 40
"""


def complete(rest: str, treatment: dict[str, Any] | None = None, text: str = CASSANDRA) -> dict[str, Any]:
    return settings_of(read_text(text + rest), treatment or {})


def test_shipped_profiles_have_sources_and_say_what_they_do_not_model() -> None:
    assert find.shipped_values("profile") == SHIPPED
    for name in SHIPPED:
        profile = profile_of(Plugins(), name)
        assert min(len(profile.title), len(profile.source), len(profile.not_modelled)) > 10, name
        assert NodeLimits.model_validate(profile.limits).profile == ""
        assert (profile.cores is None) == (profile.relative_speed is None), name
        assert profile.heap_mb is None or profile.memory_mb is None or profile.heap_mb < profile.memory_mb


def test_every_limit_but_the_kind_of_processor_limit_can_come_from_a_profile() -> None:
    not_of_profiles = {"profile", "cpu_limit", "cpus", "cpus_from", "disk_rates_from", "dilation"}
    not_of_studies = {"title", "source", "not_modelled", "cores", "relative_speed", "heap_mb"}
    assert set(NodeLimits.model_fields) - not_of_profiles == set(Profile.model_fields) - not_of_studies


def test_complete_settings_hold_the_numbers() -> None:
    settings = complete('[node]\nprofile = "raspberry-pi-2"\n')
    assert NodeLimits.model_validate(settings["node"]) == NodeLimits(
        profile="raspberry-pi-2", memory_mb=1024, cpus=0.36, swap_mb=100, disk_gb=32.0, disk_read_mb_per_s=18.45,
        disk_write_mb_per_s=14.0, disk_read_ops_per_s=1958, disk_write_ops_per_s=732, cpus_from="warm",
    )  # fmt: skip
    assert settings["system"]["heap_mb"] == 512
    assert complete("")["system"]["heap_mb"] != 512


def test_what_the_study_writes_comes_first() -> None:
    written = '[node]\nprofile = "raspberry-pi-2"\nmemory_mb = 900\n'
    settings = settings_of(read_text(CASSANDRA.replace("[workload]", "heap_mb = 300\n[workload]") + written), {})
    assert (settings["node"]["memory_mb"], settings["node"]["cpus"]) == (900, 0.36)
    assert settings["system"]["heap_mb"] == 300


def test_a_profile_without_limits_limits_nothing() -> None:
    limits = complete('[node]\nprofile = "unlimited"\n')["node"]
    assert NodeLimits.model_validate(limits) == NodeLimits(profile="unlimited")
    assert NodeLimits.model_validate(complete("")["node"]) == NodeLimits()


def test_profiles_as_a_factor() -> None:
    factor = '[factors]\n"node.profile" = ["vm-1gb", "vm-2gb", "vm-4gb"]\n'
    found = [complete(factor, {"node.profile": name}) for name in ("vm-1gb", "vm-2gb", "vm-4gb")]
    assert [one["node"]["memory_mb"] for one in found] == [1024, 2048, 4096]
    assert [one["system"]["heap_mb"] for one in found] == [512, 1024, 1024]


def test_a_level_that_sets_a_field_comes_before_the_profile() -> None:
    factor = '[node]\nprofile = "vm-1gb"\n[factors]\n"node.memory_mb" = [700, 900]\n'
    assert complete(factor, {"node.memory_mb": 700})["node"]["memory_mb"] == 700


def test_a_file_beside_the_study(tmp_path: Path) -> None:
    (tmp_path / "thin.toml").write_text(OWN)
    path = tmp_path / "study.toml"
    path.write_text(CASSANDRA + '[node]\nprofile = "thin.toml"\n')
    plugins = Plugins(tmp_path)
    settings = settings_of(read(path, plugins=plugins), {}, plugins)
    assert NodeLimits.model_validate(settings["node"]) == NodeLimits(
        profile="thin.toml", cpus=0.6, memory_mb=2048, disk_write_mb_per_s=40.0, cpus_from="warm"
    )
    assert settings["system"]["heap_mb"] == 768


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("memory_mb = 2048", "memory_gb = 2"), "memory_gb"),
        (("cores = 2", "cores = 0"), "cores"),
        (('title = "thin client"\n', ""), "title"),
    ],
)
def test_a_wrong_file_is_refused(tmp_path: Path, change: tuple[str, str], message: str) -> None:
    (tmp_path / "thin.toml").write_text(OWN.replace(*change))
    with pytest.raises(StudyError) as caught:
        read_text(CASSANDRA + '[node]\nprofile = "thin.toml"\n', plugins=Plugins(tmp_path))
    assert "profile thin.toml" in caught.value.message
    assert message in caught.value.message


@pytest.mark.parametrize(
    ("name", "message"),
    [("vm-8gb", "unknown profile; did you mean 'vm-"), ("none.toml", "profile file none.toml not found")],
)
def test_a_profile_that_is_not_there(name: str, message: str) -> None:
    with pytest.raises(StudyError) as caught:
        complete(f'[node]\nprofile = "{name}"\n')
    assert message in caught.value.message
