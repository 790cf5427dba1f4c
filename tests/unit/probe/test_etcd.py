"""The probe `etcd`: its page, its command, and the rates and means between two pages."""

from __future__ import annotations

from pathlib import Path

import pytest

from steelyard.model.errors import ProbeError
from steelyard.node.base import Node
from steelyard.probe import etcd, pages
from steelyard.probe.base import Watched

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "system-etcd.md"
NODE = Node("n1", "database", "fd00::1", (), Path("/n1"))
WAYS = {"etcd": "[fd00::1]:2379", "curl": "/opt/curl"}


def test_the_page_has_every_metric() -> None:
    rows = [f"| `{metric.name}` | {metric.unit} | {metric.description} |" for metric in etcd.EtcdProbe.metrics]
    page = PAGE.read_text(encoding="utf-8")
    assert [row for row in rows if row not in page] == []


def test_its_command_asks_on_the_node_for_the_lines_that_it_reads() -> None:
    (placement,) = etcd.create().placements([Watched(NODE, (), WAYS), Watched(NODE)], 0.5)
    assert placement.on == NODE
    *_, script, name, client, url, interval_s, lines = placement.argv
    assert (script, name, client, url) == (pages.SCRIPT, "etcd", "/opt/curl", "http://[fd00::1]:2379/metrics")
    assert interval_s == "0.5"
    assert "|etcd_mvcc_db_total_size_in_bytes|" in lines


def test_rates_and_means_are_of_the_time_between_two_pages() -> None:
    def page(syncs: int, seconds: float) -> str:
        own = {"etcd_disk_wal_fsync_duration_seconds_count": syncs, "etcd_disk_wal_fsync_duration_seconds_sum": seconds}
        return " ".join(f"{name} {own.get(name, 2.097152e06)}" for name in etcd.NUMBERS)

    line = f"10.0 {page(100, 1.0)} | 12.0 {page(120, 1.1)}\n".encode()
    values = {sample.metric: sample.value for sample in etcd.create().parse("n1", line)}
    assert values["node_etcd_wal_syncs_per_s"] == 10.0
    assert values["node_etcd_wal_sync_ms"] == pytest.approx(5.0)
    assert values["node_etcd_database_bytes"] == 2 << 20
    assert values["node_etcd_proposals_per_s"] == values["node_etcd_commits_per_s"] == 0.0
    assert "node_etcd_commit_ms" not in values, "no commit has no mean"


@pytest.mark.parametrize("ways", [{"server_status": "127.0.0.1:8080", "curl": "curl"}, {"cql": "127.0.0.1:9042"}])
def test_other_systems_are_refused(ways: dict[str, str]) -> None:
    with pytest.raises(ProbeError, match="reads systems that offer the way 'etcd'"):
        etcd.create().placements([Watched(NODE, (), ways)], 1.0)
