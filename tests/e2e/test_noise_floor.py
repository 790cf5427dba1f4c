"""A study of identical systems, and a later study on the same machine whose verdict is held against what it found."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from steelyard.analysis import analyse
from steelyard.analysis.statistics.comparison import Comparison
from steelyard.analysis.statistics.validity import Validity
from steelyard.judging.noise_floor import KeptFloor
from steelyard.store import Store
from tests.e2e.laboratory import Laboratory

pytestmark = pytest.mark.agent

FLOOR = """
[study]
name = "{name}"
question = "how much do identical clusters differ?"
[site]
name = "local"
[system]
name = "simulated"
service_us = 2000
start_cv = {start_cv}
[workload]
name = "ycsb-c"
records = 100
[load]
operations = 40
[design]
kind = "same"
starts = 3
trials = 2
seed = 4
[limits]
background_cpu_fraction = 1
"""
"""The factors of the starts are drawn from the design's seed, so that chance has been taken once and for all."""

LATER = """
[study]
name = "later"
question = "is a longer service time slower?"
[site]
name = "local"
[system]
name = "simulated"
[workload]
name = "ycsb-c"
records = 100
[load]
operations = 40
[design]
starts = 3
trials = 2
seed = 5
[limits]
background_cpu_fraction = 1
[factors]
"system.service_us" = [2000.0, 4000.0]
"""
START_CV = 0.6
"""So much that a service time twice as long is lost in it."""


def measure(laboratory: Laboratory, folder: Path, name: str, start_cv: float) -> KeptFloor:
    study = folder / f"{name}.toml"
    study.write_text(FLOOR.format(name=name, start_cv=start_cv))
    done = laboratory.run(study)
    assert done.returncode == 0, done.stderr
    assert "later studies here are judged against it" in done.stderr
    (path,) = (laboratory.folder / "state" / "noise-floors").glob(f"{name}-*.json")
    return KeptFloor.model_validate_json(path.read_text())


def rows_of(laboratory: Laboratory, study: str, table: str) -> list[dict[str, Any]]:
    done = laboratory.call("report", laboratory.store / study, "--json")
    assert done.returncode in (0, 1), done.stderr
    found = json.loads(done.stdout)[table]
    return [dict(zip(found["columns"], row, strict=True)) for row in found["rows"]]


def test_a_later_study_is_judged_against_the_floor_of_this_machine(laboratory: Laboratory, tmp_path: Path) -> None:
    floor = measure(laboratory, tmp_path, "noisy", START_CV)
    assert (floor.pairs, floor.holds_for.system, floor.holds_for.loop) == (3, "simulated", "closed")
    rows = rows_of(laboratory, "noisy", "noise_floor")
    (time,) = [one for one in rows if one["response"] == "execution_time_ms"]
    assert time["source"] == "this study"
    assert time["between_cv_low"] <= START_CV <= time["between_cv_high"]
    assert {"throughput_per_s", "response_ms_p50"} <= {one["response"] for one in rows}

    later = tmp_path / "later.toml"
    later.write_text(LATER)
    checked = laboratory.call("check", later, "--json")
    assert "study noisy of" in json.loads(checked.stdout)["noise_floor"]["said"]
    done = laboratory.run(later)
    assert done.returncode in (0, 1), done.stderr
    store = Store(laboratory.store / "later")
    records = store.trials()
    alone = analyse(records, store.study, seed=1)
    (without,) = alone.of(Comparison)
    (held,) = analyse(records, store.study, seed=1, floor=store.noise_floor(records)).of(Comparison)
    assert without.ratio == held.ratio
    assert held.floor_percent is not None
    assert held.floor_percent.value > 150
    if without.verdict == "slower":  # a busy machine may leave it undecided by itself
        assert (held.verdict, held.within_noise) == ("undecided", True)
    (row,) = rows_of(laboratory, "later", "comparison")
    assert row["floor_source"].startswith("study noisy of")
    assert row["verdict"] == "undecided"

    (store.folder / "noise-floor.json").write_text("{}")
    broken = analyse(records, store.study, seed=1, floor=store.noise_floor(records))
    assert [one.verdict for one in broken.of(Comparison)] == [without.verdict]
    assert "not screened for noise" in broken.of(Validity)[0].floor.sentence
    assert "cannot be read" in broken.of(Validity)[0].floor.sentence
