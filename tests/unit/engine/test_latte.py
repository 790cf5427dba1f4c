"""latte as an engine: orders that it can say, those that it cannot, and its report as our records."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from steelyard.engine import _latte_script as latte_script
from steelyard.engine import latte
from steelyard.model.errors import EngineError
from steelyard.wire.order import Order
from tests.unit.wire import orders

HERE = Path(__file__).resolve().parent


def order(**changes: Any) -> Order:
    """An order that latte can carry out."""
    blob = {"type": "blob", "make": {"kind": "random", "salt": 3, "size": {"name": "fixed", "value": 100}}}
    key = {"type": "text", "make": {"kind": "key", "divide": 10, "prefix": "row"}}
    execute = [{"kind": "execute", "statement": "insert"}]
    program = {
        "kind": "program",
        "records": 500,
        "statements": [
            {"name": "insert", "cql": "INSERT INTO t (id, v) VALUES (?, ?)", "values": [key, blob], "writes": True}
        ],
        "populate": execute,
        "operations": [
            {"name": "put", "weight": 2.0, "keys": {"kind": "existing", "distribution": "uniform"}, "steps": execute},
            {"name": "add", "weight": 1.0, "keys": {"kind": "new"}, "steps": execute},
        ],
    }
    return orders.order(**{"work": program, "seed": 11, **changes})


def test_a_script_says_what_the_order_says() -> None:
    text = latte_script.script(order())
    assert 'ctx.prepare("insert", "INSERT INTO t (id, v) VALUES (?, ?)").await?;' in text
    assert "ctx.load_cycle_count = 500;" in text
    assert "let key = latte::hash2(i, 11) % 500;" in text
    assert "let key = 500 + i;" in text
    assert "`row${(key / 10)}`, latte::blob(latte::hash2(i, 3), 100)" in text
    assert latte_script.weights(order()) == "operation_0:2,operation_1:1"


def _changed(change: Any) -> Order:
    changed = orders.sent(order())
    change(changed["work"])
    return Order.model_validate(changed)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda w: w["operations"][0]["keys"].update(distribution="zipfian"), "zipfian"),
        (lambda w: w.update(validate_fraction=0.1), "validate_fraction"),
        (lambda w: w["statements"][0].update(conditional=True), "conditional"),
        (lambda w: w["operations"][1]["steps"].append(w["populate"][0]), "2 steps"),
        (lambda w: w["statements"][0]["values"][1].update(make={"kind": "stress-key", "size": 9}), "stress-key"),
        (lambda w: w["statements"][0]["values"][0].update(type="uuid"), "uuid"),
        (lambda w: w.update(populate_stride=5), "stride"),
    ],
)
def test_what_latte_cannot_do_is_refused_by_name(change: Any, named: str) -> None:
    with pytest.raises(EngineError, match=named) as caught:
        latte_script.script(_changed(change))
    assert "latte can:" in caught.value.hint


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("tls", {"ca": None, "verify": "none"}),
        ("compression", "lz4"),
        ("connections_per_node", 4),
        ("routing", "round-robin"),
    ],
)
def test_connections_that_latte_does_not_make_are_refused(name: str, value: Any) -> None:
    with pytest.raises(EngineError, match=name):
        latte.LatteEngine().check(order(**{name: value}), 1)


def test_work_of_another_kind_is_refused() -> None:
    with pytest.raises(EngineError, match="ycsb"):
        latte_script.script(orders.order())


def test_an_open_schedule_is_refused() -> None:
    schedule = {"kind": "constant", "rate_per_s": 100.0, "in_flight": 4}
    with pytest.raises(EngineError, match="no times at which operations are due"):
        asyncio.run(latte.create().drive(order(schedule=schedule), [], lambda node, record: None, 1.0))


def test_a_report_becomes_our_records() -> None:
    report = json.loads((HERE / "latte.report.json").read_text())
    two = _changed(lambda w: w["operations"][1].update(name="write"))
    interval, done = latte.records(report, two)
    assert (interval.record, done.record) == ("interval", "done")
    assert interval.done == 20_000 == done.operations
    counted = {
        (counts.operation, counts.measure): sum(bucket[2] for bucket in counts.buckets) for counts in interval.counts
    }
    assert counted[("put", "service")] + counted[("write", "service")] == 20_000
    assert 0 < interval.summary.service_ms_p50 < interval.summary.service_ms_p99
    low, high, _ = interval.counts[0].buckets[0]
    assert 0 < low <= high
    assert done.execution_ns == pytest.approx(interval.seconds * 1e9, rel=1e-6)


def test_a_missing_latte_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(latte.VARIABLE, str(tmp_path / "latte"))
    with pytest.raises(EngineError) as caught:
        latte.find()
    assert caught.value.hint == "run `steelyard setup latte`"
