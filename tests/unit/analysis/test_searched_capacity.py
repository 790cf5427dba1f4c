"""Capacities that searches of a study found, and measures of elasticity with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from steelyard.analysis.analyse import analyse
from steelyard.analysis.statistics.elasticity import MEASURES, Elasticity, lacking
from steelyard.judging.searched_capacity import capacities, found_for
from steelyard.model.demand import Demand
from steelyard.model.trial import Responses, TrialRecord
from steelyard.study.read import read_text
from tests.unit.report import elastic, growing

SIZES = (1, 2, 3, 4, 5)
SEARCH = 'load.schedule = "search"\nload.objective = "saturation"\n'
FACTOR = '[factors]\n"policy.name" = ["none", "scheduled"]\n'
LEVELS = "".join(f"[levels.trial.of{nodes}]\nnodes = {nodes}\n{SEARCH}" for nodes in SIZES)
STUDY = (
    elastic.STUDY.replace(FACTOR, f'[factors]\ntrial = ["none", "scheduled", {str([f"of{n}" for n in SIZES])[1:-1]}]\n')
    .replace("[analysis.demand]", f"{{levels}}{LEVELS}[analysis.demand]")
    .replace("{levels}", '[levels.trial.none]\npolicy = "none"\n[levels.trial.scheduled]\npolicy = "scheduled"\n')
    .replace(f"capacity = {elastic.CAPACITY}", 'capacity = "searched"')
    .replace("[load]\n", "[load]\nthreads = 64\n")
)
"""The study of `elastic` with a search of each size, in place of declared capacities."""


def records(found: Mapping[int, Sequence[float]] | None = None) -> list[TrialRecord]:
    """The trials of all; `found`: what the searches of a size found, start after start."""
    made = []
    for one in growing.records(STUDY):
        if one.settings.load.schedule == "search":
            nodes = one.settings.site.nodes
            per_s = (found or {}).get(nodes, [1000.0 * nodes] * 4)[one.block - 1]
            one = one.model_copy(update={"responses": Responses(capacity_per_s=per_s), "activities": ()})  # noqa: PLW2901
        made.append(one)
    return made


def rows(all_records: Sequence[TrialRecord]) -> dict[str, Elasticity]:
    results = analyse(all_records, read_text(STUDY), seed=1)
    return {str(row.treatment["trial"]): row for row in results.of(Elasticity)}


def declared() -> dict[str, Elasticity]:
    results = analyse(growing.records(elastic.STUDY), read_text(elastic.STUDY), seed=1)
    return {str(row.treatment["policy"]): row for row in results.of(Elasticity)}


def test_exact_searches_give_what_declared_capacities_give() -> None:
    by_search, by_declaration = rows(records()), declared()
    assert by_search.keys() == {"none", "scheduled"}, "a search has no demand"
    for name, row in by_declaration.items():
        for measure in MEASURES:
            given, again = getattr(row, measure), getattr(by_search[name], measure)
            assert (again.value, again.low, again.high) == (given.value, given.low, given.high)
            assert again.method == f"{given.method}; the capacities count as exact"
        assert (by_search[name].beyond_scale_percent, by_search[name].starts) == (0, 4)
    assert by_search["scheduled"].elastic_speedup is not None


def test_an_interval_holds_the_error_of_the_capacities() -> None:
    exact = rows(records())["none"].theta_under_percent
    # A rate of 1500 needs 2 nodes whatever the error; one of 4500 needs 5, or 4 at the upper ends.
    wide = {nodes: [1000 * nodes * factor for factor in (0.9, 1.0, 1.0, 1.1)] for nodes in SIZES}
    row = rows(records(wide))["none"].theta_under_percent
    assert row.value == pytest.approx(exact.value)
    assert row.low == pytest.approx(100 * 0.5 * 1 / 4), "3 of 4 nodes in half of the time"
    assert row.high == pytest.approx(100 * 0.5 * 2 / 5)
    assert row.method.endswith("with the capacities at the ends of their intervals, too")


def test_without_three_starts_the_error_of_the_capacities_is_unknown() -> None:
    few = [one for one in records() if one.settings.load.schedule != "search" or one.block < 3]
    assert rows(few)["none"].theta_under_percent.method.endswith("; the capacities count as exact")


def test_only_valid_searches_with_the_settings_of_the_trial_count() -> None:
    study, every = read_text(STUDY), records()
    policy = next(one for one in every if one.activities)
    assert found_for(policy, every) == [(nodes, [1000.0 * nodes] * 4) for nodes in SIZES]
    root = policy.settings.root
    other = policy.model_copy(
        update={"settings": type(policy.settings)({**root, "workload": {**root["workload"], "records": 7}})}
    )
    assert found_for(other, every) == []
    unused = [one if one.activities else one.model_copy(update={"control": True}) for one in every]
    assert found_for(policy, unused) == []
    assert study.analysis.demand is not None
    assert "no search of this study" in lacking(study, unused)
    assert lacking(study, every) == ""
    assert rows(unused) == {}


def test_a_level_of_searches_says_why_it_has_no_value() -> None:
    table = analyse(records(), read_text(STUDY), seed=1).answer_table
    assert table is not None
    words = {str(row.level): (row.verdict, row.why) for row in table.rows}
    assert words["of3"] == ("no value", "no value of this response, because its trials are searches")


def test_a_size_that_carries_no_more_than_a_smaller_one_is_demanded_by_no_rate() -> None:
    every = records({4: [2900.0] * 4})
    carried = capacities(Demand.model_validate({"capacity": "searched"}), every)
    policy = next(one for one in every if one.activities)
    assert [nodes for nodes, _ in carried(policy)] == [1, 2, 3, 5]
