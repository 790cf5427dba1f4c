"""Cost and energy per million operations: the trials' responses, or what the study declares of its nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from pydantic import ValidationError

from steelyard.analysis.analyse import analyse
from steelyard.analysis.frame import frame_of
from steelyard.analysis.statistics.merit import Merit, merits
from steelyard.model.cost import Cost
from steelyard.model.trial import TrialRecord
from steelyard.model.trial_settings import TrialSettings
from steelyard.study.read import read_text
from tests.unit.analysis.made import cell, study
from tests.unit.report import growing

PRICE: dict[str, Any] = {"price_per_node_hour": 3.6, "currency": "EUR"}
POWER = {"node_watts_idle": 40, "node_watts_busy": 120}


def of(records: Sequence[TrialRecord], cost: dict[str, Any], **more: Any) -> tuple[Merit, ...]:
    """The rows of trials whose settings have the nodes of their treatments."""
    chosen = study(cost=cost, **more)
    return merits(frame_of(records, chosen), chosen, records)


def records(load_nodes: int = 1, **measures: float) -> list[TrialRecord]:
    """Two treatments: 1,000 operations in 1 s on one node, in 0.5 s on three."""
    trials = [*cell([[1000.0, 1000.0], [1000.0, 1000.0]], nodes=1), *cell([[500.0, 500.0], [500.0, 500.0]], nodes=3)]
    return [with_settings(trial, load_nodes, **measures) for trial in trials]


def with_settings(trial: TrialRecord, load_nodes: int = 1, **measures: float) -> TrialRecord:
    site = {"name": "local", "nodes": trial.treatment["nodes"], "load_nodes": load_nodes}
    settings = TrialSettings({"site": site})
    return trial.model_copy(update={"settings": settings, "measures": measures})


def test_cost_is_the_response_for_each_trial() -> None:
    """1,000 operations in 1 s on one node at 3.60 an hour: 0.001 a second, 1 for a million."""
    one, three = of(records(), PRICE)
    assert one.cost_per_million_operations is not None
    assert one.cost_per_million_operations.value == pytest.approx(1.0)
    assert one.cost_per_million_operations.unit == "EUR per million operations"
    assert three.cost_per_million_operations is not None
    assert three.cost_per_million_operations.value == pytest.approx(1.5), "three nodes for half of the time"
    assert (one.cost_basis, one.energy_basis, one.paid_nodes, three.paid_nodes) == ("declared", "none", 1, 3)
    assert one.throughput_per_s.value == pytest.approx(1000)
    counted, _ = of(records(load_nodes=2), {**PRICE, "count_load_nodes": True})
    assert counted.paid_nodes == 3
    assert counted.cost_per_million_operations is not None
    assert counted.cost_per_million_operations.value == pytest.approx(3.0)


def test_intervals_rest_on_starts() -> None:
    spread = [with_settings(trial) for trial in cell([[1000.0, 1010.0], [1100.0, 1110.0], [1050.0, 1060.0]])]
    (found,) = of(spread, PRICE)
    assert found.cost_per_million_operations is not None
    assert found.cost_per_million_operations.n == 3
    assert "start means" in found.cost_per_million_operations.method
    (single,) = of(spread[:2], PRICE)
    assert single.cost_per_million_operations is not None
    assert "one start" in single.cost_per_million_operations.method


def test_declared_power_follows_the_response_of_cpu() -> None:
    (half, _) = of(records(cpu_percent_mean=50.0), POWER)
    assert half.energy_j_per_million_operations is not None
    assert half.energy_j_per_million_operations.value == pytest.approx(80 / 1000 * 1e6)
    assert half.energy_basis == "declared"
    (throughout, three) = of(records(), {"node_watts_busy": 120})
    assert throughout.energy_j_per_million_operations is not None
    assert throughout.energy_j_per_million_operations.value == pytest.approx(120 / 1000 * 1e6)
    assert three.energy_j_per_million_operations is not None
    assert three.energy_j_per_million_operations.value == pytest.approx(3 * 120 / 2000 * 1e6)
    assert "counts as busy throughout" in throughout.note
    busy = {"cpu_percent_mean": 50.0, "load_cpu_percent_mean": 100.0}
    (both, _) = of(records(load_nodes=2, **busy), {**POWER, "count_load_nodes": True})
    assert both.energy_j_per_million_operations is not None
    assert both.energy_j_per_million_operations.value == pytest.approx((80 + 2 * 120) / 1000 * 1e6)
    (unread, _) = of(records(), POWER)
    assert (unread.energy_basis, unread.energy_j_per_million_operations) == ("none", None)
    assert "CPU use was not sampled" in unread.note


def test_measured_energy_is_the_response_and_is_never_averaged_with_declared() -> None:
    measured = {"energy_j_per_operation": 0.065, "cpu_percent_mean": 50.0}
    (found, _) = of(records(**measured), POWER)
    assert found.energy_j_per_million_operations is not None
    assert found.energy_j_per_million_operations.value == pytest.approx(65_000)
    assert found.energy_basis == "measured"
    trials = records(cpu_percent_mean=50.0)
    trials[0] = trials[0].model_copy(update={"measures": measured})
    (found, _) = of(trials, POWER)
    assert (found.energy_basis, found.energy_j_per_million_operations) == ("none", None)
    assert "trials use different energy sources" in found.note


def test_energy_of_load_nodes_counts_where_their_machines_are_their_own() -> None:
    measured = {"energy_j_per_operation": 0.065, "load_energy_j_per_operation": 0.015}
    counted = {**PRICE, "count_load_nodes": True}
    (found, _) = of(records(**measured), counted)
    assert found.energy_j_per_million_operations is not None
    assert found.energy_j_per_million_operations.value == pytest.approx(80_000)
    shared = [trial.model_copy(update={"shares": ("cpu",)}) for trial in records(**measured)]
    (found, _) = of(shared, counted)
    assert found.energy_j_per_million_operations is not None
    assert found.energy_j_per_million_operations.value == pytest.approx(65_000), "the one machine, once"


def test_a_study_that_asks_for_energy_says_that_none_was_measured() -> None:
    (found, _) = of(records(), {}, probes=("os", "energy"))
    assert found.note.startswith("energy was not measured: the power of some node was not read")
    assert of(records(), {}) == ()


def test_shared_machines_are_said() -> None:
    shared = [with_settings(trial, energy_j_per_operation=0.005) for trial in cell([[1000.0]], shares=("cpu",))]
    (found,) = of(shared, PRICE)
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


def test_a_cluster_that_grew_is_paid_for_as_long_as_its_nodes_ran() -> None:
    """Two nodes that are started 21 and 32 s into a trial of 60 s, or so, are not two nodes for all of it."""
    text = growing.STUDY + '[cost]\nprice_per_node_hour = 3600.0\ncurrency = "EUR"\n'
    results = analyse(growing.records(text), read_text(text), seed=1)
    fixed, grown = results.of(Merit)
    assert fixed.paid_nodes == 3
    assert 4.0 < grown.paid_nodes < 4.3
    assert grown.cost_per_million_operations is not None
    assert grown.cost_per_million_operations.value == pytest.approx(1000 * grown.paid_nodes)
