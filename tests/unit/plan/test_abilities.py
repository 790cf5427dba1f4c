"""Sites and systems say how long, how much memory and disk; what they do not say is assumed in so many words."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from steelyard.model.capacity import capacity_key
from steelyard.model.plan import Plan
from steelyard.model.server_warm_up import ServerWarmUp
from steelyard.model.study import Study
from steelyard.plan import expand, preflight
from steelyard.plan.abilities import ASSUMED_START_S, Abilities, assumptions
from steelyard.plan.estimate import estimate
from steelyard.plugins.find import Plugins
from steelyard.study import read
from tests.unit.study.paper import HEAD, SITE, SYSTEM, read_text, study

ROOT = Path(__file__).parents[3]
RECORDED: dict[str, dict[str, Any]] = json.loads((ROOT / "tests/fixtures/plan/estimates.json").read_text())
"""What `check` says of the shipped studies without server warm-up: study, scale, cores."""
SILENT_SYSTEM = """
from steelyard.model.value import Value
class Settings(Value):
    pass
class System:
    name, version, protocol, memory_mb_per_node = "silent", "1", "cql", 100
def create(settings, cache_folder):
    return System()
"""
SILENT_SITE = """
from steelyard.model.value import Value
class Settings(Value):
    pass
class Site:
    name, shares = "silent", frozenset()
    def refuse(self, request, memory_mb_per_node):
        return None
def create(settings, state_folder):
    return Site()
"""


@cache
def planned(path: Path, scale: float) -> tuple[Study, Plan]:
    plugins = Plugins(path.parent)
    asked = read(path, scale=scale, plugins=plugins)
    return asked, preflight.runnable(path, asked, expand(asked, plugins))[0]


@pytest.mark.parametrize("path", sorted((ROOT / "studies").glob("*.toml")), ids=lambda path: path.stem)
def test_hours_memory_and_disk_of_the_shipped_studies_stay(path: Path) -> None:
    cases, plugins = 0, Plugins(path.parent)
    for scale in (1.0, 0.01):
        cold = {"server_warm_up": ServerWarmUp(mode="off")}
        shipped, plan = planned(path, scale)
        asked = shipped.model_copy(update=cold)
        for cores in (2, 8):
            was = RECORDED[f"{path.stem} scale {scale:g} cores {cores}"]
            now = estimate(plan, asked, cores=cores, abilities=Abilities(plugins)).model_dump(
                mode="json", exclude={"store_bytes"}
            )
            assert now.keys() == was.keys()
            for name, value in was.items():
                assert now[name] == (pytest.approx(value, rel=1e-12) if not isinstance(value, str) else value), name
            cases += 1
    assert cases == 4


def test_the_record_is_of_every_shipped_study() -> None:
    assert {key.split()[0] for key in RECORDED} == {path.stem for path in (ROOT / "studies").glob("*.toml")}


def test_who_says_nothing_is_assumed_to_take_long_and_it_is_said(tmp_path: Path) -> None:
    (tmp_path / "system.py").write_text(SILENT_SYSTEM)
    (tmp_path / "site.py").write_text(SILENT_SITE)
    text = HEAD.replace(SYSTEM, str(tmp_path / "system.py")).replace(SITE, str(tmp_path / "site.py"))
    asked = read_text(text)
    plan = expand(asked)
    start, disk, lease = assumptions(plan, Abilities(Plugins()))
    assert f"does not declare how long a start takes: {ASSUMED_START_S:g} s assumed" in start
    assert "does not declare how much disk it needs: 1 copy of each record and 2 times its size assumed" in disk
    assert "does not declare how long lending takes: 60 s to lend and 10 s to take back assumed" in lease
    cost = estimate(plan, asked, cores=2)
    assert cost.start_s[1] > 2 * ASSUMED_START_S, "filled, then started again"
    assert cost.memory_mb == 100 + 512


def test_nothing_is_assumed_of_the_shipped_ones() -> None:
    plugins = Plugins(ROOT / "studies")
    for path in (ROOT / "studies").glob("*.toml"):
        assert list(assumptions(planned(path, 1.0)[1], Abilities(plugins))) == []
    assert list(assumptions(expand(study("")), Abilities(Plugins()))) == []


@pytest.mark.parametrize(
    "factor",
    [
        '"load.read_consistency" = ["ONE", "QUORUM"]',
        '"load.routing" = ["token", "round-robin"]',
        '"load.timeout_ms" = [900, 1000]',
    ],
)
def test_whoever_asks_otherwise_measures_capacity_anew_in_the_plan_as_in_the_laboratory(factor: str) -> None:
    """The plan once shared a measurement between loads that the laboratory measures apart, and promised too little."""
    fraction = 'schedule = "constant"\ncapacity_fraction = 0.7\ncapacity_s = 40\nduration_s = 1\n'
    rest = f"{fraction}[design]\nstarts = 1\ntrials = 1\n"
    single, several = study(rest), study(f"{rest}[factors]\n{factor}\n")
    plan = expand(several)
    assert len({capacity_key(trial.settings) for trial in plan.trials}) == 2
    more_s = estimate(plan, several, cores=2).seconds - estimate(expand(single), single, cores=2).seconds
    assert more_s > 40, "a second measurement"
