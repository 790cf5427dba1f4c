"""Loads as they are offered: 70% of a planted capacity comes out; a burst is carried into the calm after it; a stall is
seen in the response times of what was due."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from steelyard.store import Store
from tests.e2e.laboratory import BUSY_MACHINE, Laboratory

pytestmark = [pytest.mark.agent, pytest.mark.quiet]

SERVICE_US = 4000
PLANTED_PER_S = 1e6 / SERVICE_US
"""What one simulated node can do: it serves one operation at a time."""

HEAD = """
[study]
name = "{name}"
question = "is what is offered what was asked for?"
[site]
name = "local"
[system]
name = "simulated"
service_us = {service_us}
[workload]
name = "ycsb-c"
records = 200
[design]
starts = 1
trials = 1
[limits]
background_cpu_fraction = 1.0
steal_fraction = 1.0
lag_p99_ms = 1000.0
"""
"""Whatever else this machine does is not what is tested here."""

CAPACITY = """
[load]
schedule = "constant"
capacity_fraction = 0.7
capacity_threads = 16
capacity_s = 3
duration_s = 3
threads = 64
[factors]
load.capacity_fraction = [0.35, 0.7]
"""

BURST = """
[load]
threads = 8
[[load.phases]]
name = "calm"
schedule = "constant"
rate_per_s = 50
duration_s = 2
[[load.phases]]
name = "burst"
schedule = "constant"
rate_per_s = 600
duration_s = 2
[[load.phases]]
name = "after"
schedule = "ramp"
from_per_s = 0
to_per_s = 100
ramp_s = 4
duration_s = 6
"""


def test_seventy_percent_of_a_planted_capacity_comes_out(laboratory: Laboratory, tmp_path: Path) -> None:
    study = tmp_path / "capacity.toml"
    study.write_text(HEAD.format(name="capacity", service_us=SERVICE_US) + CAPACITY)
    done = laboratory.run(study)
    assert done.returncode == 0, done.stderr
    store = Store(laboratory.store / "capacity")
    records = store.trials()
    assert len(records) == 2
    for record in records:
        assert record.capacity is not None
        assert record.capacity.rate_per_s == pytest.approx(PLANTED_PER_S, rel=0.1)
        assert record.capacity.trial == records[0].id, "one measurement for the start"
        fraction = float(record.treatment["load.capacity_fraction"])
        assert record.offered_rate_per_s == pytest.approx(fraction * record.capacity.rate_per_s)
        assert record.responses.operations == pytest.approx(fraction * PLANTED_PER_S * 3, rel=0.1)
        assert record.responses.errors == 0
    phases = set(store.intervals(records[0])["phase"])
    assert phases == {"capacity", "measure"}


def test_a_burst_is_worked_off_in_the_phase_after_it(laboratory: Laboratory, tmp_path: Path) -> None:
    study = tmp_path / "burst.toml"
    study.write_text(HEAD.format(name="burst", service_us=SERVICE_US) + BURST)
    done = laboratory.run(study)
    assert done.returncode == 0, done.stderr
    store = Store(laboratory.store / "burst")
    (record,) = store.trials()
    # 100 and 1,200 and 200 within the ramp's 4 s and 200 after it.
    assert (record.responses.operations, record.responses.errors) == (1700, 0), "late, but never skipped"
    assert record.offered_rate_per_s == pytest.approx(1700 / 10)
    by_phase = {name: found.operations for name, found in record.phase_responses.items()}
    assert by_phase["calm"] == pytest.approx(100, abs=8)
    assert by_phase["burst"] == pytest.approx(2 * PLANTED_PER_S, rel=0.15), "no more than the node can do"
    waited = record.phase_responses["after"].response_ms_max
    assert waited is not None
    assert waited > 1500, "the last of the burst waited until those before it were served"
    seconds = store.intervals(record).filter(pl.col("measure") == "response")
    starts = seconds.group_by("phase").agg(pl.col("t_s").min()).sort("t_s")
    assert starts["phase"].to_list() == ["calm", "burst", "after"]
    begins = starts["t_s"].to_list()
    assert [later - begins[0] for later in begins[1:]] == pytest.approx([2.0, 4.0], abs=0.01)


STALL = """
[study]
name = "planted-stall"
question = "is a stall seen where it hurts?"
[site]
name = "local"
[system]
name = "simulated"
service_us = 100
stall = ["2:1"]
[workload]
name = "ycsb-c"
records = 200
[load]
schedule = "constant"
rate_per_s = 500
threads = 4
duration_s = 4
[design]
starts = 1
trials = 1
"""


def test_a_planted_stall_raises_response_and_not_service(laboratory: Laboratory, tmp_path: Path) -> None:
    study = tmp_path / "stall.toml"
    study.write_text(STALL + BUSY_MACHINE)
    done = laboratory.run(study)
    assert done.returncode == 0, done.stderr
    (record,) = Store(laboratory.store / "planted-stall").trials()
    found = record.responses
    assert found.operations == 2000, "open loop: what was due was sent, late but never skipped"
    assert found.response_ms_p95 is not None
    assert found.service_ms_p99 is not None
    assert found.response_ms_p95 > 500, "a quarter of the operations were due in the stalled second or its backlog"
    assert found.service_ms_p99 < 50, "only the four in flight were slow once sent"
