"""The words that cassandra-stress 4 and 5 have beside those of 3.11, and what is refused before anything is written."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from steelyard.dropin.stress.parse import parse_settings
from steelyard.dropin.stress.parse.refusal import Refused
from steelyard.dropin.stress.run.command import conduct
from steelyard.model.errors import SteelyardError
from tests.unit.dropin.stress.world import World
from tests.unit.wire.orders import sent

LOGINS = [
    ("-mode user=u password=p prepared", "u", 0),
    ("-mode native user=u password=p prepared protocolVersion=4", "u", 1),
    ("-mode native cql3 user=u password=p", "u", 0),
    ("-mode user=u password=p", "u", 1),
    ("-mode simplenative", None, 0),
    ("-mode unprepared connectionsPerHost=4 maxPending=9", None, 3),
    ("-jmx user=u password=p", None, 2),
    ("-port native=9043 jmx=7200", None, 1),
    ("-errors ignore skip-unsupported-columns", None, 1),
]


@pytest.mark.parametrize(("words", "user", "notes"), LOGINS, ids=[words for words, _, _ in LOGINS])
def test_both_syntaxes_are_read_and_what_changes_nothing_is_named(words: str, user: str | None, notes: int) -> None:
    settings = parse_settings.read(f"write n=1 {words}".split())
    assert settings.connection.user == user
    assert len(settings.notes) == notes, settings.notes
    assert all(note.startswith(words.split(maxsplit=1)[0]) for note in settings.notes)
    assert "=p" not in " ".join(settings.notes)


NEAR = [
    ("write n=1 -rat threads=1", "-rate"),
    ("write n=1 -rate thread=1", "threads=?"),
    ("write n=1 -mode usr=x", "user=?"),
    ("wirte n=1", "write"),
    ("write n=1 -reporting outputfrequency=5s", "output-frequency=?"),
    ("mixed n=1 ratoi(read=1)", "ratio(?)"),
]


@pytest.mark.parametrize(("line", "meant"), NEAR, ids=[line for line, _ in NEAR])
def test_a_misspelt_word_gets_the_one_that_was_meant(line: str, meant: str) -> None:
    with pytest.raises(Refused) as refused:
        parse_settings.read(line.split())
    assert refused.value.hint.startswith(f"did you mean {meant!r}? allowed: ")


@pytest.mark.parametrize("option", ["-credentials-file", "-credential-file"])
def test_credentials_come_from_a_property_file_and_are_not_shown(tmp_path: Path, option: str) -> None:
    path = tmp_path / "Mine.properties"
    path.write_bytes(b"\xef\xbb\xbfcql.username = loader\ncql.password: a\\=b c\njmx.password=other\n")
    settings = parse_settings.read(["write", "n=1", option, str(path)])
    assert (settings.connection.user, settings.connection.password) == ("loader", "a=b c")
    (note,) = settings.notes
    assert "jmx.password is ignored" in note
    assert "a=b" not in note
    assert "other" not in note
    over = parse_settings.read(["write", "n=1", option, str(path), "-mode", "user=me", "password=mine"])
    assert (over.connection.user, over.connection.password) == ("me", "mine")


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"cql.pasword=hidden\n", "cql.pasword"), ("cql.username=ä".encode("utf-16"), "UTF-16"), (None, "No such file")],
)
def test_a_credentials_file_that_cannot_be_used_is_refused(tmp_path: Path, content: bytes | None, said: str) -> None:
    path = tmp_path / "file.properties"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(SteelyardError, match=re.escape(said)) as refused:
        parse_settings.read(["write", "n=1", "-credentials-file", str(path)])
    assert "hidden" not in refused.value.message + refused.value.hint


def test_rows_come_as_often_as_reporting_says(capsys: pytest.CaptureFixture[str]) -> None:
    line = "write n=700 no-warmup -rate threads=1 -log no-settings -reporting output-frequency=3s header-frequency=6s"
    conduct(line.split(), World(intervals=7).tools)
    lines = capsys.readouterr().out.splitlines()
    rows = [one.split(",") for one in lines if one.startswith("total,")]
    # Three seconds, three seconds, and the one that was left; each row has all that was done since the one before.
    assert [int(row[1]) for row in rows] == [300, 600, 700]
    assert [float(row[2]) for row in rows] == [100.0, 100.0, 100.0]
    assert sum(one.startswith("type ") for one in lines) == 2


PROFILE = """
{name}keyspace: {keyspace}
keyspace_definition: |
  CREATE KEYSPACE {keyspace} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}
table: {table}
table_definition: |
  CREATE TABLE {table} (id uuid, at timestamp, short text, PRIMARY KEY (id, at))
