"""What a node of Redis Cluster is started with: settings, options, the layout that it knows, and what it says of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from steelyard.model.load import Load
from steelyard.node.base import Node
from steelyard.system.redis import Settings, _layout, create
from steelyard.system.redis._settings import options
from steelyard.system.redis._system import promises

NODES = tuple(Node(f"n{last}", "database", f"10.0.0.{last}", (), Path(f"/n{last}")) for last in range(1, 7))

ANSWER = """\
b8e7 10.0.0.2:6379@16379 master - 0 1790000000000 2 connected 8192-16383 [8192->-f00d]
a001 10.0.0.1:6379@16379,host myself,master - 0 0 1 connected 0-4095 5000
c3d4 fd00::3:6379@16379 slave b8e7 0 0 2 connected
d4e5 10.0.0.4:6379@16379 master,fail? - 0 0 4 connected 4096-4999
e5f6 10.0.0.5:6379@16379 master - 0 0 0 connected
f6a7 10.0.0.6:6379@16379 slave b8e7 0 0 2 disconnected
"""


def test_a_node_says_which_nodes_serve() -> None:
    seen = _layout.seen(ANSWER)
    assert [member.id for member in seen] == ["a001", "b8e7", "c3d4", "d4e5", "e5f6", "f6a7"]
    assert [member.serves for member in seen] == [True, True, True, False, False, False]
    assert [member.is_master for member in seen] == [True, True, False, True, True, False]
    assert seen[0].slots == ("0-4095", "5000")
    assert seen[1].slots == ("8192-16383",)
    assert [member.id for member in seen if member.is_myself] == ["a001"]
    assert seen[2].address == "fd00::3"


@given(count=st.integers(1, 6), replicas=st.integers(0, 2))
def test_masters_share_all_slots_and_have_replicas_in_turn(count: int, replicas: int) -> None:
    nodes, settings = NODES[:count], Settings(replicas=replicas)
    files = [_layout.file_of(node, nodes, settings) for node in nodes]
    assert len({text.replace("myself,", "") for text in files}) == 1
    *lines, last = files[0].splitlines()
    seen = [_layout.seen(line)[0] for line in lines]
    masters = [member for member in seen if member.is_master]
    assert len(masters) == _layout.masters(count, settings)
    assert last == f"vars currentEpoch {len(masters)} lastVoteEpoch 0"
    ranges = [tuple(map(int, member.slots[0].split("-"))) for member in masters]
    assert [slot for first, end in ranges for slot in range(first, end + 1)] == list(range(_layout.SLOTS))
    assert max(end - first for first, end in ranges) - min(end - first for first, end in ranges) <= 1
    of = [line.split()[3] for line in lines[len(masters) :]]
    assert of == [masters[place % len(masters)].id for place in range(len(of))]


def test_settings_become_options() -> None:
    settings = Settings(maxmemory_mb=64, appendonly=True, config={"hz": 50, "lazyfree-lazy-expire": True})
    asked = options(settings, NODES[0])
    assert {name: asked[name] for name in ("bind", "cluster-announce-ip", "port", "cluster-port")} == {
        "bind": "10.0.0.1", "cluster-announce-ip": "10.0.0.1", "port": "6379", "cluster-port": "16379",
    }  # fmt: skip
    assert (asked["maxmemory"], asked["appendonly"], asked["save"]) == ("67108864", "yes", "")
    assert (asked["hz"], asked["lazyfree-lazy-expire"]) == ("50", "yes")
    assert settings.memory_mb == Settings().memory_mb + 64


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("maxmemory", "use the setting maxmemory_mb"),
        ("cluster-node-timeout", "use the setting cluster_node_timeout_ms"),
        ("appendonly", "use the setting appendonly"),
        ("bind", "set by the laboratory"),
        ("dir", "set by the laboratory"),
        ("requirepass", "set by the laboratory"),
        ("--port", "match pattern"),
    ],
)
def test_options_of_the_laboratory_are_not_free(option: str, words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        Settings(config={option: "1"})


@pytest.mark.parametrize(
    ("replicas", "nodes", "possible"),
    [(0, 1, True), (0, 2, True), (1, 6, True), (1, 7, False), (1, 4, False), (2, 9, True)],
)
def test_nodes_must_suffice_for_masters_with_replicas(replicas: int, nodes: int, possible: bool) -> None:
    problems = list(create(Settings(replicas=replicas), Path("/none")).problems(nodes, Load(operations=1)))
    assert [problem.key for problem in problems] == ([] if possible else ["system.replicas"])
    assert all(f"{3 * (replicas + 1)}, " in problem.hint for problem in problems)


@pytest.mark.parametrize(
    ("force", "where"),
    [
        (
            {"appendonly": "no", "appendfsync": "everysec"},
            "in memory alone, and loses it when it dies (",
        ),
        (
            {"appendonly": "yes", "appendfsync": "everysec"},
            "in its log, which is synced to the disk every second (",
        ),
        (
            {"appendonly": "yes", "appendfsync": "always"},
            "in its log, which is on the disk by then (",
        ),
        (
            {"appendonly": "yes", "appendfsync": "no"},
            "in its log, which the kernel writes to the disk when it wants",
        ),
    ],
)
def test_a_write_promises_what_the_settings_in_force_say(force: dict[str, str], where: str) -> None:
    (sentence,) = promises(force).values()
    assert where in sentence
