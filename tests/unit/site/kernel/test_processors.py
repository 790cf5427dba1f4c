"""Processors of nodes: which cores they are bound to, and refusals that say what is allowed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from steelyard.model.node_limits import NodeLimits
from steelyard.site.base import Refusal, Request
from steelyard.site.kernel import cgroup, processors
from steelyard.site.kernel.cgroup import Hierarchies

BOUND = NodeLimits(cpus=1, cpu_limit="cpuset")
TWO = NodeLimits(cpus=2, cpu_limit="cpuset")


@pytest.fixture
def four(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Hierarchies:
    """A machine of eight cores, of which this process may use four."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {2, 3, 4, 6})
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    return Hierarchies({"cpu": tmp_path}, None, frozenset(), (), cpuset=tmp_path)


def refused(hierarchies: Hierarchies, nodes: int = 1, dilation: float = 1.0, **limits: Any) -> Refusal | None:
    asked = NodeLimits(**limits)
    reason = processors.refusal(Request("s", nodes, dilation=dilation), asked, hierarchies, "")
    assert reason is None or isinstance(reason, Refusal)
    return reason


def test_nodes_get_cores_that_this_process_may_use(four: Hierarchies, tmp_path: Path) -> None:
    cores = processors.bindable_cores(four)
    assert [processors.cores_of(name, BOUND, cores) for name in ("n1", "n2", "n4")] == ["2", "3", "6"]
    assert processors.cores_of("n2", TWO, cores) == "4,6"
    (tmp_path / "cpuset.cpus").write_text("0-4\n")
    assert processors.bindable_cores(four) == (2, 3, 4), "the group above hands down no more"


def test_cores_of_another_lease_come_last(four: Hierarchies) -> None:
    assert four.cpuset is not None
    other = four.cpuset / "steelyard" / "0a1b2c3d" / "n1"
    other.mkdir(parents=True)
    (other / "cpuset.cpus").write_text("2-3\n")
    cores = processors.bindable_cores(four)
    assert cores == (4, 6, 2, 3)
    assert processors.cores_of("n2", TWO, cores) == "2,3"


def test_too_few_cores_are_refused_with_the_way_out(four: Hierarchies) -> None:
    assert refused(four, 4, cpus=1, cpu_limit="cpuset") is None
    reason = refused(four, 5, cpus=1, cpu_limit="cpuset")
    assert reason is not None
    assert reason == 'cpu_limit = "cpuset": 5 x 1 whole cores, but this process may use 4 of 8 cores'
    assert 'node.cpu_limit = "quota"' in reason.hint
    assert reason.key == "node.cpus"


def test_more_processors_than_there_are_have_a_dilation_that_fits(four: Hierarchies) -> None:
    reason = refused(four, cpus=16)
    assert reason is not None
    assert reason == "cpus = 16 per node, but this process may use 4 of 8 cores"
    assert reason.hint == (
        "at most 4: a smaller node.cpus or profile, or node.dilation = 4: everything takes 4 times as long "
        "(docs/explanation/dilation.md), or a larger machine"
    )
    dilated = refused(four, cpus=8, dilation=2)
    assert dilated is not None
    assert "cpus = 8 per node (node.cpus divided by node.dilation = 2)" in dilated
    assert dilated.hint.startswith("at most 8: a smaller node.cpus or profile, or node.dilation = 4:")
    whole = refused(four, cpus=16, cpu_limit="cpuset")
    assert whole is not None
    assert whole.hint == "at most 4: a smaller node.cpus or profile, or a larger machine"
    stretched = refused(four, cpus=8, dilation=2, cpu_limit="cpuset")
    assert stretched is not None
    assert stretched.hint == "at most 8: a smaller node.cpus or profile, or a larger machine", "before the division"


def test_a_quota_below_the_kernel_s_least_is_refused_and_no_other_is_raised(four: Hierarchies) -> None:
    reason = refused(four, cpus=0.005)
    assert reason is not None
    assert "a quota of less than 0.01 cannot be enforced" in reason
    assert refused(four, cpus=0.01) is None
    assert cgroup._quota_us(0.01) == 1000
