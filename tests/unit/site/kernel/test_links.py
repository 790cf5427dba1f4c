"""Links of site local: which part of this machine makes which, the command lines, the link program's configuration."""

from __future__ import annotations

import asyncio
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from steelyard.model.link import PLAIN, LinkChoice
from steelyard.node.processor import RunningProgram
from steelyard.site import fake, local
from steelyard.site.base import Linking, Request, unenforced
from steelyard.site.kernel import link_program, links
from steelyard.site.kernel.link_program import LinkProgram, moved_between, nothing_yet, parsed_counters
from steelyard.site.kernel.links import Bridge
from steelyard.site.kernel.network import Member

ETHERNET = LinkChoice(name="ethernet-100", medium="switched", rate_mbit=100, mtu=1500, queue_frames=128)
WAN = LinkChoice(name="wan", medium="switched", rate_mbit=50, delay_ms=10, loss_percent=0.5)
RADIO = LinkChoice(name="802.11n", medium="802.11", phy="802.11n-65", aggregate=16, hidden=(("n1", "l1"),))
MEMBERS = [Member("n1", "10.113.0.1"), Member("l1", "10.113.1.1", "load")]
HERE = "sy-0a1b2c3d"


@pytest.mark.parametrize(
    ("link", "netem", "program"),
    [
        (PLAIN, False, False),
        (ETHERNET, False, False),
        (WAN, True, False),
        (WAN, False, True),
        (WAN.model_copy(update={"jitter_ms": 1.0}), True, True),
        (ETHERNET.model_copy(update={"duplex": "half"}), True, True),
        (RADIO, True, True),
    ],
)
def test_the_kernel_makes_what_it_can(link: LinkChoice, netem: bool, program: bool) -> None:
    assert links.takes_program(link, netem=netem) is program


def test_a_rate_holds_at_both_ends_of_every_pair() -> None:
    def shaped(interface: str) -> list[str]:
        return [
            f"qdisc add dev {interface} root handle 1: tbf rate 100000000bit burst 12500b limit 193792b",
            f"qdisc add dev {interface} parent 1:1 handle 2: pfifo limit 128",
        ]

    assert links.discipline_lines("0a1b2c3d", MEMBERS, ETHERNET) == {
        f"{HERE}-sw": [*shaped("n1"), *shaped("l1")],
        f"{HERE}-n1": shaped("eth0"),
        f"{HERE}-l1": shaped("eth0"),
    }
    fast = links.discipline_lines("0a1b2c3d", MEMBERS, LinkChoice(medium="switched", rate_mbit=1000))
    assert len(fast[f"{HERE}-n1"]) == 1, "segments are no frames: its queue is counted in bytes"
    slow = links.discipline_lines("0a1b2c3d", MEMBERS, LinkChoice(medium="switched", rate_mbit=1))
    assert "burst 3028b limit 1514000b" in slow[f"{HERE}-n1"][0], "a frame fits into the bucket of a slow link"


def test_delay_and_loss_are_met_once_each_way() -> None:
    lines = links.discipline_lines("0a1b2c3d", MEMBERS, WAN)
    netem = "qdisc add dev eth0 root netem limit 1042 delay 10000us loss 0.5% rate 50000000bit"
    assert lines[f"{HERE}-n1"] == lines[f"{HERE}-l1"] == [netem]
    assert [line.split(": ")[-1].split()[0] for line in lines[f"{HERE}-sw"]] == ["tbf", "pfifo", "tbf", "pfifo"]
    unlimited = links.discipline_lines("0a1b2c3d", MEMBERS, LinkChoice(medium="switched", delay_ms=20))
    assert "netem limit 17513 delay 20000us" in unlimited[f"{HERE}-n1"][0], "what is under way counts in its limit"
    only_loss = links.discipline_lines("0a1b2c3d", MEMBERS, LinkChoice(medium="switched", loss_percent=1))
    assert only_loss[f"{HERE}-sw"] == []


def test_both_ends_have_the_mtu_and_frames_are_not_joined() -> None:
    lines = links.interface_lines("0a1b2c3d", MEMBERS, ETHERNET.model_copy(update={"mtu": 1400}))
    assert lines == {
        f"{HERE}-sw": ["link set n1 mtu 1400", "link set l1 mtu 1400"],
        f"{HERE}-n1": ["link set eth0 mtu 1400", "link set eth0 gso_max_segs 1"],
        f"{HERE}-l1": ["link set eth0 mtu 1400", "link set eth0 gso_max_segs 1"],
    }
    fast = links.interface_lines("0a1b2c3d", MEMBERS, LinkChoice(medium="switched", rate_mbit=1000))
    assert fast[f"{HERE}-n1"] == [], "without offload the processor would be the limit"
    jumbo = links.interface_lines("0a1b2c3d", MEMBERS, LinkChoice(medium="switched", mtu=9000))
    assert jumbo[f"{HERE}-n1"] == ["link set eth0 mtu 9000"]


