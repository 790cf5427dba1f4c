"""Joins and leaves as their logs tell them, without servers: what is marked, and what is refused or fails in words."""

from __future__ import annotations

import asyncio
import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from steelyard.model import activity
from steelyard.model.data_model import Schema
from steelyard.model.errors import SystemFault
from steelyard.node.base import Node
from steelyard.system.cassandra import Settings, _config
from steelyard.system.cassandra._elastic import ElasticCassandra, _Log

LOGS = Path(__file__).parents[2] / "fixtures" / "cassandra-logs"
JOIN, LEAVE = ((LOGS / name).read_text(encoding="utf-8") for name in ("join.log", "leave.log"))
Marks = list[tuple[str, float | None]]


def nodes_of(tmp_path: Path, count: int) -> tuple[Node, ...]:
    folders = [tmp_path / f"n{index + 1}" for index in range(count)]
    for folder in folders:
        folder.mkdir()
    return tuple(Node(folder.name, "database", f"10.0.0.{folder.name[1:]}", (), folder) for folder in folders)


def append(node: Node, text: str) -> None:
    logs = _config.Folders(node.folder).logs
    logs.mkdir(exist_ok=True)
    with (logs / "system.log").open("a") as file:
        file.write(text)


class Scripted(ElasticCassandra):
    """Its servers do nothing but write a given log; all members always see what is asked for."""

    def __init__(self, tmp_path: Path, log: str, settings: Settings | None = None) -> None:
        super().__init__(settings or Settings(), tmp_path)
        self.log = log
        self.known = "10.0.0.4"
        self.called: list[tuple[str, str]] = []
        self.ended: list[str] = []

    async def provide(self, nodes: Sequence[Node]) -> None:
        del nodes

    async def start(self, node: Node, peers: Sequence[Node]) -> None:
        assert _config.joins(node, peers)
        append(node, self.log)

    async def ready(self, node: Node, members: int) -> bool:
        del node, members
        return True

    async def _lives(self, node: Node) -> bool:
        """Since it has written anything."""
        return (_config.Folders(node.folder).logs / "system.log").exists()

    async def kill(self, node: Node) -> None:
        self.ended.append(node.name)

    async def _ask(self, node: Node, *statements: str, timeout_s: float = 1.0) -> Any:
        del node, timeout_s
        row = {"bootstrapped": "COMPLETED", "schema_version": "1", "address": self.known}
        return tuple((row,) for _ in statements)

    async def _refuse_movement(self, node: Node, members: Sequence[Node]) -> None:
        del node, members

    async def _call(
        self,
        nodes: Sequence[Node],
        what: str,
        keyspace: str,
        targets: Mapping[str, Sequence[str]],
        timeout_s: float = 1.0,
    ) -> Mapping[str, str]:
        del keyspace, timeout_s
        self.called.append((what, targets[nodes[0].name][0].partition("=")[2]))
        if what == "decommission":
            append(nodes[0], self.log)
        return {}


def joined(system: ElasticCassandra, node: Node, members: Sequence[Node]) -> tuple[int | None, Marks]:
    marks: Marks = []
    return asyncio.run(system.join(node, members, lambda name, t_s: marks.append((name, t_s)))), marks


def test_a_join_returns_bytes_and_marks_every_phase(tmp_path: Path) -> None:
    *members, joiner = nodes_of(tmp_path, 4)
    (joiner.folder / "storage" / "data").mkdir(parents=True)
    system = Scripted(tmp_path, JOIN)
    system._schema = Schema("growth", "rows", "k", ("f0",))
    received, marks = joined(system, joiner, members)
    assert received == 2_100_899
    assert [name for name, _ in marks] == [name for name in activity.OF_JOIN if name != "lent"]
    assert marks[-1][1] == marks[-2][1], "all saw it at the first look after it listened"
    # With the data of an earlier attempt it would not stream.
    assert not (joiner.folder / "storage").exists() or not list((joiner.folder / "storage" / "data").iterdir())


def without(text: str) -> str:
    return "".join(line for line in JOIN.splitlines(keepends=True) if text not in line)


FAILS = JOIN[: JOIN.index("INFO  [NonPeriodicTasks")] + (
    "ERROR [main] 2026-11-27 14:12:41,000 StorageService.java:2221 - Error while waiting on bootstrap to complete. "
    "Bootstrap will have to be restarted.\n"
)


