"""A cluster that grows and shrinks while it is measured: planted times are found, and nothing is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from steelyard.judging.activity_phases import arrival, phases
from steelyard.judging.membership import sizes
from steelyard.store import Store
from tests.e2e.laboratory import BUSY_MACHINE, COLD, Laboratory

pytestmark = pytest.mark.agent

BOOT_S, RING_DELAY_S, DATA_MB, MB_PER_S = 0.5, 0.5, 6.0, 1.0
LASTS_S = 16
STUDY = f"""
probes = ["os"]
[study]
name = "growth-here"
question = "are planted joins found?"
[site]
name = "local"
nodes = 2
[system]
name = "simulated"
boot_s = {BOOT_S}
ring_delay_s = {RING_DELAY_S}
data_mb = {DATA_MB}
stream_mb_per_s = {MB_PER_S}
[workload]
name = "ycsb-c"
records = 100
[load]
schedule = "constant"
rate_per_s = 200
threads = 64
duration_s = {LASTS_S}
[policy]
times = [[1, 3], [9, 2]]
[design]
starts = 1
trials = 1
seed = 1
[factors]
policy = ["none", "scheduled"]
[analysis.demand]
capacity = [[2, 150], [3, 300]]
{BUSY_MACHINE}lag_p99_ms = 1000
probe_gap_s = 30
{COLD}"""
LATE_S = 2.0
"""On a busy machine. Planted times are timers': nothing is ever earlier."""


def test_planted_joins_and_leaves_are_found(laboratory: Laboratory, tmp_path: Path) -> None:
    study = tmp_path / "growth.toml"
    study.write_text(STUDY)
    ended = laboratory.run(study)
    assert ended.returncode == 0, ended.stderr
    store = laboratory.store / "growth-here"
    records = {str(record.treatment["policy"]): record for record in Store(store).trials()}
    control, grown = records["none"], records["scheduled"]
    assert control.activities == ()
    assert [record.responses.errors for record in records.values()] == [0, 0]
    joined, left = grown.activities
    assert [(one.kind, one.nodes, one.outcome) for one in grown.activities] == [
        ("scale-out", ("n3",), "done"), ("scale-in", ("n3",), "done"),
    ]  # fmt: skip
    of_join = {phase.name: phase.seconds for phase in phases(joined, "n3")}
    planted = {"starting": BOOT_S, "ring delay": RING_DELAY_S, "streaming": DATA_MB / 3 / MB_PER_S}
    for name, seconds in planted.items():
        assert seconds - 0.01 <= of_join[name] <= seconds + LATE_S, name
    arrived = arrival(joined, "n3")
    assert arrived is not None
    assert sum(of_join.values()) == pytest.approx(arrived.t_s - joined.begun_s, abs=0.1)
    assert any(mark.name == "routed" and mark.node == "n3" and mark.by == "load" for mark in joined.marks)
    assert joined.streamed_bytes == left.streamed_bytes == {"n3": int(DATA_MB * 1e6 / 3)}
    assert [size for _, size in sizes(2, grown.activities)] == [3, 2]
    assert "scale_out_s" not in control.measures
    assert 0 <= control.measures["lost_operations"] < 200 * LATE_S
    assert grown.measures["scale_out_s"] == pytest.approx(arrived.t_s - joined.begun_s)
    assert 1 <= grown.measures["scale_out_decision_s"] <= 1 + LATE_S
    verified = laboratory.call("verify", store)
    assert verified.returncode == 0, verified.stdout
    tables = laboratory.tables("growth-here")
    assert {"activities", "activity_phase"} <= tables.keys()
    measures = tables["elasticity"]
    none, scheduled = (dict(zip(measures["columns"], row, strict=True)) for row in measures["rows"])
    assert none["theta_under_percent"] == pytest.approx(100 / 3), "3 nodes are needed"
    gone = arrival(left, "n3")
    assert gone is not None
    lacked_s = LASTS_S - (gone.t_s - arrived.t_s)
    assert scheduled["theta_under_percent"] == pytest.approx(100 / 3 * lacked_s / LASTS_S, abs=0.1)
    assert scheduled["tau_under_percent"] == pytest.approx(100 * lacked_s / LASTS_S, abs=0.3)
