"""Measures of elasticity: published series, the golden scenario, and properties."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.judging.elasticity import beyond_percent, demand_of, elasticity, supply_of
from steelyard.model.activity import Activity, Mark

Series = list[tuple[float, int]]
BUNGEE_DEMAND = {0: 1, 7: 5, 16: 3, 17: 2, 19: 4}
BUNGEE_SUPPLY = {0: 1, 2: 2, 3: 1, 5: 3, 9: 7, 11: 6, 12: 8, 14: 2}
"""Series of the unit tests of BUNGEE, the reference implementation."""
CAPACITY = [(3, 2884.6), (4, 3773.6), (5, 4629.6)]


def test_the_published_series() -> None:
    measures = elasticity(sorted(BUNGEE_DEMAND.items()), sorted(BUNGEE_SUPPLY.items()), 20)
    assert measures == pytest.approx((14.1667, 36.0, 30, 40, 60 * 0.4, 100 * 11 / 19), rel=1e-5)


@pytest.mark.parametrize(
    ("supply", "expected"),
    [
        ([(0, 3), (50, 4), (59, 5)], (6.533, 0, 19.333, 0, 0, 2.0134)),
        ([(0, 3)], (32, 0, 80, 0, -0.8, 100 / 149)),
        ([(0, 5)], (0, 13.333, 0, 20, -0.8, 100 / 149)),
    ],
    ids=["grows", "none", "static-max"],
)
def test_a_step_of_the_load_and_two_joins(supply: Series, expected: tuple[float, ...]) -> None:
    demand = demand_of([(0, 2400), (30, 4000)], CAPACITY)
    assert demand == [(0, 3), (30, 5)]
    assert elasticity(demand, supply, 150) == pytest.approx(expected, rel=1e-3)


def test_the_demand_is_the_smallest_size_that_carries_the_rate_and_beyond_the_largest_is_counted() -> None:
    rates = [(0.0, 100.0), (10.0, 2884.6), (20.0, 2885.0), (30.0, 4629.6), (40.0, 4629.7)]
    assert [nodes for _, nodes in demand_of(rates, CAPACITY)] == [3, 3, 4, 5, 5]
    assert beyond_percent(rates, CAPACITY, 50) == pytest.approx(20)
    assert beyond_percent(rates[:4], CAPACITY, 50) == 0
    third = 1000 / 3
    assert demand_of([(0, 4 * third - 3 * third)], [(1, third), (2, 2 * third)]) == [(0, 1)], "rounding is no demand"


def test_the_supply_counts_from_the_beginning_of_the_measured_phase() -> None:
    marks = tuple(
        Mark(name=name, t_s=t_s, node=node)
        for name, t_s, node in [("in-service", 990.0, "n4"), ("in-service", 1010.0, "n5")]
    )
    out = Activity(kind="scale-out", nodes=("n4", "n5"), cause="", begun_s=980.0, marks=marks)
    gone = Activity(
        kind="scale-in", nodes=("n5",), cause="", begun_s=1020.0, marks=(Mark(name="left", t_s=1030.0, node="n5"),)
    )
    supply = supply_of(3, (out, gone), 1000.0)
    assert supply == [(0.0, 3), (0.0, 4), (10.0, 5), (30.0, 4)]
    assert elasticity([(0, 4)], supply, 40) == (0, 12.5, 0, 50, 3, pytest.approx(100 * 2 / 39))
    assert supply_of(3, (), 1000.0) == [(0.0, 3)]


LENGTH = 40
series = st.dictionaries(st.integers(1, LENGTH - 1), st.integers(1, 9), max_size=8).flatmap(
    lambda later: st.integers(1, 9).map(lambda first: [(0, first), *sorted(later.items())])
)


def reverse(steps: Series) -> Series:
    ends = [at for at, _ in steps[1:]] + [LENGTH]
    return [(LENGTH - end, value) for end, (_, value) in reversed(list(zip(ends, steps, strict=True)))]


@given(series, series, st.integers(0, LENGTH - 1))
def test_splitting_a_step_changes_nothing(demand: Series, supply: Series, at: int) -> None:
    split = sorted({at: [value for t, value in supply if t <= at][-1], **dict(supply)}.items())
    assert elasticity(demand, split, LENGTH) == pytest.approx(elasticity(demand, supply, LENGTH))


@given(series, series)
def test_nothing_lacks_exactly_where_no_time_is_spent_lacking(demand: Series, supply: Series) -> None:
    measures = elasticity(demand, supply, LENGTH)
    assert (measures.theta_under_percent == 0) == (measures.tau_under_percent == 0)
    assert (measures.theta_over_percent == 0) == (measures.tau_over_percent == 0)
    assert measures.tau_under_percent + measures.tau_over_percent <= 100 + 1e-9
    assert measures.theta_under_percent <= measures.tau_under_percent + 1e-9
    assert 0 <= measures.instability_percent <= 100


@given(series, series)
def test_accuracy_and_timeshare_do_not_know_the_direction_of_time(demand: Series, supply: Series) -> None:
    forward = elasticity(demand, supply, LENGTH)
    backward = elasticity(reverse(demand), reverse(supply), LENGTH)
    assert backward[:4] == pytest.approx(forward[:4])
    assert backward.jitter_per_min == pytest.approx(forward.jitter_per_min)


@given(series)
def test_a_perfect_match_is_0_and_one_node_more_is_always_over(demand: Series) -> None:
    assert elasticity(demand, demand, LENGTH) == (0, 0, 0, 0, 0, 0)
    over = elasticity(demand, [(at, nodes + 1) for at, nodes in demand], LENGTH)
    assert (over.tau_under_percent, over.tau_over_percent) == (0, pytest.approx(100))
    assert over.theta_over_percent >= 100 / 9 - 1e-9


def test_a_length_below_two_samples_has_no_direction() -> None:
    measures = elasticity([(0, 1)], [(0, 2)], 0.5)
    assert measures.instability_percent == 0
    assert math.isclose(measures.theta_over_percent, 100)
