"""A node that dies under load ends its trial within seconds, whatever the time-out of an operation is."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import pytest

from steelyard.store import Store
from tests.e2e.laboratory import BUSY_MACHINE, Laboratory

pytestmark = pytest.mark.agent

STUDY = f"""
[study]
name = "dead"
question = "how long does a dead cluster take?"
[site]
name = "local"
nodes = 2
[system]
name = "simulated"
service_us = 2000
[workload]
name = "ycsb-c"
records = 100
[load]
operations = 2000
threads = 1
timeout_ms = 10000
[design]
starts = 2
trials = 1
{BUSY_MACHINE}"""
"""2,000 operations that time out after 10 s each would take 5.6 hours."""
WITHIN_S = 15.0
"""Seconds from the death until the trial is sealed, on a machine that does much else. Noticed within 1 s; the rest is
the end of the load generator."""
DEADLINE_S = 60.0


def _journal(store: Path) -> list[dict[str, object]]:
    path = store / "events.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.is_file() else []


def _trial_in_progress(laboratory: Laboratory) -> Path:
    """Record of the process of the second node, once load is driven."""
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline:
        drafts = list((laboratory.store / "dead").glob("trials/.*.partial"))
        orders = list((laboratory.folder / "state").glob("nodes/*/l1/order.json"))
        records = list((laboratory.folder / "state").glob("nodes/*/n2/sim.json"))
        if drafts and orders and records:
            return records[0]
        time.sleep(0.02)
    pytest.fail(f"no trial began: {(laboratory.folder / 'stderr.txt').read_text()}")


def test_a_node_that_dies_ends_its_trial_and_the_study_goes_on(laboratory: Laboratory, tmp_path: Path) -> None:
    study = tmp_path / "dead.toml"
    study.write_text(STUDY)
    process = laboratory.start("run", study, "--store", laboratory.store, "--plain")
    record = _trial_in_progress(laboratory)
    time.sleep(0.5)
    os.kill(json.loads(record.read_text())["pid"], signal.SIGKILL)
    killed_s = time.time()
    assert process.wait(DEADLINE_S) == 1, (laboratory.folder / "stderr.txt").read_text()
    sealed_s = [
        float(str(event["t_s"])) for event in _journal(laboratory.store / "dead") if event["event"] == "trial-sealed"
    ]
    assert len(sealed_s) == 2
    assert 0 < sealed_s[0] - killed_s < WITHIN_S
    failed, whole = Store(laboratory.store / "dead").trials()
    assert failed.verdict.system_fault
    detail = failed.verdict.reasons[0].detail
    assert detail.startswith("n2: the simulated node has died: killed by SIGKILL; last lines: listening")
    assert whole.verdict.outcome == "valid"
