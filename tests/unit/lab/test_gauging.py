"""Sentences on nodes that have not what was asked for."""

from __future__ import annotations

from steelyard.lab.gauging import deviations
from steelyard.model.gauged import Gauged


def test_fewer_processors_than_asked_have_a_likely_cause_and_a_meaning() -> None:
    measured = {"n1": {"cpus": 0.199, "memory_mb": 400.0}, "n2": {"cpus": 0.7, "memory_mb": 512.0}}
    gauged = Gauged(moment="before", asked={"cpus": 0.5, "memory_mb": 512.0}, measured=measured)
    less, more, memory = deviations(gauged)
    assert less.startswith("n1: node.cpus is 0.199, asked 0.5 (the machine was probably busy while it was measured")
    assert "the node gets less than asked" in less
    assert more == "n2: node.cpus is 0.7, asked 0.5"
    assert memory == "n1: node.memory_mb is 400, asked 512"
