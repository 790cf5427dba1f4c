"""Offered rates over time: one entry for each change."""

from __future__ import annotations

from typing import Any

import pytest

from steelyard.model.load import Load


def load(**fields: Any) -> Load:
    return Load.model_validate({"threads": 64, "duration_s": 6, **fields})


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"schedule": "poisson", "rate_per_s": 300}, [(0, 300)]),
        ({"schedule": "steps", "rates_per_s": [200, 1000, 200], "step_s": 2}, [(0, 200), (2, 1000), (4, 200)]),
        ({"schedule": "steps", "rates_per_s": [0, 100], "step_s": 2.5}, [(0, 0), (2, 50), (3, 100)]),
        ({"schedule": "ramp", "from_per_s": 0, "to_per_s": 40, "ramp_s": 2}, [(0, 10), (1, 30), (2, 40)]),
    ],
)
def test_a_rate_is_the_operations_due_in_a_second(fields: dict[str, Any], expected: list[tuple[float, float]]) -> None:
    assert list(load(**fields).rates()) == [pytest.approx(step) for step in expected]
    assert load(**fields).knows_rates


def test_phases_follow_each_other() -> None:
    phases = [
        {"name": "a", "duration_s": 3, "schedule": "constant", "rate_per_s": 10},
        {"name": "b", "duration_s": 3, "schedule": "constant", "rate_per_s": 20},
    ]
    assert list(load(duration_s=None, phases=phases).rates()) == [(0, 10), (3, 20)]


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"schedule": "constant", "capacity_fraction": 0.5},
        {"schedule": "constant", "rate_per_s": 10, "duration_s": None, "operations": 100},
        {"schedule": "search", "objective": ["response_ms_p99 <= 10"], "duration_s": None},
    ],
)
def test_a_rate_that_is_not_known_beforehand(fields: dict[str, Any]) -> None:
    assert list(load(**fields).rates()) == []
    assert not load(**fields).knows_rates