def test_configuration_of_the_link_program() -> None:
    config = link_program.program_config("0a1b2c3d", MEMBERS, RADIO.model_copy(update={"load_nodes": "wired"}), 7)
    assert config["medium"] == {
        "kind": "802.11", "phy": "802.11n-65", "aggregate": 16, "hidden": [["n1", "l1"]],
    }  # fmt: skip
    assert (config["seed"], config["dilation"], config["mtu"]) == (7, 1.0, 1500)
    assert config["ports"][0] == {
        "name": "n1", "namespace": "/run/netns/sy-0a1b2c3d-n1", "interface": "eth0", "address": "10.113.0.1/16",
        "mac": "02:00:0a:71:00:01", "wired": False,
    }  # fmt: skip
    assert [port["wired"] for port in config["ports"]] == [False, True]
    wan = link_program.program_config("0a1b2c3d", MEMBERS, WAN, 7)
    assert wan["medium"] == {"kind": "point-to-point", "rate_mbit": 50.0, "delay_ms": 10.0, "loss_percent": 0.5}
    assert not any(port["wired"] for port in wan["ports"])


def kernel_has_netem(folder: Path, monkeypatch: pytest.MonkeyPatch, *, able: bool) -> None:
    """The trial of netem in a namespace of its own succeeds, or does not."""
    program = folder / "bin" / "unshare"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f"#!/bin/sh\nexit {int(not able)}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=os.pathsep)


