"""What a profile or -schema defines and what the server has."""

from __future__ import annotations

from pathlib import Path

import pytest

from steelyard.dropin.stress import Refused
from steelyard.dropin.stress.parse import parse_settings
from steelyard.dropin.stress.run.command import conduct
from steelyard.dropin.ycsb import property_support
from steelyard.model.errors import StudyError
from tests.unit.dropin.stress.parse.test_profile import COLUMNS, YAML, read
from tests.unit.dropin.stress.world import World

THERE = ({"keyspace_name": "k9", "replication": {"replication_factor": "1"}},)


def test_a_keyspace_that_is_there_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = "write n=1 -schema keyspace=k9 replication(factor=3) -rate threads=1"
    conduct(line.split(), World(keyspaces=THERE).tools)
    assert "keyspace k9 already exists (replication" in capsys.readouterr().err
    conduct(["write", "n=1", "-schema", "keyspace=k9", "-rate", "threads=1"], World().tools)
    assert "there already" not in capsys.readouterr().err
    text = YAML.replace("name: note", "name: day\n    cluster: fixed(2)").replace(
        "select: fixed(1)/1", "select: fixed(3)/2"
    )
    line = f"user profile={read(tmp_path, text).path} ops(insert=1) n=1 -rate threads=1 -insert partitions=fixed(2)"
    conduct(line.split(), World(columns=COLUMNS, keyspaces=THERE).tools)
    printed = capsys.readouterr()
    for words in (
        "keyspace_definition changes nothing", "table_definition changes nothing", "day: cluster changes nothing",
        "day: size changes nothing", "a select above 1",
    ):  # fmt: skip
        assert words in printed.err


def test_another_table_on_the_server(tmp_path: Path) -> None:
    line = f"user profile={read(tmp_path).path} ops(insert=1) n=1 -rate threads=1"
    with pytest.raises(Refused, match="is another table than table_definition's") as refused:
        conduct(line.split(), World(columns=[one for one in COLUMNS if one["column_name"] != "note"]).tools)
    assert "DROP TABLE stressexample.readings" in refused.value.hint


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ("table: readings", "table: ${table_name}", "template"),
        ("population: uniform(1..1000)", "population: uniform(1..9)\n    population: fixed(1)", "more than once"),
        ("name: at", "name: sensor", "more than once"),
    ],
)
def test_refused(tmp_path: Path, old: str, new: str, named: str) -> None:
    with pytest.raises(Refused, match=named):
        read(tmp_path, YAML.replace(old, new))


def test_words_without_effect() -> None:
    assert "revisit" in parse_settings.read(["write", "n=1", "-insert", "revisit=fixed(3)"]).notes[0]
    assert "prepared" in parse_settings.read(["write", "n=1", "-mode", "native", "user=u", "password=p"]).notes[0]


def test_another_class_of_ycsb_is_named_before_its_properties() -> None:
    given = {"workload": "site.ycsb.workloads.TimeSeriesWorkload", "delayedIntervals": "0"}
    with pytest.raises(StudyError, match="not supported"):
        property_support.check(given)


def test_what_differs_from_the_tool_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    profile = tmp_path / "apart.yaml"
    profile.write_text(
        "keyspace: k\ntable: t\ncolumnspec:\n"
        "  - {name: id, size: ~uniform(3..10)}\n"
        "  - {name: part, size: fixed(10)}\n"
        "  - {name: at, size: fixed(10), cluster: fixed(3)}\n"
        "  - {name: words, size: fixed(3), population: uniform(1..3)}\n"
        "  - {name: pairs, population: uniform(1..3)}\n"
        "insert: {partitions: uniform(1..20), batchtype: UNLOGGED, select: fixed(1)/1}\n"
    )
    columns = [
        {"column_name": name, "type": kind, "kind": role, "position": position}
        for name, kind, role, position in (
            ("id", "blob", "partition_key", 0),
            ("part", "blob", "partition_key", 1),
            ("at", "blob", "clustering", 0),
            ("words", "set<text>", "regular", 0),
            ("pairs", "map<int, int>", "regular", 0),
        )
    ]
    for words in ("", " throttle=100/s"):
        line = f"user profile={profile} ops(insert=1) n=100 -rate threads=1{words}"
        conduct(line.split(), World(columns=columns).tools)
        printed = capsys.readouterr().err
        assert "id: ~uniform(3..10) as size of a key" in printed
        assert "at: size changes nothing" in printed
        assert not [name for name in ("part", "words", "pairs") if f": {name}: " in printed]
        # Only where they have a rate; every partition is written once, so that there is nothing else to say.
        assert ("are due at even intervals" in printed) is bool(words)


@pytest.mark.parametrize(
    ("spec", "kinds", "said"),
    [
        ("{name: c1, cluster: uniform(2..9)}", ["timeuuid"], "redraws the number of a timeuuid column on every visit"),
        ("{name: c1, cluster: fixed(9)}", ["timeuuid"], ""),
        ("{name: c1, cluster: uniform(2..9)}", ["bigint"], ""),
        ("{name: c3, cluster: fixed(2)}", ["int", "int", "int"], "fewer of 3 clustering columns"),
        ("{name: c2, cluster: fixed(2)}", ["int", "int", "int"], ""),
        ("{name: id, size: uniform(1..4)}", [], "about 2.5 characters"),
        ("{name: id, size: fixed(4)}", [], ""),
        ("{name: id, size: uniform(1..4), population: uniform(1..9)}", [], ""),
        ("{name: c1, size: uniform(5..100)}", ["text"], "about 52.5 characters"),
        ("{name: c1, size: uniform(5..100), cluster: fixed(3)}", ["text"], ""),
    ],
)
def test_rows_and_keys_that_are_not_the_tool_s_are_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], spec: str, kinds: list[str], said: str
) -> None:
    profile = tmp_path / "apart.yaml"
    profile.write_text(f"keyspace: k\ntable: t\ncolumnspec:\n  - {spec}\n")
    of_key = [("c" + str(place + 1), kind, "clustering", place) for place, kind in enumerate(kinds)]
    columns = [
        {"column_name": name, "type": kind, "kind": role, "position": position}
        for name, kind, role, position in (("id", "text", "partition_key", 0), *of_key, ("v", "int", "regular", 0))
    ]
    line = f"user profile={profile} ops(insert=1) n=10 -rate threads=1"
    conduct(line.split(), World(columns=columns).tools)
    remarks = [one for one in capsys.readouterr().err.splitlines() if "apart.yaml: " in one]
    assert len(remarks) == bool(said)
    assert said in "".join(remarks)
