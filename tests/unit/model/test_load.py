"""Schedules as a study says them: what each needs, what belongs to another, what they offer."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from steelyard.model.load import Load, LoadPhase, for_schedule

RAMP: dict[str, Any] = {"schedule": "ramp", "from_per_s": 0, "to_per_s": 100, "ramp_s": 10}
STEPS: dict[str, Any] = {"schedule": "steps", "rates_per_s": [10, 0, 30], "step_s": 2}
SINE: dict[str, Any] = {"schedule": "sine", "mean_per_s": 50, "amplitude_per_s": 20, "period_s": 4}
CONSTANT: dict[str, Any] = {"schedule": "constant", "rate_per_s": 10}
A_PHASE = {"name": "a", "duration_s": 3}


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        (
            {"operations": 1, "rate_per_s": 4},
            "rate_per_s applies only to schedule constant or poisson, but this is closed",
        ),
        ({"operations": 1, "speed": 2}, "speed applies only to schedule trace, but this is closed"),
        ({**CONSTANT, "duration_s": 1, "arrivals": "even"}, "arrivals applies only to schedule ramp or steps or sine"),
        ({"schedule": "constant", "duration_s": 1}, "schedule constant needs rate_per_s, or capacity_fraction"),
        ({**CONSTANT, "capacity_fraction": 0.7, "duration_s": 1}, "either rate_per_s or capacity_fraction, not both"),
        ({"schedule": "ramp", "duration_s": 1, "from_per_s": 1}, "schedule ramp needs to_per_s"),
        ({**RAMP, "duration_s": 1, "to_per_s": 0}, "from_per_s or to_per_s must be above 0"),
        ({**STEPS, "duration_s": 1, "rates_per_s": []}, "one must be above 0"),
        ({**STEPS, "duration_s": 1, "rates_per_s": [1, -1]}, "none may be below 0"),
        ({**SINE, "duration_s": 1, "amplitude_per_s": 51}, "amplitude_per_s must be at most mean_per_s"),
        ({"schedule": "trace", "duration_s": 1}, "schedule trace needs trace"),
        ({**CONSTANT, "rate_per_s": 1e12, "duration_s": 1}, "no rate may be above 10,000,000 operations/s"),
        ({**STEPS, "duration_s": 1, "rates_per_s": [1, 1e9]}, "no rate may be above"),
        (CONSTANT, "operations or duration_s, to know when to stop"),
        ({"phases": [A_PHASE], "operations": 1}, "schedule, operations and duration_s belong to each of them"),
        ({"phases": [A_PHASE], **CONSTANT}, "schedule, operations and duration_s belong to each of them"),
        ({"phases": [A_PHASE, A_PHASE]}, "the name a is listed twice"),
        ({"phases": [{**A_PHASE, "name": "warm-up"}]}, "warm-up means something else in records"),
        (
            {"phases": [{**A_PHASE, "name": "search-settle"}]},
            "not allowed: populate, warm-up, capacity, capacity-warm-up",
        ),
    ],
)
def test_what_cannot_be_is_refused_in_words(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError) as refused:
        Load.model_validate(fields)
    assert said in str(refused.value)


def test_a_trace_knows_its_own_end() -> None:
    assert Load.model_validate({"schedule": "trace", "trace": "t"}).measured_s is None


def test_every_field_is_in_the_settings_and_is_read_back() -> None:
    load = Load.model_validate({**RAMP, "duration_s": 5, "backlog_limit": 7})
    added_later = {"keep_alive", "serializable", "step_per_s", "read_from"}
    assert load.model_dump().keys() == Load.model_fields.keys() - added_later
    phased = Load.model_validate({"phases": [{**A_PHASE, **SINE}]})
    for one in (load, phased):
        assert Load.model_validate(one.model_dump(mode="json")) == one


@pytest.mark.parametrize(
    ("fields", "peak", "seconds", "operations"),
    [
        (CONSTANT, 10, 3, 30),
        (RAMP, 100, 10, 500),
        (RAMP, 100, 5, 125),
        (RAMP, 100, 12, 700),
        (STEPS, 30, 3, 20),
        (STEPS, 30, 5, 50),
        (STEPS, 30, 10, 200),
        (SINE, 70, 4, 200),
        (SINE, 70, 2, 100 + 20 * 4 / 3.14159265),
        ({"schedule": "trace", "trace": "t"}, None, 3, None),
        ({"schedule": "constant", "capacity_fraction": 0.5}, None, 3, None),
        ({}, None, 3, None),
    ],
)
def test_what_is_offered(fields: dict[str, Any], peak: float | None, seconds: float, operations: float | None) -> None:
    """The same integrals as in the agent's tests: 0 to 100/s within 10 s is 500 operations."""
    phase = LoadPhase.model_validate({**A_PHASE, **fields})
    assert phase.peak_per_s() == peak
    found = phase.operations_within(seconds)
    assert found == (None if operations is None else pytest.approx(operations))


def test_a_load_of_phases() -> None:
    load = Load.model_validate(
        {"threads": 8, "phases": [{**A_PHASE, "threads": 2}, {"name": "b", "duration_s": 4, **CONSTANT}]}
    )
    assert (load.measured, load.measured_s, load.is_open, load.wants_capacity) == (("a", "b"), 7.0, True, False)
    assert [load.threads_of(phase) for phase in load.offered] == [2, 8]
    single = Load(operations=1)
    assert (single.measured, single.offered, single.is_open) == (("measure",), (single,), False)


def test_a_level_that_sets_the_schedule_leaves_out_what_belongs_to_others() -> None:
    steps = {"schedule": "steps", "rates_per_s": [1, 2], "step_s": 3, "duration_s": 9, "arrivals": "even", "threads": 4}
    assert for_schedule(steps, "search") == {"schedule": "steps", "arrivals": "even", "threads": 4}
    assert for_schedule(steps, "constant") == {"schedule": "steps", "duration_s": 9, "threads": 4}
    search = {"objective": ["saturation"], "window_s": 5, "threads": 4}
    assert for_schedule(search, "search") == search
    assert for_schedule(search, "ramp") == {"threads": 4}


def test_one_limit_of_a_search_needs_no_list() -> None:
    text = {"schedule": "search", "threads": 8, "objective": "response_ms_p99 <= 10"}
    assert Load.model_validate(text) == Load.model_validate({**text, "objective": ["response_ms_p99 <= 10"]})
