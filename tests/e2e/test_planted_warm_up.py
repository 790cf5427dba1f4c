"""Servers that get faster with what they have served, planted in the simulated cluster: warm, they show its law."""

from __future__ import annotations

import statistics
from pathlib import Path

import pytest

from steelyard.store import Store
from tests.e2e.laboratory import BUSY_MACHINE, Laboratory

pytestmark = [pytest.mark.agent, pytest.mark.quiet]

WARM_SERVICE_US = 20_000
"""So long that a busy machine adds little to it."""
WARM_CONTENTION = 0.25
WARM_SIZES = (1, 4)

WARMING = f"""
[study]
name = "planted-warm-up"
question = "is the law found although each node gets faster with what it has served itself?"
[site]
name = "local"
[system]
name = "simulated"
service_us = {WARM_SERVICE_US}
contention = {WARM_CONTENTION}
warm_up = "3:25"
[workload]
name = "ycsb-c"
records = 200
[load]
operations = 40
[server_warm_up]
mode = "MODE"
steady_s = 0.5
deadline_s = 20
[design]
starts = 1
trials = 2
[factors]
nodes = [{WARM_SIZES[0]}, {WARM_SIZES[1]}]
"""


@pytest.mark.parametrize("mode", ["on", "off"])
def test_a_planted_warm_up_hides_the_law_unless_servers_are_warmed_up(
    laboratory: Laboratory, tmp_path: Path, mode: str
) -> None:
    study = tmp_path / "warming.toml"
    study.write_text(WARMING.replace("MODE", mode) + BUSY_MACHINE)
    done = laboratory.run(study)
    assert done.returncode == 0, done.stderr
    records = Store(laboratory.store / "planted-warm-up").trials()
    one, four = (
        statistics.fmean(
            record.responses.execution_time_ms or 0.0 for record in records if record.treatment["nodes"] == n
        )
        for n in WARM_SIZES
    )
    planted = 1 + WARM_CONTENTION * (WARM_SIZES[1] - 1)
    if mode == "off":
        assert all(record.server_warm_up is None for record in records)
        assert four / one > 1.2 * planted, "each of four nodes serves a quarter of the operations, and is colder"
        return
    assert all(record.server_warm_up is not None and record.server_warm_up.reached for record in records)
    assert four / one == pytest.approx(planted, rel=0.15)
    assert "server-warm-up" in done.stderr
