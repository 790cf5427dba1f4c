"""A search on the simulated cluster: one set of connections, the planted capacity, the same again from the store."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from steelyard.store import Store
from tests.e2e.laboratory import BUSY_MACHINE, COLD, Laboratory

pytestmark = pytest.mark.agent

SERVICE_US = 10_000
STUDY = f"""
[study]
name = "searched"
question = "where does throughput stop to rise?"
[site]
name = "local"
[system]
name = "simulated"
service_us = {SERVICE_US}
[workload]
name = "ycsb-c"
records = 200
[load]
schedule = "search"
objective = ["saturation"]
threads = 64
first_rate_per_s = 60
window_s = 1
settle_s = 0.2
most_windows = 8
[design]
starts = 1
trials = 1
[analysis]
response = "capacity_per_s"
{BUSY_MACHINE}lag_p99_ms = 1000
{COLD}
"""


def test_saturation_is_found_stored_verified_and_reported(laboratory: Laboratory, tmp_path: Path) -> None:
    study = tmp_path / "searched.toml"
    study.write_text(STUDY)
    done = laboratory.run(study)
    assert done.returncode == 0, done.stdout + done.stderr
    (record,) = Store(laboratory.store / "searched").trials()
    assert record.search is not None
    assert record.search.result is not None
    assert record.responses.of("capacity_per_s") == pytest.approx(1e6 / SERVICE_US, rel=0.15)
    verified = laboratory.call("verify", laboratory.store / "searched")
    assert verified.returncode == 0, verified.stdout
    tables = laboratory.tables("searched")
    assert len(json.dumps(tables["search_window"]["rows"])) > 0
    assert "Response time over rate" in (laboratory.folder / "report.html").read_text(encoding="utf-8")
