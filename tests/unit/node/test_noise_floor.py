from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from steelyard.judging.noise_floor import NONE, Circumstances, KeptFloor, Spread, circumstances
from steelyard.model.errors import SteelyardError
from steelyard.model.trial_settings import TrialSettings
from steelyard.node import noise_floor

MACHINE = {"cpu_model": "a", "cores": "2", "kernel": "6.1", "architecture": "x86_64", "address": "10.0.0.1"}


def settings(**load: Any) -> dict[str, Any]:
    return {
        "site": {"name": "local", "nodes": 1, "cpus": None},
        "system": {"name": "simulated", "seed": 1, "stall": ("1:2",), "yaml": {"deep": {"key": True}}},
        "workload": {"name": "ycsb-a"},
        "load": {"engine": "agent", "schedule": "closed", "threads": 1, "operations": 100, **load},
    }


def of(**load: Any) -> Circumstances:
    return circumstances(TrialSettings.model_validate(settings(**load)), [MACHINE, {**MACHINE, "address": "10.0.0.2"}])


def floor(study: str = "noise-floor", made_s: float = 1.0, **load: Any) -> KeptFloor:
    spread = Spread(response="execution_time_ms", starts=12, trials=36, trials_a_start=3.0)
    return KeptFloor(study=study, made_s=made_s, pairs=6, holds_for=of(**load), spreads=(spread,))


def test_circumstances_are_the_machine_the_site_the_system_and_the_kind_of_load():
    found = of()
    assert (found.site, found.system, found.engine, found.loop, found.nodes) == (
        "local", "simulated", "agent", "closed", 1,
    )  # fmt: skip
    assert found.machines == ({name: MACHINE[name] for name in ("cpu_model", "cores", "kernel", "architecture")},)
    assert found.settings["load.operations"] == "100"
    assert found.settings["system.yaml.deep.key"] == "True"
    assert "site.name" not in found.settings
    assert of(schedule="constant", rate_per_s=100.0).loop == "open"


def test_a_floor_is_kept_and_found_again(tmp_path: Path):
    assert noise_floor.find(tmp_path, [of()]).why == NONE
    where = noise_floor.write(tmp_path, floor())
    assert where.is_relative_to(noise_floor.folder_in(tmp_path))
    assert noise_floor.find(tmp_path, [of()]).floor == floor()
    noise_floor.write(tmp_path, floor(made_s=2.0))
    kept = list(noise_floor.folder_in(tmp_path).iterdir())
    assert len(kept) == 1, "the same circumstances: it takes the place of the last"
    assert noise_floor.find(tmp_path, [of()]).floor == floor(made_s=2.0)


@pytest.mark.parametrize("torn", ["{", "", "[" * 100_000, '{"made_s": 1e999}', "[]", "\udcff"])
def test_a_torn_floor_is_skipped_and_named(torn: str, tmp_path: Path) -> None:
    noise_floor.write(tmp_path, floor())
    (noise_floor.folder_in(tmp_path) / "a-torn.json").write_text(torn, errors="surrogateescape")
    assert noise_floor.find(tmp_path, [of()]).floor == floor()
    found = noise_floor.find(tmp_path, [of(schedule="constant", rate_per_s=100.0)])
    assert "a-torn.json cannot be read" in found.why


def test_of_several_the_likest_then_the_newest(tmp_path: Path):
    noise_floor.write(tmp_path, floor("other-length", made_s=9.0, operations=5000))
    noise_floor.write(tmp_path, floor("mine", made_s=1.0))
    assert noise_floor.find(tmp_path, [of()]).floor.study == "mine"
    noise_floor.write(tmp_path, floor("mine-again", made_s=5.0))
    assert noise_floor.find(tmp_path, [of()]).floor.study == "mine-again"


def test_a_mismatched_or_broken_floor_is_passed_over_with_words(tmp_path: Path):
    where = noise_floor.write(tmp_path, floor())
    found = noise_floor.find(tmp_path, [of(schedule="constant", rate_per_s=10.0)])
    assert found.floor is None
    assert "study noise-floor does not hold: it was measured with loop closed" in found.why
    where.write_text("{")
    broken = noise_floor.find(tmp_path, [of()])
    assert broken.floor is None
    assert f"{where} cannot be read" in broken.why
    where.write_text(floor().model_dump_json().replace('"format":1', '"format":2'))
    assert noise_floor.find(tmp_path, [of()]).floor is None
    noise_floor.write(tmp_path, floor("whole"))
    assert noise_floor.find(tmp_path, [of()]).floor.study == "whole", "a broken one beside it does no harm"


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(SteelyardError, match="cannot be kept"):
        noise_floor.write(tmp_path / "file", floor())


def test_a_floor_of_cold_servers_does_not_judge_warm_ones_nor_the_other_way_round(tmp_path: Path):
    cold = floor("cold")
    assert "warmed_up" not in noise_floor.write(tmp_path, cold).name
    warm_of = of().model_copy(update={"warmed_up": True})
    sought = noise_floor.find(tmp_path, [warm_of])
    assert sought.floor is None
    assert "it was measured on servers that had not been warmed up, this study on warmed-up servers" in sought.why
    warm = cold.model_copy(update={"holds_for": warm_of, "study": "cold"})
    noise_floor.write(tmp_path, warm)
    assert len(list(noise_floor.folder_in(tmp_path).iterdir())) == 2
    assert noise_floor.find(tmp_path, [warm_of]).floor == warm
    assert noise_floor.find(tmp_path, [of()]).floor == cold
