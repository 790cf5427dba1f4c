"""Every study that is shipped can be planned, and is what it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from steelyard.model.plan import Plan
from steelyard.model.study import Study
from steelyard.plan import expand, warnings
from steelyard.plan.estimate import estimate
from steelyard.plugin import Plugins
from steelyard.study import read

STUDIES = Path(__file__).parents[3] / "studies"
PLUGINS = Plugins(STUDIES)


def planned(name: str, scale: float = 1.0) -> tuple[Study, Plan]:
    study = read(STUDIES / f"{name}.toml", scale=scale, plugins=PLUGINS)
    return study, expand(study, PLUGINS)


@pytest.mark.parametrize("path", sorted(STUDIES.glob("*.toml")), ids=lambda path: path.stem)
def test_every_shipped_study_is_named_after_its_file_and_can_be_planned(path: Path) -> None:
    study, plan = planned(path.stem)
    assert study.study.name == path.stem
    assert plan.trials
    assert estimate(plan, study, cores=2, plugins=PLUGINS).seconds > 0


def test_the_quickstart_is_small_enough_for_seven_minutes() -> None:
    study, plan = planned("quickstart")
    assert plan.factors == {"nodes": (1, 2)}
    assert plan.hard == ("nodes",)
    assert 180 < estimate(plan, study, cores=2, plugins=PLUGINS).seconds < 420


def test_richardson2017_is_as_published() -> None:
    study, plan = planned("richardson2017")
    assert plan.factors["nodes"] == (1, 3, 6)
    assert len(plan.trials) == 3 * 4 * 30
    assert [trial.replicate for trial in plan.trials[:30]] == list(range(1, 31))
    assert len({tuple(trial.treatment.items()) for trial in plan.trials[:30]}) == 1
    assert all(trial.settings.root["workload"]["records"] == 1_000_000 for trial in plan.trials)
    assert all(trial.settings.root["load"]["operations"] == 10_000 for trial in plan.trials)
    assert all(trial.settings.root["system"]["commitlog_total_space_mb"] == 512 for trial in plan.trials)
    assert study.analysis.warm_up_trials == 9
    said = "\n".join(warnings(study, plan))
    assert "no error term for nodes" in said
    assert "drift is confounded with treatment" in said


def test_richardson2017_can_be_tried_small() -> None:
    study, plan = planned("richardson2017", scale=0.01)
    assert study.study.name == "richardson2017-scale-0.01"
    assert {trial.settings.root["workload"]["records"] for trial in plan.trials} == {10_000}
    assert {trial.settings.root["load"]["operations"] for trial in plan.trials} == {100}
    assert len(plan.trials) == 360


def test_the_simulated_study_takes_no_time_and_has_sizes_enough_for_a_law() -> None:
    study, plan = planned("simulated")
    assert estimate(plan, study, cores=2, plugins=PLUGINS).low_s < 60
    assert "law" not in "\n".join(warnings(study, plan))