@pytest.mark.parametrize(
    ("log", "settings", "words"),
    [
        (FAILS, {}, "n4: it could not join; last lines: .*Bootstrap will have to be restarted"),
        (without("Starting listening"), {"join_timeout_s": 0.05}, "n4: not done after 0.05 s .*join_timeout_s"),
        (without("Bootstrap completed"), {}, "n4: .*without having asked for all rows"),
        (without("RangeStreamer"), {}, "n4: .*without having asked for all rows"),
    ],
)
def test_a_join_that_fails_says_why(tmp_path: Path, log: str, settings: dict[str, Any], words: str) -> None:
    *members, joiner = nodes_of(tmp_path, 4)
    system = Scripted(tmp_path, log, Settings(**settings))
    system._schema = Schema("growth", "rows", "k", ("f0",))
    with pytest.raises(SystemFault, match=words) as caught:
        joined(system, joiner, members)
    assert caught.value.node == "n4"


def test_a_failed_joiner_is_ended_and_forgotten_before_another_joins(tmp_path: Path) -> None:
    *members, failed, other = nodes_of(tmp_path, 5)
    system = Scripted(tmp_path, FAILS)
    with pytest.raises(SystemFault, match="could not join"):
        joined(system, failed, members)
    system.log = JOIN
    with pytest.raises(SystemFault, match="n4: its join ended early, and its server still runs"):
        joined(system, other, members)
    (_config.Folders(failed.folder).logs / "system.log").unlink()
    joined(system, other, members)
    assert system.called == [("assassinate", failed.address)]
    # Its own address is ignored for a while.
    assert 50.0 < system._quarantined_until[failed.address] - time.monotonic() < 70.0


def test_a_failed_joiner_of_which_no_member_has_heard_needs_no_forgetting(tmp_path: Path) -> None:
    *members, failed = nodes_of(tmp_path, 4)
    system = Scripted(tmp_path, FAILS)
    system.known = "10.0.0.1"
    with pytest.raises(SystemFault, match="could not join"):
        joined(system, failed, members)
    (_config.Folders(failed.folder).logs / "system.log").unlink()
    system.log = JOIN
    joined(system, failed, members)
    assert system.called == []


@pytest.mark.parametrize(("nodes", "forced"), [(4, "false"), (3, "true")])
def test_a_leaver_is_forced_only_where_the_system_s_own_copies_have_no_place(
    tmp_path: Path, nodes: int, forced: str
) -> None:
    members = nodes_of(tmp_path, nodes)
    append(members[-1], JOIN)
    system, marks = Scripted(tmp_path, LEAVE), []
    sent = asyncio.run(system.leave(members[-1], members, lambda name, t_s: marks.append((name, t_s))))
    assert sent == 16_079_913
    assert [name for name, _ in marks] == list(activity.OF_LEAVE)
    assert marks[-1][1] is None, "seen by the others, not logged"
    assert system.called == [("decommission", forced)]
    assert system.ended == [members[-1].name]


def test_a_leave_without_an_announcement_is_no_leave(tmp_path: Path) -> None:
    members = nodes_of(tmp_path, 4)
    system = Scripted(tmp_path, LEAVE[: LEAVE.index("INFO  [NonPeriodicTasks")])
    with pytest.raises(SystemFault, match="n4: it has not left the ring; last lines"):
        asyncio.run(system.leave(members[-1], members, lambda name, t_s: None))


@pytest.mark.parametrize(
    ("sees", "pause_s"),
    [({}, 0.25), ({"processes": "through"}, 1.0), ({"files": "through", "processes": "through"}, 1.0)],
)
def test_a_node_that_is_seen_by_commands_is_looked_at_less_often(
    tmp_path: Path, sees: dict[str, Any], pause_s: float
) -> None:
    (node,) = nodes_of(tmp_path, 1)
    assert _Log(dataclasses.replace(node, **sees)).pause_s == pause_s


@pytest.mark.parametrize(
    ("join", "words"),
    [
        (lambda system, nodes: system.join(nodes[0], nodes, lambda *_: None), "n1: it cannot join: it runs already"),
        (lambda system, nodes: system.leave(nodes[0], nodes[:2], lambda *_: None), "2 copies of each row need 2 nodes"),
    ],
)
def test_impossible_changes_are_refused(tmp_path: Path, join: Callable[..., Any], words: str) -> None:
    nodes = nodes_of(tmp_path, 3)
    with pytest.raises(SystemFault, match=words):
        asyncio.run(join(Scripted(tmp_path, JOIN, Settings(replication_factor=2)), nodes))


@pytest.mark.parametrize("cleanup", ["none", "after-joins"])
def test_rows_are_removed_node_by_node_if_the_settings_say_so(tmp_path: Path, cleanup: str) -> None:
    nodes = nodes_of(tmp_path, 3)
    system = Scripted(tmp_path, "", Settings.model_validate({"cleanup": cleanup}))
    system._schema = Schema("growth", "rows", "k", ("f0",))
    asyncio.run(system.clean_up(nodes))
    assert system.called == ([] if cleanup == "none" else [("cleanup", "rows")] * 3)
