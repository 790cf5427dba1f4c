"""A study that ends when its intervals are narrow enough: killed in the middle, gone on with, and verified."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path

import pytest

from steelyard.judging.stopping import decide, rule_of
from steelyard.store import Store
from tests.e2e.laboratory import Laboratory

pytestmark = pytest.mark.agent

STUDY = """
probes = []
[study]
name = "narrow"
question = "how long does it take?"
[site]
name = "local"
[system]
name = "simulated"
service_us = 1000
[workload]
name = "ycsb-c"
records = 200
[load]
operations = 100
[data]
state = "continue"
[design]
starts = 9
trials = 1
[design.until]
width_percent = 90  # whatever else the machine does meanwhile
least_starts = 6
[limits]
background_cpu_fraction = 1
"""
DEADLINE_S = 60.0


def sealed(folder: Path) -> int:
    return len(list(folder.glob("trials/[!.]*")))


def test_killed_and_gone_on_with_it_ends_where_its_rule_says(laboratory: Laboratory, tmp_path: Path) -> None:
    study = tmp_path / "narrow.toml"
    study.write_text(STUDY)
    folder = laboratory.store / "narrow"
    process = laboratory.start("run", study, "--store", laboratory.store, "--plain")
    deadline = time.monotonic() + DEADLINE_S
    while sealed(folder) < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert 2 <= sealed(folder) < 6

    study.write_text(STUDY.replace("width_percent = 90", "width_percent = 95"))
    refused = laboratory.run(study)
    assert refused.returncode == 2
    assert "stopping rule" in refused.stderr
    study.write_text(STUDY)

    done = laboratory.run(study, "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["planned"], told["valid"], told["missing"], told["not_needed"]) == (9, 6, 0, 3)
    assert told["until"]["why"] == "narrow"
    assert "block 6 is whole" in done.stderr
    assert "stopped after 6 of at most 9 blocks" in done.stderr

    store = Store(folder)
    rule, plan = rule_of(store.study), store.plan
    assert rule is not None
    assert plan is not None
    assert decide(plan, store.trials(), rule).model_dump(mode="json") == told["until"]

    state = laboratory.call("status", folder)
    assert state.returncode == 0
    assert "3 not needed" in state.stdout
    assert laboratory.tables("narrow")["stopping"]["rows"][0][-2] == "narrow enough"
    page = (laboratory.folder / "report.html").read_text()
    assert "stopped after 6 of at most 9 blocks" in page
    checked = laboratory.call("verify", folder, "--json")
    assert checked.returncode == 0, checked.stdout
    found = json.loads(checked.stdout)
    assert found["made"]["until"] > 0
    assert found["not_checked"]["trials that are planned and, by the stopping rule, not needed"] == 3
