"""httperf as an engine: orders that it can run, those that it cannot, and its reports as our records.

The reports are those of httperf 0.9.0 against a server of its own: `ok` 1,400 requests, all answered; `limits` a server
that took half a second for each request, did not answer some in time, reset others and answered 503 to a few, at a rate
at which the client ran out of descriptors; `refused` an address where no server listens."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from steelyard.engine import httperf
from steelyard.model.errors import EngineError
from steelyard.wire.order import Order
from steelyard.wire.record import Done, Interval

REPORTS = Path(__file__).resolve().parents[2] / "fixtures" / "httperf"
ORDER: dict[str, Any] = {
    "contacts": ["10.0.0.1:8080"], "target": {"protocol": "http", "keep_alive": False}, "action": "load",
    "work": {"kind": "requests", "documents": [{"path": "/1000.bin", "bytes": 1000}], "validate_fraction": 0.0},
    "seed": 1, "schedule": {"kind": "constant", "rate_per_s": 200.0, "in_flight": 64}, "stop": {"duration_s": 7.0},
    "timeout_ms": 2000, "interval_s": 1.0,
}  # fmt: skip


def order(**changes: Any) -> Order:
    """An order that httperf can carry out."""
    return Order.model_validate({**ORDER, **changes})


def read(name: str, due: int, size: int = 1000) -> tuple[Interval, Done]:
    """The records of a report."""
    text = (REPORTS / f"{name}.txt").read_text(encoding="utf-8")
    interval, done = httperf.records(text, due, size, 2000, 1_790_000_000.0)
    assert isinstance(interval, Interval)
    assert isinstance(done, Done)
    per = {(one.outcome, one.measure): sum(count for *_, count in one.buckets) for one in interval.counts}
    for measure in ("response", "service"):
        assert sum(count for (_, of), count in per.items() if of == measure) == interval.done
    assert interval.done == done.operations + done.errors
    assert done.operations + done.errors + done.unsent == due
    assert interval.unsent == done.unsent
    return interval, done


def test_a_report_becomes_an_interval_and_an_end() -> None:
    interval, done = read("ok", 1400)
    assert (done.operations, done.errors, done.unsent) == (1400, 0, 0)
    assert done.execution_s == interval.seconds == pytest.approx(6.996)
    assert done.cpu_ns == pytest.approx(3.95e9)
    assert interval.summary.response_ms_p50 < 1 < interval.summary.response_ms_p99 < 185
    assert interval.counts[0].buckets[0] == (0, 999_999, 892)


def test_limits_of_the_client_are_no_errors_of_the_server() -> None:
    interval, done = read("limits", 7500)
    assert (done.operations, done.unsent) == (3334, 3617)
    assert done.errors_by_kind == {"timeout": 217, "connection": 200, "server": 132}
    (late,) = (one.buckets for one in interval.counts if (one.outcome, one.measure) == ("timeout", "response"))
    assert late == ((2_000_000_000, 2_000_000_000, done.errors_by_kind["timeout"]),)


def test_connections_that_are_refused_are_errors() -> None:
    _, done = read("refused", 200)
    assert (done.operations, done.errors_by_kind) == (0, {"connection": 200})


def test_answers_of_another_length_are_invalid() -> None:
    _, done = read("ok", 1400, size=1001)
    assert (done.operations, done.errors_by_kind) == (0, {"invalid": 1400})


def test_anything_else_is_not_a_report() -> None:
    with pytest.raises(EngineError, match=r"not a report of httperf: 'Usage"):
        httperf.records("Usage: httperf ...", 1, 1000, 2000, 0.0)


@pytest.mark.parametrize(
    ("stop", "nodes", "each"),
    [
        ({"duration_s": 7.0}, 1, [1400]),
        ({"operations": 100}, 3, [34, 33, 33]),
        ({"operations": 100, "duration_s": 0.1}, 1, [20]),
    ],
)
def test_load_nodes_share_the_requests(stop: dict[str, Any], nodes: int, each: list[int]) -> None:
    asked = order(stop=stop)
    assert [httperf.requests(asked, 200.0, index, nodes) for index in range(nodes)] == each


DOCUMENT = {"path": "/1.bin", "bytes": 1}


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"target": {"protocol": "http"}}, "connections that stay open"),
        ({"target": {"protocol": "etcd"}}, "over etcd"),
        ({"work": {**ORDER["work"], "documents": [DOCUMENT, {**DOCUMENT, "path": "/2.bin"}]}}, "2 documents"),
        ({"work": {**ORDER["work"], "validate_fraction": 1.0}}, "validate_fraction = 1"),
        ({"contacts": ["10.0.0.1:8080", "10.0.0.2:8080"]}, "2 servers"),
        ({"contacts": ["[fd00::1]:8080"]}, r"a load on \[fd00::1\]:8080"),
        ({"schedule": {"kind": "closed", "threads": 4}}, "schedule 'closed'"),
        ({"schedule": {"kind": "poisson", "rate_per_s": 9.0, "in_flight": 1}}, "schedule 'poisson'"),
        ({"warm_up_s": 2.0}, "warm_up_s = 2"),
        ({"tries": 2}, "tries = 2"),
        ({"tls": {}}, "tls"),
    ],
)
def test_what_httperf_cannot_do_is_refused_by_name(changes: dict[str, Any], named: str) -> None:
    httperf.asked(order())
    with pytest.raises(EngineError, match=named) as caught:
        httperf.asked(order(**changes))
    assert "httperf can:" in caught.value.hint


def test_there_is_nothing_to_fill() -> None:
    filling = order(action="populate", schedule={"kind": "closed", "threads": 4}, target={"protocol": "http"}, stop={})
    httperf.create().check(filling, 1)  # type: ignore[attr-defined]
