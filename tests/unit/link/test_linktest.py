"""Which paths of a cluster are measured, for how long, and what an answer of the agent says."""

from __future__ import annotations

from pathlib import Path

import pytest

from steelyard.link import linktest
from steelyard.model.link import PLAIN, LinkChoice
from steelyard.node.base import Node


def nodes(letter: str, number: int) -> list[Node]:
    role = "load" if letter == "l" else "database"
    return [Node(f"{letter}{index + 1}", role, "10.0.0.1", (), Path("/")) for index in range(number)]


def names(load_nodes: int, databases: int) -> list[str]:
    return [f"{one.name}-{other.name}" for one, other in linktest.pairs(nodes("l", load_nodes), nodes("n", databases))]


def test_every_pair_of_a_small_cluster_and_a_ring_of_a_large_one() -> None:
    assert names(1, 1) == ["l1-n1"]
    assert names(1, 3) == ["l1-n1", "l1-n2", "l1-n3", "n1-n2", "n1-n3", "n2-n3"]
    assert names(1, 5)[5:] == ["n1-n2", "n2-n3", "n3-n4", "n4-n5", "n5-n1"]
    assert names(2, 2) == ["l1-n1", "l2-n1", "l1-n2", "l2-n2", "n1-n2"]


@pytest.mark.parametrize(("load_nodes", "databases"), [(1, 1), (1, 2), (2, 3), (1, 4), (3, 9)])
def test_the_estimate_counts_the_pairs_that_are_measured(load_nodes: int, databases: int) -> None:
    assert linktest.number_of_pairs(load_nodes, databases) == len(names(load_nodes, databases))


def test_slow_paths_are_measured_longer() -> None:
    wan = LinkChoice(medium="switched", delay_ms=10)
    assert (linktest.rate_s(PLAIN), linktest.rate_s(wan)) == (0.5, 1.0)
    assert linktest.rate_s(LinkChoice(medium="switched", delay_ms=300)) == 5.0
    assert linktest.expected_s(wan, 1, 3) == pytest.approx(6 * (1.0 + 1.02 + linktest.PROCESSES_S))


def test_loss_is_of_one_way() -> None:
    answer = linktest._of_answer({"mbit_per_s": 5.0, "rtt_ms_min": 1.0, "rtt_ms_p99": None, "sent": 100, "lost": 19})
    assert answer["loss_percent"] == pytest.approx(10.0)
    assert "rtt_ms_p99" not in answer
    assert linktest._of_answer({"sent": 10, "lost": 10})["loss_percent"] == 100.0
