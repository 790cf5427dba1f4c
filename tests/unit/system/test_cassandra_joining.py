"""What the logs of real nodes that join and leave tell; the configuration of a node that joins."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from steelyard.model import activity
from steelyard.model.data_model import Schema
from steelyard.node.base import Node
from steelyard.system.cassandra import Settings, _config, _facts, _java, _joining, _snapshots, _state
from steelyard.system.join_marks import JOIN_LINES, LEAVE_LINES, time_s

LOGS = Path(__file__).parents[2] / "fixtures" / "cassandra-logs"
JAVA = _java.Java(Path("/opt/java/bin/java"), "17.0.15")
Rows = list[dict[str, Any]]
RING = tuple(Node(f"n{number}", "database", f"127.0.0.{number}", (), Path(f"/n{number}")) for number in (1, 2, 3))
JOINER = Node("n4", "database", "127.0.0.4", (), Path("/n4"))


def lines(name: str) -> list[str]:
    return (LOGS / name).read_text(encoding="utf-8").splitlines()


def clock(t_s: float) -> str:
    """Seconds since midnight, UTC."""
    return f"{t_s % 86_400 - 51_120:.3f}"


def test_marks_of_a_join_have_the_milliseconds_of_the_log() -> None:
    report = _joining.Report(JOIN_LINES)
    marks = report.take(lines("join.log"))
    assert [(name, clock(t_s)) for name, t_s in marks] == [
        (activity.GOSSIPING, "4.860"),
        (activity.RING_DELAY, "34.970"),
        (activity.STREAMING, "39.972"),
        (activity.STREAMED, "41.103"),
        (activity.LISTENING, "49.315"),
    ]
    # 668.060 + 651.991 + 731.608 KiB.
    assert (report.received_bytes, report.sent_bytes) == (684_093 + 667_639 + 749_167, 0)
    assert report.keyspaces == {"growth"}
    assert report.failure == ""


def test_marks_come_once_however_the_log_is_cut() -> None:
    whole, cut = _joining.Report(JOIN_LINES), _joining.Report(JOIN_LINES)
    marks = whole.take(lines("join.log"))
    assert [mark for line in lines("join.log") for mark in cut.take([line])] == marks
    assert cut == whole
    assert cut.take(lines("join.log")) == []


def test_what_a_joining_node_does() -> None:
    so_far, doing = _state.LogSoFar(), []
    for line in lines("join.log"):
        so_far.append(f"{line}\n".encode())
        doing.append(_state.seen(so_far.text, 4).doing)
    assert list(dict.fromkeys(doing)) == [
        "opening tables",
        "gossiping",
        "waiting for gossip to settle",
        "ring delay",
        "streaming",
        "joining the ring",
        "answering",
    ]


@pytest.mark.parametrize("line", ["", "  at java.lang.Thread.run(Thread.java:840)", "INFO [main] 2026-11-27 -"])
def test_a_line_without_a_time(line: str) -> None:
    assert time_s(line) is None


def test_marks_of_a_leave() -> None:
    report = _joining.Report(LEAVE_LINES)
    marks = report.take(lines("leave.log"))
    assert [(name, clock(t_s)) for name, t_s in marks] == [
        (activity.LEAVING, "455.371"),
        (activity.STREAMING, "495.381"),
        (activity.STREAMED, "496.251"),
        (activity.LEFT, "496.937"),
    ]
    assert report.received_bytes == 0
    assert report.sent_bytes == 16_079_913


def test_a_failure_is_the_line_that_says_it() -> None:
    report = _joining.Report(JOIN_LINES)
    line = (
        "ERROR [main] 2026-11-27 14:12:41,000 StorageService.java:2221 - Error while waiting on bootstrap to complete. "
        "Bootstrap will have to be restarted."
    )
    report.take([*lines("join.log")[:5], line, "java.util.concurrent.ExecutionException: StreamException"])
    assert report.failure == line


def row(number: int, status: str | None, ready: str | None = "true") -> dict[str, Any]:
    return {"address": f"127.0.0.{number}", "status": None, "status_with_port": status, "rpc_ready": ready}


NORMAL = [row(number, f"NORMAL,{number}") for number in (1, 2, 3)]


@pytest.mark.parametrize(
    ("gossip", "streams", "reason"),
    [
        (NORMAL, [], ""),
        ([*NORMAL, row(4, "LEFT,-13,1795788094")], [{"status": "success"}, {"status": "FAILURE"}], ""),
        ([*NORMAL, row(4, "BOOT,9031218452753634645", None)], [], "127.0.0.4 is joining"),
        ([*NORMAL[:2], row(3, "LEAVING,3")], [], "127.0.0.3 is leaving"),
        (NORMAL[:2], [], "127.0.0.3 is not in service"),
        ([*NORMAL[:2], row(3, "NORMAL,3", "false")], [], "127.0.0.3 is not in service"),
        ([*NORMAL, row(4, "NORMAL,4")], [], "127.0.0.4 is in service and not among the members"),
        (NORMAL, [{"status": "started"}, {"status": "success"}], "1 streams are running"),
    ],
)
def test_when_a_node_may_join_or_leave(
    gossip: list[dict[str, Any]], streams: list[dict[str, Any]], reason: str
) -> None:
    assert _joining.movement([node.address for node in RING], gossip, streams) == reason


def test_a_joiner_streams_its_part_from_the_members() -> None:
    settings = Settings(replication_factor=3, num_tokens=8)
    yaml, first = _config.yaml_of(settings, JOINER, RING), _config.yaml_of(settings, RING[0], RING)
    assert yaml["auto_bootstrap"] is True
    assert yaml["allocate_tokens_for_local_replication_factor"] == 3
    assert yaml["num_tokens"] == 8
    assert "initial_token" not in yaml
    # In its own list of seeds it would not stream.
    assert yaml["seed_provider"] == first["seed_provider"]
    assert JOINER.address not in str(yaml["seed_provider"])
    apart = {"auto_bootstrap", "initial_token", "allocate_tokens_for_local_replication_factor"}
    own = {key for key in yaml.keys() | first.keys() if yaml.get(key) != first.get(key)} - apart
    assert all("/n4/" in str(yaml[key]) or yaml[key] == JOINER.address for key in own)


def waits(settings: Settings, *, joining: bool) -> dict[str, str]:
    """The properties of waits on a server's command line."""
    argv = _config.server_argv(settings, JAVA.path, (), JOINER, joining=joining)
    names = (_config.RING_DELAY, _config.QUARANTINE, _config.SETTLE)
    return {name: word.partition("=")[2] for name in names for word in argv if word.startswith(f"-D{name}=")}


