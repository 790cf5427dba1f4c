"""A made-up plug through the whole laboratory: idle before each trial, energy above it, and a verification."""

from __future__ import annotations

from pathlib import Path

import pytest

from steelyard.model.trial import Phase
from steelyard.store import Store
from tests.e2e.laboratory import BUSY_MACHINE, COLD, Laboratory
from tests.unit.probe.test_meter import plug

pytestmark = pytest.mark.agent

STUDY = """
probes = ["os", "meter"]
measure_idle_s = 2
[study]
name = "metered"
question = "What does an operation cost?"
[site]
name = "local"
nodes = 2
[system]
name = "simulated"
[workload]
name = "ycsb-c"
[load]
threads = 2
warm_up_s = 1
duration_s = 3
[design]
starts = 3
trials = 1
[analysis]
response = "energy_j_total"
responses = ["energy_j_above_idle", "modelled_energy_j_total"]
[cost]
node_watts_idle = 10
node_watts_busy = 90
node_watts_source = "the test"
gain_error_percent = 2
[[probe.meter.meters]]
kind = "shelly"
address = "ADDRESS"
nodes = ["n1", "n2"]
"""


def test_energy_of_two_nodes_behind_one_plug(laboratory: Laboratory, tmp_path: Path) -> None:
    """The plug gives 60 W throughout, so that nothing is above idle."""
    study = tmp_path / "metered.toml"
    with plug(lambda _: 60.0) as server:
        study.write_text(STUDY.replace("ADDRESS", server.address) + BUSY_MACHINE + COLD)
        done = laboratory.run(study)
    assert done.returncode == 0, done.stderr
    records = Store(laboratory.store / "metered").trials()
    assert len(records) == 3
    for record in records:
        begun_s, ended_s = record.measured_span or (0.0, 0.0)
        assert Phase.IDLE in {one.phase for one in record.phases}
        assert record.measures["idle_power_watts"] == pytest.approx(30.0)
        # The last reading may begin some 10 ms before the end, of which it then has too little to belong to the load.
        assert record.measures["energy_j_total"] == pytest.approx(60.0 * (ended_s - begun_s), rel=0.05)
        assert record.measures["energy_j_above_idle"] == pytest.approx(0.0, abs=1e-6)
    table = laboratory.tables("metered")["summary"]
    rows = [dict(zip(table["columns"], row, strict=True)) for row in table["rows"]]
    (energy,) = [row for row in rows if row["response"] == "energy_j_total"]
    assert "a gain error of the meter of 2% (GUM)" in energy["mean_of_starts_method"]
    assert energy["mean_of_starts_high"] - energy["mean_of_starts"] >= 0.04 * energy["mean_of_starts"]
    assert [row["response"] for row in rows if row["response"].startswith("modelled")]
    verified = laboratory.call("verify", laboratory.store / "metered")
    assert verified.returncode == 0, verified.stdout
