"""The workload `stress`: cassandra-stress's rows as a program, its settings and their page."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from steelyard.wire.program import StressKey
from steelyard.workload.base import Explains
from steelyard.workload.stress import Settings, create
from tests.unit.workload.test_reference_page import PAGE, row

SHOWN = {
    "column_size": ("| 34 |  |", "| 34 | a distribution |"),
    "population": ("| from the order |  |", "| uniform | a distribution |"),
    "clustering": ("| from the order |  |", "| none | a distribution |"),
}
"""What the page says of settings that are distributions."""


def test_every_setting_is_on_the_page() -> None:
    page = PAGE.read_text(encoding="utf-8").splitlines()
    for name in Settings.model_fields:
        assert row(Settings, name).replace(*SHOWN.get(name, ("", ""))) in page


def test_a_mix_is_a_program_on_the_tools_table() -> None:
    workload = create(Settings(records=100, columns=12, read_proportion=3, write_proportion=1, column_size=7))
    order = workload.order()
    write, read = order.statements
    assert write.cql.startswith('UPDATE keyspace1.standard1 SET "C0" = ?, "C1" = ?')
    assert [getattr(value.make, "column", None) for value in write.values] == [*range(12), None]
    assert write.values[-1].make == StressKey(size=10)
    assert write.partition_key == (12,)
    assert read.expect == write.values[:-1]
    assert [(one.name, one.weight) for one in order.operations] == [("read", 3.0), ("write", 1.0)]
    assert order.operations[0].keys.number == {"name": "uniform", "min": 0.0, "max": 99.0}
    assert '"C11" blob' in next(iter(workload.schema().create_rest()))
    assert workload.data() == {"records": 100, "columns": 12, "column_size": "7"}
    assert workload.writes
    assert not create(Settings(write_proportion=0)).writes


def test_seeds_begin_with_1_and_keys_with_0() -> None:
    def number(population: str) -> object:
        return create(Settings(records=50, population=population)).order().operations[0].keys.number

    gaussian = {"name": "gaussian", "min": 0, "max": 49, "mean": 9, "deviation": 4}
    assert number("gaussian(1..50, 10, 4)") == gaussian
    assert number("~gaussian(1..50, 10, 4)") == {"name": "inverted", "of": gaussian}
    assert number("fixed(1)") == {"name": "fixed", "value": 0.0}
    assert create(Settings(records=1)).order().operations[0].keys.number == {"name": "fixed", "value": 0.0}


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"population": "zipfian(1..10)"}, "has no zipfian"),
        ({"population": "uniform(0..10)"}, "beyond the seeds 1 to 1000000"),
        ({"population": "uniform(1..2000)", "records": 1000}, "beyond the seeds 1 to 1000"),
        ({"column_size": "~exponential(1..10)"}, "fails with ~"),
        ({"column_size": "uniform(-1..10)"}, "from 0 to"),
        ({"column_size": "extreme(1..10, 1, 3)"}, "quanta"),
        ({"clustering": "uniform(0..3)"}, "from 1"),
        ({"read_proportion": 0, "write_proportion": 0}, "all 0"),
        ({"column_size": "exp(1..10)"}, "unknown distribution 'exp'"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings: dict[str, object], told: str) -> None:
    with pytest.raises(ValidationError, match=told):
        Settings.model_validate(settings)


def test_it_explains_itself() -> None:
    workload = create(Settings(records=1000, read_proportion=3, write_proportion=1))
    assert isinstance(workload, Explains)
    explained = workload.explain()
    assert (explained.records, explained.record_bytes) == (1000, 180)
    shapes = [(one.name, one.share, one.kind, one.bytes) for one in explained.operations]
    assert shapes == [("read", 0.75, "read", 10), ("write", 0.25, "update", 180)]
