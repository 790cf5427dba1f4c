"""YCSB's output: what its version 0.17.0 prints for the same counts, and the measurements behind it."""

from __future__ import annotations

import json
import math
from datetime import datetime

import pytest

from steelyard.dropin.ycsb import output
from steelyard.dropin.ycsb.export_options import Display, display
from steelyard.dropin.ycsb.measures import Measure, in_order, measures
from steelyard.model.errors import StudyError
from steelyard.wire.tables import Tables

AT = datetime(2026, 11, 21, 14, 5, 13, 11_900)
READ_OK = ("read", "ok", "service")


def tables(**cells: int) -> Tables:
    """One time of `value` microseconds for each `operation__outcome__measure=value`."""
    return Tables(
        {
            tuple(name.replace("_", "-").split("--")): ((value * 1000, value * 1000 + 999, 1),)  # type: ignore[misc]
            for name, value in cells.items()
        }
    )


def test_measurements_stand_in_the_order_of_java_s_map() -> None:
    names = ["UPDATE", "CLEANUP", "READ-MODIFY-WRITE", "READ"]
    assert in_order(names) == ["READ", "READ-MODIFY-WRITE", "CLEANUP", "UPDATE"]


@pytest.mark.parametrize(
    ("percentile", "name"),
    [(1, "1st"), (2, "2nd"), (3, "3rd"), (11, "11th"), (21, "21st"), (50, "50th"), (95, "95th"), (99.9, "99.9")],
)
def test_names_of_percentiles(percentile: float, name: str) -> None:
    assert output.ordinal(percentile) == name


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 second "),
        (3, "3 second "),
        (12, "12 seconds "),
        (60, "1 minute "),
        (3725, "1 hour 2 minutes "),
        (90_000, "1 day 1 hour "),
        (172_860, "2 days "),
    ],
)
def test_time_left(seconds: int, text: str) -> None:
    assert output.remaining(seconds) == text


def test_the_final_block() -> None:
    buckets = tuple((us * 1000, us * 1000 + 999, 1) for us in range(1, 101))
    measure = Measure(buckets, {"OK": 100})
    rows = output.overall(3003, 3000) + output.measured({"READ": measure}, Display(), {})
    assert output.export(rows, "Text") == (
        "[OVERALL], RunTime(ms), 3003\n"
        "[OVERALL], Throughput(ops/sec), 999.000999000999\n"
        "[TOTAL_GCs], Count, 0\n"
        "[TOTAL_GC_TIME], Time(ms), 0\n"
        "[TOTAL_GC_TIME_%], Time(%), 0.0\n"
        "[READ], Operations, 100\n"
        "[READ], AverageLatency(us), 50.9995\n"
        "[READ], MinLatency(us), 1\n"
        "[READ], MaxLatency(us), 100\n"
        "[READ], 95thPercentileLatency(us), 95\n"
        "[READ], 99thPercentileLatency(us), 99\n"
        "[READ], Return=OK, 100\n"
    )


def test_json_exporters() -> None:
    rows: list[output.Row] = [("OVERALL", "RunTime(ms)", 30), ("READ", "AverageLatency(us)", math.nan)]
    listed = json.loads(output.export(rows, "JSONArray"))
    assert listed[0] == {"metric": "OVERALL", "measurement": "RunTime(ms)", "value": 30}
    assert listed[1]["value"] == "NaN"
    assert output.export(rows[:1], "JSON") == (
        '{\n  "metric" : "OVERALL",\n  "measurement" : "RunTime(ms)",\n  "value" : 30\n}'
    )


def test_status_lines() -> None:
    shown = Display(label="lab")
    first = output.status(shown, AT, {}, elapsed_s=0.0, done=0, current_per_s=0.0, todo=3000)
    assert first == "lab2026-11-21 14:05:13:011 0 sec: 0 operations; "
    found = {"READ": Measure(((1000, 1999, 3), (1_000_000, 1_000_999, 1))), "UPDATE": Measure()}
    later = output.status(shown, AT, found, elapsed_s=1.0, done=1000, current_per_s=887.1083, todo=2000)
    assert later == (
        "lab2026-11-21 14:05:13:011 1 sec: 1000 operations; 887.11 current ops/sec; est completion in 2 second "
        "[READ: Count=4, Max=1000, Min=1, Avg=251.25, 90=1000, 99=1000, 99.9=1000, 99.99=1000] "
        "[UPDATE: Count=0, Max=0, Min=9223372036854775807, Avg=NaN, 90=0, 99=0, 99.9=0, 99.99=0] "
    )


