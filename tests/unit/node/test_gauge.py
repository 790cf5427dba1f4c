"""The conductor's side of the gauge: when nodes are measured, what is asked, what an answer means."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from steelyard.model.errors import NodeError
from steelyard.model.node_limits import DISK_RATES, LIMIT_SETTLE_S, NodeLimits
from steelyard.node import gauge
from steelyard.node.base import Node
from steelyard.plan import expand
from steelyard.plan.estimate import estimate
from steelyard.study import read_text

NODE = Node("n1", "database", "127.0.0.1", (), Path("/n1"), agent="/bin/agent")
ANSWER = {"cpus": 0.5, "work_per_cpu_s": 90.0, "memory_mb": 98, "memory_ended": "killed", "machine_swap_mb": 0}


def asked(folder: Path, limits: NodeLimits, answer: Any, lent: Node = NODE) -> tuple[Any, list[str]]:
    """What the gauge says where the agent gives an answer, and the words that the agent was called with."""
    program = folder / "agent"
    program.write_text(f"#!/bin/sh\nprintf '%s\\n' \"$@\" > {folder}/words\necho '{json.dumps(answer)}'\n")
    program.chmod(0o755)
    found = asyncio.run(gauge.gauge(replace(lent, agent=str(program)), limits))
    return found, (folder / "words").read_text().split()


def test_only_nodes_with_a_limit_or_a_profile_are_measured() -> None:
    assert not gauge.wanted(NodeLimits())
    assert gauge.expected_s(NodeLimits()) == 0.0
    assert gauge.wanted(NodeLimits(profile="unlimited"))
    fast, slow = NodeLimits(cpus=1, memory_mb=1024), NodeLimits(cpus=0.1, memory_mb=1024, disk_read_mb_per_s=1)
    assert 0 < gauge.expected_s(fast) < gauge.expected_s(slow)
    large = gauge.expected_s(NodeLimits(memory_mb=4096))
    assert large > 4 * gauge.expected_s(NodeLimits(memory_mb=1024)), "a host has to find the memory first"
    assert gauge.timeout_s(fast) == gauge.TIMEOUT_S
    assert gauge.timeout_s(NodeLimits(memory_mb=65_536)) > gauge.TIMEOUT_S


def test_memory_is_touched_beyond_its_limit(tmp_path: Path) -> None:
    (numbers, measured), argv = asked(tmp_path, NodeLimits(cpus=0.5, memory_mb=100), ANSWER)
    assert argv == ["gauge", "--memory-mb", "141"]
    assert numbers == {"cpus": 0.5, "memory_mb": 100.0}
    assert measured == {"cpus": 0.5, "work_per_cpu_s": 90.0, "memory_mb": 98.0}


def test_swap_counts_as_far_as_the_machine_has_any(tmp_path: Path) -> None:
    limits, answer = NodeLimits(memory_mb=100, swap_mb=50), {**ANSWER, "memory_mb": 128, "machine_swap_mb": 30}
    (numbers, measured), _ = asked(tmp_path, limits, answer)
    assert numbers == {"memory_and_swap_mb": 130.0}
    assert measured["memory_and_swap_mb"] == 128.0


def test_a_limit_that_the_machine_cannot_reach_is_not_measured(tmp_path: Path) -> None:
    (_, measured), _ = asked(tmp_path, NodeLimits(memory_mb=100), {**ANSWER, "memory_ended": "machine"})
    assert "memory_mb" not in measured


MEMORY_MAP = """\
00000000-00000fff : Reserved
00001000-0009fbff : System RAM
00100000-3ffd6fff : System RAM
  1b000000-1be01ef1 : Kernel code
40000000-afffffff : PCI Bus 0000:00
"""


def test_memory_of_a_virtual_machine_is_what_its_kernel_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is killed at 1024 MiB of a machine that has no more."""
    maps = {gauge.MEMORY_MAP: MEMORY_MAP}

    async def texts(node: Node, *paths: Path) -> dict[Path, str]:
        return {path: maps[path] for path in paths if path in maps}

    # The memory map is that of another machine, at its own path.
    monkeypatch.setattr(gauge.files, "texts", texts)
    machine, answer = replace(NODE, kernel="n1"), {**ANSWER, "memory_ended": "machine"}
    (numbers, measured), _ = asked(tmp_path, NodeLimits(memory_mb=1024), answer, machine)
    assert numbers == {"machine_memory_mb": 1024.0}
    assert measured["machine_memory_mb"] == pytest.approx(1023.46, abs=0.01)
    assert "memory_mb" not in measured
    maps[gauge.MEMORY_MAP] = "00000000-00000000 : System RAM\n"
    (_, measured), _ = asked(tmp_path, NodeLimits(memory_mb=1024), answer, machine)
    assert "machine_memory_mb" not in measured, "addresses are hidden from users without rights"
    (numbers, measured), _ = asked(tmp_path, NodeLimits(memory_mb=100), ANSWER, machine)
    assert (numbers, measured["memory_mb"]) == ({"memory_mb": 100.0}, 98.0), "a limit that was reached"


def test_the_disk_is_measured_in_the_node_s_folder(tmp_path: Path) -> None:
    rates = dict.fromkeys(DISK_RATES, 10.0)
    (numbers, measured), argv = asked(tmp_path, NodeLimits(disk_write_mb_per_s=10), {**ANSWER, **rates})
    assert argv[1:] == ["--folder", "/n1"]
    assert numbers == {"disk_write_mb_per_s": 10.0}
    assert set(DISK_RATES) < set(measured)


def test_an_answer_that_cannot_be_read_names_the_node(tmp_path: Path) -> None:
    with pytest.raises(NodeError, match="n1: the answer of the gauge cannot be read"):
        asked(tmp_path, NodeLimits(cpus=1), {"cpus": 1})


def test_the_plan_counts_it_before_and_after_each_start() -> None:
    text = """
format = 1
[study]
name = "counted"
question = "?"
[site]
name = "local"
nodes = 3
[system]
name = "simulated"
[workload]
name = "ycsb-c"
[load]
operations = 100
[design]
starts = 2
"""
    plain, limited = (read_text(text + rest) for rest in ("", "[node]\ncpus = 0.5\n"))
    hours = [estimate(expand(asked), asked, cores=2).whole_s for asked in (plain, limited)]
    each = gauge.expected_s(NodeLimits(cpus=0.5))
    assert hours[1] - hours[0] == pytest.approx(2 * (2 * 3 * each + LIMIT_SETTLE_S))
