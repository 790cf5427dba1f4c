"""A study on rented machines, whose account is a fake: what it costs is agreed to, a node that joins is launched then,
and nothing stays."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from steelyard.judging.activity_phases import phases
from steelyard.judging.measures import with_derived
from steelyard.store import Store
from tests.contract import shelf as shelves
from tests.e2e.laboratory import BUSY_MACHINE, COLD, Laboratory

pytest.importorskip("moto")

from tests.contract import fake_ec2
from tests.contract.fake_ec2 import AMI, REGION, FakeEc2

pytestmark = [pytest.mark.root, pytest.mark.agent, pytest.mark.sshd]

STUDY = f"""
probes = ["os"]
[study]
name = "rented"
question = "does a launched node join?"
[site]
name = "ec2"
nodes = 2
region = "{REGION}"
image = "{AMI}"
user = "root"
most_hours = 2
[system]
name = "simulated"
boot_s = 0.5
[workload]
name = "ycsb-c"
records = 100
[load]
schedule = "constant"
rate_per_s = 100
threads = 16
duration_s = 20
[policy]
times = [[2, 3]]
[cost]
price_per_node_hour = 0.1
currency = "USD"
[design]
starts = 1
trials = 1
seed = 1
cost_limit = 2
[factors]
policy = ["none", "scheduled"]
[analysis]
responses = ["cost_per_trial", "cost_per_million_operations"]
{BUSY_MACHINE}lag_p99_ms = 1000
probe_gap_s = 30
{COLD}"""


@pytest.fixture
def fake() -> Iterator[FakeEc2]:
    with shelves.running(5, on=False) as shelf, fake_ec2.running(shelf) as account:
        yield account
        assert (account.alive, account.volumes) == ([], 0)


def test_a_node_that_joins_is_launched_and_nothing_stays(fake: FakeEc2, laboratory: Laboratory, tmp_path: Path) -> None:
    study = tmp_path / "rented.toml"
    study.write_text(STUDY)
    refused = laboratory.run(study)
    assert refused.returncode == 2
    assert "not agreed to: 2 starts of up to 4 rented nodes: 15.17 node-hours at most, 1.52 USD" in refused.stderr
    assert "RunInstances" not in fake.actions
    ended = laboratory.run(study, "--yes")
    assert ended.returncode == 0, ended.stderr
    store = Store(laboratory.store / "rented")
    records = {str(record.treatment["policy"]): record for record in with_derived(store.trials(), store.study)}
    assert {record.verdict.outcome for record in records.values()} == {"valid"}
    (joined,) = records["scheduled"].activities
    assert (joined.nodes, joined.outcome) == (("n3",), "done")
    marks = [mark.name for mark in joined.marks]
    assert marks[:4] == ["launched", "running", "reached", "lent"]
    assert phases(joined, "n3")[0].name == "provisioning"
    for earlier, later in pairwise(phases(joined, "n3")):
        assert earlier.to_s == later.from_s
    costs = {policy: record.measures["cost_per_trial"] for policy, record in records.items()}
    assert costs["none"] == pytest.approx(2 * 20 / 3600 * 0.1, rel=0.1)
    assert costs["none"] < costs["scheduled"] < 1.5 * costs["none"]
    verified = laboratory.call("verify", laboratory.store / "rented")
    assert verified.returncode == 0, verified.stdout


def test_a_plan_above_its_limit_is_refused(fake: FakeEc2, laboratory: Laboratory, tmp_path: Path) -> None:
    study = tmp_path / "rented.toml"
    study.write_text(STUDY.replace("cost_limit = 2", "cost_limit = 1"))
    refused = laboratory.run(study, "--yes")
    assert refused.returncode == 2
    assert "design.cost_limit = 1: 2 starts" in refused.stderr
    study.write_text(STUDY.replace('price_per_node_hour = 0.1\ncurrency = "USD"', ""))
    assert "declare cost.price_per_node_hour" in laboratory.run(study, "--yes").stderr
    assert fake.actions == []
