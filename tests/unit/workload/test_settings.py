"""The workloads' settings: YCSB's defaults, what is easy to change, what is refused."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from steelyard.field_docs import field_docs
from steelyard.plugins import find
from steelyard.workload.ycsb import DATA, Core, Settings
from tests.unit.workload.reference import REFERENCE, settings_of

MIXES = ("ycsb-a", "ycsb-b", "ycsb-c", "ycsb-d", "ycsb-e", "ycsb-f", "ycsb-i")


def make(name: str, **settings: object) -> Core:
    module = find.find("workload", name)
    made = module.create(module.Settings.model_validate(settings))
    assert isinstance(made, Core)
    return made


def test_every_mix_is_found_by_name() -> None:
    assert set(find.names("workload")) >= {"ycsb", *MIXES}
    for name in MIXES:
        assert make(name).name == name


@pytest.mark.parametrize("name", MIXES)
def test_defaults_are_those_of_ycsb(name: str) -> None:
    # validated by the model, as the fixture has YCSB's text
    properties = REFERENCE["workloads"][name.removeprefix("ycsb-")]["properties"]
    proportions = dict.fromkeys(("read_proportion", "update_proportion"), "0")
    expected = Settings.model_validate({**proportions, **settings_of(properties)})
    assert make(name).settings.model_dump() == expected.model_dump()


def test_core_defaults_are_those_of_core_workload() -> None:
    core = make("ycsb").settings
    assert (core.read_proportion, core.update_proportion, core.request_distribution) == (0.95, 0.05, "uniform")
    assert (core.max_scan_length, core.field_count, core.field_length) == (1000, 10, 100)


def test_what_fills_the_table_is_hard_and_the_rest_is_easy() -> None:
    for name in ("ycsb", *MIXES):
        fields = find.find("workload", name).Settings.model_fields
        hard = {field for field, info in fields.items() if info.json_schema_extra == {"easy": False}}
        easy = {field for field, info in fields.items() if info.json_schema_extra == {"easy": True}}
        assert hard == set(DATA)
        assert hard | easy == set(fields)
        assert field_docs(find.find("workload", name).Settings).keys() == fields.keys()


def test_mixes_share_their_data() -> None:
    assert len({str(make(name, records=5000).data()) for name in MIXES}) == 1
    assert make("ycsb-a", field_length=10).data() != make("ycsb-a").data()
    assert make("ycsb-a", read_proportion=0.9).data() == make("ycsb-a").data()


def test_table_and_writes() -> None:
    schema = make("ycsb-a", field_count=3).schema()
    assert (schema.keyspace, schema.table, schema.key) == ("ycsb", "usertable", "y_id")
    assert schema.fields == ("field0", "field1", "field2")
    assert [name for name in MIXES if not make(name).writes] == ["ycsb-c"]


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"read_proportion": 0, "update_proportion": 0}, "proportions are all 0"),
        ({"read_proportion": -1}, "greater than or equal to 0"),
        ({"records": 0}, "greater than or equal to 1"),
        ({"recrods": 10}, "recrods"),
        ({"request_distribution": "zipf"}, "'zipfian'"),
        ({"request_distribution": "latest", "records": 1}, "needs 2 records"),
        ({"field_length_distribution": "uniform", "min_field_length": 101}, "above field_length 100"),
        ({"min_scan_length": 5, "max_scan_length": 4}, "above max_scan_length 4"),
        ({"scan_length_distribution": "constant"}, "'uniform' or 'zipfian'"),
        ({"request_distribution": "hotspot", "hotspot_data_fraction": 0.0001}, "leaves no hot one"),
        ({"request_distribution": "hotspot", "hotspot_data_fraction": 1.0}, "leaves no cold one"),
    ],
)
def test_what_cannot_be_is_refused(settings: dict[str, object], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        make("ycsb-a", **settings)
