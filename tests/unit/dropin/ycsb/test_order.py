"""From properties to the agent's order."""

from __future__ import annotations

from typing import Any

import pytest

from steelyard.dropin import properties
from steelyard.dropin.ycsb import property_support
from steelyard.dropin.ycsb.command import Command
from steelyard.dropin.ycsb.export_options import display
from steelyard.dropin.ycsb.order import Compiled, compile_command
from steelyard.model.errors import StudyError
from steelyard.wire.order import Proportions, StopAt, Tls
from steelyard.wire.schedule import Closed, Steady
from tests.e2e.laboratory import ROOT

WORKLOADS = ROOT / "tests" / "fixtures" / "ycsb" / "workloads"
BASE = {
    "workload": "site.ycsb.workloads.CoreWorkload",
    "hosts": "10.0.0.1",
    "recordcount": "1000",
    "operationcount": "500",
}


def compiled(action: str = "run", without: str = "", **given: str) -> Compiled:
    """`given`: properties, with two underscores for a full stop."""
    named = {name.replace("__", "."): value for name, value in given.items()}
    kept = {name: value for name, value in {**BASE, **named}.items() if name != without}
    return compile_command(Command(action, kept, ()), 7)  # type: ignore[arg-type]


def workload(action: str = "run", **given: str) -> Any:
    return compiled(action, **given).order.work


@pytest.mark.parametrize(
    ("letter", "shares", "distribution"),
    [
        ("a", {"read": 0.5, "update": 0.5}, "zipfian"),
        ("b", {"read": 0.95, "update": 0.05}, "zipfian"),
        ("c", {"read": 1.0}, "zipfian"),
        ("d", {"read": 0.95, "insert": 0.05}, "latest"),
        ("e", {"scan": 0.95, "insert": 0.05}, "zipfian"),
        ("f", {"read": 0.5, "read_modify_write": 0.5}, "zipfian"),
    ],
)
def test_the_six_core_workloads(letter: str, shares: dict[str, float], distribution: str) -> None:
    read = properties.read(WORKLOADS / f"workload{letter}")
    made = compile_command(Command("run", {**read, "hosts": "n1"}, ()), 7)
    found = made.order.work
    assert {name: share for name, share in found.proportions.model_dump().items() if share} == shares
    assert (found.request_distribution, found.records, made.operations) == (distribution, 1000, 1000)
    assert found.expected_new_keys == int(1000 * shares.get("insert", 0) * 2)
    if letter == "e":
        assert (found.max_scan_length, found.scan_length_distribution) == (100, "uniform")


def test_defaults_are_ycsb_s() -> None:
    made = compiled()
    order, found = made.order, made.order.work
    assert order.contacts == ("10.0.0.1:9042",)
    assert (order.target.keyspace, order.target.table, order.target.key) == ("ycsb", "usertable", "y_id")
    assert found.fields == tuple(f"field{number}" for number in range(10))
    assert (order.target.read_consistency, order.target.write_consistency, order.timeout_ms) == ("ONE", "ONE", 12_000)
    assert order.schedule == Closed(threads=1)
    assert order.stop == StopAt(operations=500)
    assert (order.seed, order.action) == (7, "load")
    assert found.proportions == Proportions(read=0.95, update=0.05)
    assert (found.request_distribution, found.insert_order, found.zero_padding) == ("uniform", "hashed", 1)
    assert (found.field_length, found.max_scan_length, found.read_all_fields) == (100, 1000, True)


def test_what_can_be_said_is_carried_over() -> None:
    made = compiled(
        threadcount="8",
        target="2000",
        maxexecutiontime="60",
        hosts="n1, fe80::1",
        port="9142",
        cassandra__keyspace="Big",
        table="t",
        fieldcount="2",
        fieldnameprefix="f",
        cassandra__readconsistencylevel="LOCAL_QUORUM",
        cassandra__writeconsistencylevel="ALL",
        cassandra__readtimeoutmillis="500",
        cassandra__username="ada",
        cassandra__password="secret",
        fieldlengthdistribution="uniform",
        minfieldlength="5",
        readallfields="FALSE",
        writeallfields="true",
        insertorder="ordered",
        zeropadding="12",
        steelyard__seed="9",
        steelyard__workers="3",
    )
    order = made.order
    assert order.schedule == Steady(kind="constant", rate_per_s=2000.0, in_flight=8)
    assert order.stop == StopAt(operations=500, duration_s=60)
    assert order.contacts == ("n1:9142", "[fe80::1]:9142")
    assert (order.target.keyspace, order.target.table, order.work.fields) == ("Big", "t", ("f0", "f1"))
    assert (order.target.read_consistency, order.target.write_consistency) == ("LOCAL_QUORUM", "ALL")
    assert (order.timeout_ms, order.seed, made.workers) == (500, 9, 3)
    assert (order.work.read_all_fields, order.work.write_all_fields) == (False, True)
    assert (order.work.insert_order, order.work.zero_padding) == ("ordered", 12)
    assert (made.target.user, made.target.password) == ("ada", "secret")
    assert "secret" not in str(order)
    assert made.target.statements(3)[1] == (
        'CREATE TABLE IF NOT EXISTS "Big".t (y_id text PRIMARY KEY, f0 text, f1 text)'
    )


