"""Distributions as people write them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.workload._distributions import DISTRIBUTIONS, bounds, distribution, mean, short_form


@pytest.mark.parametrize(
    ("read", "made"),
    [
        (5, {"name": "fixed", "value": 5.0}),
        ("fixed(2.5)", {"name": "fixed", "value": 2.5}),
        ("uniform(1..100)", {"name": "uniform", "min": 1.0, "max": 100.0}),
        ("UNIFORM(-1.5..1.5)", {"name": "uniform", "min": -1.5, "max": 1.5}),
        ("sequence(0..9)", {"name": "sequence", "min": 0, "max": 9}),
        ("zipfian( 1 .. 1_000 , 0.7)", {"name": "zipfian", "min": 1, "max": 1000, "theta": 0.7}),
        ("scrambled-zipfian(1..9)", {"name": "scrambled-zipfian", "min": 1, "max": 9}),
        ("hotspot(0..99, 0.2, 0.8)",
         {"name": "hotspot", "min": 0, "max": 99, "data_fraction": 0.2, "operation_fraction": 0.8}),
        ("gaussian(0..10, 4, 1.5)", {"name": "gaussian", "min": 0, "max": 10, "mean": 4.0, "deviation": 1.5}),
        ("extreme(1..10, 2)", {"name": "extreme", "min": 1, "max": 10, "shape": 2.0}),
        ("~exponential(1..10)", {"name": "inverted", "of": {"name": "exponential", "min": 1, "max": 10}}),
        ({"name": "latest", "min": 0, "max": 3}, {"name": "latest", "min": 0, "max": 3}),
    ],
)  # fmt: skip
def test_short_forms_and_tables(read: Any, made: dict[str, Any]) -> None:
    assert distribution(read) == made


@pytest.mark.parametrize(
    ("read", "says"),
    [
        ("unifrom(1..2)", "did you mean 'uniform'"),
        ("uniform(1,2)", r"write uniform\(min..max\)"),
        ("uniform", "is not a distribution"),
        ("hotspot(1..2)", "needs data_fraction"),
        ("hotspot(1..2, 0.5, 2)", "from 0 to 1"),
        ("uniform(9..1)", "min 9 is above max 1"),
        ("zipfian(1.5..2)", "must be a whole number"),
        ("zipfian(1..2, 1)", "theta must be above 0 and below 1"),
        ("zipfian(1..2, x)", "'x' is not a number"),
        ("gaussian(1..2, 1, 0)", "deviation must be above 0"),
        ({"name": "uniform", "min": 1}, "uniform needs max"),
        ({"name": "uniform", "min": 1, "max": 2, "mean": 1}, "uniform has no parameter 'mean'"),
        (True, "must be a number or a distribution"),
    ],
)
def test_what_is_none_is_refused(read: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        distribution(read)


@given(
    st.sampled_from([name for name in DISTRIBUTIONS if name not in ("hotspot", "extreme")]),
    st.integers(-(10**6), 10**6),
    st.integers(0, 10**6),
)
def test_what_is_said_is_read_again(name: str, low: int, width: int) -> None:
    made = distribution({"name": name, "min": low, "max": low + width})
    assert distribution(short_form(made)) == made
    assert low <= mean(made) <= low + width
    assert bounds(made) == (low, low + width)
