"""User profiles: the real cassandra-stress and ours fill tables of their own on the same real node and ask for the same
seeds, of which half were written. Both find rows in the same share of the operations, by key and by value."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml

from steelyard.dropin import agent_run
from steelyard.engine import _stress_tool as tool
from steelyard.node.folders import cache_folder
from steelyard.testing.cluster import RunningCluster
from tests.e2e.test_stress_command import by_the_tool, stress, total

pytestmark = [pytest.mark.agent, pytest.mark.cassandra, pytest.mark.usefixtures("brief_java")]

PROFILES = Path(__file__).parents[1] / "fixtures" / "stress-profiles"
"""Of these ten, three, of which `make test` compares one query: each command of the tool starts a Java."""
COMPARED = (
    ("two-levels", ("row",)),
    pytest.param("two-levels", (), marks=pytest.mark.by_hand),
    pytest.param("view-of-a-value", (), marks=pytest.mark.by_hand),
    pytest.param("rows-of-a-day", (), marks=pytest.mark.by_hand),
)
"""With the queries that are compared; empty: all."""
WRITTEN, OPERATIONS = 500, 3000
POINTS = 5.0
"""Four standard errors of the difference of two shares of that many operations whose rows are drawn."""


def shares(
    profile: str, who: str, folder: Path, words: list[str], real: tool.Tool | None, only: Sequence[str]
) -> dict[str, float]:
    """Percentage of the operations of each query that found a row, in a keyspace of `who`."""
    text = (PROFILES / f"{profile}.yaml").read_text().replace("compared", f"{who}_{profile.replace('-', '_')}")
    path = folder / f"{who}-{profile}.yaml"
    path.write_text(text)

    def run(operation: str, count: int, seeds: int) -> list[str]:
        ops = ["user", f"profile={path}", f"ops({operation}=1)", f"n={count}", "no-warmup", "-pop", f"seq=1..{seeds}"]
        if real is None:
            return stress([*ops, *words], folder)[0]
        return by_the_tool(real, [*ops, *words])

    assert total(run("insert", WRITTEN, WRITTEN), "Total errors") == 0
    queries = only or yaml.safe_load(text)["queries"]
    found = {name: total(run(name, OPERATIONS, 2 * WRITTEN), "Total partitions") for name in queries}
    return {name: 100 * partitions / OPERATIONS for name, partitions in found.items()}


@pytest.mark.parametrize(("profile", "only"), COMPARED)
def test_rows_are_found_as_by_the_real_tool(
    real_node: RunningCluster, tmp_path: Path, profile: str, only: Sequence[str]
) -> None:
    real = asyncio.run(tool.ensure(cache_folder(), print))
    words = ["-node", real_node.nodes[0].address, "-port", f"native={real_node.port}", "-rate", "threads=4"]
    ours = shares(profile, "ours", tmp_path, words, None, only)
    theirs = shares(profile, "theirs", tmp_path, words, real, only)
    assert ours == pytest.approx(theirs, abs=POINTS)
    assert all(10 < share <= 100 for share in ours.values())


ALIKE = """
keyspace: mixed_counts
keyspace_definition: |
  CREATE KEYSPACE mixed_counts WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1};
table: stock
table_definition: |
  CREATE TABLE stock (part bigint PRIMARY KEY, amount int, label text)
insert:
  partitions: fixed(1)
queries:
  read:
    cql: select * from stock where part = ?
    fields: samerow
  change:
    cql: update stock set amount = ? where part = ?
    fields: samerow
  claim:
    cql: update stock set label = ? where part = ? if exists
    fields: samerow
  remove:
    cql: delete amount from stock where part = ?
    fields: samerow
  never:
    cql: select * from stock where part = ? and label = 'nobody' allow filtering
    fields: samerow
