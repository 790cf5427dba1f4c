"""Own treatments laid beside tables by their forms: which cell, which number, why not, and no cell by mistake."""

from __future__ import annotations

from collections import Counter

import pytest

from steelyard.model.estimate import Estimate
from steelyard.reference.comparison import Beside
from steelyard.reference.mapping import Own, clashes, lay_table
from steelyard.reference.tables import tables

EC2 = {
    "system.name": "cassandra", "system.version": "cassandra 5.0.5", "site.nodes": "3", "site.docker": "no",
    "system.replication_factor": "1", "load.consistency": "ONE", "workload.name": "stress",
    "workload.read_fraction": "0.5", "workload.records": "1000000", "load.threads": "609", "load.duration_s": "900",
    "load.schedule": "closed",
}  # fmt: skip


def estimate(value: float, half: float = 0.1, unit: str = "ms") -> Estimate:
    return Estimate(value=value, low=value - half, high=value + half, n=5, unit=unit, method="made")


def own(name: str, numbers: dict[tuple[str, str], Estimate], n: int = 5, **facets: str) -> Own:
    return Own(name, {**EC2, **{key.replace("__", "."): level for key, level in facets.items()}}, n, numbers)


def laid(table: str, *treatments: Own) -> tuple[Beside, ...]:
    return lay_table(tables()[table], treatments, lambda a, b, _: estimate(2.9, 0.3, "") if a is not b else None)


def with_ours(found: tuple[Beside, ...]) -> list[Beside]:
    return [one for one in found if one.ours is not None]


def test_every_table_has_a_form_or_is_richardsons() -> None:
    without = [name for name, table in tables().items() if table.form is None]
    assert without == ["trial_time_summary", "regression", "speedup"]
    for table in tables().values():
        for number in table.form.numbers if table.form else ():
            assert number.column in table.columns
            assert set(number.where) <= set(table.rows[0].key)
            assert {*table.form.cell, *number.cell, *(number.against or {})} <= set(table.rows[0].key)
            assert bool(number.response) != bool(number.missing)


def test_a_cell_is_found_by_its_levels_and_says_what_it_never_is() -> None:
    found = laid("ec2_latency", own("three", {("response_ms_mean", "mean"): estimate(13.35)}))
    (one,) = with_ours(found)
    assert (one.statistic, one.printed, one.verdict) == ("mean_ms_before", "13.35", "not comparable")
    assert one.cell["nodes_before"] == "3"
    assert one.reasons == (
        "published: of the run until two nodes were launched; ours is of the whole trial at this size",
    )
    reasons = Counter(why for one in found if one.ours is None for why in one.reasons)
    assert reasons["no treatment of ours has nodes 5"] == 2
    assert reasons["Steelyard does not add nodes during a trial"] == 12
    assert reasons["nothing was published"] == 4


def test_conditions_are_said_where_they_differ_and_choose_nothing() -> None:
    (one,) = with_ours(
        laid("ec2_latency", own("three", {("response_ms_mean", "mean"): estimate(13.35)}, load__threads="8",
                                platform="a shelf", n=1))
    )  # fmt: skip
    assert one.reasons[:3] == (
        "platform a shelf, published Amazon EC2 t2.medium", "client threads 8, published 609",
        "n 1: too few trials of ours to say how sure it is",
    )  # fmt: skip


def test_an_effect_size_is_of_two_treatments() -> None:
    three, five = own("three", {}), own("five", {}, site__nodes="5")
    (one,) = with_ours(laid("ec2_effect_size", three, five))
    assert (one.printed, one.verdict, one.ours and one.ours.value) == ("2.9", "not comparable", 2.9)
    assert not with_ours(laid("ec2_effect_size", three))


def test_the_numbers_of_a_metric_and_of_the_site_stand_in_their_rows_and_columns() -> None:
    facets = {"workload__read_fraction": "0.75", "load__threads": "450", "workload__records": "50000000",
              "load__duration_s": "1200", "system__version": "cassandra 3.0.8"}  # fmt: skip
    numbers = {
        ("cpu_percent", "mean"): estimate(63.4, unit="%"),
        ("disk_written_kb_per_s", "mean"): estimate(9000, 1000),
    }
    found = laid("bare_metal_docker", own("mixed", numbers, **facets))
    shown = {(one.cell["metric"], one.statistic): (one.printed, one.verdict, one.unit) for one in with_ours(found)}
    assert shown == {
        ("cpu_utilization", "bare_metal"): ("63.43", "agrees", "percent"),
        ("disk_written", "bare_metal"): ("9675.87", "agrees", "kB/s"),
    }
    (other,) = with_ours(
        laid("bare_metal_docker", own("mixed", dict(list(numbers.items())[:1]), site__docker="yes", **facets))
    )
    assert (other.statistic, other.verdict) == ("docker", "differs")
    assert other.change_percent == pytest.approx(100 * (63.4 / 63.66 - 1))


def test_another_system_is_never_comparable() -> None:
    found = laid("spark_job_time", own("three", {("execution_time_ms", "mean"): estimate(60.2)}))
    assert {one.verdict for one in found} == {"not comparable"}
    assert found[0].reasons[0] == "system cassandra, published Spark 1.4 over HDFS 2.6"


def test_of_two_that_fit_the_one_with_fewer_reasons_is_taken_and_equals_clash() -> None:
    number = {("response_ms_mean", "mean"): estimate(13.35)}
    near, far = own("near", number), own("far", number, workload__name="ycsb-a")
    assert clashes(tables()["ec2_latency"], [far, near]) is None
    (one,) = with_ours(laid("ec2_latency", far, near))
    assert len(one.reasons) == 1
    assert clashes(tables()["ec2_latency"], [near, own("twin", number)]) is not None
    assert clashes(tables()["spark_job_time"], [near, own("twin", number)]) is None


def test_abramova_is_compared_by_workload_letter_and_nodes() -> None:
    facets = {"workload__letter": "C", "load__operations": "10000", "site__nodes": "6"}
    (one,) = with_ours(
        laid("abramova2014_runtime", own("c", {("execution_time_ms", "mean"): estimate(118_091, 5)}, **facets))
    )
    assert (one.printed, one.verdict) == ("118090", "agrees")