def test_which_fabric_and_how_facts_call_it(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel_has_netem(tmp_path, monkeypatch, able=False)
    made = {
        link.name: asyncio.run(links.fabric("0a1b2c3d", MEMBERS, link, tmp_path, {}, 1))
        for link in (PLAIN, ETHERNET, WAN, RADIO)
    }
    assert [type(made[name]) for name in ("nodal", "ethernet-100", "wan", "802.11n")] == [
        Bridge, Bridge, LinkProgram, LinkProgram,
    ]  # fmt: skip
    assert [made[name].how for name in made] == [
        "", "ethernet-100: bridge, tbf", "wan: steelyard-agent link", "802.11n: steelyard-agent link",
    ]  # fmt: skip
    assert [step.name for step in made["ethernet-100"].steps()] == ["switch", "addresses", "link"]
    assert [step.name for step in made["nodal"].steps()] == ["switch", "addresses"]


def test_refusals_say_what_is_lacking(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert links.lacking(PLAIN, namespaces=False, tc=None) is None
    assert 'needs mode = "namespaces" and root' in str(links.lacking(ETHERNET, namespaces=False, tc="/sbin/tc"))
    assert "apt install iproute2" in str(links.lacking(ETHERNET, namespaces=True, tc=None))
    tun = tmp_path / "tun"
    assert "modprobe tun" in str(links.lacking(RADIO, namespaces=True, tc="/sbin/tc", tun=tun))
    kernel_has_netem(tmp_path, monkeypatch, able=False)
    assert "modprobe tun" in str(links.lacking(WAN, namespaces=True, tc="/sbin/tc", tun=tun))
    kernel_has_netem(tmp_path, monkeypatch, able=True)
    assert links.lacking(WAN, namespaces=True, tc="/sbin/tc", tun=tun) is None, "the kernel makes it"
    jitter = WAN.model_copy(update={"jitter_ms": 1.0})
    assert "modprobe tun" in str(links.lacking(jitter, namespaces=True, tc="/sbin/tc", tun=tun))
    site = local.create(local.Settings(mode="loopback"), tmp_path)
    assert "nodes on loopback addresses have no links" in str(site.refuse(Request("s", 1, link=ETHERNET), None))


def test_sites_without_links_refuse_them(tmp_path) -> None:
    site, request = fake.create(fake.Settings(), tmp_path), Request("s", 1)
    assert not isinstance(site, Linking)
    assert unenforced(site, request) is None
    assert unenforced(site, replace(request, link=RADIO)) == (
        "it cannot make link 802.11n: its nodes use an existing network; site local can make links"
    )
    assert isinstance(local.create(local.Settings(mode="loopback"), tmp_path), Linking)


def test_a_queue_without_a_rate_or_a_delay_is_refused() -> None:
    assert links.idle_queue(PLAIN.model_copy(update={"queue_frames": 10})) == (
        "link.queue_frames has no effect without rate_mbit or delay_ms: nothing is queued"
    )
    assert links.idle_queue(PLAIN.model_copy(update={"queue_frames": 10, "loss_percent": 1.0})) is not None
    for link in (ETHERNET, WAN, RADIO.model_copy(update={"queue_frames": 10}), PLAIN):
        assert links.idle_queue(link) is None


def counters(read_s: float, **changes: float) -> bytes:
    """A line of the link program, read at a time."""
    line = {
        "t_s": read_s, "frames": 0, "bytes": 0, "receivers": 0, "delivered": 0, "dropped": 0, "lost": 0, "under_way": 0,
        "unknown": 0, "kernel_dropped": 0, "slip_us_mean": 0.0, "slip_us_max": 0.0, "paused_s": 0.0,
        "cpu_s": 0.0,
    }  # fmt: skip
    return json.dumps(line | changes).encode()


def test_what_was_moved_is_the_difference_of_counters() -> None:
    lines = [
        counters(1, frames=10, delivered=10, slip_us_mean=100, slip_us_max=9000, cpu_s=0.1),
        counters(
            2,
            frames=30,
            delivered=20,
            lost=5,
            slip_us_mean=200,
            slip_us_max=700,
            paused_s=0.2,
            kernel_dropped=2,
            cpu_s=0.3,
        ),
        counters(
            3, frames=40, delivered=30, dropped=5, lost=5, slip_us_mean=300, slip_us_max=5000, paused_s=0.3, cpu_s=0.4
        ),
    ]
    parsed = [parsed_counters(line, 1000.0 + number) for number, line in enumerate(lines)]
    known = [each for each in parsed if each is not None]
    assert len(known) == 3
    moved = moved_between(known, 1000.0, 1000.5)
    assert (moved.seconds, moved.frames, moved.delivered, moved.lost, moved.unread) == (1.0, 20, 10, 5, 2)
    assert moved.late_ms_mean == pytest.approx((20 * 0.2 - 10 * 0.1) / 10)
    assert moved.late_ms_max == 0.7, "what was late before does not count"
    assert moved.unread_fraction == 2 / 22
    whole = moved_between(known, 1000.0, 1002.0)
    assert (whole.delivered, whole.dropped, whole.late_ms_max) == (20, 5, 5.0)
    assert (whole.seconds, whole.stalled_s) == (2.0, pytest.approx(0.3))
    silent = moved_between(known, 1000.0, 1010.0)
    assert (silent.seconds, silent.stalled_s) == (10.0, pytest.approx(8.3)), "it says nothing any more"
    begun = moved_between([nothing_yet(999.5), known[0]], 999.6, 1000.0)
    assert (begun.frames, begun.stalled_s) == (10, 0.0), "its first half-second"
    for none in ([], known[:1]):
        still = moved_between(none, 1002.0, 1008.0)
        assert (still.seconds, still.stalled_fraction, still.late_ms_mean) == (6.0, 1.0, None), "nothing all the time"


@pytest.mark.parametrize("line", [b"", b"{", b"[]", b'{"ready": true}', b'{"t_s": 1}', counters(1, ended=True)])
def test_lines_that_are_no_counters(line: bytes) -> None:
    assert parsed_counters(line, 1.0) is None


def test_only_the_link_program_is_a_helper() -> None:
    programs = {(7, 1): RunningProgram("steelyard-agent", 2.5), (8, 1): RunningProgram("java", 100.0)}
    assert link_program.program_time_s(frozenset({7, 9}), programs) == 2.5


def test_hidden_pairs_are_stations_of_the_channel() -> None:
    link = LinkChoice(medium="802.11", phy="802.11g-54", hidden=(("n1", "n3"),))
    assert links.unknown_station(link, ["n1", "n2", "n3", "l1"]) is None
    words = links.unknown_station(link, ["n1", "l1"])
    assert words == "link.hidden names n3, but the stations of the channel are n1, l1"


@pytest.mark.root
def test_a_wired_load_node_is_no_station(tmp_path: Path) -> None:
    link = LinkChoice(medium="802.11", phy="802.11g-54", hidden=(("n1", "l1"),))
    site = local.create(local.Settings(mode="namespaces"), tmp_path)
    assert site.refuse(Request("s", 1, link=link), None) is None
    refused = site.refuse(Request("s", 1, link=link.model_copy(update={"load_nodes": "wired"})), None)
    assert refused == "link.hidden names l1, but the stations of the channel are n1"
