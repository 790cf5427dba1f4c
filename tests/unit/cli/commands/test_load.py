"""`steelyard load`: what it makes of its words, what it says of an outcome, what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from steelyard.analysis.inference.percentile_intervals import HistogramSeries
from steelyard.cli.commands import load as command
from steelyard.cli.main import command_line
from steelyard.cli.terminal import load_output
from steelyard.dropin.agent_run import LoadResult, PhaseOutcome
from steelyard.dropin.contacts import with_ports
from steelyard.dropin.given import workload_of
from steelyard.model.errors import StudyError
from steelyard.node import agent
from steelyard.wire.record import Connected, nothing_done
from steelyard.wire.schedule import Steady
from steelyard.wire.tables import Tables
from tests.unit.wire import made
from tests.unit.workload.reference import EXAMPLE

CONNECTED = Connected(nodes=("n1:9042",), connections=1, server="5.0.5")
ROOT = Path(__file__).resolve().parents[4]
CATALOGUE = str(ROOT / "studies" / "workloads" / "catalogue.toml")


@pytest.mark.parametrize(
    ("words", "contacts"),
    [
        (("10.0.0.1",), ("10.0.0.1:9042",)),
        (("10.0.0.1:1,n2 , n3:3", "n2"), ("10.0.0.1:1", "n2:9042", "n3:3")),
        (("[::1]", "[::1]:5"), ("[::1]:9042", "[::1]:5")),
        (("fd00::11,::1",), ("[fd00::11]:9042", "[::1]:9042")),
    ],
)
def test_contacts_get_the_usual_port(words: tuple[str, ...], contacts: tuple[str, ...]) -> None:
    assert with_ports(words) == contacts


@pytest.mark.parametrize(("protocol", "port"), [("http", 80), ("resp", 6379), ("etcd", 2379), ("cql", 9042)])
def test_the_usual_port_is_that_of_the_protocol(protocol: str, port: int) -> None:
    assert with_ports(("n1", "n2:5"), protocol) == (f"n1:{port}", "n2:5")


def test_a_protocol_is_chosen_or_said() -> None:
    workload, said = workload_of("ycsb-a", {}), Console(record=True, width=200)
    assert command._protocol(workload, None, said) == "cql"
    assert "over cql, the default; --protocol resp, etcd or postgresql for other servers" in said.export_text()
    assert command._protocol(workload, "etcd", said) == "etcd"
    assert command._protocol(workload_of("documents", {}), None, said) == "http"
    assert said.export_text() == ""
    with pytest.raises(StudyError, match=r"--protocol = 'http': workload .* cannot be sent over it.*cql, resp, etcd"):
        command._protocol(workload, "http", said)
    with pytest.raises(StudyError, match=r"cannot be sent over it; allowed: cql, resp, etcd, postgresql$"):
        command._protocol(workload, "ycsb-binding", said)
    with pytest.raises(StudyError, match="workload wordcount needs a study: the agent submits no jobs"):
        command._protocol(workload_of("wordcount", {}), None, said)


@pytest.mark.parametrize("word", ["n1:x", "n1:0", "n1:70000", ":9042"])
def test_what_is_no_contact_is_refused(word: str) -> None:
    with pytest.raises(StudyError, match="is not an address and port"):
        with_ports((word,))


@pytest.mark.parametrize(
    ("fields", "filling", "expected"),
    [
        ({"threads": 3}, True, ("closed", 3, 10.0, None, False)),
        ({}, False, ("closed", 1, 10.0, None, True)),
        ({"operations": 5}, True, ("closed", 1, None, 5, True)),
        ({"rate_per_s": 50.0, "duration_s": 3.0}, False, ("constant", 64, 3.0, None, True)),
        ({"rate_per_s": 50.0, "schedule": "poisson", "threads": 2}, True, ("poisson", 2, 10.0, None, True)),
    ],
)
def test_how_the_load_is_driven(fields: dict[str, Any], filling: bool, expected: tuple[Any, ...]) -> None:
    found, drives = command._load_of(fields, filling=filling)
    assert (found.schedule, found.threads, found.duration_s, found.operations, drives) == expected


def test_settings_of_the_workload_and_of_the_load() -> None:
    words = ("records=50", "weights.get=9", "workload.makers=3", "load.timeout_ms=77", "load.rates_per_s=[1, 2]")
    fields, settings = command.split(words, {"threads": 4})
    assert fields == {"threads": 4, "timeout_ms": "77", "rates_per_s": [1, 2]}
    order = workload_of(CATALOGUE, settings).order()
    assert order.records == 50
    assert order.operations[0].weight == 9.0


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"workload": None}, "name a workload"),
        ({"workload": "ycsb-x"}, "unknown workload 'ycsb-x'"),
        ({"workload": "nothing.toml"}, r"workload file nothing\.toml not found"),
        ({"contact": []}, "--contact ADDRESS"),
        ({"workload": "ycsb-a", "protocol": "resp", "create": True}, "--create has no effect over resp"),
        ({"settings": ["records"]}, "must be NAME=VALUE"),
        ({"settings": ["load.rates_per_s=[1"]}, "not JSON"),
        ({"settings": ["makrs=3"]}, "did you mean 'makers'"),
        ({"settings": ["weights.gett=3"]}, "unknown operation 'gett'"),
        ({"settings": ["load.thread=3"]}, "did you mean 'threads'"),
        ({"rate": -1.0}, "must be more than 0"),
        ({"settings": ["load.schedule=constant", "load.capacity_fraction=0.5"]}, "only a study measures"),
        ({"settings": ["load.engine=latte"]}, "has no effect outside a study"),
        ({"settings": ["load.threads=3", "load.threads=4"]}, "load.threads is given twice"),
        ({"settings": ["load.threads=3"], "threads": 4}, "load.threads is given twice"),
        ({"settings": ["records=3", "workload.records=4"]}, "records: is given twice"),
        ({"settings": ["records=3", "records.x=4"]}, "records and a part of it"),
        ({"workload": None, "order": Path("nothing.json")}, "not an order"),
        ({"order": Path("nothing.json")}, "workload would have no effect"),
        ({"workload": None, "order": Path("nothing.json"), "threads": 3}, "threads would have no effect"),
        ({"populate": True, "consistency": "QUORUM"}, "read_consistency would have no effect"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_sent(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(StudyError, match=says):
        command.load(**{"workload": CATALOGUE, "contact": ["127.0.0.1"]} | changes)


@pytest.mark.parametrize(
    ("changes", "fraction"),
    [
        ({}, 0.0),
        ({"populate": True}, 0.1),
        ({"settings": ["validate_fraction=0.5"]}, 0.5),
        ({"workload": CATALOGUE, "settings": ["validate_fraction=0.2"]}, 0.2),
    ],
)
def test_rows_that_another_program_may_have_written_are_not_compared(
    changes: dict[str, Any], fraction: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "agent"
    program.write_text('#!/bin/sh\ncp "$3" "$0.order"\n')
    program.chmod(0o755)
    monkeypatch.setenv("STEELYARD_AGENT", str(program))
    command.load(**{"workload": "ycsb-a", "show_count": 1, "operations": 1} | changes)
    order = json.loads((tmp_path / "agent.order").read_text())
    assert order["work"].get("validate_fraction", 0.0) == fraction


@pytest.mark.agent
def test_show_prints_statements_with_their_values() -> None:
    done = CliRunner().invoke(command_line("load"), ["load", CATALOGUE, "--show", "5", "--set", "records=100"])
    assert done.exit_code == 0, done.output
    lines = done.output.splitlines()
    assert len([line for line in lines if not line.startswith(" ")]) == 5
    assert not any("?" in line.partition("'")[0] for line in lines)
    data = CliRunner().invoke(command_line("load"), ["load", "ycsb-a", "--show", "2", "--json"])
    assert [json.loads(line)["index"] for line in data.output.splitlines()] == [0, 1]
    assert agent.find()


TABLES = (
    made.counts([(1_000_000, 1_000_000, 90)], "get"),
    made.counts([(2_000_000, 2_000_000, 5)], "get", "not-found"),
    made.counts([(9_000_000, 9_000_000, 2)], "get", "invalid"),
    made.counts([(3_000_000, 3_000_000, 3)], "put", "not-applied"),
    made.counts([(1_000, 1_000, 90)], "get", measure="lag"),
)


def phase(**totals: Any) -> PhaseOutcome:
    plain = {"execution_ns": 2_000_000_000, "operations": 98, "errors": 2, "errors_by_kind": {"invalid": 2}, "rows": 90}
    return PhaseOutcome(made.done(**{**plain, **totals}), made.interval(*TABLES).tables)


def test_the_end_says_what_was_sent_done_and_wrong() -> None:
    end = phase(not_found=5, reconnections=1, dropped=3, error_texts={"server": ["too large (0x2200)"]})
    said = " ".join(load_output.sentences(end))
    for words in (
        "100 operations in 2.0 s: 98 done (49 per s), 2 errors (2 invalid).",
        "3 light-weight transactions were not applied",
        "5 reads of keys that the fill has written found no row.",
        "90 rows were returned.",
        "Lag at most 0.001 ms",
        "Servers said of server: too large (0x2200)",
        "reopened 1 times",
        "3 records could not be written",
    ):
        assert words in said
    assert "0 errors." in load_output.sentences(phase(errors=0))[0]
    assert "due and not sent" not in said
    assert "40 operations were due and not sent: neither done nor failed." in load_output.sentences(phase(unsent=40))[1]


def test_contacts_that_are_left_out_are_named() -> None:
    connected = Connected(nodes=("n1:9042",), absent=("n2:9042 refused",), connections=1, server="5.0.5")
    assert load_output.without(connected) == ["Left out: n2:9042 refused"]
    assert load_output.without(None) == []


def test_figures_as_data() -> None:
    outcome = LoadResult(CONNECTED, {"measure": phase()}, False)
    found = load_output.as_data(outcome)["phases"]["measure"]
    assert found["by_operation"]["get"]["outcomes"] == {"ok": 90, "not-found": 5, "invalid": 2}
    assert found["by_operation"]["get"]["response_ms_p50"] == pytest.approx(1.0)
    assert found["by_operation"]["put"]["response_ms_p99"] is None, "of three operations there is none"
    assert found["lag_ms_p99"] is None
    assert found["response_ms"]["p50"]["value"] == pytest.approx(1.0)
    assert found["response_ms"]["p99"] is None
    whole = json.loads(json.dumps(load_output.as_data(outcome)))
    assert whole["connected"] == {
        "record": "connected", "nodes": ["n1:9042"], "absent": [], "connections": 1, "server": "5.0.5"
    }  # fmt: skip
    lacking = load_output.as_data(
        LoadResult(CONNECTED, {"measure": phase(unsent=40)}, False),
        {},
        Steady(kind="constant", rate_per_s=70, in_flight=1),
    )
    measured = lacking["phases"]["measure"]
    assert (measured["asked_per_s"], measured["rate_per_s"], measured["unsent"], measured["errors"]) == (70, 49, 40, 2)
    assert load_output.as_data(LoadResult(None, {}, True))["connected"] == {}


def test_percentiles_with_their_intervals_and_those_that_few_operations_do_not_support() -> None:
    said = load_output.percentile_sentences(phase(), None)
    assert said[0] == "Response ms of all operations: p50 1.00."
    assert said[1].endswith("its operations are not independent, and 0 parts of time cannot say how far: no interval.")
    course = HistogramSeries()
    for _ in range(20):
        course.add([(1_000_000, 1_000_999, 5)])
    said = load_output.percentile_sentences(phase(), course)
    assert said[0].startswith("Response ms of all operations, with 95% intervals: p50 1.00 [1.00, 1.00]")
    assert said[-1] == "98 operations are too few for p95 (200), p99 (1,000), p99.9 (10,000): 10 must lie beyond."
    assert not load_output.percentile_sentences(PhaseOutcome(nothing_done(""), Tables()), None)


def test_a_line_a_second() -> None:
    interval = made.interval(*TABLES, sent=120, done=97, errors=2, backlog=21)
    words = load_output.line(interval, 100.0).split()
    assert words == ["1.0", "120", "97", "2", "1.00", "-", "-", "-", "-", "-", "21"]
    header = load_output.HEADER.splitlines()[1]
    assert len(load_output.line(interval, 100.0)) == len(header)


@pytest.mark.parametrize(("number", "text"), [(1234.5, "1,234"), (12.34, "12.3"), (1.234, "1.23"), (0.0123, "0.0123")])
def test_three_digits(number: float, text: str) -> None:
    assert load_output.digits(number) == text


def test_values_stand_in_place_of_markers() -> None:
    cql = "UPDATE k.t SET a = ?, b = '?' WHERE k = ?"
    assert load_output.filled_in(cql, [1, "x" * 100]) == f"UPDATE k.t SET a = 1, b = '?' WHERE k = '{'x' * 47}..."


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"protocol": "cql"}, "not an order: protocol = 'cql': no such key"),
        ({"work": {**EXAMPLE["work"], "recrods": 1}}, "not an order: work.ycsb.recrods = 1: no such key"),
        ({"target": None}, "not an order: target"),
        ({"seed": "seven"}, "not an order: seed = 'seven': must be a whole number"),
    ],
)
def test_a_wrong_order_is_refused_with_its_key(change: dict[str, Any], said: str, tmp_path: Path) -> None:
    path = tmp_path / "order.json"
    path.write_text(json.dumps({**EXAMPLE, **change}))
    with pytest.raises(StudyError, match=said):
        command.load(order=path)