@pytest.mark.parametrize(
    ("given", "span"),
    [
        ({}, (0, 1000)),
        ({"insertstart": "200", "insertcount": "300"}, (200, 300)),
        # Without insertcount YCSB's client inserts recordcount records, from wherever it starts.
        ({"insertstart": "200"}, (200, 1000)),
        ({"recordcount": "0", "insertcount": "5"}, (0, 5)),
    ],
)
def test_what_is_loaded(given: dict[str, str], span: tuple[int, int]) -> None:
    made = compiled("load", **given)
    found = made.order.work
    assert (found.insert_start, found.records) == span
    assert (made.order.action, made.order.stop.operations) == ("populate", span[1])


def test_what_is_there_before_a_load() -> None:
    found = workload(insertstart="200", requestdistribution="uniform", insertproportion="0")
    assert (found.insert_start, found.records) == (200, 800)
    found = workload(insertstart="200", insertcount="100", requestdistribution="uniform")
    assert (found.insert_start, found.records) == (200, 100)


class Recording(dict[str, str]):
    """Properties that remember which were read."""

    def __init__(self, given: dict[str, str]) -> None:
        super().__init__(given)
        self.read: set[str] = set()

    def get(self, name: str, default: Any = None) -> Any:
        self.read.add(name)
        return super().get(name, default)

    def __contains__(self, name: object) -> bool:
        self.read.add(str(name))
        return super().__contains__(name)


def test_what_counts_as_used_is_read() -> None:
    given = {**BASE, "insertcount": "1000", "cassandra.username": "ada", "cassandra.useSSL": "true"}
    recording = Recording({**given, "steelyard.tls.verify": "none", "measurementtype": "timeseries"})
    compile_command(Command("load", recording, ()), 7)
    compile_command(Command("run", recording, ()), 7)
    display(recording)
    # The last is read from the words, to see whether they agree.
    assert recording.read >= property_support.USED - {"dotransactions"}


def test_more_threads_than_operations() -> None:
    made = compiled(threadcount="800")
    assert (made.threads, made.crowded) == (500, True)
    assert not compiled(threadcount="500").crowded


def test_no_operation_count_but_a_time() -> None:
    made = compiled(without="operationcount", maxexecutiontime="10", threadcount="64")
    assert (made.operations, made.threads) == (None, 64)
    assert made.order.stop == StopAt(duration_s=10)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"recordcount": "many"}, "recordcount: read 'many'"),
        ({"recordcount": "0"}, "recordcount: read '0'"),
        ({"operationcount": "0"}, "operationcount: read '0': and maxexecutiontime is not set"),
        ({"threadcount": "0"}, "threadcount: read '0'"),
        ({"target": "-5"}, "target: read '-5'"),
        ({"target": "inf"}, "target: read 'inf'"),
        ({"readallfields": "yes"}, "readallfields: read 'yes'"),
        ({"requestdistribution": "pareto"}, "requestdistribution: read 'pareto'"),
        ({"fieldlengthdistribution": "histogram"}, "fieldlengthdistribution: read 'histogram'"),
        ({"insertorder": "random"}, "insertorder: read 'random'"),
        ({"readproportion": "0", "updateproportion": "0"}, "the proportions are all 0"),
        ({"scanlengthdistribution": "constant"}, "scanlengthdistribution: read 'constant'"),
        ({"minscanlength": "20", "maxscanlength": "10"}, "minscanlength 20 is above maxscanlength 10"),
        (
            {"fieldlengthdistribution": "uniform", "minfieldlength": "20", "fieldlength": "10"},
            "minfieldlength 20 is above fieldlength 10",
        ),
        ({"recordcount": "1", "requestdistribution": "latest"}, "requestdistribution 'latest' needs 2 records or more"),
        ({"workload": "site.ycsb.workloads.TimeSeriesWorkload"}, "workload: read 'site.ycsb.workloads.TimeSeries"),
        ({"db": "site.ycsb.db.MongoDbClient"}, "db: read 'site.ycsb.db.MongoDbClient'"),
        ({"cassandra__readconsistencylevel": "MOST"}, "cassandra.readconsistencylevel: read 'MOST'"),
        ({"port": "99999"}, "port: read '99999'"),
        ({"hosts": " , "}, 'Required property "hosts" missing'),
        ({"insertstart": "900", "insertcount": "200"}, "Invalid combination"),
        ({"insertstart": "1000"}, "Invalid combination"),
        ({"insertcount": "500", "requestdistribution": "latest"}, "below recordcount 1000"),
        ({"steelyard__seed": "x"}, "steelyard.seed: read 'x'"),
    ],
)
def test_wrong_values_are_named(given: dict[str, str], told: str) -> None:
    with pytest.raises(StudyError) as caught:
        compiled(**given)
    assert told in caught.value.message
    assert caught.value.hint


def test_encryption() -> None:
    assert compiled().order.tls is None
    assert compiled(cassandra__useSSL="true").order.tls == Tls()
    made = compiled(cassandra__useSSL="true", steelyard__tls__ca="/ca.pem", steelyard__tls__verify="chain")
    assert made.order.tls == Tls(ca="/ca.pem", verify="chain")
    with pytest.raises(StudyError, match=r"steelyard\.tls\.verify: read 'some'"):
        compiled(cassandra__useSSL="true", steelyard__tls__verify="some")
    with pytest.raises(StudyError, match=r"cassandra\.useSSL: read 'false'"):
        compiled(steelyard__tls__ca="/ca.pem")


@pytest.mark.parametrize("name", ["workload", "hosts"])
def test_what_must_be_there(name: str) -> None:
    with pytest.raises(StudyError) as caught:
        compiled(without=name)
    assert caught.value.key == name
