"""The order's schema holds the example and what the workloads produce; the records' example is what Python reads."""

from __future__ import annotations

import json
from typing import get_args

import jsonschema
import pytest
from pydantic import ValidationError

from steelyard.plugins import find
from steelyard.wire.order import Order, RespTarget, Ycsb
from steelyard.wire.schedule import Schedule
from tests.unit.wire import orders
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
    known = {kind for one in get_args(get_args(Schedule)[0]) for kind in get_args(one.model_fields["kind"].annotation)}
    assert {phase["schedule"]["kind"] for phase in phased["phases"]} == known - {"poisson"}
    valid(PROGRAM)


@pytest.mark.parametrize("name", [name for name in find.names("workload") if name.startswith("ycsb")])
def test_it_holds_every_workload(name: str) -> None:
    module = find.find("workload", name)
    work = module.create(module.Settings()).order()
    valid(orders.sent(orders.order(work=work)))
    known = {*EXAMPLE["work"], "validate_fraction"}
    assert set(Ycsb.model_fields) == known == set(SCHEMA["$defs"]["Ycsb"]["properties"])


@pytest.mark.parametrize(
    "name", ["order", "program-order", "phased-order", "resp-order", "http-order", "postgresql-order"]
)
def test_an_order_is_written_without_its_defaults_and_read_as_the_same(name: str) -> None:
    example = json.loads((ROOT / "schema" / f"{name}.example.json").read_text())
    order = Order.model_validate(example)
    written = orders.sent(order)
    valid(written)
    assert len(json.dumps(written)) < len(json.dumps(example))
    assert Order.model_validate(written) == order


def test_a_protocol_without_fields() -> None:
    written = orders.sent(orders.order().model_copy(update={"target": RespTarget()}))
    valid(written)
    assert written["target"] == {"protocol": "resp"}


@pytest.mark.parametrize(
    "change",
    [
        {"format": 2},
        {"wait": 1},
        {"schedule": {"kind": "constant", "rate_per_s": 100.0}},
        {"work": {**EXAMPLE["work"], "recrods": 1}},
        {"stop": {"operations": 0}},
        {"work": {**PROGRAM["work"], "recrods": 1}},
        {"work": {**PROGRAM["work"], "kind": "ycsb"}},
        {"target": {**EXAMPLE["target"], "serial_consistency": "ONE"}},
        {"target": {**EXAMPLE["target"], "protocol": "resp"}},
        {"target": {"keyspace": "ycsb"}},
    ],
)
def test_it_refuses_what_the_agent_would_not_understand(change: dict[str, object]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        valid({**EXAMPLE, **change})
    with pytest.raises(ValidationError):
        Order.model_validate({**EXAMPLE, **change})


def test_records_example() -> None:
    lines = (ROOT / "schema" / "records.example.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    kinds = ["hello", "connected", "interval", "done", "routed", "doing", "sample", "error"]
    assert [record["record"] for record in records] == kinds
    assert [json.dumps(record, separators=(",", ":")) for record in records] == lines
    for counts in records[2]["counts"]:
        assert all(low <= high and count > 0 for low, high, count in counts["buckets"])
