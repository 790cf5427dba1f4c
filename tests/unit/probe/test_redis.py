"""The probe `redis`: its page and its command."""

from __future__ import annotations

from pathlib import Path

import pytest

from steelyard.model.errors import ProbeError
from steelyard.node.base import Node
from steelyard.probe import redis
from steelyard.probe.base import Watched

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "system-redis.md"
NODE = Node("n1", "database", "fd00::1", (), Path("/n1"))


def test_the_page_has_every_metric() -> None:
    rows = [f"| `{metric.name}` | {metric.unit} | {metric.description} |" for metric in redis.RedisProbe.metrics]
    page = PAGE.read_text(encoding="utf-8")
    assert [row for row in rows if row not in page] == []


def test_its_command_is_the_client_on_the_node() -> None:
    ways = {"resp": "[fd00::1]:6379", "redis_cli": "/opt/redis-cli"}
    (placement,) = redis.create().placements([Watched(NODE, (), ways), Watched(NODE)], 0.5)
    assert placement.on == NODE
    assert placement.argv == (
        "/opt/redis-cli", "-h", "fd00::1", "-p", "6379", "--json", "-r", "-1", "-i", "0.5", "EVAL", redis.SCRIPT, "0",
    )  # fmt: skip


def test_other_systems_are_refused() -> None:
    with pytest.raises(ProbeError, match="offers only cql"):
        redis.create().placements([Watched(NODE, (), {"cql": "127.0.0.1:9042"})], 1.0)
