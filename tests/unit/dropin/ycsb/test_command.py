"""YCSB's words: what is understood, what is refused, and by which name."""

from __future__ import annotations

from pathlib import Path

import pytest

from steelyard.dropin.ycsb import command, property_support
from steelyard.dropin.ycsb.command import parse
from steelyard.model.errors import StudyError


def test_the_options_are_properties() -> None:
    line = "run cassandra-cql -threads 8 -target 1000 -s -l night -p hosts=n1,n2 -p a=b=c -db site.ycsb.db.X"
    read = parse(line.split())
    assert read.action == "run"
    assert read.properties == {
        "threadcount": "8",
        "target": "1000",
        "status": "true",
        "label": "night",
        "hosts": "n1,n2",
        "a": "b=c",
        "db": "site.ycsb.db.X",
    }


def test_later_files_win_and_the_command_line_wins_over_all(tmp_path: Path) -> None:
    (tmp_path / "one").write_text("a=1\nb=1\nc=1\n")
    (tmp_path / "two").write_text("b=2\nc=2\n")
    words = ["load", "cassandra-cql", "-p", "c=3", "-P", str(tmp_path / "one"), "-P", str(tmp_path / "two")]
    assert parse(words).properties == {"a": "1", "b": "2", "c": "3"}


def test_the_password_is_not_repeated() -> None:
    read = parse(["run", "cassandra-cql", "-p", "cassandra.password=secret"])
    assert read.properties["cassandra.password"] == "secret"
    assert "secret" not in " ".join(read.words)


def test_what_is_meant_for_a_jvm_is_said() -> None:
    said = parse(["run", "cassandra-cql", "-jvm-args", "-Xmx4g", "-cp", "/opt/conf"]).remarks
    assert [line.split(" means")[0] for line in said] == ["-jvm-args -Xmx4g", "-cp /opt/conf"]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("", "no such command"),
        ("shell cassandra-cql", "no interactive mode"),
        ("run", "ycsb run: no binding is named"),
        ("run mongodb -s", "ycsb run mongodb: we do not have this binding"),
        ("run cassandra-cql -x", "the option -x is refused"),
        ("run cassandra-cql --threads 3", "the option --threads is refused"),
        ("run cassandra-cql -threads", "-threads lacks its value"),
        ("run cassandra-cql -p", "-p lacks its value"),
        ("run cassandra-cql -p hosts", "-p hosts: not NAME=VALUE"),
        ("run cassandra-cql stray", "'stray' belongs to no option"),
        ("run cassandra-cql -load", "say otherwise"),
        ("load cassandra-cql -p dotransactions=true", "say otherwise"),
        ("run cassandra-cql -P /nowhere/w", "/nowhere/w: cannot be read"),
    ],
)
def test_refused(line: str, told: str) -> None:
    with pytest.raises(StudyError) as caught:
        parse(line.split())
    assert told in caught.value.message
    assert caught.value.hint


def test_flags_that_repeat_the_command_are_fine() -> None:
    assert parse(["load", "cassandra-cql", "-load"]).action == "load"
    assert parse(["run", "cassandra2-cql", "-t"]).action == "run"


def test_help_names_every_option() -> None:
    assert all(option in command.USAGE for option in ("-P", "-p", "-threads", "-target", "-s", "-l", "-db"))


def test_properties_that_mean_nothing_are_each_said() -> None:
    said = property_support.check(
        {"cassandra.maxconnections": "8", "recordcount": "1", "debug": "true", "cassandra.tracing": "false"}
    )
    assert [line.split(" means")[0] for line in said] == ["cassandra.maxconnections=8", "debug=true"]


@pytest.mark.parametrize(
    ("name", "value", "told", "hint"),
    [
        ("cassandra.tracing", "true", "cassandra.tracing: read 'true': we do not trace", "allowed: false"),
        ("dataintegrity", "true", "dataintegrity: read 'true'", "allowed: false"),
        ("core_workload_insertion_retry_limit", "3", "core_workload_insertion_retry_limit: read '3'", "allowed: 0"),
        ("mongodb.url", "x", "mongodb.url is refused", "or of the binding cassandra-cql"),
        ("recordcuont", "1", "recordcuont is refused", "did you mean 'recordcount'?"),
        ("htrace.sampler.classes", "x", "htrace.sampler.classes is refused: we do not trace", "leave it out"),
        ("measurement.raw.output_file", "x", "measurement.raw.output_file is refused", "leave it out"),
        ("fieldlengthhistogram", "x", "fieldlengthhistogram is refused", "leave it out"),
    ],
)
def test_refused_properties(name: str, value: str, told: str, hint: str) -> None:
    with pytest.raises(StudyError) as caught:
        property_support.check({name: value})
    assert told in caught.value.message
    assert hint in caught.value.hint
    assert caught.value.key == name


def test_no_property_means_two_things() -> None:
    groups = [property_support.USED, property_support.NOTHING, property_support.ONLY_OFF, property_support.REFUSED]
    assert sum(len(group) for group in groups) == len({name for group in groups for name in group})
