"""Profiles of `user`: what their YAML may say, and what it is compiled to."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from steelyard.dropin.stress import Refused
from steelyard.dropin.stress.parse import bind_markers, parse_settings, profile
from steelyard.dropin.stress.plan import profile_orders
from steelyard.dropin.stress.plan.orders import Plan
from steelyard.dropin.stress.run.command import conduct
from tests.unit.dropin.stress.world import World

YAML = """
keyspace: stressexample
keyspace_definition: |
  CREATE KEYSPACE stressexample WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1};
table: readings
table_definition: |
  CREATE TABLE readings (
    sensor text, day int, at timeuuid, value double, note text, tags set<text>,
    PRIMARY KEY ((sensor, day), at)
  ) WITH compaction = {'class': 'LeveledCompactionStrategy'}
extra_definitions:
  - CREATE INDEX noted ON readings (note);
columnspec:
  - name: sensor
    size: fixed(12)
    population: uniform(1..1000)
  - name: at
    cluster: uniform(1..9)
  - name: note
    size: gaussian(10..50)
insert:
  partitions: fixed(1)
  select: fixed(1)/1
  batchtype: UNLOGGED
queries:
  One:
    cql: select value, note from readings where sensor = ? and day = ? and at = ?
    fields: samerow
  range:
    cql: select * from readings where sensor = ? and day = ? and at >= ? limit 10
    fields: multirow
  noted:
    cql: select * from readings where note = ?
