"""A cluster that changed its size is no point of a law over nodes; as a treatment it is compared like any other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from steelyard.analysis.analyse import analyse
from steelyard.analysis.results import Results
from steelyard.analysis.statistics.coefficient import Coefficient
from steelyard.analysis.statistics.comparison import Comparison
from steelyard.analysis.statistics.law import LawFit
from steelyard.analysis.statistics.regression import Regression
from steelyard.analysis.statistics.scaling import Scaling
from steelyard.analysis.statistics.speedup import Speedup
from steelyard.analysis.statistics.summary import Summary
from steelyard.model.trial import TrialRecord
from steelyard.model.trial_settings import TrialSettings
from steelyard.study.read import read_text
from tests.unit.analysis.made import cell, study
from tests.unit.report import growing

SIZES = (1, 2, 3, 4, 6, 8)
POLICIES = ("none", "scheduled")


def grown(records: Sequence[TrialRecord]) -> list[TrialRecord]:
    """The same trials under other names, each with a node that joined."""
    activity = growing.growth(growing.BEGUN_S, nodes=("n9",))
    return [one.model_copy(update={"id": f"{one.id}-grown", "activities": (activity,)}) for one in records]


def trials(policies: Sequence[str], *, scaled_by: float = 0.25) -> list[TrialRecord]:
    """Three starts of each size and policy: operations take 1 / nodes of a second, with the policy `scaled_by` that."""
    every: list[TrialRecord] = []
    for policy in policies:
        by = scaled_by if policy == "scheduled" else 1.0
        for size in SIZES:
            values = [[1000.0 * by / size * (1 + start / 100)] for start in range(3)]
            of_cell = cell(values, nodes=size, extra={"policy.name": policy})
            every += grown(of_cell) if policy == "scheduled" else of_cell
    return every


def analysed(records: Sequence[TrialRecord], **changes: Any) -> Results:
    factors = {"nodes": SIZES, "workload": ("A",), "policy.name": POLICIES}
    asked = study(factors=factors, load={"operations": 1000, "threads": 256}, **changes)
    return analyse(records, asked, seed=1)


def test_laws_and_lines_over_nodes_are_those_of_the_clusters_that_kept_their_size() -> None:
    both, alone = analysed(trials(POLICIES)), analysed(trials(POLICIES[:1]))
    assert len(alone.of(LawFit)) == 4
    for row in (LawFit, Scaling, Regression, Coefficient):
        assert both.of(row) == alone.of(row), row
    over_nodes = [[one for one in results.of(Speedup) if one.factor == "nodes"] for results in (both, alone)]
    assert over_nodes[0] == over_nodes[1] != []
    assert any("the 18 attempts whose cluster changed its size" in limit for limit in both.caveats)
    assert not any("changed its size" in limit for limit in alone.caveats)


def test_both_policies_are_cells_and_are_compared() -> None:
    results = analysed(trials(POLICIES))
    assert len(results.main(Summary)) == 2 * len(SIZES)
    of_policy = [one for one in results.of(Comparison) if one.factor == "policy.name"]
    assert len(of_policy) == len(SIZES)
    assert all(one.change_percent.value == pytest.approx(-75.0) for one in of_policy)
    assert len([one for one in results.of(Speedup) if one.factor == "policy.name"]) == len(SIZES)


def test_a_study_of_growing_clusters_only_has_no_law() -> None:
    results = analysed(trials(POLICIES[1:]))
    assert results.of(LawFit) == ()
    assert results.of(Scaling) == ()
    assert len(results.main(Summary)) == len(SIZES)


def test_without_a_factor_of_nodes_nothing_is_left_out() -> None:
    records = grown(cell([[5.0], [6.0], [7.0]], nodes=3)) + grown(cell([[9.0], [9.5], [9.9]], nodes=3, workload="C"))
    of_workloads = [one.model_copy(update={"treatment": {"workload": one.treatment["workload"]}}) for one in records]
    results = analyse(of_workloads, study(factors={"workload": ("A", "C")}), seed=1)
    assert not any("are left out where it is read as the size" in limit for limit in results.caveats)


def limits(text: str = growing.STUDY, **changes: object) -> str:
    records = [one.model_copy(update=changes) for one in growing.records(text)]
    return "\n".join(analyse(records, read_text(text), seed=1).caveats)


def test_the_limits_of_a_join_are_named() -> None:
    told_of = limits()
    assert "takes its processor time" not in told_of, "the times of simulated nodes are timers'"
    assert "A node that joins is cold: its server was not warmed up, those of the other nodes were." in told_of
    assert "Provisioning took 0 s, because spare nodes were lent before the start" in told_of
    assert "ring delay" not in told_of


def test_a_limit_is_not_named_where_it_does_not_hold() -> None:
    assert "is cold" not in limits(server_warm_up=None)
    assert "is cold" not in limits(growing.STUDY.replace('warm_up = "2:1000"\n', ""))
    nothing = limits(activities=())
    assert "joins" not in nothing
    assert "Provisioning" not in nothing


def test_a_study_without_a_control_that_keeps_its_size_is_told_so() -> None:
    lacks = "Every treatment changes the size of its cluster: without a control that keeps it"
    assert lacks not in limits()
    assert lacks in limits(growing.STUDY.replace('["none", "scheduled"]', '["scheduled"]'))


def test_a_short_ring_delay_is_named() -> None:
    system = {"name": "cassandra", "ring_delay_ms": 5000}
    records = [
        one.model_copy(update={"settings": TrialSettings({**one.settings.root, "system": system})})
        for one in growing.records()
    ]
    asked = read_text(growing.STUDY)
    asked = asked.model_copy(update={"system": type(asked.system).model_validate(system)})
    told_of = "\n".join(analyse(records, asked, seed=1).caveats)
    assert "The ring delay was 5 s and not Cassandra's 30 s (`system.ring_delay_ms`)" in told_of
    assert "25 s longer" in told_of
    assert "A node that joins takes its processor time from the machine that all nodes share" in told_of
    apart = [one.model_copy(update={"shares": ("clock",)}) for one in records]
    assert "takes its processor time" not in "\n".join(analyse(apart, asked, seed=1).caveats)
