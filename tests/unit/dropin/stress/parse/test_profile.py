"""Profiles of `user`: what their YAML may say, and what it is compiled to."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from steelyard.dropin.stress import Refused
from steelyard.dropin.stress.parse import bind_markers, parse_settings, profile
from steelyard.dropin.stress.plan import profile_orders, several_profiles
from steelyard.dropin.stress.plan.orders import Plan
from steelyard.dropin.stress.run import interval_stats
from steelyard.dropin.stress.run.command import conduct
from tests.unit.dropin.stress.world import World
from tests.unit.wire import made, orders

SCHEMA_FOLDER = Path(__file__).parents[5] / "schema"
PROGRAM = json.loads((SCHEMA_FOLDER / "program-order.example.json").read_text())
SCHEMA = json.loads((SCHEMA_FOLDER / "order.schema.json").read_text())
EVERY = {"name": "uniform", "min": 1.0, "max": 1e11}
"""Numbers of a column without a population."""

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
) -> Plan:
    path = read(tmp_path, text).path
    settings = parse_settings.read(f"user profile={path} ops({ops}) n=100 -rate threads=1 {more}".split())
    found = profile_orders.columns_of(columns or COLUMNS)
    plan = several_profiles.plan(settings, [profile_orders.ProfileTable.of(*several_profiles.read(settings), found)])
    program = orders.sent(orders.order(PROGRAM, work=plan.program()))
    jsonschema.validate(program, SCHEMA, cls=jsonschema.Draft202012Validator)
    return plan


def identity(named: str, of: dict[str, Any], *, hidden: bool = False, **size: Any) -> dict[str, Any]:
    return {"named": named, "of": of, "hidden": hidden, **size}


def makes(statement: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [value["make"] for value in statement["values"]]


def test_the_schema_is_made_where_it_is_not_there(tmp_path: Path) -> None:
    keyspace, table, index = read(tmp_path).creations()
    assert keyspace.startswith("CREATE KEYSPACE IF NOT EXISTS stressexample WITH replication")
    assert table.startswith("CREATE TABLE IF NOT EXISTS stressexample.readings (")
    assert index == "CREATE INDEX IF NOT EXISTS noted ON stressexample.readings (note)"


def test_an_insert_writes_the_rows_of_one_partition(tmp_path: Path) -> None:
    plan = planned(tmp_path, "insert=1")
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
    assert value["choice"] == identity("value", EVERY)
    # Sensors of twelve characters, and days, are numbers that cassandra-stress draws.
    thousand, twelve = {"name": "uniform", "min": 1.0, "max": 1000.0}, {"name": "fixed", "value": 12.0}
    assert sensor == {"kind": "key", "digits": 12, "identity": identity("sensor", thousand, size=twelve)}
    assert day == {"kind": "key", "digits": 0, "identity": identity("day", EVERY)}
    assert at == {"kind": "clustering", "column": 0}
    assert statement["partition_key"] == [3, 4]
    assert statement["table"] == {
        "partition": [{"type": "text", "make": sensor}, {"type": "int", "make": day}],
        "clustering": [
            {
                "count": {"name": "uniform", "min": 1.0, "max": 9.0},
                "value": {"type": "timeuuid", "make": {"kind": "key"}},
            }
        ],
        "apart": False,
    }
    assert operation["steps"] == [batch()]
    assert plan.counted["insert"].rows == 5


def batch(**changes: Any) -> dict[str, Any]:
    one = {"name": "fixed", "value": 1.0}
    step = {"kind": "batch", "statements": ["insert"], "mode": "unlogged", "repeat": one, "next_key": True}
    return {**step, "select": {"of": one, "divisor": 1}, **changes}


def test_a_number_of_few_is_chosen_by_the_row_and_others_are_not(tmp_path: Path) -> None:
    text = YAML.replace("  - name: note", "  - name: value\n    population: exp(1..50)\n  - name: note").replace(
        "size: gaussian(10..50)", "size: fixed(20)\n    population: uniform(1..300)"
    )
    columns = [{**one, "type": "bigint"} if one["column_name"] == "value" else one for one in COLUMNS]
    note, _, value, *_ = makes(planned(tmp_path, "insert=1", text, columns=columns).statements[0])
    many, twenty = {"name": "uniform", "min": 1.0, "max": 300.0}, {"name": "fixed", "value": 20.0}
    assert note["size"] == twenty
    assert note["choice"] == identity("note", many, size=twenty)
    assert value["choice"] == identity("value", {"name": "exponential", "min": 1, "max": 50})
    # Numbers as text where there is no size; reals are the tool's too.
    few = planned(tmp_path, "insert=1", text.replace("size: fixed(20)\n    ", ""))
    note, _, value, *_ = makes(few.statements[0])
    assert "size" not in note
    assert value["choice"]["of"]["name"] == "exponential"


@pytest.mark.parametrize("skew", ["exp(1..10M)", "gaussian(1..10M)", "extreme(1..10M,2)", "~exp(1..10M)", "seq(1..99)"])
def test_keys_are_drawn_by_every_distribution(tmp_path: Path, skew: str) -> None:
    plan = planned(tmp_path, "insert=1,one=1", YAML.replace("population: uniform(1..1000)", f"population: {skew}"))
    drawn = [makes(statement)[statement["partition_key"][0]]["identity"]["of"] for statement in plan.statements]
    assert drawn[0] == drawn[1]
    assert drawn[0]["name"] in ("exponential", "gaussian", "extreme", "inverted", "sequence")


def test_without_a_population_inserts_take_one_key_after_the_other(tmp_path: Path) -> None:
    plan = planned(tmp_path, "insert=1")
    assert plan.operations[0]["keys"]["number"] == {"name": "sequence", "min": 0, "max": 99}
    mixed = planned(tmp_path, "insert=1,one=3")
    assert mixed.operations[0]["keys"]["number"]["name"] == "gaussian"


def test_a_clustering_column_that_does_not_spread_has_one_value_in_a_partition(tmp_path: Path) -> None:
    columns = [*COLUMNS, {"column_name": "place", "kind": "clustering", "position": 1, "type": "bigint"}]
    nested = {"column_name": "more", "kind": "regular", "position": -1, "type": "frozen<list<frozen<set<int>>>>"}
    plan = planned(tmp_path, "insert=1", columns=[*columns, nested])
    more, note, _, _, _, _, _, place = makes(plan.statements[0])
    assert place == {"kind": "clustering", "column": 1}
    level = plan.statements[0]["table"]["clustering"][1]
    assert level["count"] == {"name": "fixed", "value": 1.0}
    assert level["value"]["make"] == {"kind": "key", "digits": 0, "identity": identity("place", EVERY)}
    assert '"more" = ?' in plan.statements[0]["cql"]
    assert more["of"][0]["type"] == "frozen<set<int>>"
    assert more["of"][0]["make"]["of"][0]["type"] == "int"
    assert note["kind"] == "random"


def test_values_within_others_follow_size_and_population(tmp_path: Path) -> None:
    spec = "  - name: {}\n    size: fixed(3)\n    population: uniform(1..9)\n"
    types = {
        "words": "set<text>",
        "pairs": "map<int, frozen<list<blob>>>",
        "both": "tuple<text, frozen<map<text, double>>>",
        "place": "vector<float, 3>",
        "small": "tinyint",
        "flag": "boolean",
    }
    more = "".join(spec.format(name) for name in types if name not in ("small", "flag"))
    others = [{"column_name": n, "kind": "regular", "position": -1, "type": kind} for n, kind in types.items()]
    text = YAML.replace("  - name: note\n", f"{more}  - name: note\n")
    plan = planned(tmp_path, "insert=1", text, columns=[*COLUMNS[:3], COLUMNS[4], *others])
    by_name = dict(zip(sorted([*types, "note"]), makes(plan.statements[0]), strict=False))
    three, nine = {"name": "fixed", "value": 3.0}, {"name": "uniform", "min": 1.0, "max": 9.0}

    def chosen(name: str) -> dict[str, Any]:
        return identity(name, nine, size=three)

    (word,) = by_name["words"]["of"]
    assert (word["type"], word["make"]["size"], word["make"]["choice"]) == ("text", three, chosen("words"))
    number, blobs = by_name["pairs"]["of"]
    assert (number["make"]["choice"], "size" in number["make"]) == (chosen("pairs"), False)
    assert (blobs["type"], blobs["make"]["of"][0]["make"]["choice"]) == ("frozen<list<blob>>", chosen("pairs"))
    first, within = by_name["both"]["of"]
    assert [one["type"] for one in (first, *within["make"]["of"])] == ["text", "text", "double"]
    assert "size" not in by_name["both"]
    assert by_name["place"]["of"] == [
        {"type": "float", "make": {**number["make"], "salt": by_name["place"]["salt"], "choice": chosen("place")}}
    ]
    # As the tool's: cut to eight bits, and all of them true.
    assert by_name["small"]["choice"] == identity("small", EVERY)
    assert by_name["flag"] == {"kind": "fixed", "value": True}


def test_queries_of_the_same_row_and_of_many(tmp_path: Path) -> None:
    plan = planned(tmp_path, "one=1,range=1,noted=1")
    statements = {one["name"]: one for one in plan.statements}
    assert statements["one"]["cql"].startswith("select value, note from stressexample.readings where")
    # The same generators as an insert has, of one row, or of a row for each marker.
    insert = planned(tmp_path, "insert=1").statements[0]
    assert makes(statements["one"]) == makes(insert)[3:]
    assert makes(statements["noted"]) == makes(insert)[:1]
    assert {name: one["table"]["apart"] for name, one in statements.items()} == {
        "one": False,
        "range": True,
        "noted": True,
    }
    assert statements["one"]["partition_key"] == [0, 1]
    assert statements["noted"]["partition_key"] == []
    assert statements["noted"]["page_rows"] == 5000
    assert plan.counted["one"].may_be_empty


def test_writes_of_queries_are_counted_from_their_answers(tmp_path: Path) -> None:
    text = YAML + "  change:\n    cql: update readings set note = ? where sensor = ? and day = ? and at = ?\n"
    plan = planned(tmp_path, "insert=1,one=1,change=1", text)
    tables = [made.counts([(1000, 1999, 10)], name, "ok", "response") for name in ("insert", "one", "change")]
    # As cassandra-stress: a plain write answers without rows, a light-weight transaction with one.
    for rows, partitions in (({"insert": 47, "one": 30}, 0), ({"insert": 47, "one": 30, "change": 10}, 10)):
        spans = interval_stats.spans_of(made.interval(*tables, rows=rows), plan.counted, "service")
        assert {name: span.partitions for name, span in spans.items()} == {
            "insert": 10,
            "one": 10,
            "change": partitions,
        }
        assert {name: span.rows for name, span in spans.items()} == {"insert": 47, "one": 30, "change": partitions}


@pytest.mark.parametrize("rate", ["threads=2", "threads>=2 threads<=8"])
def test_a_query_that_never_found_a_row_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str], rate: str) -> None:
    path = tmp_path / "profile.yaml"
    path.write_text(YAML + "  change:\n    cql: update readings set note = ? where sensor = ? and day = ? and at = ?\n")
    typed = f"user profile={path} ops(insert=1,one=1,noted=1,change=1) n=300 no-warmup -rate {rate}".split()
    missed = {"one": {"ok": 20, "not-found": 80}, "noted": {"not-found": 100}}
    assert conduct(typed, World(columns=COLUMNS, outcomes=missed, rows=0).tools) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "WARNING: noted found 0 rows in all of its 300 operations" in lines
    assert lines[-1] == "END, but noted, one found no rows"
    assert not [line for line in lines if line.startswith("WARNING: change") or line.startswith("WARNING: insert")]
    assert conduct(typed, World(columns=COLUMNS, outcomes=missed).tools) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "END"


def test_what_can_be_refused_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    path = tmp_path / "profile.yaml"
    for ops, text, named in (
        ("insert=1,nosuch=1", YAML, "nosuch"),
        ("insert=1,range=1", YAML.replace("at >= ? limit 10", "at >= 5 limit ?"), "queries: range"),
        ("insert=1", YAML.replace("table: readings", "table: values"), "table_definition creates readings"),
    ):
        path.write_text(text)
        world = World(columns=COLUMNS)
        with pytest.raises(Refused, match=named):
            conduct(["user", f"profile={path}", f"ops({ops})", "n=3", "-rate", "threads=1"], world.tools)
        assert world.asked == []
    # What depends on a table that is there already, too.
    path.write_text(YAML.replace("name: note", "name: remark"))
    world = World(columns=COLUMNS)
    with pytest.raises(Refused, match="remark"):
        conduct(["user", f"profile={path}", "ops(insert=1)", "n=3", "-rate", "threads=1"], world.tools)
    assert not any("CREATE" in one for one in world.asked)


def test_names_without_a_keyspace_get_that_of_the_profile(tmp_path: Path) -> None:
    text = YAML.replace(
        "  - CREATE INDEX noted ON readings (note);",
        """  - CREATE MATERIALIZED VIEW by_note AS SELECT * FROM readings WHERE note = 'all from it' PRIMARY KEY (note)
  - create table if not exists "Other" (id int primary key)
  - CREATE TABLE IF NOT EXISTS other.thing (id int PRIMARY KEY)
  - CREATE INDEX ON other.things (note)""",
    ).replace("select * from readings where note = ?", "select * from by_note where note = ?")
    loaded = read(tmp_path, text)
    assert loaded.creations()[2:] == (
        "CREATE MATERIALIZED VIEW IF NOT EXISTS stressexample.by_note AS SELECT * FROM stressexample.readings "
        "WHERE note = 'all from it' PRIMARY KEY (note)",
        'create table if not exists stressexample."Other" (id int primary key)',
        "CREATE TABLE IF NOT EXISTS other.thing (id int PRIMARY KEY)",
        "CREATE INDEX IF NOT EXISTS ON other.things (note)",
    )
    assert "from stressexample.by_note where" in profile.qualified_cql(loaded, loaded.queries["noted"])


def test_more_rows_than_a_request_holds_are_refused_in_words(tmp_path: Path) -> None:
    big = YAML.replace("cluster: uniform(1..9)", "cluster: fixed(100000)")
    with pytest.raises(Refused) as refused:
        planned(tmp_path, "insert=1", big)
    assert "up to 100000 rows in a batch" in str(refused.value)
    assert "select" in refused.value.hint
    plan = planned(tmp_path, "insert=1,one=1", big.replace("select: fixed(1)/1", "select: fixed(1)/500"))
    assert plan.counted["insert"].rows == pytest.approx(200)


def test_clustering_columns_are_a_tree(tmp_path: Path) -> None:
    columns = [*COLUMNS, {"column_name": "part", "kind": "clustering", "position": 1, "type": "int"}]
    text = YAML.replace("  - name: note", "  - name: part\n    cluster: fixed(3)\n  - name: note")
    plan = planned(tmp_path, "insert=1", text, columns=columns)
    assert [level["count"]["name"] for level in plan.statements[0]["table"]["clustering"]] == ["uniform", "fixed"]
    assert plan.counted["insert"].rows == 15
    # A share is one of the outermost values, with all that is below them.
    third = planned(tmp_path, "insert=1", text.replace("select: fixed(1)/1", "select: fixed(1)/3"), columns=columns)
    assert third.counted["insert"].rows == pytest.approx((5 / 3 + (2 / 3) ** 5) * 3)


def test_a_user_defined_type_is_refused_by_profile_table_and_column(tmp_path: Path) -> None:
    for cql_type, named in (("frozen<place>", "place"), ('list<frozen<"Pl""ace">>', '"Pl""ace"'), ("place", "place")):
        columns = [*COLUMNS[:5], {"column_name": "tags", "kind": "regular", "position": -1, "type": cql_type}]
        with pytest.raises(Refused) as refused:
            planned(tmp_path, "insert=1", columns=columns)
        told = f"{refused.value} {refused.value.hint}"
        assert "profile.yaml: table stressexample.readings: column tags" in told
        assert named in told
        assert "insert into readings (sensor, day, at, note, value) values (?, ?, ?, ?, ?)" in told
        # What does not touch the column runs.
        planned(tmp_path, "one=1", columns=columns)


def test_tables_of_keys_only_and_of_counters(tmp_path: Path) -> None:
    keys = planned(tmp_path, "insert=1", YAML.replace("- name: note", "- name: day"), columns=COLUMNS[:3])
    assert keys.statements[0]["cql"].startswith('INSERT INTO stressexample.readings ("sensor", "day", "at") VALUES')
    counter = {"column_name": "hits", "kind": "regular", "position": -1, "type": "counter"}
    text = YAML.replace("- name: note", "- name: hits")
    counters = planned(tmp_path, "insert=1", text, "-insert batchtype=counter", [*COLUMNS[:3], counter])
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
    ("table: readings", "table: reading", "table_definition creates readings"),
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
    assert "Running [insert, range] with 2 threads for 300 iteration" in lines
    # Inserts have the rows that the agent counts in their batches, queries those of their answers.
    assert "Row rate                  :      600 row/s [insert: 300 row/s, range: 300 row/s]" in lines
    # Other operations in each load, but the same values, so that a later one finds what an earlier one has written.
    assert len({order.seed for order in world.orders}) == 1
    assert {order.work.value_seed for order in world.orders} == {0}


def test_a_table_that_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / "profile.yaml"
    path.write_text(YAML)
    with pytest.raises(Refused, match="the table does not exist"):
        conduct(f"user profile={path} ops(insert=1) n=3".split(), World().tools)
    with pytest.raises(Refused, match="No such file"):
        conduct(["user", f"profile={path}x", "ops(insert=1)", "n=3"], World().tools)
    with pytest.raises(Refused, match="not fetched"):
        profile.load("https://example.org/p.yaml")