"""


def counts(lines: list[str], label: str) -> dict[str, int]:
    """The counts of each operation in a line of the results."""
    line = next(one for one in lines if one.startswith(label))
    return {name: int(text.replace(",", "")) for name, text in re.findall(r"(\w+): ([\d,]+)", line.partition("[")[2])}


def test_each_kind_is_counted_as_by_the_tool(real_node: RunningCluster, tmp_path: Path) -> None:
    path = tmp_path / "mixed.yaml"
    path.write_text(ALIKE)
    words = ["-node", real_node.nodes[0].address, "-port", f"native={real_node.port}", "-rate", "threads=2"]

    def run(ops: str) -> list[str]:
        typed = ["user", f"profile={path}", ops, "n=300", "no-warmup", "-pop", "seq=1..300"]
        return stress([*typed, *words], tmp_path)[0]

    lines = run("ops(insert=1)")
    assert counts(lines, "Total partitions") == {"insert": 300}
    lines = run("ops(read=1,change=1,claim=1,remove=1,never=1)")
    found = counts(lines, "Total partitions")
    # Of the answers: a row of a read and of a light-weight transaction, none of other writes.
    assert (found["change"], found["remove"], found["never"]) == (0, 0, 0)
    assert min(found["read"], found["claim"]) > 10
    operations = {name: int(number) for name, number in re.findall(r"^(\w+), +(\d+),", "\n".join(lines), re.MULTILINE)}
    assert (found["read"], found["claim"]) == (operations["read"], operations["claim"])
    assert f"WARNING: never found 0 rows in all of its {operations['never']:,} operations" in lines
    assert lines[-1] == "END, but never found no rows"


DRAWN = """
keyspace: HERE
keyspace_definition: |
  CREATE KEYSPACE HERE WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1};
table: drawn
table_definition: |
  CREATE TABLE drawn (
    id blob, part int, at double, small smallint, tiny tinyint, large bigint, mid double, less float, up double,
    tags set<text>, few list<tinyint>, yes boolean, PRIMARY KEY ((id, part), at)
  )
columnspec:
  - {name: id, size: uniform(5..30)}
  - {name: mid, population: "gaussian(1..90)"}
  - {name: less, population: "exp(1..1000)"}
  - {name: up, population: "uniform(-3..4)"}
  - {name: tags, size: fixed(3), population: "uniform(1..4)"}
  - {name: few, size: fixed(9)}
insert:
  partitions: uniform(1..20)
  batchtype: UNLOGGED
  select: fixed(1)/1
queries:
  one: {cql: "select * from drawn where id = ? and part = ? and at = ?", fields: samerow}
"""


def test_rows_are_those_of_the_real_tool(real_node: RunningCluster, tmp_path: Path) -> None:
    real = asyncio.run(tool.ensure(cache_folder(), print))
    words = ["-node", real_node.nodes[0].address, "-port", f"native={real_node.port}", "-rate", "threads=3"]
    rows, lines = {}, {}
    for who in ("ours_drawn", "theirs_drawn"):
        path = tmp_path / f"{who}.yaml"
        path.write_text(DRAWN.replace("HERE", who))
        typed = ["user", f"profile={path}", "ops(insert=1)", "n=600", "no-warmup", "-pop", "seq=1..600", *words]
        lines[who] = stress(typed, tmp_path)[0] if who == "ours_drawn" else by_the_tool(real, typed)
        contacts = [f"{real_node.nodes[0].address}:{real_node.port}"]
        (rows[who],) = asyncio.run(agent_run.cql(contacts, [f"SELECT * FROM {who}.drawn"]))
        # Every partition, each once: batches of any sizes take the whole sequence.
        assert (len(rows[who]), total(lines[who], "Total partitions"), total(lines[who], "Total errors")) == (
            600,
            600,
            0,
        )
    ours, theirs = ({(row["id"], row["part"], row["at"]): row for row in found} for found in rows.values())
    assert ours.keys() == theirs.keys()
    for key, row in ours.items():
        # Logarithms of two libraries may differ in the last bit.
        assert row["mid"] == pytest.approx(theirs[key]["mid"], rel=1e-14)
        assert all(row[name] == theirs[key][name] for name in row if name not in ("mid", "tags", "few"))
    for found in rows.values():
        assert len({text for row in found for text in row["tags"]}) == 4
        assert {len(row["few"]) for row in found} == {9}
        signs = [number < 0 for row in found for number in row["few"]]
        assert 0.45 < sum(signs) / len(signs) < 0.55
    # What one has written the other reads: all rows, by their whole key.
    path = tmp_path / "theirs_drawn.yaml"
    typed = ["user", f"profile={path}", "ops(one=1)", "n=600", "no-warmup", "-pop", "seq=1..600", *words]
    assert total(stress(typed, tmp_path)[0], "Total partitions") == 600