def test_waits_of_first_nodes_and_of_joiners() -> None:
    fixed = {_config.RING_DELAY: "100", _config.QUARANTINE: "60000", _config.SETTLE: "0"}
    assert waits(Settings(), joining=False) == fixed
    assert waits(Settings(), joining=True) == {_config.QUARANTINE: "60000"}
    grows = Settings(ring_delay_ms=5000)
    assert waits(grows, joining=False) == {**fixed, _config.RING_DELAY: "5000"}
    assert waits(grows, joining=True) == {_config.RING_DELAY: "5000", _config.QUARANTINE: "60000"}
    shorter = Settings(jvm_options=(f"-D{_config.QUARANTINE}=9000",))
    assert (_config.quarantine_s(grows), _config.quarantine_s(shorter)) == (60.0, 9.0)


def test_departures_say_how_this_node_was_started() -> None:
    first = _facts.departures(joined=False, ring_delay_ms=None)
    assert first["start properties"] == "ring delay 100 ms, no wait for gossip to settle"
    assert "all nodes are seeds" in first
    grows = _facts.departures(joined=False, ring_delay_ms=5000)
    assert grows["start properties"] == "ring delay 5000 ms, no wait for gossip to settle"
    assert set(_facts.departures(joined=True, ring_delay_ms=None)) == set(_facts.DEPARTURES)
    assert _facts.departures(joined=True, ring_delay_ms=5000)["start properties"] == "ring delay 5000 ms"


def test_what_is_not_said_about_growth_changes_no_record() -> None:
    """Ids of trials are hashes of settings, and snapshots are shared with clusters that grow."""
    names = {"ring_delay_ms", "cleanup", "join_timeout_s"}
    assert not names & Settings().model_dump(mode="json").keys()
    grows = Settings(ring_delay_ms=5000, cleanup="after-joins", join_timeout_s=60.0)
    assert names <= grows.model_dump(mode="json").keys()
    assert Settings.model_validate(grows.model_dump(mode="json")) == grows
    schema = Schema("ks", "t", "k", ("f",))
    assert _snapshots.key_of(grows, RING, schema, {}) == _snapshots.key_of(Settings(), RING, schema, {})
