"""Records: the shared example read and written back, and what is refused."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Any, get_args

import pytest

from steelyard.wire import record as wire
from steelyard.wire.record import Counts, Done, Hello, Interval, Record, RecordError, Summary, line_of, parse

LINES = (Path(__file__).parents[3] / "schema" / "records.example.jsonl").read_text().splitlines()
BY_KIND = {json.loads(line)["record"]: line for line in LINES}


def changed(kind: str, **changes: Any) -> str:
    return json.dumps({**json.loads(BY_KIND[kind]), **changes})


def without(kind: str, name: str) -> str:
    return json.dumps({key: value for key, value in json.loads(BY_KIND[kind]).items() if key != name})


@pytest.mark.parametrize("line", LINES, ids=lambda line: json.loads(line)["record"])
def test_the_example_comes_back_byte_for_byte(line: str) -> None:
    record = parse(line)
    assert line_of(record) == line
    assert parse(line.encode()) == record
    assert parse(line_of(record)) == record


def test_every_kind_and_field_is_in_the_example_and_no_other() -> None:
    assert list(BY_KIND) == [kind.__dataclass_fields__["record"].default for kind in get_args(Record)]
    for kind in get_args(Record):
        example = json.loads(BY_KIND[kind.__dataclass_fields__["record"].default])
        assert list(example) == [one.name for one in fields(kind)]
    interval = json.loads(BY_KIND["interval"])
    assert list(interval["summary"]) == [one.name for one in fields(Summary)]
    assert all(list(counts) == [one.name for one in fields(Counts)] for counts in interval["counts"])


def test_what_is_empty_is_left_out() -> None:
    interval, done = parse(without("interval", "rows")), parse(without("done", "error_texts"))
    assert isinstance(interval, Interval)
    assert isinstance(done, Done)
    assert (interval.rows, done.error_texts) == ({}, {})
    assert "rows" not in json.loads(line_of(interval))
    assert "error_texts" not in json.loads(line_of(done))
    closed = parse(without("done", "carries_per_s"))
    assert isinstance(closed, Done)
    assert closed.carries_per_s is None
    assert "carries_per_s" not in json.loads(line_of(closed))
    assert json.loads(line_of(done))["rows"] == 2012, "rows of a phase are always said"


def test_a_field_of_a_newer_agent_is_ignored() -> None:
    assert parse(changed("interval", colour="red")) == parse(BY_KIND["interval"])


@pytest.mark.parametrize(
    "line",
    [
        "",
        "garbage",
        "[]",
        "7",
        '{"record":"noise"}',
        '{"t_s":1.0}',
        without("interval", "backlog"),
        without("done", "errors_by_kind"),
        changed("interval", sent="7"),
        changed("interval", sent=7.5),
        changed("interval", t_s=None),
        changed("interval", counts=[{"operation": "read", "outcome": "ok", "measure": "lag", "buckets": [[1, 2]]}]),
    ],
)
def test_another_line_is_refused(line: str) -> None:
    with pytest.raises(RecordError, match="is not a record") as caught:
        parse(line)
    assert repr(line[: wire.LONGEST_QUOTE]) in caught.value.message


@pytest.mark.parametrize("line", [changed("hello", format=2), '{"record":"hello","format":2}'])
def test_an_agent_of_another_format_is_told_so(line: str) -> None:
    with pytest.raises(RecordError, match="the agent writes format 2, but this version requires 1") as caught:
        parse(line)
    assert "same version" in caught.value.hint


def test_values_are_those_of_the_line() -> None:
    hello, interval, done = (parse(BY_KIND[kind]) for kind in ("hello", "interval", "done"))
    assert hello == Hello(format=1, agent="0.1.0", optimised=True, t_s=1790000000.25)
    assert isinstance(interval, Interval)
    assert isinstance(done, Done)
    assert interval.tables.outcomes("read", "service") == {"ok": 2012}
    assert interval.tables.histogram("service").buckets == ((400128, 400383, 1500), (1800192, 1801215, 512))
    assert interval.tables.histogram("service", outcomes=None).n == 2013
    assert interval.tables.histogram("service", "update", None).max_ns == 10008657919
    assert (done.execution_s, done.rate_per_s) == (1.0, 2013.0)
    assert done.texts == (("server", "Batch too large (0x2200)"),)
    assert wire.nothing_done("measure").rate_per_s == 0.0
