"""Responses: histograms merged by adding counts; several load nodes give one trial."""

from __future__ import annotations

from dataclasses import fields

import pytest

from steelyard.judging.trial_responses import COUNTS, responses
from steelyard.wire.record import Done
from tests.unit.lab.fakes import records_of
from tests.unit.wire.orders import order

ORDER = order(stop={"operations": 100})


def test_one_load_node() -> None:
    _, interval, done = records_of(ORDER, milliseconds=2.0)
    found = responses([interval], [done])
    assert found.execution_time_ms == pytest.approx(200.0)
    assert found.throughput_per_s == pytest.approx(500.0)
    assert found.response_ms_p99 == pytest.approx(2.0, rel=1e-3)


def test_percentiles_of_two_load_nodes_are_those_of_all_operations() -> None:
    _, fast, fast_done = records_of(ORDER, milliseconds=1.0)
    _, slow, slow_done = records_of(ORDER, milliseconds=9.0)
    found = responses([fast, slow], [fast_done, slow_done])
    assert found.response_ms_p50 == pytest.approx(1.0, rel=1e-3)
    assert found.response_ms_p95 == pytest.approx(9.0, rel=1e-3)
    assert found.operations == 200
    assert found.execution_time_ms == pytest.approx(900.0)


def test_every_count_of_a_phase_is_added_up() -> None:
    counts = {one.name for one in fields(Done) if one.type == "Count"}
    assert counts - {"execution_ns"} == set(COUNTS)


def test_nothing_measured_has_no_numbers() -> None:
    assert responses([], []).execution_time_ms is None
