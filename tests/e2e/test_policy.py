"""A policy decides while the load runs: when it should, by what was measured, and so that it can be computed again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from steelyard.store import Store
from tests.e2e.laboratory import BUSY_MACHINE, COLD, Laboratory

pytestmark = pytest.mark.agent

STEP_S, HELD_S = 4, 3
DERIVED = """threshold_of = "phase-1"
max_nodes = 2
[derived.phase-1]
response = "simulated_utilisation_percent_mean"
least = 2
add = -10
"""
"""The same with a threshold from the trials without a policy: about 70%, which the second rate exceeds."""
STUDY = f"""
probes = ["os", "simulated"]
[study]
name = "policy-here"
question = "does a policy decide when it should?"
[site]
name = "local"
nodes = 1
[system]
name = "simulated"
service_us = 2000
boot_s = 0.2
ring_delay_s = 0.2
[workload]
name = "ycsb-c"
records = 100
[load]
schedule = "steps"
rates_per_s = [200, 1000]
step_s = {STEP_S}
threads = 64
duration_s = 12
[policy]
metric = "simulated_utilisation_percent_mean"
period_s = 1
held_seconds = {HELD_S}
threshold = 90
max_nodes = 2
[design]
starts = 1
trials = 1
seed = 1
[factors]
policy = ["none", "threshold"]
{BUSY_MACHINE}lag_p99_ms = 1000
probe_gap_s = 30
policy_late_fraction = 1
{COLD}"""
LATE_S = 2
"""On a busy machine."""


def test_a_policy_decides_by_what_was_measured(laboratory: Laboratory, tmp_path: Path) -> None:
    study = tmp_path / "policy.toml"
    study.write_text(STUDY)
    ended = laboratory.run(study)
    assert ended.returncode == 0, ended.stderr
    store = laboratory.store / "policy-here"
    records = {str(record.treatment["policy"]): record for record in Store(store).trials()}
    control, scaled = records["none"], records["threshold"]
    assert control.scaling is None
    assert "policy" not in control.settings.root
    seen = scaled.scaling
    assert seen is not None
    assert [point.t_s for point in seen.points] == [float(place + 1) for place in range(len(seen.points))]
    first, second = seen.desired
    assert (first.t_s, first.nodes, second.nodes) == (0.0, 1, 2)
    assert STEP_S + HELD_S <= second.t_s <= STEP_S + HELD_S + LATE_S
    assert "simulated_utilisation_percent_mean >= 90 for 3 s on end" in second.reason
    (activity,) = scaled.activities
    assert (activity.kind, activity.nodes, activity.cause) == ("scale-out", ("n2",), second.reason)
    verified = laboratory.call("verify", store)
    assert verified.returncode == 0, verified.stdout
    asked = ["--policy", "threshold", "--set", "metric=simulated_utilisation_percent_mean", "--set", "period_s=1"]
    asked += ["--set", f"held_seconds={HELD_S}", "--set", "threshold=90", "--set", "max_nodes=2"]
    replayed = json.loads(laboratory.call("replay", store, *asked, "--json").stdout)
    of_trials = {one["treatment"]["policy"]: one for one in replayed["trials"]}
    assert (of_trials["threshold"]["at_s"], of_trials["threshold"]["as_done"]) == (second.t_s, True)
    assert of_trials["none"]["fired"]
    assert not of_trials["none"]["as_done"]
    wrong = laboratory.call("replay", store, "--policy", "threshold", "--set", "treshold=90")
    assert wrong.returncode == 2
    assert "threshold" in wrong.stderr


def test_a_threshold_comes_from_the_trials_without_a_policy(laboratory: Laboratory, tmp_path: Path) -> None:
    study = tmp_path / "derived.toml"
    text = STUDY.replace("threshold = 90\nmax_nodes = 2\n", DERIVED).replace("starts = 1", "starts = 2")
    study.write_text(text.replace("policy-here", "derived-here"))
    ended = laboratory.run(study)
    assert ended.returncode == 0, ended.stderr
    assert "2 trials without a policy); at it the policy would have acted in 2 of these 2 trials" in ended.stderr
    store = laboratory.store / "derived-here"
    records = sorted(Store(store).trials(), key=lambda record: record.begun_s)
    assert [record.settings.policy.name for record in records] == ["none", "none", "threshold", "threshold"]
    means = [record.measures["simulated_utilisation_percent_mean"] for record in records[:2]]
    for record in records[2:]:
        assert record.derived is not None
        assert record.derived.acted == 2
        assert record.derived.value == pytest.approx(sum(means) / 2 - 10, rel=1e-12)
        assert f">= {record.derived.value:g} " in record.activities[0].cause
    verified = laboratory.call("verify", store)
    assert verified.returncode == 0, verified.stdout
    last = next(store.glob(f"trials/{records[-1].id}*/trial.json"))
    last.write_text(last.read_text().replace('"acted": 2', '"acted": 1').replace('"acted":2', '"acted":1'))
    assert "trials in which its policy would have acted by chance" in laboratory.call("verify", store).stdout
    study.write_text(study.read_text().replace("add = -10", "add = -5"))
    changed = laboratory.run(study)
    assert changed.returncode == 2
    assert "[derived.phase-1] is not what the store's sealed trials had their threshold from" in changed.stderr
