"""Percentiles that the trials of a plan cannot support, refused where it is sure and noted where it is likely."""

from __future__ import annotations

from typing import Any

import pytest

from steelyard.plan import expand
from steelyard.plan.abilities import Abilities
from steelyard.plan.load_feasibility import doubtful_percentiles, refusals
from tests.unit.judging.test_stopping import record
from tests.unit.lab.fakes import study

P99 = {"response": "response_ms_p99"}


def refused(**changes: Any) -> list[tuple[str, str | None]]:
    made = study(**changes)
    return list(
        {error.message: (error.message, error.key) for error in refusals(made, expand(made), (), Abilities())}.values()
    )


def test_fewer_operations_than_the_percentile_needs_are_refused_with_both_numbers() -> None:
    assert refused(load={"operations": 300}, analysis=P99) == [
        (
            "response_ms_p99 needs 1,000 operations per trial, but load.operations gives 300: no trial would have a "
            "value",
            "load.operations",
        )
    ]
    assert refused(load={"operations": 1000}, analysis=P99) == []


@pytest.mark.parametrize(("rate_per_s", "some"), [(90.0, True), (100.0, False)])
def test_a_rate_and_a_duration_give_the_operations(rate_per_s: float, some: bool) -> None:
    load = {"schedule": "constant", "rate_per_s": rate_per_s, "duration_s": 10.0, "threads": 50}
    assert [key for _, key in refused(load=load, analysis=P99)] == (["load.duration_s"] if some else [])


@pytest.mark.parametrize("analysis", [
    {"responses": ("response_ms_p99",)}, {"objective": "response_ms_p99 < 10"},
], ids=["further response", "objective"])  # fmt: skip
def test_every_percentile_that_the_study_analyses_counts(analysis: dict[str, Any]) -> None:
    assert len(refused(load={"operations": 300}, analysis=analysis)) == 1


def test_a_median_of_300_operations_is_supported() -> None:
    assert refused(load={"operations": 300}, analysis={"response": "response_ms_p50"}) == []


def test_a_study_that_has_begun_goes_on() -> None:
    made = study(load={"operations": 300}, analysis=P99)
    assert list(refusals(made, expand(made), [record(expand(made).trials[0], 10.0)], Abilities())) == []


def test_a_closed_loop_by_time_is_only_estimated_and_noted() -> None:
    short = study(load={"duration_s": 0.01, "threads": 1}, analysis=P99)
    assert list(refusals(short, expand(short), (), Abilities())) == []
    (note,) = set(doubtful_percentiles(short, expand(short), 2, Abilities()))
    assert note.startswith("response_ms_p99 needs 1,000 operations per trial, but only about ")
    long = study(load={"duration_s": 600.0, "threads": 8}, analysis=P99)
    assert list(doubtful_percentiles(long, expand(long), 2, Abilities())) == []
