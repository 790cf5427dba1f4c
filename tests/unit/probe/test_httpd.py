"""The probe `httpd`: its page, its command, and what it reads from both pages."""

from __future__ import annotations

from pathlib import Path

import pytest

from steelyard.model.errors import ProbeError
from steelyard.node.base import Node
from steelyard.probe import httpd, pages
from steelyard.probe.base import Watched

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "system-documents.md"
NODE = Node("n1", "database", "fd00::1", (), Path("/n1"))


def test_the_page_has_every_metric() -> None:
    rows = [f"| `{metric.name}` | {metric.unit} | {metric.description} |" for metric in httpd.HttpdProbe.metrics]
    page = PAGE.read_text(encoding="utf-8")
    assert [row for row in rows if row not in page] == []


def test_its_command_asks_the_node() -> None:
    ways = {"server_status": "[fd00::1]:8080", "curl": "/opt/curl"}
    (placement,) = httpd.create().placements([Watched(NODE, (), ways), Watched(NODE)], 0.5)
    assert placement.on == NODE
    url = "http://[fd00::1]:8080/server-status?auto"
    assert placement.argv == ("sh", "-c", pages.SCRIPT, "httpd", "/opt/curl", url, "0.5", ".")


@pytest.mark.parametrize(
    ("page", "values"),
    [
        (b"Total Accesses: 7 BusyWorkers: 2 IdleWorkers: 14 ConnsTotal: 3", [2, 7, 3]),
        (b"Active connections: 3 server accepts handled requests 5 5 8 Reading: 1 Writing: 2 Waiting: 0", [3, 8, 3]),
    ],
)
def test_either_page_is_read(page: bytes, values: list[float]) -> None:
    samples = httpd.create().parse("n1", b"0.5 none | 1.5 HTTP/1.1 200 OK " + page)
    assert [(sample.t_s, sample.value) for sample in samples] == [(1.5, value) for value in values]


def test_other_systems_are_refused() -> None:
    with pytest.raises(ProbeError, match="offers only cql"):
        httpd.create().placements([Watched(NODE, (), {"cql": "127.0.0.1:9042"})], 1.0)
