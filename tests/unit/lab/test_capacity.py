"""Loads that are a fraction of what the cluster can do, and loads of several phases, without machines."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from steelyard.events.base import Silent
from steelyard.judging.trial_responses import joined, responses
from tests.unit.lab.fakes import CAPACITY_PER_S, Script, records_of, study, without_waiting
from tests.unit.lab.test_conductor import conduct, stored
from tests.unit.wire import made

FRACTIONS = {"schedule": "constant", "capacity_fraction": 0.5, "duration_s": 4, "capacity_s": 3, "warm_up_s": 1}


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Script:
    without_waiting(monkeypatch)
    return Script(tmp_path)


def of(script: Script, load: dict[str, Any], watcher: Silent | None = None, **factors: list[Any]) -> Any:
    levels = {"nodes": [1], **factors}
    chosen = study(load=load, factors=levels, data={"state": "continue"}, design={"starts": 2, "trials": 2})
    outcome = conduct(script, chosen, watcher)
    return outcome, stored(script).trials()


def test_capacity_is_measured_once_for_each_start_and_a_fraction_of_it_is_offered(script: Script) -> None:
    outcome, records = of(script, FRACTIONS, **{"load.capacity_fraction": [0.7, 0.35]})
    assert outcome.valid == 8
    kinds = [order.schedule.kind for order in script.driven if order.action == "load"]
    assert kinds == [*("closed", *["constant"] * 4), *("closed", *["constant"] * 4)]
    closed = next(order for order in script.driven if order.schedule.kind == "closed" and order.seed)
    assert (closed.schedule.threads, closed.stop.duration_s, closed.warm_up_s) == (64, 3.0, 1.0)
    rates = {order.schedule.rate_per_s for order in script.driven if order.schedule.kind == "constant"}
    assert rates == {0.7 * CAPACITY_PER_S, 0.35 * CAPACITY_PER_S}
    for record in records:
        assert record.capacity is not None
        assert record.capacity.rate_per_s == pytest.approx(CAPACITY_PER_S)
        assert record.offered_rate_per_s == record.treatment["load.capacity_fraction"] * CAPACITY_PER_S
    measured_for = {record.capacity.trial for record in records}
    first = [record for record in records if record.order_in_start == 1]
    assert measured_for == {record.id for record in first}
    phases = [phase for record in records for phase in stored(script).intervals(record)["phase"].unique()]
    assert sorted(phases) == ["capacity"] * 2 + ["measure"] * 8, "evidence in the store, beside the trial's"
    assert all(record.responses.operations == round(record.offered_rate_per_s * 4) for record in records)


def test_a_capacity_of_errors_is_the_systems_fault(script: Script) -> None:
    def failing(order: Any) -> Any:
        broken = order.schedule.kind == "closed" and order.action == "load"
        return records_of(order, errors=1000 if broken else 0)

    script.says = failing
    outcome, records = of(script, FRACTIONS)
    assert outcome.valid == 0
    (reason,) = records[0].verdict.reasons
    assert reason.kind.name == "SYSTEM_FAULT"
    assert "capacity cannot be measured: 1,000 of 1,500 operations failed with 64 in flight" in reason.detail
    assert "lower load.capacity_threads" in reason.detail
    assert records[0].offered_rate_per_s is None


def test_phases_are_told_apart_in_the_store_and_their_sum_is_the_response(script: Script) -> None:
    phases = [
        {"name": "calm", "duration_s": 2, "schedule": "constant", "rate_per_s": 200},
        {"name": "part", "duration_s": 1, "schedule": "poisson", "capacity_fraction": 0.5},
        {"name": "full", "duration_s": 2, "threads": 9},
    ]
    outcome, records = of(script, {"phases": phases})
    assert outcome.valid == 4
    for record in records:
        assert {name: found.operations for name, found in record.phase_responses.items()} == {
            "calm": 400,
            "part": 250,
            "full": 1000,
        }
        assert record.responses.operations == 1650
        assert record.offered_rate_per_s == pytest.approx(650 / 3)
    rows = stored(script).intervals(records[0]).filter(pl.col("measure") == "response")
    counted = dict(rows.group_by("phase").agg(pl.col("count").sum()).iter_rows())
    assert counted == {"capacity": 5000, "calm": 400, "part": 250, "full": 1000}


def test_the_ends_of_a_nodes_phases_are_one_end() -> None:
    first = made.done(
        first_sent_s=1.0, last_done_s=2.0, execution_ns=10**9, operations=5, errors=1, errors_by_kind={"overloaded": 1},
        not_found=1, cpu_ns=7, busiest_thread_fraction=0.5, reconnections=1,
    )  # fmt: skip
    second = replace(
        first, first_sent_s=2.0, last_done_s=4.0, busiest_thread_fraction=0.2, errors_by_kind={"timeout": 1}
    )
    ends = joined([("l1", first), ("l2", first), ("l1", second)])
    assert list(ends) == ["l1", "l2"]
    assert ends["l2"] is first
    whole = ends["l1"]
    assert (whole.execution_ns, whole.operations, whole.cpu_ns) == (3 * 10**9, 10, 14)
    assert (whole.errors, whole.not_found, whole.reconnections) == (2, 2, 2)
    assert (whole.errors_by_kind, whole.busiest_thread_fraction) == ({"overloaded": 1, "timeout": 1}, 0.5)
    assert responses([], [whole]).throughput_per_s == pytest.approx(10 / 3)


def test_a_warm_up_that_shows_too_little_in_flight_is_said(script: Script) -> None:
    told: list[str] = []

    class Noting(Silent):
        def tell(self, event: Any) -> None:
            told.append(getattr(event, "message", ""))

    def slow(order: Any) -> Any:
        warm_up = made.done(phase="warm-up", carries_per_s=80.0)
        return [warm_up, *records_of(order)] if order.action == "load" else records_of(order)

    script.says = slow
    of(script, {"schedule": "constant", "rate_per_s": 100, "duration_s": 2, "warm_up_s": 1, "threads": 4}, Noting())
    said = "4 in flight carry about 80 op/s at the warm-up's service time; 100 op/s are offered"
    assert told.count(said) == 4