"""
COLUMNS: list[dict[str, Any]] = [
    {"column_name": "sensor", "kind": "partition_key", "position": 0, "type": "text"},
    {"column_name": "day", "kind": "partition_key", "position": 1, "type": "int"},
    {"column_name": "at", "kind": "clustering", "position": 0, "type": "timeuuid"},
    {"column_name": "value", "kind": "regular", "position": -1, "type": "double"},
    {"column_name": "note", "kind": "regular", "position": -1, "type": "text"},
    {"column_name": "tags", "kind": "regular", "position": -1, "type": "set<text>"},
]


def read(tmp_path: Path, text: str = YAML) -> profile.Profile:
    path = tmp_path / "profile.yaml"
    path.write_text(text)
    return profile.load(str(path))


def planned(
    tmp_path: Path, ops: str, text: str = YAML, more: str = "", columns: list[dict[str, Any]] | None = None
) -> tuple[Plan, list[str]]:
    notes: list[str] = []
    settings = parse_settings.read(f"user profile=x ops({ops}) n=100 -rate threads=1 {more}".split())
    found = profile_orders.columns_of(columns or COLUMNS)
    table = profile_orders.Table.of(read(tmp_path, text), found, notes.append)
    plan = profile_orders.plan(settings, table, notes.append)
    json.dumps(plan.program(), allow_nan=False)
    return plan, notes


def makes(statement: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [value["make"] for value in statement["values"]]


def test_the_schema_is_made_where_it_is_not_there(tmp_path: Path) -> None:
    keyspace, table, index = read(tmp_path).creations()
    assert keyspace.startswith("CREATE KEYSPACE IF NOT EXISTS stressexample WITH replication")
    assert table.startswith("CREATE TABLE IF NOT EXISTS stressexample.readings (")
    assert index == "CREATE INDEX IF NOT EXISTS noted ON stressexample.readings (note)"


def test_an_insert_writes_the_rows_of_one_partition(tmp_path: Path) -> None:
    plan, notes = planned(tmp_path, "insert=1")
    (statement,), (operation,) = plan.statements, plan.operations
    assert statement["cql"] == (
        'UPDATE stressexample.readings SET "note" = ?, "tags" = "tags" + ?, "value" = ? '
        'WHERE "sensor" = ? AND "day" = ? AND "at" = ?'
    )
    note, tags, value, sensor, day, at = makes(statement)
    assert note["size"]["name"] == "gaussian"
    assert tags["size"] == {"name": "uniform", "min": 4.0, "max": 8.0}
    assert tags["of"][0]["type"] == "text"
    assert tags["of"][0]["make"]["size"] == tags["size"]
    assert value["number"]["max"] == 1e11
    # A thousand different sensors, of twelve characters; days as many as an int holds.
    assert sensor == {"kind": "key", "digits": 12, "scramble": True, "modulo": 1000, "offset": 1}
    assert day["modulo"] == 2**31 - 1
    assert at == {"kind": "row", "count": {"name": "uniform", "min": 1.0, "max": 9.0}}
    assert statement["partition_key"] == [3, 4]
    assert operation["steps"] == [
        {"kind": "batch", "statements": ["insert"], "mode": "unlogged", "repeat": at["count"]},
    ]
    assert plan.counted["insert"].rows == 5
    assert notes == []


def test_without_a_population_inserts_take_one_key_after_the_other(tmp_path: Path) -> None:
    plan, _ = planned(tmp_path, "insert=1")
    assert plan.operations[0]["keys"]["number"] == {"name": "sequence", "min": 0, "max": 99}
    mixed, _ = planned(tmp_path, "insert=1,one=3")
    assert mixed.operations[0]["keys"]["number"]["name"] == "gaussian"


def test_a_clustering_column_that_does_not_spread_has_one_value_in_a_partition(tmp_path: Path) -> None:
    columns = [*COLUMNS, {"column_name": "place", "kind": "clustering", "position": 1, "type": "bigint"}]
    nested = {"column_name": "more", "kind": "regular", "position": -1, "type": "frozen<list<frozen<set<int>>>>"}
    plan, _ = planned(tmp_path, "insert=1", columns=[*columns, nested])
    more, note, _, _, _, _, _, place = makes(plan.statements[0])
    assert place == {"kind": "key", "digits": 0, "scramble": True, "modulo": 10**11, "offset": 1}
    assert '"more" = ?' in plan.statements[0]["cql"]
    assert more["of"][0]["type"] == "frozen<set<int>>"
    assert more["of"][0]["make"]["of"][0]["type"] == "int"
    assert note["kind"] == "random"


def test_queries_of_the_same_row_and_of_many(tmp_path: Path) -> None:
    plan, _ = planned(tmp_path, "one=1,range=1,noted=1")
    statements = {one["name"]: one for one in plan.statements}
    assert statements["one"]["cql"].startswith("select value, note from stressexample.readings where")
    assert makes(statements["one"])[2]["kind"] == "row"
    # Each marker of a query of many rows draws a row of its own.
    assert makes(statements["range"])[2] == {"kind": "draw", "number": {"name": "uniform", "min": 0.0, "max": 4.0}}
    assert statements["one"]["partition_key"] == [0, 1]
    assert statements["noted"]["partition_key"] == []
    assert statements["noted"]["page_rows"] == 5000
    assert plan.counted["one"].may_be_empty


@pytest.mark.parametrize(
    ("change", "step"),
    [
        (("cluster: uniform(1..9)", "cluster: fixed(1)"), {"kind": "execute", "statement": "insert"}),
        (
            ("cluster: uniform(1..9)", "cluster: fixed(8)"),
            {"kind": "batch", "statements": ["insert"], "mode": "unlogged", "repeat": {"name": "fixed", "value": 8.0}},
        ),
        (("select: fixed(1)/1", "select: fixed(1)/9"), {"kind": "execute", "statement": "insert"}),
        (
            ("select: fixed(1)/1", "select: fixed(1)/3"),
            {
                "kind": "batch",
                "statements": ["insert"],
                "mode": "unlogged",
                "repeat": {"name": "uniform", "min": 1.0, "max": 3.0},
            },
        ),
    ],
)
def test_how_many_rows_an_insert_writes(tmp_path: Path, change: tuple[str, str], step: dict[str, Any]) -> None:
    plan, _ = planned(tmp_path, "insert=1", YAML.replace(*change))
    assert plan.operations[0]["steps"] == [step]


def test_a_batch_of_several_partitions(tmp_path: Path) -> None:
    single = YAML.replace("cluster: uniform(1..9)", "cluster: fixed(1)")
    plan, _ = planned(tmp_path, "insert=1", single, "-insert partitions=fixed(5) batchtype=logged")
    step = plan.operations[0]["steps"][0]
    assert (step["mode"], step["repeat"], step["next_key"]) == ("logged", {"name": "fixed", "value": 5.0}, True)
    assert plan.counted["insert"].partitions == 5
    several, _ = planned(tmp_path, "insert=1", YAML, "-insert partitions=uniform(1..5)")
    step = several.operations[0]["steps"][0]
    assert (step["repeat"]["max"], step["next_key"]) == (5.0, True)
    assert step["rows"] == {"name": "uniform", "min": 1.0, "max": 9.0}
    assert (several.counted["insert"].partitions, several.counted["insert"].rows) == (3, 15)


def test_a_share_of_rows_that_spreads_like_their_number_is_said(tmp_path: Path) -> None:
    text = YAML.replace("select: fixed(1)/1", "select: uniform(1..10)/10")
    plan, notes = planned(tmp_path, "insert=1", text)
    assert plan.operations[0]["steps"][0]["repeat"] == {"name": "uniform", "min": 1.0, "max": 5.0}
    assert any("the mean share" in note for note in notes)


def test_several_clustering_columns_that_spread_are_said(tmp_path: Path) -> None:
    columns = [*COLUMNS, {"column_name": "part", "kind": "clustering", "position": 1, "type": "int"}]
    text = YAML.replace("  - name: note", "  - name: part\n    cluster: fixed(3)\n  - name: note")
    plan, notes = planned(tmp_path, "insert=1", text, columns=columns)
    assert plan.operations[0]["steps"][0]["repeat"] == {"name": "uniform", "min": 3.0, "max": 27.0}
    assert any("clustering columns" in note for note in notes)


def test_tables_of_keys_only_and_of_counters(tmp_path: Path) -> None:
    keys, _ = planned(tmp_path, "insert=1", YAML.replace("- name: note", "- name: day"), columns=COLUMNS[:3])
    assert keys.statements[0]["cql"].startswith('INSERT INTO stressexample.readings ("sensor", "day", "at") VALUES')
    counter = {"column_name": "hits", "kind": "regular", "position": -1, "type": "counter"}
    text = YAML.replace("- name: note", "- name: hits")
    counters, _ = planned(tmp_path, "insert=1", text, "-insert batchtype=counter", [*COLUMNS[:3], counter])
    assert '"hits" = "hits" + ?' in counters.statements[0]["cql"]
    assert counters.operations[0]["steps"][0]["mode"] == "counter"


REFUSALS = [
    ("keyspace: stressexample", "keyspaces: stressexample", "keyspaces"),
    ("  - CREATE INDEX noted ON readings (note);", "  CREATE INDEX noted ON readings (note);", "extra_definitions"),
    ("extra_definitions:", "keyspace_definition: 5\nextra_definitions:", "keyspace_definition"),
    ("table: readings", "table: 3", "table"),
    ("size: fixed(12)", "size: twelve", "columnspec 1 (sensor): size"),
    ("size: fixed(12)", "sizes: fixed(12)", "columnspec 1 (sensor)"),
    ("name: at", "nam: at", "columnspec 2"),
    ("batchtype: UNLOGGED", "batchtype: SOME", "batchtype"),
    ("partitions: fixed(1)", "partition: fixed(1)", "insert"),
    ("partitions: fixed(1)", "visits: fixed(7)", "visits"),
    ("partitions: fixed(1)", "row-population: fixed(1)/3", "row-population"),
    ("fields: samerow", "fields: somerow", "fields"),
    ("columnspec:", "columnspec: {", "line"),
    ("population: uniform(1..1000)", "population: exp(1..1000)", "population"),
    ("name: at", "name: att", "columnspec"),
    ("sensor = ? and day = ? and at >= ?", "token(sensor) >= ?", "queries: range"),
    ("and at >= ? limit 10", "limit ?", "queries: range"),
    ("where note = ?", "where nothing = ?", "queries: noted"),
]


@pytest.mark.parametrize(("old", "new", "named"), REFUSALS, ids=[new for _, new, _ in REFUSALS])
def test_what_a_profile_may_not_say_is_refused_by_name(tmp_path: Path, old: str, new: str, named: str) -> None:
    assert old in YAML
    with pytest.raises(Refused) as refused:
        planned(tmp_path, "insert=1,one=1,range=1,noted=1", YAML.replace(old, new))
    assert named in refused.value.message


@pytest.mark.parametrize("name", ["validate", "bulk"])
def test_operations_that_are_not_there_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(Refused) as refused:
        planned(tmp_path, f"insert=1,{name}=1")
    assert "insert, one, range, noted" in refused.value.allowed


def test_markers_belong_to_columns() -> None:
    assert bind_markers.columns_of("select * from t where a = ? and b in (?, ?) and (c, d) > (?, ?)") == [
        ("a", "="),
        ("b", "IN"),
        ("b", "IN"),
        ("c", ">"),
        ("d", ">"),
    ]
    assert bind_markers.columns_of('UPDATE t SET x = x + ?, "Y" = ? WHERE k = ?') == [
        ("x", "+"),
        ("Y", "="),
        ("k", "="),
    ]
    assert bind_markers.columns_of("INSERT INTO t (a, b, c) VALUES (?, now(), ?)") == [("a", "="), ("c", "=")]
    assert bind_markers.columns_of("select '?' from t where l contains key ?") == [("l", "KEY")]


def test_a_profile_from_command_line_to_results(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "profile.yaml"
    path.write_text(YAML)
    world = World(columns=COLUMNS)
    assert conduct(f"user profile={path} ops(insert=1,range=3) n=300 -rate threads=2".split(), world.tools) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Created schema."
    assert "******************** Profile ********************" in lines
    assert any(line.startswith("Generating batches with [1..1] partitions and [1..9] rows") for line in lines)
    assert "Running [insert, range] with 2 threads for 300 iteration" in lines
    # Inserts have as many rows as their batches have on average, queries as many as their answers have.
    assert "Row rate                  :      800 row/s [insert: 500 row/s, range: 300 row/s]" in lines
    assert "  Keyspace: stressexample" in lines
    # Other operations in each load, but the same values, so that a later one finds what an earlier one has written.
    assert len({order["seed"] for order in world.orders}) == 1
    assert {order["workload"]["value_seed"] for order in world.orders} == {0}


def test_a_table_that_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / "profile.yaml"
    path.write_text(YAML)
    with pytest.raises(Refused, match="the table is not there"):
        conduct(f"user profile={path} ops(insert=1) n=3".split(), World().tools)
    with pytest.raises(Refused, match="No such file"):
        conduct(["user", f"profile={path}x", "ops(insert=1)", "n=3"], World().tools)
    with pytest.raises(Refused, match="not fetched"):
        profile.load("https://example.org/p.yaml")
