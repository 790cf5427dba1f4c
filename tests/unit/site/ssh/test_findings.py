"""Findings about the machines of an inventory: each has its hint unless it is good."""

from __future__ import annotations

import pytest

from steelyard.model.errors import SiteError
from steelyard.model.finding import Finding
from steelyard.site.ssh import findings as ssh_findings
from steelyard.site.ssh import scripts
from steelyard.site.ssh.inventory import Inventory, Machine
from steelyard.site.ssh.survey import ClockReading, Visit

GOOD = """\
folder /home/pi/.cache/steelyard
architecture aarch64
kernel 11111111-1111
user pi
now 1000
address 10.0.0.11
disk /dev/root 30000000 1000000 29000000 4% /
writable /home/pi
release 6.1.21-v8+
cores 4
load 0.10
MemTotal 3885396
MemAvailable 3472104
SwapTotal 102396
model Raspberry Pi 4 Model B Rev 1.4
governor performance
throttled 0
privileges sudo
java /usr/bin/java openjdk version "17.0.9" 2023-10-17
"""


def machine(name: str, role: str = "") -> Machine:
    return Machine.model_validate({"name": name, "address": "10.0.0.11", "role": role})


def visit(more: str = "", name: str = "pi1", ahead_s: float = 0.002, address: str = "10.0.0.11") -> Visit:
    identity = scripts.parse(GOOD + more)
    return Visit(machine(name), identity, address=address, clock=ClockReading(ahead_s, 0.001))


def by_name(findings: list[Finding]) -> dict[str, Finding]:
    return {finding.name: finding for finding in findings}


def test_a_machine_in_order() -> None:
    findings = ssh_findings.of_visit(visit())
    assert {finding.state for finding in findings} == {"good"}
    assert {finding.machine for finding in findings} == {"pi1"}
    found = by_name(findings)
    assert found["reachable"].found == "user pi, aarch64, 4 cores, Raspberry Pi 4 Model B Rev 1.4"
    assert found["java"].found == "17.0.9, /usr/bin/java"
    assert found["space"].found == "/home/pi/.cache/steelyard: 27.7 GiB free"
    assert found["clock"].found == "2 ms ahead of this machine's (± 1 ms)"
    assert found["health"].found == "healthy"


@pytest.mark.parametrize(
    ("more", "name", "state", "words"),
    [
        ("busy_lease 0123abcd\nbusy_until 1600\nbusy_note study x of anna on laptop\n", "busy", "bad", "10 min left"),
        ("agent_of anna 17\n", "busy", "bad", "user anna runs an agent there (process 17)"),
        ("load 3.9\n", "other load", "poor", "load average 3.9"),
        ("disk /dev/root 30000000 29000000 1000000 97% /\n", "space", "poor", "977 MiB free"),
        ("writable \n", "space", "bad", "not writable"),
        ("MemAvailable 300000\n", "memory", "poor", "293 MiB available"),
        ('java /usr/lib/jvm/11/bin/java openjdk version "11.0.2"\n', "java", "good", "17.0.9"),
        ("release 5.10.103-v7l+\n", "kernel", "bad", "Linux 5.10.103-v7l+"),
        ("governor ondemand\n", "frequency", "poor", "governor ondemand"),
        ("throttled throttled=0x50005\n", "health", "poor", "under-voltage, throttled now"),
        ("throttled 50000\n", "health", "poor", "under-voltage, throttled since it was started"),
    ],
)
def test_each_problem_has_its_hint(more: str, name: str, state: str, words: str) -> None:
    found = by_name(ssh_findings.of_visit(visit(more)))[name]
    assert found.state == state
    assert words in found.found
    assert bool(found.hint) == (state != "good")


def test_a_former_lease_does_not_make_a_machine_busy() -> None:
    found = by_name(ssh_findings.of_visit(visit("busy_lease 0123abcd\nbusy_until 900\nbusy_note study x\n")))
    assert found["busy"].state == "good"


def test_java_and_rights_may_be_missing() -> None:
    text = "\n".join(line for line in GOOD.splitlines() if not line.startswith("java")) + "\nprivileges none\n"
    found = by_name(ssh_findings.of_visit(Visit(machine("pi1"), scripts.parse(text), address="10.0.0.11")))
    assert (found["java"].state, found["java"].found) == ("poor", "no Java 17")
    assert found["privileges"].state == "good"
    assert found["clock"].state == "poor"


def test_clock_and_address() -> None:
    found = by_name(ssh_findings.of_visit(visit(ahead_s=-3.0, address="10.0.0.12")))
    assert (found["clock"].state, found["clock"].found) == ("poor", "3,000 ms behind this machine's (± 1 ms)")
    assert found["address"].state == "bad"


def test_a_machine_that_does_not_answer() -> None:
    away = Visit(machine("pi1"), error=SiteError("pi1 cannot be reached: it does not answer", "is it switched on?"))
    (found,) = ssh_findings.of_visit(away)
    assert (found.name, found.state, found.hint) == ("reachable", "bad", "is it switched on?")


def test_an_inventory_with_a_machine_twice() -> None:
    inventory = Inventory(machines=(machine("pi1", "database"), machine("pi2")))
    findings = ssh_findings.of_inventory(inventory, [visit(), visit(name="pi2")])
    assert findings[0].found == "2 machines, 2 reachable; 2 may be databases, 1 may drive load"
    (twice,) = [finding for finding in findings if finding.name == "machine"]
    assert (twice.machine, twice.state) == ("pi2", "poor"), "machines that share a kernel are lent"
    assert twice.found.startswith("runs on the same kernel as pi1: one machine under two names, or two that share")
    assert "`run` refuses to use a folder twice" in twice.hint
    other = visit("folder /mnt/x\n", name="pi2")
    findings = ssh_findings.of_inventory(inventory, [visit(), other])
    (shared,) = [finding for finding in findings if finding.name == "machine"]
    assert shared.state == "poor"


def test_one_machine_is_too_few() -> None:
    (inventory, *_) = ssh_findings.of_inventory(Inventory(machines=(machine("pi1"),)), [visit()])
    assert inventory.state == "bad"
