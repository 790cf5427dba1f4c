"""Own treatments laid beside tables by their forms: which cell, which number, why not, and no cell by mistake."""

from __future__ import annotations

from collections import Counter
from itertools import product

import numpy as np
import pytest

from steelyard.model import responses
from steelyard.model.estimate import Estimate
from steelyard.reference.comparison import PublishedPair
from steelyard.reference.mapping import Own, clashes, lay_table, unpublished
from steelyard.reference.tables import TIMES, tables

EC2 = {
    "system.name": "cassandra", "system.version": "cassandra 5.0.5", "site.nodes": "3", "container": "no",
    "system.replication_factor": "1", "load.consistency": "ONE", "workload.name": "stress",
    "workload.read_fraction": "0.5", "workload.records": "1000000", "load.threads": "609", "load.duration_s": "900",
    "load.schedule": "closed", "policy.changes": "no", "policy.most": "3",
}  # fmt: skip


def estimate(value: float, half: float = 0.1, unit: str = "ms") -> Estimate:
    return Estimate(value=value, low=value - half, high=value + half, n=5, unit=unit, method="made")


def own(name: str, numbers: dict[tuple[str, str], Estimate], n: int = 5, **facets: str) -> Own:
    return Own(name, {**EC2, **{key.replace("__", "."): level for key, level in facets.items()}}, n, numbers)


def laid(table: str, *treatments: Own) -> tuple[PublishedPair, ...]:
    return lay_table(tables()[table], treatments, lambda a, b, _: estimate(2.9, 0.3, "") if a is not b else None)


def with_ours(found: tuple[PublishedPair, ...]) -> list[PublishedPair]:
    return [one for one in found if one.ours is not None]


def test_every_table_has_a_form_that_fits_it() -> None:
    for table in tables().values():
        assert table.form is not None
        assert bool(table.form.computed) != bool(table.form.numbers or table.form.missing)
        for number in table.form.numbers:
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
    assert reasons["our clusters kept their size"] == 12
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
        ("machine_cpu_percent_mean", "mean"): estimate(63.4, unit="%"),
        ("machine_disk_written_kb_per_s_mean", "mean"): estimate(9000, 1000),
    }
    found = laid("bare_metal_docker", own("mixed", numbers, **facets))
    shown = {(one.cell["metric"], one.statistic): (one.printed, one.verdict, one.unit) for one in with_ours(found)}
    assert shown == {
        ("cpu_utilization", "bare_metal"): ("63.43", "agrees", "percent"),
        ("disk_written", "bare_metal"): ("9675.87", "agrees", "kB/s"),
    }
    (other,) = with_ours(
        laid("bare_metal_docker", own("mixed", dict(list(numbers.items())[:1]), container="yes", **facets))
    )
    assert (other.statistic, other.verdict) == ("docker", "differs")
    assert other.change_percent == pytest.approx(100 * (63.4 / 63.66 - 1))


def test_a_web_server_is_compared_by_length_of_document_and_container() -> None:
    facets = {
        "system.name": "apache", "workload.bytes": "1000", "container": "no", "load.keep_alive": "false",
        "load.schedule": "search", "site.nodes": "1",
    }  # fmt: skip
    numbers = {
        ("capacity_per_s", "mean"): estimate(2810.0, 5.0, "requests/s"),
        ("network_out_mbit_per_s_mean", "mean"): estimate(26.0, 1.0, "Mbit/s"),
        ("cpu_percent_mean", "mean"): estimate(99.0, 1.0, "%"),
    }
    rate, network, cpu = with_ours(laid("http_server", Own("a", facets, 3, numbers)))
    assert (rate.printed, rate.verdict) == ("2809", "agrees")
    assert network.verdict == "not comparable"
    assert "heads and frames" in network.reasons[0]
    assert (cpu.printed, cpu.verdict) == ("67.2", "differs")


def test_a_job_is_compared_by_its_input_and_container_in_seconds() -> None:
    facets = {
        "system.name": "spark-hdfs", "workload.name": "sort", "workload.input_mb": "4000", "container": "yes",
        "site.nodes": "4", "workload.idle_s": "20",
    }  # fmt: skip
    (time,) = with_ours(laid("spark_job_time", Own("a", facets, 5, {("response_ms_mean", "mean"): estimate(66_100)})))
    assert time.ours is not None
    assert (time.printed, time.ours.value, time.ours.unit) == ("132.2", 66.1, "s")
    assert (time.verdict, time.change_percent) == ("not comparable", pytest.approx(-50.0))
    assert time.reasons[0] == "nodes 4, published 12"
    assert any("start of the driver" in why for why in time.reasons)


def test_every_number_is_compared_with_a_response_that_there_is() -> None:
    forms = {name: table.form for name, table in tables().items() if table.form is not None}
    named = {(name, number.response) for name, form in forms.items() for number in form.numbers if number.response}
    assert {response for _, response in named} <= {*responses.every(), *TIMES}
    assert ("http_server", "network_out_mbit_per_s_mean") in named


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


