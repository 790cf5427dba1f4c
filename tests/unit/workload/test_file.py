"""Workload files: what they compile to, what is wrong with them and where, and what a study can vary of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from steelyard.model.errors import StudyError
from steelyard.plan import expand
from steelyard.plan.abilities import Abilities
from steelyard.plugins import find
from steelyard.plugins.find import Plugins
from steelyard.study import read as read_study
from steelyard.wire.program import Batch, DrawnKeys, Execute, ExistingKeys, Fixed
from steelyard.workload import _file
from steelyard.workload.base import Explains

ROOT = Path(__file__).resolve().parents[3]
SHIPPED = sorted((ROOT / "studies" / "workloads").glob("*.toml"))

SMALL = """\
name = "small"
records = 100
validate_fraction = 0.5

[parameters]
groups = 10
most = 20

[tables.rows]
primary_key = "part, id"

[tables.rows.columns]
part = { type = "int", modulo = "$groups" }
id = "bigint"
note = { type = "text", size = 40 }
tags = { type = "set<text>", size = 3 }
flag = { type = "boolean", value = true }

[statements]
put = "INSERT INTO rows (part, id, note, tags, flag) VALUES (?, ?, ?, ?, ?)"
get = "SELECT * FROM rows WHERE part = ? AND id = ?"
note = "UPDATE rows SET note = ? WHERE part = ? AND id = ?"

[statements.list]
cql = "SELECT id, note FROM rows WHERE part = ? AND id > :since LIMIT :most"
values.since = "uniform(0..99)"
values.most = { type = "int", value = "$most" }
page_rows = 5

[[operations]]
name = "get"
weight = 3
keys = "zipfian"
statement = "get"

[[operations]]
name = "add"
keys = "new"
steps = ["put", { batch = ["note"], repeat = "uniform(1..3)" }]

[[operations]]
name = "list"
keys = "uniform(0..999)"
statement = "list"
"""


def made(text: str = SMALL, **settings: Any) -> _file.FileWorkload:
    source = _file.read_text(text, "w.toml")
    return _file.workload(source, _file.settings_model(source).model_validate(settings))


def statement(workload: _file.FileWorkload, name: str) -> Any:
    return workload.order().by_name[name]


def changed(old: str, new: str) -> str:
    assert old in SMALL
    return SMALL.replace(old, new, 1)


def test_tables() -> None:
    schema = made().schema()
    (table,) = schema.create_rest()
    assert schema.keyspace == "small"
    assert table == (
        "CREATE TABLE IF NOT EXISTS small.rows (part int, id bigint, note text, tags set<text>, flag boolean, "
        "PRIMARY KEY ((part), id))"
    )


def test_values_come_from_the_columns() -> None:
    put = statement(made(), "put")
    assert put.cql.startswith("INSERT INTO small.rows (part")
    part, number, note, tags, flag = (value.make for value in put.values)
    assert (part.kind, part.modulo, number.kind, number.modulo) == ("key", 10, "key", None)
    assert note.size == {"name": "fixed", "value": 40.0}
    assert note.versioned
    assert not tags.versioned
    assert tags.of[0].type == "text"
    assert flag == Fixed(value=True)
    assert len({value.salt for value in (note, tags, tags.of[0].make)}) == 3
    assert put.partition_key == (0,)
    assert statement(made(), "note").partition_key == (1,)


def test_what_reads_expect() -> None:
    get = statement(made(), "get")
    assert get.wants_row
    assert [value.type for value in get.expect] == ["int", "bigint", "boolean", "text", "set<text>"]
    assert get.expect[3] == statement(made(), "put").values[2]
    listed = statement(made(), "list")
    assert (listed.wants_row, listed.expect, listed.page_rows, listed.max_pages) == (False, (), 5, 100)
    assert [value.type for value in listed.values] == ["int", "bigint", "int"]


@pytest.mark.parametrize(
    ("old", "new", "unknown"),
    [
        ('size = 40 }', 'size = 40, compare = false }', "note"),
        ('note = "UPDATE rows SET note = ?', "note = \"UPDATE rows SET note = 'x'", "note"),
        ('note = "UPDATE rows SET note = ?', 'note = "UPDATE rows SET tags = tags + ?', "tags"),
        ("put = ", 'other = "INSERT INTO rows (part, id, flag, note) VALUES (?, ?, ?, ?)"\nput = ', "tags"),
        ('flag = { type = "boolean", value = true }', 'flag = { type = "boolean", static = true }', "flag"),
        ('flag = { type = "boolean", value = true }', 'flag = { type = "int", number = 7, versioned = true }', "flag"),
    ],
)  # fmt: skip
def test_what_cannot_be_known_is_not_compared(old: str, new: str, unknown: str) -> None:
    text = changed(old, new) + '\n[populate]\nstatement = "put"\n'
    order = ("part", "id", "flag", "note", "tags")
    expected = [value.make.kind for value in statement(made(text), "get").expect]
    assert [name for name, kind in zip(order, expected, strict=True) if kind == "any"] == [unknown]


def test_operations() -> None:
    get, add, listed = made().order().operations
    assert get.keys == ExistingKeys(distribution="zipfian")
    note = Batch(statements=("note",), mode="logged", repeat={"name": "uniform", "min": 1.0, "max": 3.0})
    assert add.steps == (Execute(statement="put"), note)
    assert listed.keys == DrawnKeys(number={"name": "uniform", "min": 0.0, "max": 999.0})
    assert made().order().populate == (Execute(statement="put"),)


def test_counters_transactions_and_strides() -> None:
    text = """
