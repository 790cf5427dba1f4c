"""Lines of members about a node that joins or leaves: those of that node, and of no other."""

from __future__ import annotations

import pytest

from steelyard.system.join_marks import marks, seen_down
from steelyard.system.simulated import members_say

T0_S = 1795784400.0


@pytest.mark.parametrize(
    ("line", "address", "mark", "there"),
    [
        ("Node /10.113.0.4:7000 state jump to NORMAL", "10.113.0.4", "in-service", True),
        ("Node /10.113.0.4:7000 state jump to NORMAL", "10.113.0.40", "in-service", False),
        ("Node /10.113.0.40:7000 state jump to NORMAL", "10.113.0.4", "in-service", False),
        ("Node /10.113.0.4 state jump to NORMAL", "10.113.0.4", "in-service", True),
        ("Node /10.113.0.4:7000 state jump to LEFT", "10.113.0.4", "in-service", False),
        ("Node /[fd00::4]:7000 state jump to NORMAL", "fd00::4", "in-service", True),
        ("Node /[fd00::4]:7000 state jump to NORMAL", "fd00:0::4", "in-service", True),
        ("Removing tokens [-1, 5] for /10.113.0.4:7000", "10.113.0.4", "left", True),
    ],
)
def test_a_message_is_a_mark_of_its_node_only(line: str, address: str, mark: str, there: bool) -> None:
    logged = [f"INFO  [GossipStage:1] 2026-11-27 13:00:00,000 A.java:1 - {line}"]
    assert list(marks(logged, members_say(mark, address))) == ([(mark, T0_S)] if there else [])


def test_a_member_takes_another_for_dead_by_its_log() -> None:
    lines = [
        f"INFO  [GossipTasks:1] 2026-11-27 13:00:{second:02},000 A.java:1 - InetAddress {node} is now {state}"
        for second, node, state in (
            (1, "10.113.0.4/10.113.0.4:7000", "DOWN"), (5, "/10.113.0.40:7000", "DOWN"), (7, "/10.113.0.4:7000", "UP"),
            (9, "/10.113.0.4:7000", "DOWN"),
        )
    ]  # fmt: skip
    assert seen_down(lines, "10.113.0.4", T0_S) == T0_S + 1
    assert seen_down(lines, "10.113.0.4", T0_S + 2) == T0_S + 9
    assert seen_down(lines, "10.113.0.4", T0_S + 10) is None
    assert seen_down(lines, "10.113.0.5", T0_S) is None