RICHARDSON = ("trial_time_summary", "regression", "speedup")
PI = {
    "workload.letter": "A", "beside.platform": "raspberry-pi-2", "beside.ram_gb": "1", "beside.link": "ethernet",
    "site.nodes": "1", "system.version": "cassandra 3.9", "workload.records": "1000000", "load.operations": "10000",
    "load.threads": "1", "platform": "raspberry-pi-2",
}  # fmt: skip


def timed(mean: float, n: int = 21, numbers: dict[tuple[str, str], Estimate] | None = None, **facets: str) -> Own:
    """A treatment with execution times around a mean, as if richardson2017 had been repeated."""
    values = np.random.default_rng(2).normal(mean, mean / 50, n).tolist()
    levels = {**PI, **{key.replace("__", "."): level for key, level in facets.items()}}
    return Own(f"{mean}", levels, n, numbers or {}, values={"execution_time_ms": tuple(values)})


def of_richardson(*own: Own) -> list[PublishedPair]:
    return [one for name in RICHARDSON for one in laid(name, *own)]


def test_numbers_that_were_computed_of_all_trials_are_computed_of_ours() -> None:
    known = {("execution_time_ms", "mean"): estimate(46_000, 200)}
    own = [
        timed(mean, numbers=known if (size, link) == ("1", "ethernet") else None, site__nodes=size, beside__link=link)
        for size, (link, mean) in product(("1", "3"), (("ethernet", 46_000.0), ("802.11", 91_000.0)))
    ]
    found = of_richardson(*own)
    assert {(one.table, one.cell["table"]) for one in found} == {
        ("trial_time_summary", "15"), ("trial_time_summary", "19"), ("regression", "21"), ("speedup", "22"),
    }  # fmt: skip
    mean = next(one for one in found if one.statistic == "mean" and one.cell["cluster_size"] == "1")
    assert mean.verdict == "agrees"
    count = next(one for one in found if one.statistic == "count")
    assert count.ours is not None
    assert (count.ours.value, count.ours.unit, count.verdict) == (21, "trials", "agrees")
    slope = next(one for one in found if one.statistic == "slope" and one.cell["cluster_size"] == "1")
    assert slope.ours is not None
    assert slope.ours.n == 42
    assert slope.ours.value == pytest.approx(45_000, rel=0.05)
    assert slope.verdict == "differs"
    ratio = next(one for one in found if one.statistic == "ratio_of_the_means" and one.cell["cluster_size"] == "1")
    assert ratio.ours is not None
    assert ratio.ours.value == pytest.approx(46 / 91, rel=0.01)
    overall = [one for one in found if one.cell["cluster_size"] == "overall"]
    assert overall
    for one in overall:
        assert one.verdict == "not comparable"
        assert one.reasons == ("scale: ours pools sizes 1, 3, published 1, 2, 3, 4, 5, 6",)


def test_a_regression_needs_every_size_and_takes_its_axis_from_the_mapping() -> None:
    sizes = [timed(40_000.0 + 6_000 * size, site__nodes=str(size)) for size in range(1, 7)]
    fit = {one.statistic: one for one in laid("regression", *sizes)}
    assert fit["slope"].cell["over"] == "cluster_size"
    assert fit["slope"].ours is not None
    assert fit["slope"].ours.value == pytest.approx(6_000, rel=0.1)
    assert laid("regression", *sizes[:-1]) == ()
    machines = [
        timed(6_500.0 - 70 * int(ram), beside__platform="virtual-machine", beside__ram_gb=ram, beside__link="nodal")
        for ram in ("1", "2", "4")
    ]
    over = {one.cell["over"]: one.ours for one in laid("regression", *machines) if one.statistic == "slope"}
    assert set(over) == {"ram_gb"}
    assert over["ram_gb"] is not None
    assert over["ram_gb"].value == pytest.approx(-70, rel=0.6)


def test_conditions_of_computed_numbers_are_said_once_and_a_platform_only_where_all_cells_share_it() -> None:
    pair = [timed(46_000.0, load__threads="8", platform="a shelf"),
            timed(6_000.0, n=1, load__threads="8", platform="a shelf", beside__platform="virtual-machine",
                  beside__link="nodal")]  # fmt: skip
    (ratio, *_) = laid("speedup", *pair)
    assert ratio.reasons == (
        "client threads 8, published 1", "n 1: too few trials of ours to say how sure it is",
    )  # fmt: skip
    alone = next(one for one in laid("trial_time_summary", pair[0]) if one.cell["cluster_size"] == "1")
    assert alone.reasons == ("platform a shelf, published raspberry-pi-2", "client threads 8, published 1")


def test_own_cells_that_were_not_published_or_are_two() -> None:
    table = tables()["trial_time_summary"]
    own = [timed(46_000.0), timed(50_000.0, site__nodes="8")]
    assert unpublished(table, own) == ["A raspberry-pi-2 1 ethernet 8"]
    assert clashes(table, own) is None
    assert clashes(table, [*own, timed(51_000.0, site__nodes="8", load__timeout_ms="5")]) is not None
