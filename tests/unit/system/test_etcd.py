"""What a member of etcd is started with, what members say of themselves, and to whom the load goes."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from steelyard.model.data_model import Schema
from steelyard.model.errors import SystemFault
from steelyard.node.base import Node
from steelyard.system.etcd import Etcd, Settings, _members, create
from steelyard.system.etcd._settings import FLAGS, flags

NODES = tuple(Node(f"n{last}", "database", f"10.0.0.{last}", (), Path(f"/n{last}")) for last in range(1, 4))
SCHEMA = Schema("ycsb", "usertable", "k", ("f0",))
URLS = [f"http://{node.address}:2379" for node in NODES]


def _answer(own: str, leader: str = "22", **more: Any) -> dict[str, Any]:
    """As a member answers: numbers are texts."""
    header = {"cluster_id": "7754417753969007782", "member_id": own, "revision": "1", "raft_term": "2"}
    counts = {"dbSize": "24576", "raftIndex": "8", "raftTerm": "2", "raftAppliedIndex": "7", "dbSizeInUse": "16384"}
    return {"header": header, "version": "3.4.23", "leader": leader, **counts, **more}


def test_members_are_whole_if_each_answers_and_all_agree_on_a_leader() -> None:
    seen = _members.seen(URLS, [_answer("11"), _answer("22"), _answer("33")])
    assert _members.are_whole(seen, 3)
    assert [member.leads for member in seen] == [False, True, False]
    assert (seen[0].term, seen[0].committed, seen[0].applied, seen[0].size_bytes) == (2, 8, 7, 24576)
    assert not _members.are_whole(seen, 5), "two have not answered"
    assert not _members.are_whole(seen[:1], 1), "its leader is not among them"
    for wrong in (replace(seen[2], leader="33"), replace(seen[2], cluster="1"), seen[1]):
        assert not _members.are_whole((*seen[:2], wrong), 3)


def test_a_member_without_a_leader_is_not_one() -> None:
    answer = _answer("11")
    del answer["leader"], answer["raftAppliedIndex"]
    (alone,) = _members.seen(URLS[:1], [answer])
    assert (alone.leader, alone.leads, alone.applied) == ("", False, 0)
    assert not _members.are_whole([alone], 1)


def test_settings_become_flags() -> None:
    settings = Settings(
        heartbeat_ms=50, election_ms=500, quota_backend_mb=64, config={"max-txn-ops": 9, "pre-vote": True}
    )
    asked = flags(settings, replace(NODES[0], address="fd00::1"))
    assert (asked["name"], asked["data-dir"]) == ("n1", "/n1/data")
    assert asked["listen-client-urls"] == asked["advertise-client-urls"] == "http://[fd00::1]:2379"
    assert asked["listen-peer-urls"] == asked["initial-advertise-peer-urls"] == "http://[fd00::1]:2380"
    assert (asked["heartbeat-interval"], asked["election-timeout"]) == ("50", "500")
    assert asked["quota-backend-bytes"] == "67108864"
    assert (asked["max-txn-ops"], asked["pre-vote"]) == ("9", "true")
    assert set(FLAGS.values()) < asked.keys()
    assert set(FLAGS) < Settings.model_fields.keys()


@pytest.mark.parametrize(
    ("flag", "words"),
    [
        ("quota-backend-bytes", "use the setting quota_backend_mb"),
        ("listen-client-urls", "use the setting port"),
        ("data-dir", "set by the laboratory"),
        ("initial-cluster-token", "set by the laboratory"),
        ("listen-metrics-urls", "set by the laboratory"),
        ("wal-dir", "set by the laboratory"),
        ("--name", "match pattern"),
    ],
)
def test_flags_of_the_laboratory_are_not_free(flag: str, words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        Settings(config={flag: "1"})


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"heartbeat_ms": 300}, "election_ms 1000 is less than 5 x heartbeat_ms"),
        ({"peer_port": 2379}, "port and peer_port are both 2379"),
        ({"auto_compaction_retention": "ten minutes"}, "match pattern"),
    ],
)
def test_settings_that_the_server_refuses_are_refused_before(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        Settings(**settings)


class AnsweringEtcd(Etcd):
    """etcd whose three members answer, of which the second leads."""

    async def _say(self, node: Node, what: str, body: Any, urls: Any = (), *, limit_s: float = 1.0) -> list[Any]:
        listed = {"members": [{"clientURLs": [url]} for url in URLS]}
        return [listed] if what == "cluster/member/list" else [_answer("11"), _answer("22"), _answer("33")]


@pytest.mark.parametrize(("clients", "those"), [("all", slice(None)), ("leader", slice(1, 2))])
def test_the_load_goes_to_all_or_to_the_last_leader_that_is_known(clients: str, those: slice) -> None:
    system = AnsweringEtcd(Settings.model_validate({"clients": clients}), Path("/none"))
    everyone = tuple(f"{node.address}:2379" for node in NODES)
    if clients == "leader":
        with pytest.raises(SystemFault, match="no member led"):
            system.endpoint(NODES, SCHEMA)
    assert asyncio.run(system.busy(NODES)) == {"entries to apply": 3.0}
    assert system.endpoint(NODES, SCHEMA).contacts == everyone[those]


@pytest.mark.parametrize(("nodes", "about"), [(1, []), (2, ["2 members", "one disk"]), (5, ["one disk"])])
def test_notes_are_of_even_numbers_and_of_one_disk(nodes: int, about: list[str]) -> None:
    notes = create(Settings(), Path("/none")).size_notes(nodes)
    assert len(notes) == len(about)
    assert all(word in note for word, note in zip(about, notes, strict=True))