def test_the_older_kinds() -> None:
    measure = Measure(
        ((1_000_000, 1_000_999, 98), (5_000_000, 5_000_999, 2), (9_000_000_000, 9_000_000_999, 0)), {"OK": 100}
    )
    rows = output.measured({"READ": measure}, Display(kind="histogram", buckets=3, verbose=True), {})
    found = {name: value for _, name, value in rows}
    assert found["95thPercentileLatency(us)"] == 1000
    assert "99thPercentileLatency(us)" not in found
    assert (found["0"], found["1"], found["2"], found[">3"]) == (0, 98, 0, 2)
    assert found["LatencyVariance(us)"] == pytest.approx(98 * 2 / 100**2 * 4000**2, rel=0.01)
    series = output.measured({"READ": measure}, Display(kind="timeseries"), {"READ": [(0, 2.0), (1000, 0.25)]})
    assert [row[1:] for row in series[-2:]] == [("0", 2.0), ("1000", 0.25)]
    both = output.measured({"READ": measure}, Display(kind="hdrhistogram+histogram"), {})
    assert {name for name, _, _ in both} == {"HdrREAD", "BucketREAD"}
    assert sum(name == "Return=OK" for _, name, _ in both) == 1


def test_the_halves_of_a_read_modify_write_are_reads_and_updates() -> None:
    cells = tables(
        read__ok__service=10,
        read__ok__response=12,
        read_modify_write__ok__service=50,
        read_modify_write__ok__response=55,
        read__ok__part=20,
        update__ok__part=30,
    )
    found = measures(cells, Display())
    assert {name: measure.n for name, measure in found.items()} == {"READ": 2, "READ-MODIFY-WRITE": 1, "UPDATE": 1}
    assert {name: measure.statuses for name, measure in found.items()} == {
        "READ": {"OK": 2},
        "READ-MODIFY-WRITE": {},
        "UPDATE": {"OK": 1},
    }
    both = measures(cells, Display(interval="both"), 4000)
    assert list(both)[:4] == ["READ", "READ-MODIFY-WRITE", "CLEANUP", "UPDATE"]
    assert (both["Intended-READ"].max_us, both["Intended-UPDATE"].max_us, both["Intended-CLEANUP"].n) == (12, 55, 1)
    assert both["Intended-READ"].statuses == {}
    intended = measures(cells, Display(interval="intended"))
    assert (intended["READ"].max_us, intended["READ"].statuses) == (12, {"OK": 2})


def test_failures_are_kept_apart() -> None:
    cells = tables(
        read__ok__service=1,
        read__ok__response=1,
        read__not_found__service=2,
        read__not_found__response=2,
        read__timeout__service=3,
        read__timeout__response=3,
        read__connection__response=9,
    )
    found = measures(cells, Display())
    assert found["READ"].statuses == {"OK": 1, "NOT_FOUND": 1, "ERROR": 2}
    # What was never sent counts with its response time.
    assert (found["READ"].n, found["READ-FAILED"].n, found["READ-FAILED"].max_us) == (1, 3, 9)
    each = measures(cells, Display(each_error=True))
    assert (each["READ-NOT_FOUND"].n, each["READ-ERROR"].n) == (1, 2)
    tracked = measures(cells, Display(tracked=frozenset({"NOT_FOUND"})))
    assert (tracked["READ-NOT_FOUND"].n, tracked["READ-FAILED"].n) == (1, 2)


def test_only_failures_leave_an_empty_measurement_with_its_return_codes() -> None:
    found = measures(tables(insert__timeout__service=3, insert__timeout__response=3), Display())
    rows = output.measured({"INSERT": found["INSERT"]}, Display(), {})
    assert output.export(rows, "Text").splitlines() == [
        "[INSERT], Operations, 0",
        "[INSERT], AverageLatency(us), NaN",
        "[INSERT], MinLatency(us), 9223372036854775807",
        "[INSERT], MaxLatency(us), 0",
        "[INSERT], 95thPercentileLatency(us), 0",
        "[INSERT], 99thPercentileLatency(us), 0",
        "[INSERT], Return=ERROR, 1",
    ]


def test_settings_of_the_output() -> None:
    shown = display(
        {
            "measurementtype": "timeseries",
            "timeseries.granularity": "500",
            "hdrhistogram.percentiles": "50, 99.9",
            "exporter": "com.yahoo.ycsb.measurements.exporter.JSONArrayMeasurementsExporter",
            "latencytrackederrors": "ERROR,NOT_FOUND",
            "status": "true",
        }
    )
    assert (shown.interval_s, shown.percentiles, shown.exporter) == (0.5, (50.0, 99.9), "JSONArray")
    assert (shown.tracked, shown.status, shown.status_interval_s) == (frozenset({"ERROR", "NOT_FOUND"}), True, 10)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("measurementtype", "raw"),
        ("measurementtype", "hdrhistogram+raw"),
        ("measurementtype", "mean"),
        ("measurement.interval", "all"),
        ("exporter", "site.ycsb.measurements.exporter.XmlExporter"),
        ("hdrhistogram.percentiles", "99,high"),
        ("hdrhistogram.percentiles", "101"),
        ("timeseries.granularity", "10"),
        ("status.interval", "0"),
    ],
)
def test_settings_that_we_do_not_have(name: str, value: str) -> None:
    with pytest.raises(StudyError) as caught:
        display({name: value})
    assert (caught.value.key, caught.value.read) == (name, value)
