"""The measured span of a trial: without the warm-up, the same for every number that is made of samples."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from steelyard.judging.measures import measures_of, readings_of_samples
from steelyard.model.sample import Sample
from steelyard.model.study import Study
from steelyard.model.trial import Phase, PhaseTime, TrialRecord, cell_key
from steelyard.reading.node_traces import Trace
from steelyard.reading.node_usage import use_of_nodes
from steelyard.reading.published import values_of
from steelyard.report.data import traces
from steelyard.report.figures import node_traces
from steelyard.store import Store, StoreWriter
from tests.unit.judging.test_attempts import record
from tests.unit.lab.fakes import plan_of, study

WARM_UP = PhaseTime(phase=Phase.WARM_UP, entered_s=100.0, left_s=110.0)
MEASURE = PhaseTime(phase=Phase.MEASURE, entered_s=100.0, left_s=130.0)
BUSY, QUIET = 1.5, 0.5
"""Cores that are busy in the warm-up, and after it."""


def of(*phases: PhaseTime) -> TrialRecord:
    return record(plan_of(study()).trials[0]).model_copy(update={"phases": phases})


@pytest.mark.parametrize(
    ("phases", "span"),
    [
        ((), None),
        ((PhaseTime(phase=Phase.MEASURE, entered_s=100.0),), None),
        ((MEASURE,), (100.0, 130.0)),
        ((WARM_UP, MEASURE), (110.0, 130.0)),
        ((MEASURE, WARM_UP), (110.0, 130.0)),
        ((PhaseTime(phase=Phase.CAPACITY, entered_s=60.0, left_s=90.0), MEASURE), (100.0, 130.0)),
        ((WARM_UP.model_copy(update={"left_s": 140.0}), MEASURE), (100.0, 130.0)),
        ((MEASURE, PhaseTime(phase=Phase.READ_BACK, entered_s=118.0, left_s=130.0)), (100.0, 118.0)),
    ],
)
def test_the_warm_up_is_no_part_of_it(phases: tuple[PhaseTime, ...], span: tuple[float, float] | None) -> None:
    assert of(*phases).measured_span == span


@pytest.fixture
def store(tmp_path: Path) -> Any:
    """One trial with 10 s of warm-up; its node is three times as busy in it."""
    changed: Study = study()
    with StoreWriter(tmp_path, "fake") as writer:
        writer.intend(changed, "", plan_of(changed))
        draft = writer.draft(plan_of(changed).trials[0].id, 1)
        samples = []
        for second in range(95, 135):
            cores = BUSY if second < 110 else QUIET
            values = {
                "node_cpu_user_cores": cores,
                "node_cpu_system_cores": 0.0,
                "machine_cpu_idle_fraction": cores / 2,
            }
            samples += [Sample(second + 0.5, "n1", metric, value) for metric, value in values.items()]
        draft.samples("n1", samples)
        draft.facts("n1", {"cores": "2"})
        draft.facts("system:n1", {"version": "1"})
        trial = of(WARM_UP, MEASURE)
        measures = measures_of(trial, readings_of_samples({"n1": samples}), {"n1": {"cores": "2"}})
        draft.seal(trial.model_copy(update={"measures": measures}))
        yield Store(writer.folder)


def test_pictures_of_nodes_leave_the_warm_up_out(store: Store) -> None:
    (sealed,) = store.trials()
    trace = Trace(sealed, store.samples(sealed), ("n1",))
    (node,) = traces.usage(trace)
    mean, most = node.means["cpu", "user"]
    assert (mean, most) == (pytest.approx(QUIET), QUIET)
    assert node_traces.figure(trace) is not None


def test_published_numbers_leave_the_warm_up_out(store: Store) -> None:
    (sealed,) = store.trials()
    name = "machine_cpu_percent_mean"
    assert dict(values_of(sealed, {name})) == {name: pytest.approx(100 * (1 - QUIET / 2))}


def test_use_of_nodes_leaves_the_warm_up_out(store: Store) -> None:
    (sealed,) = store.trials()
    used = use_of_nodes(store.samples(sealed), sealed.measured_span).filter(pl.col("metric") == "node_cpu_user_cores")
    assert used["mean"].to_list() == pytest.approx([QUIET])


def test_the_key_of_a_treatment_is_its_levels_in_whatever_order_they_are_named() -> None:
    one = of(MEASURE).model_copy(update={"treatment": {"nodes": 3, "link": "lan"}})
    other = one.model_copy(update={"treatment": {"link": "lan", "nodes": 3.0}, "attempt": 2})
    assert one.cell == other.cell
    assert one.key != other.key
    assert cell_key({"nodes": 3}) != one.cell
