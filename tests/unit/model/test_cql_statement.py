"""What is read of a statement: its table, its markers, its columns."""

from __future__ import annotations

import pytest

from steelyard.model import cql_statement


def names(cql: str) -> list[str]:
    return [f"{marker.name}{marker.relation}" for marker in cql_statement.read(cql).markers]


@pytest.mark.parametrize(
    ("cql", "expected"),
    [
        ("INSERT INTO t (a, b) VALUES (?, ?)", ["avalues", "bvalues"]),
        ("INSERT INTO t (a, b, c) VALUES (?, 'x, ?', :d) USING TTL ? AND TIMESTAMP ?",
         ["avalues", "dvalues", "ttlttl", "timestamptimestamp"]),
        ("INSERT INTO t (a, b) VALUES (?, {1, 2}) IF NOT EXISTS", ["avalues"]),
        ("SELECT * FROM t WHERE a = ? AND b >= ? AND b < :until PER PARTITION LIMIT ? LIMIT ?",
         ["a=", "b>=", "until<", "per_partition_limitlimit", "limitlimit"]),
        ("select a from k.t where a in (?, ?) and tags contains ? and m contains key ?",
         ["ain", "ain", "tagscontains", "mkey"]),
        ("UPDATE t SET a = ?, n = n + ?, m['x'] = 1 WHERE k = ? IF a = :old", ["aset", "n+", "k=", "old="]),
        ("DELETE v FROM t WHERE k = ? -- and ?\n AND c = ?", ["k=", "c="]),
        ('SELECT "A" FROM "T" WHERE "A" = ?', ["A="]),
        ("SELECT * FROM t WHERE token(a) > :a", ["a"]),
    ],
)  # fmt: skip
def test_each_marker_has_the_column_that_stands_before_it(cql: str, expected: list[str]) -> None:
    assert names(cql) == expected


@pytest.mark.parametrize(
    ("cql", "writes", "conditional", "selected"),
    [
        ("SELECT a, b FROM t", False, False, ("a", "b")),
        ("SELECT * FROM t", False, False, None),
        ("SELECT count(*) FROM t", False, False, ()),
        ("SELECT a, ttl(b) FROM t", False, False, ()),
        ("INSERT INTO t (a) VALUES (?) IF NOT EXISTS", True, True, ()),
        ("UPDATE t SET a = 'if' WHERE b = ?", True, False, ()),
        ("DELETE FROM t WHERE b = ? IF EXISTS", True, True, ()),
    ],
)
def test_what_it_does(cql: str, writes: bool, conditional: bool, selected: tuple[str, ...] | None) -> None:
    found = cql_statement.read(cql)
    assert (found.writes, found.conditional, found.selected, found.table) == (writes, conditional, selected, "t")


@pytest.mark.parametrize(
    ("cql", "plain"),
    [
        ("INSERT INTO t (a, b)\n  VALUES (?, 'x  y\n')", "INSERT INTO t (a, b) VALUES (?, 'x  y\n')"),
        ("SELECT a -- why\n FROM t /* and\n */ WHERE a = ?;;\n", "SELECT a FROM t WHERE a = ?"),
        ('SELECT "a  b" FROM t WHERE k = ? // end', 'SELECT "a  b" FROM t WHERE k = ?'),
    ],
)
def test_one_line_whose_literals_are_as_they_were_and_comments_are_gone(cql: str, plain: str) -> None:
    assert cql_statement.read(cql).cql == plain


def test_names_become_question_marks_and_texts_stay() -> None:
    found = cql_statement.read("UPDATE t SET a = :x,\n  b = 'it''s :y'  WHERE k = :k;")
    assert found.cql == "UPDATE t SET a = ?, b = 'it''s :y' WHERE k = ?"
    assert found.assigned == ("a", "b")


@pytest.mark.parametrize(
    ("cql", "qualified"),
    [
        ("SELECT * FROM t WHERE a = 1", "SELECT * FROM ks.t WHERE a = 1"),
        ("SELECT * FROM other.t", "SELECT * FROM other.t"),
        ("UPDATE t SET a = 1 WHERE b = 2", "UPDATE ks.t SET a = 1 WHERE b = 2"),
        ("INSERT INTO t (a) VALUES (1)", "INSERT INTO ks.t (a) VALUES (1)"),
    ],
)
def test_the_keyspace_is_put_before_the_table(cql: str, qualified: str) -> None:
    assert cql_statement.qualified(cql, "ks") == qualified


@pytest.mark.parametrize(
    ("cql", "says"),
    [
        ("TRUNCATE t", "must begin with SELECT"),
        ("SELECT *", "no table after FROM"),
        ("INSERT INTO t (a) VALUES (?, ?)", "INSERT has more values than its 1 columns"),
        ("INSERT INTO t JSON ?", r"INSERT requires \(columns\) VALUES"),
        ("SELECT * FROM t WHERE (a, b) > (?, ?)", "at character 33: the column of this marker is unclear"),
        ("UPDATE t SET m[?] = 1 WHERE a = 1", "name it, for example"),
        ("SELECT * FROM t WHERE a = §", "at character 27: cannot read"),
    ],
)
def test_what_cannot_be_read_is_said(cql: str, says: str) -> None:
    with pytest.raises(cql_statement.CqlProblem, match=says):
        cql_statement.read(cql)
