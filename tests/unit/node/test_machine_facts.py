"""Facts of a machine, from texts of the kernel."""

from __future__ import annotations

import pytest

from steelyard.node import machine_facts


@pytest.mark.parametrize(
    ("cpuinfo", "model"),
    [
        ("processor\t: 0\nmodel name\t: AMD EPYC\nflags\t\t: fpu\n", "AMD EPYC"),
        ("processor\t: 0\nBogoMIPS\t: 108.00\n\nRevision\t: c03114\nModel\t\t: Raspberry Pi 4 B\n", "Raspberry Pi 4 B"),
    ],
)
def test_processor_has_a_name(cpuinfo: str, model: str) -> None:
    assert machine_facts.cpu_model(cpuinfo) == model


def test_memory_in_mebibytes() -> None:
    text = "MemTotal:       24684284 kB\nMemAvailable:   22671360 kB\nHugePages_Total:       0\n"
    assert machine_facts.memory_mb(text)["MemTotal"] == 24105
    assert machine_facts.memory_mb(text)["MemAvailable"] == 22140


def test_capabilities_are_bits() -> None:
    status = "Name:\tx\nCapEff:\t0000000000201000\n"
    assert [machine_facts.capable(name, status) for name in ("net_admin", "sys_admin", "setpcap")] == [
        True,
        True,
        False,
    ]
    assert not machine_facts.capable("sys_admin", "Name:\tx\n")


def test_facts_are_words_and_never_empty() -> None:
    facts = machine_facts.facts()
    assert {"cpu_model", "cores", "memory_mb", "kernel"} <= facts.keys()
    assert all(facts.values())
