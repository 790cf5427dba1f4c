"""Readings of the measured span: tables, pictures and strips take the same ones as responses, with the same weights."""

from __future__ import annotations

import polars as pl
import pytest

from steelyard.judging.measures import measures_of, seconds_of
from steelyard.model.power import MEMORY, PACKAGES, power_metrics
from steelyard.model.trial import Phase, PhaseTime, TrialRecord
from steelyard.reading.node_strips import cpu_strips, readings_of_table
from steelyard.reading.node_traces import Trace
from steelyard.reading.node_usage import measured_samples, use_of_nodes
from steelyard.report.data.traces import readings, usage
from tests.unit.analysis.made import record

CPU = ("node_cpu_user_cores", "node_cpu_system_cores")
FACTS = {"n1": {"cores": "1"}}
PHASES = (
    PhaseTime(phase=Phase.WARM_UP, entered_s=10.0, left_s=15.0),
    PhaseTime(phase=Phase.MEASURE, entered_s=10.0, left_s=20.0),
)


def samples(*rows: tuple[str, float, str, float]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=["node", "t_s", "metric", "value"], orient="row")


def measured() -> TrialRecord:
    return record(1.0).model_copy(update={"phases": PHASES})


def with_a_gap() -> pl.DataFrame:
    """A reading per second from 8 s to 15 s, on the second; then a gap of 4 s, whose reading is the mean of the gap."""
    times = [*range(8, 16), 19, 20, 21, 22]
    values = {19: 0.8, 15: 0.4}
    of_user = [("n1", float(t), CPU[0], values.get(t, 0.2)) for t in times]
    return samples(*of_user, *(("n1", float(t), CPU[1], 0.0) for t in times))


def test_only_readings_of_the_measured_phase_count() -> None:
    found = samples(*(("n1", float(t), "x", float(t)) for t in range(8, 24)))
    assert measured_samples(found, measured().measured_span)["t_s"].to_list() == [16, 17, 18, 19, 20]
    shifted = samples(*(("n1", t + 0.4, "x", float(t)) for t in range(8, 24)))
    kept = measured_samples(shifted, measured().measured_span)
    assert kept["t_s"].to_list() == pytest.approx([15.4, 16.4, 17.4, 18.4, 19.4, 20.4])
    assert kept["covered_s"].to_list() == pytest.approx([0.4, 1, 1, 1, 1, 0.6])
    assert measured_samples(found, None).is_empty()


def test_tables_and_pictures_have_the_mean_of_the_response_after_a_gap_of_a_probe() -> None:
    trial, found = measured(), with_a_gap()
    response = measures_of(trial, readings_of_table(found, CPU), FACTS, ["cpu_percent_mean"])["cpu_percent_mean"]
    assert response == pytest.approx(100 * (4 * 0.8 + 1 * 0.2) / 5), "the gap counts once, with its length"
    table = use_of_nodes(found, trial.measured_span).filter(pl.col("metric") == CPU[0])
    assert table["mean"].to_list() == pytest.approx([response / 100])
    (node,) = usage(Trace(trial, found, ("n1",)))
    assert node.means["cpu", "user"] == pytest.approx((response / 100, 0.8))
    drawn, _ = readings(Trace(trial, found, ("n1",)))
    assert [row["x"] for row in drawn if row["series"] == "first"] == [0.0, 4.0, 5.0]


def test_strips_have_the_seconds_of_the_response() -> None:
    trial, found = measured(), with_a_gap()
    (strip,) = cpu_strips(found, 15.0, 1.0, 5)
    seconds = seconds_of("cpu_percent_mean", trial, readings_of_table(found, CPU), FACTS)
    assert [100 * value for value in strip.values if value is not None] == pytest.approx(seconds)


def test_the_metrics_that_make_up_power() -> None:
    assert power_metrics([PACKAGES, MEMORY, "node_cpu_user_cores"]) == (PACKAGES, MEMORY)
    assert power_metrics([MEMORY]) == ()
    assert power_metrics(["node_disk_watts", "node_board_watts"]) == ("node_board_watts", "node_disk_watts")