name = "c"
[tables.hits]
create = "CREATE TABLE hits (id text, at date, n counter, PRIMARY KEY (id, at)) WITH CLUSTERING ORDER BY (at DESC)"
columns.id = { prefix = "page" }
columns.at = { offset = 2024-02-29 }
[statements]
hit = "UPDATE hits SET n = n + ? WHERE id = ? AND at = ?"
once = "UPDATE hits SET n = n + ? WHERE id = ? AND at = ? IF EXISTS"
[populate]
batch = ["hit"]
repeat = 10
next_key = true
[[operations]]
name = "hit"
batch = ["hit"]
[[operations]]
name = "once"
statement = "once"
weight = 0
"""
    workload = made(text)
    order = workload.order()
    assert order.populate[0].mode == "counter"
    assert order.populate_stride == 10
    assert statement(workload, "once").conditional
    count, page, day = (value.make for value in statement(workload, "hit").values)
    assert count == Fixed(value=1)
    assert (page.prefix, day.offset) == ("page", 19782)
    assert "WITH CLUSTERING ORDER BY (at DESC)" in next(iter(workload.schema().create_rest()))


WRONG = [
    ("records = 100", "records = 0", 33, "chooses an existing record, but records is 0"),
    ('primary_key = "part, id"', 'primary_key = "((part, id)"', 9, "write it as 'id' or '(device, day), at'"),
    ('name = "small"', 'name = "small"\nkeyspace = "with space"', 2, "must match"),
    ('id = "bigint"', 'id = "counter"', 14, "a counter cannot be in the primary key"),
    ('id = "bigint"', 'id = "bigint"\nn = "counter"', 16, "may have no other columns"),
    ("[tables.rows]", '[tables."a b"]', 9, "not a table name"),
    ("most = 20", "copy = 20", 7, "not allowed as the name of a parameter"),
    ('records = 100', 'recrods = 100', 2, "recrods = 100: no such key; did you mean 'records'?"),
    ('primary_key = "part, id"', 'primary_key = "part, idd"', 10, "idd is not a column; allowed: part, id"),
    ('id = "bigint"', 'id = "bigant"', 14, "unknown type 'bigant'; did you mean 'bigint'?"),
    ('id = "bigint"', 'id = { type = "list<bigint>" }', 14, "make = 'key' makes numbers"),
    ('size = 40 }', 'seize = 40 }', 15, "no such key; did you mean 'size'?"),
    ('size = 40 }', 'size = "unifrom(1..2)" }', 15, "did you mean 'uniform'?"),
    ('size = 40 }', 'size = -1 }', 15, "a size cannot be below 0"),
    ('size = 40 }', 'size = 40, count = 3 }', 15, "size applies only to make = 'random', but this is 'row'"),
    ('value = true }', 'value = "yes" }', 17, "is not a value of boolean: true or false"),
    ('value = true }', 'make = "draw" }', 17, "make = 'draw' needs number"),
    ('"$groups"', '"$group"', 13, "unknown parameter; did you mean '$groups'?"),
    ('most = 20', 'most = 20\nleast = 1', 8, "is not used"),
    ('most = 20', 'records = 20', 7, "not allowed as the name of a parameter"),
    ("INTO rows (part", "INTO row (part", 20, "is not a table of this file; did you mean 'rows'?"),
    ("tags, flag) VALUES", "tag, flag) VALUES", 20, "is not a column of rows; did you mean 'tags'?"),
    ("WHERE part = ? AND id = ?\"\nnote", "WHERE part = ? AND di = ?\"\nnote", 21, "did you mean 'id'?"),
    ("LIMIT :most", "LIMIT :moist", 25, "has no value: set values.moist"),
    ("values.since = ", "values.sinse = ", 26, "is not a marker of the statement; did you mean 'since'?"),
    ('values.most = { type = "int", value = "$most" }', 'values.most = { type = "int", value = "${most}0" }', 27,
     "is not a value of int: a whole number"),
    ('keys = "zipfian"', 'keys = "zipfan"', 33, "did you mean 'zipfian'?"),
    ('keys = "uniform(0..999)"', 'keys = "uniform(-5..999)"', 43, "keys cannot be negative"),
    ('statement = "get"', 'statement = "got"', 34, "unknown statement; did you mean 'get'?"),
    ('statement = "get"', 'steps = []', 30, "needs one of statement, batch, steps"),
    ('statement = "get"', 'statement = "get"\nmode = "logged"', 30, "mode, repeat and next_key belong to a batch"),
    ('batch = ["note"]', 'batch = ["get"]', 39, "is a SELECT, which is not allowed in a batch"),
    ('repeat = "uniform(1..3)"', 'repeat = 0', 39, "must be at least 1, not 0"),
    ('name = "add"', 'name = "get"', 37, "is already the name of another operation"),
    ('weight = 3', 'weight = -3', 32, "must be at least 0"),
    ("put = ", 'other = "INSERT INTO rows (part, id) VALUES (?, ?)"\nput = ', 0, "must be given: 2 statements"),
    ("UPDATE rows SET note = ?", "UPDATE rows SET (note) = ?", 22, "the column of this marker is unclear"),
    ('[tables.rows]\n', '[tables.rows\n', 9, "not TOML"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "line", "says"), WRONG, ids=[new[:30] for _, new, _, _ in WRONG])
def test_errors_say_file_line_and_what_is_allowed(old: str, new: str, line: int, says: str) -> None:
    with pytest.raises(StudyError) as caught:
        made(changed(old, new))
    lines = [error.line for error in caught.value.errors]
    assert says in caught.value.message
    assert line in lines, f"{line} not in {lines}: {caught.value.message}"
    assert all(error.message.startswith("w.toml") for error in caught.value.errors)


def test_settings_are_the_file_s_and_take_its_place() -> None:
    source = _file.read_text(SMALL, "w.toml")
    model = _file.settings_model(source)
    easy = {name: field.json_schema_extra["easy"] for name, field in model.model_fields.items()}  # type: ignore[index,call-overload]
    assert easy == {
        "weights": True, "records": False, "validate_fraction": True, "insert_lag": True, "digest": False,
        "groups": False, "most": True,
    }  # fmt: skip
    workload = made(records=7, groups=3, most=9, weights={"add": 0, "list": 0}, validate_fraction=1.0)
    order = workload.order()
    assert (order.records, order.validate_fraction) == (7, 1.0)
    assert [operation.weight for operation in order.operations] == [3.0, 0.0, 0.0]
    assert statement(workload, "put").values[0].make.modulo == 3
    assert statement(workload, "list").values[2].make.value == 9
    assert not workload.writes
    assert made().writes


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"weights": {"gett": 1}}, "unknown operation 'gett'; allowed: get, add, list"),
        ({"weights": {"get": 0, "add": 0, "list": 0}}, "all weights are 0"),
        ({"groups": "many"}, "valid integer"),
        ({"groups": 0}, "w.toml:13"),
        ({"digest": "0" * 16}, "has been edited"),
        ({"gropus": 1}, "Extra inputs"),
    ],
)
def test_wrong_settings_are_refused(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        made(**settings)


def test_the_filled_state_depends_on_what_fills_it() -> None:
    plain = made().data()
    assert made(most=3, validate_fraction=0.0, weights={"get": 9}).data() == plain
    assert made(changed('keys = "zipfian"', 'keys = "latest"')).data() == plain
    for other in (made(records=99), made(groups=9), made(changed("size = 40", "size = 41"))):
        assert other.data() != plain


def test_comments_change_no_digest_and_content_does() -> None:
    digest = _file.read_text(SMALL).digest
    assert _file.read_text("# a comment\nabout = 'words'\n" + SMALL).digest == digest
    assert _file.read_text(SMALL.replace("weight = 3", "weight = 4")).digest != digest


STUDY = """
format = 1
[study]
name = "s"
question = "?"
[system]
name = "cassandra"
[workload]
name = "w.toml"
[load]
operations = 100
[factors]
workload.groups = [5, 10]
workload.weights.add = [0, 1]
"""


def planned(folder: Path, text: str = SMALL, study: str = STUDY) -> Any:
    (folder / "w.toml").write_text(text)
    (folder / "s.toml").write_text(study)
    plugins = Plugins(folder)
    return expand(read_study(folder / "s.toml", plugins=plugins), plugins)


def test_a_study_names_the_file_beside_it_and_varies_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = planned(tmp_path)
    assert plan.hard == ("workload.groups",)
    ids = [trial.id for trial in plan.trials]
    monkeypatch.chdir(tmp_path)
    assert [trial.id for trial in expand(read_study(Path("s.toml"))).trials] == ids
    shape = Abilities(Plugins(tmp_path)).shape(plan.trials[0].settings)
    assert shape.records == 100
    assert 50 < shape.record_bytes < 200
    assert not set(ids) & {trial.id for trial in planned(tmp_path, SMALL.replace("weight = 3", "weight = 4")).trials}


def test_what_is_wrong_is_told_of_the_study_and_of_the_file(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match=r"s\.toml:13: .*did you mean 'workload\.groups'"):
        planned(tmp_path, study=STUDY.replace("workload.groups", "workload.gruops"))
    with pytest.raises(StudyError, match=r"s\.toml:\d+: .*unknown operation 'ad'"):
        planned(tmp_path, study=STUDY.replace("weights.add", "weights.ad"))
    with pytest.raises(StudyError, match=r"w\.toml:2: recrods"):
        planned(tmp_path, SMALL.replace("records", "recrods"))
    with pytest.raises(StudyError, match=r"workload file nothing\.toml not found"):
        planned(tmp_path, study=STUDY.replace("w.toml", "nothing.toml"))


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_files(path: Path) -> None:
    module = find.find("workload", str(path))
    workload = module.create(module.Settings())
    assert workload.name == path.stem
    assert isinstance(workload, Explains)
    told = workload.explain()
    assert told.about
    assert abs(sum(operation.share for operation in told.operations) - 1) < 1e-9
    assert all(told.record_bytes > 0 and operation.bytes > 0 for operation in told.operations)


def test_three_files_are_shipped() -> None:
    assert [path.stem for path in SHIPPED] == ["accounts", "catalogue", "timeseries"]


def test_the_first_example_of_the_how_to_is_a_workload() -> None:
    page = (ROOT / "docs" / "howto" / "write-a-workload.md").read_text(encoding="utf-8")
    text = page.partition("```toml\n")[2].partition("```")[0]
    workload = made(text)
    assert workload.schema().keyspace == "users"
    assert [value.make.kind for value in statement(workload, "get").expect] == ["key", "random", "random"]


def test_a_whole_create_table_keeps_its_quotes_and_literals_and_loses_its_comments() -> None:
    text = """
name = "quoted"
[tables.t]
create = '''
CREATE TABLE t ("Id" int, -- the key
  v text, PRIMARY KEY ("Id"))
  WITH comment = 'two  blanks' AND caching = {'enabled':true}; -- end
'''
[statements]
put = 'INSERT INTO t ("Id", v) VALUES (?, ?)'
[[operations]]
name = "put"
keys = "new"
statement = "put"
"""
    (table,) = made(text).schema().all_tables()
    assert table.columns == '"Id" int, v text, PRIMARY KEY ("Id")'
    assert table.options == ("comment = 'two  blanks' AND caching = {'enabled':true}",)
