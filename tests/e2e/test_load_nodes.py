"""Two load nodes whose clocks differ: they start at one instant, and what they say is on one clock."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from steelyard.store import Store
from tests.e2e.laboratory import BUSY_MACHINE, COLD, Laboratory

pytestmark = pytest.mark.agent

SITE = """
import dataclasses

from steelyard.site import fake
from steelyard.site.fake import Settings


class Site(fake.FakeSite):
    def _node(self, identity, role, name, last_octet):
        node = super()._node(identity, role, name, last_octet)
        if name != "l2":
            return node
        environment = {**node.environment, "STEELYARD_CLOCK_OFFSET_S": "-3"}
        return dataclasses.replace(node, kernel="elsewhere", environment=environment)


def create(settings, state_folder):
    return Site(settings, state_folder)
"""
STUDY = f"""
probes = []
[study]
name = "two-load-nodes"
question = "do load nodes start together whatever their clocks say?"
[site]
name = "SITE"
address = "127.71.0"
load_nodes = 2
[system]
name = "simulated"
[workload]
name = "ycsb-c"
records = 100
[load]
schedule = "constant"
rate_per_s = 200
threads = 16
duration_s = 2
warm_up_s = 1
[design]
starts = 1
trials = 2
seed = 1
[factors]
nodes = [1]
{BUSY_MACHINE}lag_p99_ms = 1000
probe_gap_s = 30
{COLD}"""
TOGETHER_S = 0.05


def test_load_nodes_start_together_whatever_their_clocks_say(laboratory: Laboratory, tmp_path: Path) -> None:
    (tmp_path / "two.py").write_text(SITE)
    study = tmp_path / "two-load-nodes.toml"
    study.write_text(STUDY.replace("SITE", str(tmp_path / "two.py")))
    ended = laboratory.run(study, "--trust")
    assert ended.returncode == 0, ended.stderr
    for record in Store(laboratory.store / "two-load-nodes").trials():
        assert [clock.node for clock in record.clocks] == ["l2"]
        folder = laboratory.store / "two-load-nodes" / "trials" / record.id / "intervals"
        for phase in ("warm-up", "measure"):
            first_s = [
                pl.read_parquet(folder / f"{node}.parquet").filter(pl.col("phase") == phase)["t_s"].min()
                for node in ("l1", "l2")
            ]
            assert first_s[0] == pytest.approx(first_s[1], abs=TOGETHER_S)
        assert record.responses.operations == 400
