"""The probe `jmx`: rates and means of an interval, and one program for the nodes whose beans it reaches."""

from __future__ import annotations

from pathlib import Path

import pytest

from steelyard.node.base import Node
from steelyard.probe import jmx
from steelyard.probe.base import Watched

LINE = (
    b"1790000001.000100 2.000000 reads=100/300 read_us=500000/620000 writes=7/7 write_us=70/70 dropped=4/10 "
    b"compactions_pending=0/3 read_p99_us=900/1500 write_p99_us=0/0 collection_ms=1000/1300 exceptions=9/2\n"
)


def watched(name: str, address: str, jmx_address: str) -> Watched:
    ways = {"jmx": jmx_address, "jmx_password_file": f"/n/{name}/pw", "java": "/opt/java", "beans": "/opt/beans"}
    return Watched(Node(name, "database", address, (), Path("/n", name)), (), ways)


def test_rates_and_means_are_of_the_interval() -> None:
    values = {sample.metric: sample.value for sample in jmx.create(jmx.Settings()).parse("n1", LINE)}
    assert values["node_coordinator_read_mean_ms"] == pytest.approx(0.6), "120 ms for 200 reads"
    assert values["node_coordinator_read_p99_ms"] == 1.5
    assert values["node_dropped_messages_per_s"] == 3.0
    assert values["node_compactions_pending"] == 3.0
    assert values["node_gc_collection_fraction"] == pytest.approx(0.15)


def test_what_is_not_known_is_left_out() -> None:
    values = {sample.metric: sample.value for sample in jmx.create(jmx.Settings()).parse("n1", LINE)}
    assert "node_coordinator_write_mean_ms" not in values, "no write in the interval"
    assert "node_coordinator_write_p99_ms" not in values, "0 is no time"
    assert "node_exceptions_per_s" not in values, "the count began anew"
    assert "node_heap_used_bytes" not in values, "not on the line"
    assert list(jmx.create(jmx.Settings()).parse("n1", b"1790000001.0 lost\n")) == []


def test_one_program_reads_all_nodes_that_it_reaches() -> None:
    nodes = [watched("n1", "10.0.0.1", "10.0.0.1:7199"), watched("n2", "10.0.0.2", "10.0.0.2:7199")]
    (placement,) = jmx.create(jmx.Settings()).placements(nodes, 1.0)
    assert placement.on == nodes[0].node
    assert placement.speaks_of == ("n1", "n2")
    assert placement.argv[:2] == ("/opt/java", "-XX:TieredStopAtLevel=1")
    assert placement.argv[-5:] == ("--", "/n/n1/pw", "n1=10.0.0.1:7199", "/n/n2/pw", "n2=10.0.0.2:7199")
    assert "heap=java.lang:type=Memory#HeapMemoryUsage#used" in placement.argv


def test_beans_on_a_loopback_have_a_program_on_their_node() -> None:
    nodes = [watched("n1", "10.0.0.1", "127.0.0.1:7199"), watched("n2", "10.0.0.2", "127.0.0.1:7199")]
    placements = jmx.create(jmx.Settings()).placements(nodes, 1.0)
    assert [placement.speaks_of for placement in placements] == [("n1",), ("n2",)]
    assert [placement.on for placement in placements] == [each.node for each in nodes]
    assert placements[1].argv[-2:] == ("/n/n2/pw", "=127.0.0.1:7199")
