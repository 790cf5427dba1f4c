"""Cost and energy per million operations: arithmetic, declared beside measured, what is said where one is missing."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from steelyard.analysis.statistic import Attempt, Use
from steelyard.analysis.statistics.merit import merits
from steelyard.model.cost import Cost
from steelyard.model.trial import TrialRecord
from tests.unit.analysis.made import cell, frame

PRICE = Cost(price_per_node_hour=3.6, currency="EUR")
POWER = Cost(node_watts_idle=40, node_watts_busy=120)


def of(records: list[TrialRecord], **use: Any) -> dict[Attempt, Use]:
    return {(one.id, one.attempt): Use(**{"nodes": int(one.treatment["nodes"]), **use}) for one in records}


def records() -> list[TrialRecord]:
    return [*cell([[1000.0, 1000.0], [1000.0, 1000.0]], nodes=1), *cell([[500.0, 500.0], [500.0, 500.0]], nodes=3)]


def test_cost_is_price_times_nodes_times_time() -> None:
    """1,000 operations in 1 s on one node at 3.60 an hour: 0.001 a second, 1 for a million."""
    one, three = merits(frame(records()), PRICE, of(records()))
    assert one.cost_per_million_operations is not None
    assert one.cost_per_million_operations.value == pytest.approx(1.0)
    assert one.cost_per_million_operations.unit == "EUR per million operations"
    assert three.cost_per_million_operations is not None
    assert three.cost_per_million_operations.value == pytest.approx(1.5), "three nodes for half of the time"
    assert (one.cost_basis, one.energy_basis, one.nodes, three.nodes) == ("declared", "none", 1, 3)
    assert one.throughput_per_s.value == pytest.approx(1000)


def test_intervals_rest_on_starts() -> None:
    spread = cell([[1000.0, 1010.0], [1100.0, 1110.0], [1050.0, 1060.0]])
    (found,) = merits(frame(spread), PRICE, of(spread))
    assert found.cost_per_million_operations is not None
    assert found.cost_per_million_operations.n == 3
    assert "start means" in found.cost_per_million_operations.method
    (single,) = merits(frame(spread[:2]), PRICE, of(spread))
    assert single.cost_per_million_operations is not None
    assert "one start" in single.cost_per_million_operations.method


def test_declared_power_lies_between_idle_and_busy() -> None:
    (half, _) = merits(frame(records()), POWER, of(records(), busy=0.5))
    assert half.energy_j_per_million_operations is not None
    assert half.energy_j_per_million_operations.value == pytest.approx(80 / 1000 * 1e6)
    assert half.energy_basis == "declared"
    busy = Cost(node_watts_busy=120)
    (throughout, three) = merits(frame(records()), busy, of(records()))
    assert throughout.energy_j_per_million_operations is not None
    assert throughout.energy_j_per_million_operations.value == pytest.approx(120 / 1000 * 1e6)
    assert three.energy_j_per_million_operations is not None
    assert three.energy_j_per_million_operations.value == pytest.approx(3 * 120 / 2000 * 1e6)
    assert "counts as busy throughout" in throughout.note


def test_measured_wins_and_is_never_averaged_with_declared() -> None:
    (found, _) = merits(frame(records()), POWER, of(records(), busy=0.5, measured_watts=65.0))
    assert found.energy_j_per_million_operations is not None
    assert found.energy_j_per_million_operations.value == pytest.approx(65_000)
    assert found.energy_basis == "measured"
    mixed = of(records(), busy=0.5)
    key = next(iter(mixed))
    mixed[key] = Use(nodes=1, busy=0.5, measured_watts=65.0)
    (found, _) = merits(frame(records()), POWER, mixed)
    assert (found.energy_basis, found.energy_j_per_million_operations) == ("none", None)
    assert "not all trials have it by the same means" in found.note


def test_why_nothing_was_measured_is_said() -> None:
    why = "no energy counters could be read on n1"
    (found, _) = merits(frame(records()), Cost(), of(records(), why_not=why))
    assert found.note == f"energy was not measured: {why}"
    assert merits(frame(records()), Cost(), of(records())) == ()
    assert merits(frame(records()), PRICE, {}) == ()


def test_shared_machines_are_said() -> None:
    shared = cell([[1000.0]], shares=("cpu",))
    (found,) = merits(frame(shared), PRICE, of(shared, measured_watts=5.0))
    assert "hardware that was not there" in found.note
    assert "share with the load generator" in found.note


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"price_per_node_hour": 1}, "belong together"),
        ({"currency": "EUR"}, "belong together"),
        ({"price_per_node_hour": 1, "currency": "euro"}, "pattern"),
        ({"price_per_node_hour": 0, "currency": "EUR"}, "greater than 0"),
        ({"node_watts_idle": 5}, "needs node_watts_busy"),
        ({"node_watts_idle": 50, "node_watts_busy": 5}, "must be at most node_watts_busy"),
    ],
)
def test_half_of_a_declaration_is_refused(table: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        Cost.model_validate(table)
