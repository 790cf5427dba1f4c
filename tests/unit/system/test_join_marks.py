"""Marks from log lines: whose they are, when, and what is no mark."""

from __future__ import annotations

import pytest

from steelyard.system.join_marks import marks

CASSANDRA = """\
INFO  [Messaging-EventLoop-3-1] 2026-11-27 13:00:00,250 Inbound.java:169 - Listening on address: (/10.113.0.4:7000)
INFO  [main] 2026-11-27 13:00:01,000 StorageService.java:1024 - JOINING: waiting for ring information
INFO  [main] 2026-11-27 13:00:02,500 StorageService.java:1024 - JOINING: sleeping 5000 ms for pending range setup
INFO  [main] 2026-11-27 13:00:07,501 StorageService.java:1024 - JOINING: Starting to bootstrap...
DEBUG [Stream-1] 2026-11-27 13:00:08,000 Any.java:1 - something else
INFO  [main] 2026-11-27 13:00:20,000 StorageService.java:2012 - Bootstrap completed for tokens [1, 2]
INFO  [main] 2026-11-27 13:00:20,100 StorageService.java:2900 - Node /10.113.0.4:7000 state jump to NORMAL
INFO  [main] 2026-11-27 13:00:21,000 Pipeline.java:125 - Starting listening for CQL clients on /10.113.0.4:9042
\tat java.base/java.lang.Thread.run(Thread.java:829)
"""
T0_S = 1795784400.0


def test_a_node_s_own_log_has_every_part_of_its_join() -> None:
    assert list(marks(CASSANDRA.splitlines(), "10.113.0.4")) == [
        ("gossiping", T0_S + 0.25),
        ("ring-delay", T0_S + 2.5),
        ("streaming", T0_S + 7.501),
        ("streamed", T0_S + 20.0),
        ("in-service", T0_S + 20.1),
        ("listening", T0_S + 21.0),
    ]


@pytest.mark.parametrize(
    ("line", "address", "mark"),
    [
        ("Node /10.113.0.4:7000 state jump to NORMAL", "10.113.0.4", "in-service"),
        ("Node /10.113.0.4:7000 state jump to NORMAL", "10.113.0.40", None),
        ("Node /10.113.0.40:7000 state jump to NORMAL", "10.113.0.4", None),
        ("Node /10.113.0.4 state jump to NORMAL", "10.113.0.4", "in-service"),
        ("Node /10.113.0.4:7000 state jump to LEFT", "10.113.0.4", None),
        ("Node /[fd00::4]:7000 state jump to NORMAL", "fd00::4", "in-service"),
        ("Removing tokens [-1, 5] for /10.113.0.4:7000", "10.113.0.4", "left"),
        ("LEAVING: sleeping 30000 ms for batch processing and pending range setup", "10.113.0.4", "leaving"),
        ("LEAVING: streaming data to other nodes", "10.113.0.4", "streaming"),
        ("LEAVING: stream acks all received", "10.113.0.4", "streamed"),
    ],
)
def test_a_message_is_a_mark_of_its_node_only(line: str, address: str, mark: str | None) -> None:
    found = list(marks([f"INFO  [GossipStage:1] 2026-11-27 13:00:00,000 A.java:1 - {line}"], address))
    assert found == ([] if mark is None else [(mark, T0_S)])