queries:
  one: {{cql: "SELECT * FROM {table} WHERE id = ? AND at = ?"}}
  byShort: {{cql: "SELECT * FROM {table} WHERE short = ? ALLOW FILTERING"}}
  bad: {{cql: "SELECT * FROM {table} WHERE nowhere = ?"}}
"""
COLUMNS = (
    {"column_name": "id", "type": "uuid", "kind": "partition_key", "position": 0},
    {"column_name": "at", "type": "timestamp", "kind": "clustering", "position": 0},
    {"column_name": "short", "type": "text", "kind": "regular", "position": -1},
)


@dataclass
class Fresh(World):
    """A cluster without tables, until they are created."""

    created: list[str] = field(default_factory=list)

    async def cql(self, contacts: Sequence[str], statements: Sequence[str], **told: Any) -> Any:
        self.created += [one for one in statements if one.startswith("CREATE")]
        self.columns: Sequence[Mapping[str, Any]] = COLUMNS if self.created else ()
        return await super().cql(contacts, statements, **told)


@pytest.fixture
def profiles(tmp_path: Path) -> str:
    """Two profile files, as `profile=` names them: specname `first`, and none."""
    for file, name, keyspace, table in (("a", "specname: first\n", "ka", "ta"), ("b", "", "kb", "tb")):
        text = PROFILE.format(name=name, keyspace=keyspace, table=table)
        (tmp_path / f"{file}.yaml").write_text(text, encoding="utf-8-sig")
    return f"{tmp_path}/a.yaml,{tmp_path}/b.yaml"


def test_several_profiles_are_one_load(profiles: str, capsys: pytest.CaptureFixture[str]) -> None:
    world = Fresh()
    ops = "ops(first.insert=3,kb.tb.insert=2,kb.tb.byShort=1,one=1)"
    code = conduct(f"user profile={profiles} {ops} n=100 no-warmup truncate=once -rate threads=1".split(), world.tools)
    assert code == 0
    (order,) = world.orders
    program = sent(order)["work"]
    weights = {one["name"]: one["weight"] for one in program["operations"]}
    assert weights == {"first.insert": 3, "kb.tb.insert": 2, "kb.tb.byShort": 1, "one": 1}
    cql = {one["name"]: one["cql"] for one in program["statements"]}
    for operation, table in (
        ("first.insert", "ka.ta"),
        ("kb.tb.insert", "kb.tb"),
        ("kb.tb.byShort", "kb.tb"),
        ("one", "ka.ta"),
    ):
        (step,) = next(one["steps"] for one in program["operations"] if one["name"] == operation)
        (statement,) = step.get("statements") or [step["statement"]]
        assert table in cql[statement]
    assert sum("CREATE TABLE" in one for one in world.created) == 2
    printed = capsys.readouterr().out
    assert all(f"Truncated {name}." in printed for name in ("ka.[ta]", "kb.[tb]"))
    assert "first.insert: " in printed


BEFORE = [
    ("ops(first.insert=1,first.nosuch=1)", "no such query", "first.one"),
    ("ops(kb.tb.oen=1)", "no such query", "did you mean 'kb.tb.one'"),
    ("ops(frist.insert=1)", "no profile has the specname", "did you mean 'first.insert'"),
    ("ops(insert=1,first.insert=1)", "the same operation", "once"),
    ("ops(validate=1)", "validate", "insert"),
    ("ops(insert=1,bad=1)", "the table has no such column", "short"),
]


@pytest.mark.parametrize(("ops", "why", "hint"), BEFORE, ids=[ops for ops, _, _ in BEFORE])
def test_what_is_refused_is_refused_before_anything_is_written(profiles: str, ops: str, why: str, hint: str) -> None:
    world = Fresh()
    with pytest.raises(Refused, match=why) as refused:
        conduct(f"user profile={profiles} {ops} n=1 no-warmup -rate threads=1".split(), world.tools)
    assert hint in refused.value.hint
    assert (world.created, world.orders) == ([], [])


def test_one_name_for_two_profiles_is_refused(profiles: str) -> None:
    first = profiles.partition(",")[0]
    with pytest.raises(Refused, match="specname 'first' is that of"):
        conduct(f"user profile={first},{first} ops(insert=1) n=1".split(), Fresh().tools)


def test_an_unknown_operation_names_those_of_every_profile(profiles: str) -> None:
    with pytest.raises(Refused) as refused:
        conduct(f"user profile={profiles} ops(byShrt=1) n=1 -rate threads=1".split(), Fresh().tools)
    assert "first.one" in refused.value.allowed
    assert "kb.tb.byshort" in refused.value.allowed
