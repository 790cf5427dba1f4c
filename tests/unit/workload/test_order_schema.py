"""The order's schema holds the example and what the workloads produce; the records' example is what Python reads."""

from __future__ import annotations

import json

import jsonschema
import pytest

from steelyard.plugins import find
from tests.unit.workload.reference import EXAMPLE, ROOT

PROGRAM = json.loads((ROOT / "schema" / "program-order.example.json").read_text())
SCHEMA = json.loads((ROOT / "schema" / "order.schema.json").read_text())


def valid(order: object) -> None:
    jsonschema.validate(order, SCHEMA, cls=jsonschema.Draft202012Validator)


def test_the_schema_is_a_schema_and_holds_the_example() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    valid(EXAMPLE)


def test_it_holds_every_schedule() -> None:
    phased = json.loads((ROOT / "schema" / "phased-order.example.json").read_text())
    valid(phased)
    known = {one["properties"]["kind"]["const"] for one in SCHEMA["$defs"]["schedule"]["oneOf"]}
    assert {phase["schedule"]["kind"] for phase in phased["phases"]} == known - {"poisson"}
    valid(PROGRAM)


@pytest.mark.parametrize("name", [name for name in find.names("workload") if name.startswith("ycsb")])
def test_it_holds_every_workload(name: str) -> None:
    module = find.find("workload", name)
    workload = module.create(module.Settings()).order()
    valid({**EXAMPLE, "workload": workload})
    assert set(workload) == set(EXAMPLE["workload"]) == set(SCHEMA["$defs"]["ycsb"]["properties"])


@pytest.mark.parametrize(
    "change",
    [
        {"format": 2},
        {"wait": 1},
        {"schedule": {"kind": "constant", "rate_per_s": 100.0}},
        {"workload": {**EXAMPLE["workload"], "recrods": 1}},
        {"stop": {"operations": 0}},
        {"workload": {**PROGRAM["workload"], "recrods": 1}},
        {"workload": {**PROGRAM["workload"], "kind": "ycsb"}},
        {"serial_consistency": "ONE"},
    ],
)
def test_it_refuses_what_the_agent_would_not_understand(change: dict[str, object]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        valid({**EXAMPLE, **change})


def test_records_example() -> None:
    lines = (ROOT / "schema" / "records.example.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    kinds = ["hello", "connected", "interval", "done", "routed", "sample", "error"]
    assert [record["record"] for record in records] == kinds
    assert [json.dumps(record, separators=(",", ":")) for record in records] == lines
    for counts in records[2]["counts"]:
        assert all(low <= high and count > 0 for low, high, count in counts["buckets"])
