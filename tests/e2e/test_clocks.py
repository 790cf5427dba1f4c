"""A node whose clock is wrong: the whole laboratory puts what it says on the conductor's clock."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from steelyard.store import Store
from tests.e2e.laboratory import BUSY_MACHINE, COLD, Laboratory

pytestmark = pytest.mark.agent

AHEAD_S = 3.0
SITE = f'''
"""Site `fake` with nodes whose clocks are ahead, as if they had a kernel of their own."""

import dataclasses

from steelyard.site import fake
from steelyard.site.fake import Settings


class Site(fake.FakeSite):
    def _node(self, *arguments):
        node = super()._node(*arguments)
        environment = {{**node.environment, "STEELYARD_CLOCK_OFFSET_S": "{AHEAD_S}"}}
        return dataclasses.replace(node, kernel="elsewhere", environment=environment)


def create(settings, state_folder):
    return Site(settings, state_folder)
'''
STUDY = f"""
probes = ["os"]
[study]
name = "wrong-clocks"
question = "are times of nodes whose clock is wrong those of the conductor?"
[site]
name = "SITE"
address = "127.72.0"
[system]
name = "simulated"
[workload]
name = "ycsb-c"
records = 100
[load]
schedule = "constant"
rate_per_s = 50
duration_s = 4
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


def test_times_of_a_node_whose_clock_is_wrong_are_the_conductors(laboratory: Laboratory, tmp_path: Path) -> None:
    (tmp_path / "ahead.py").write_text(SITE)
    study = tmp_path / "wrong-clocks.toml"
    study.write_text(STUDY.replace("SITE", str(tmp_path / "ahead.py")))
    ended = laboratory.run(study, "--trust")
    assert ended.returncode == 0, ended.stderr
    for record in Store(laboratory.store / "wrong-clocks").trials():
        assert record.verdict.outcome == "valid"
        assert {clock.node for clock in record.clocks} == {"n1", "l1"}
        for clock in record.clocks:
            assert abs(clock.before_s - AHEAD_S) < 0.1
            assert clock.worst_s < 0.1
        assert record.measured_span is not None
        begun_s, ended_s = record.measured_span
        assert 3.5 < ended_s - begun_s < 6.5
        trial = laboratory.store / "wrong-clocks" / "trials" / record.id
        intervals = pl.read_parquet(trial / "intervals" / "l1.parquet").filter(pl.col("phase") == "measure")
        assert begun_s - 0.2 <= intervals["t_s"].min() <= begun_s + 0.2
        assert intervals["t_s"].max() <= ended_s
        for node in ("n1", "l1"):
            samples = pl.read_parquet(trial / "samples" / f"{node}.parquet")["t_s"]
            assert samples.min() >= record.begun_s - 2
            assert samples.max() <= ended_s + 1.5
            assert samples.filter((samples > begun_s) & (samples < ended_s)).n_unique() >= 3
