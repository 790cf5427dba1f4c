"""The live link between network namespaces: what it was asked for is what the nodes meet, and nothing is left of it."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.contract.link.live import (
    INTERFACE,
    LIMIT_S,
    Place,
    balanced,
    ip,
    link,
    measure,
    places,
    program,
    write_config,
)

pytestmark = [
    pytest.mark.agent,
    pytest.mark.root,
    pytest.mark.skipif(not Path("/dev/net/tun").exists(), reason="this kernel has no TAP devices"),
]

PROBES_ONLY = ("--seconds", "0")
STREAM_ONLY = ("--probes", "0", "--seconds", "1")
TCP_SHARE = 1448 / 1514
"""Payload of a full Ethernet frame without preamble, checksum and gap."""


def _point(**settings: Any) -> dict[str, Any]:
    return {"kind": "point-to-point", **settings}


def test_delay_is_met_in_both_directions(tmp_path: Path) -> None:
    with places(2) as (first, second):
        config = write_config(tmp_path, _point(delay_ms=5.0), [first, second])
        with link(config) as running:
            measured = measure(first, second, *PROBES_ONLY, "--probes", "50")
            counters = running.end()
    assert measured["lost"] == 0
    # Never less than asked; how much more is the machine's business.
    assert 10.0 <= measured["rtt_ms_min"] < 12.0
    assert running.ready["ports"] == 2
    assert counters["ended"] is True
    assert balanced(counters)
    assert counters["lost"] == counters["dropped"] == 0
    assert counters["delivered"] >= 2 * 51
    assert counters["cpu_s"] > 0.0


def test_rate_is_met_by_a_stream(tmp_path: Path) -> None:
    with places(2) as (first, second):
        config = write_config(tmp_path, _point(rate_mbit=20.0, queue_frames=100), [first, second])
        with link(config, "--every-s", "0.5") as running:
            measured = measure(first, second, *STREAM_ONLY)
            counters = running.end()
    # A busy machine reads late, and then more at once.
    assert 0.9 * 20.0 * TCP_SHARE < measured["mbit_per_s"] < 1.05 * 20.0 * TCP_SHARE
    assert balanced(counters)
    assert len(running.lines) >= 2, "a line every half second, and the last one"
    assert [line["frames"] for line in running.lines] == sorted(line["frames"] for line in running.lines)


def test_losses_are_as_many_as_asked(tmp_path: Path) -> None:
    with places(2) as (first, second):
        config = write_config(tmp_path, _point(loss_percent=20.0), [first, second], seed=3)
        with link(config) as running:
            _know_each_other(first, second)
            measured = measure(
                first, second, *PROBES_ONLY, "--probes", "400", "--interval-ms", "1", "--timeout-ms", "3000"
            )
            counters = running.end()
    # 36% of the round trips, 144 with a standard deviation of 9.6: five of them.
    assert 96 <= measured["lost"] <= 192
    assert balanced(counters)
    assert counters["lost"] >= measured["lost"]


def test_broadcasts_reach_all_and_frames_go_where_they_are_meant(tmp_path: Path) -> None:
    with places(3) as (first, second, third):
        config = write_config(tmp_path, _point(), [first, second, third])
        with link(config) as running:
            measured = measure(first, second, *PROBES_ONLY, "--probes", "20")
            neighbours = ip("-netns", second.namespace, "neighbour", "show")
            received = _received(third.namespace)
            counters = running.end()
    assert measured["lost"] == 0
    assert f"{first.address} dev {INTERFACE} lladdr {first.mac}" in neighbours, "asked for by broadcast"
    assert counters["receivers"] > counters["frames"], "a broadcast has two receivers"
    assert 0 < received < 20, "the third sees broadcasts and none of the probes"
    assert balanced(counters)


def _know_each_other(first: Place, second: Place) -> None:
    """Enters hardware addresses by hand: the kernel asks for one once a second, and a question may be lost, too."""
    for asking, asked in ((first, second), (second, first)):
        entry = (asked.address, "lladdr", asked.mac, "dev", INTERFACE, "nud", "permanent")
        ip("-netns", asking.namespace, "neighbour", "replace", *entry)


def _received(namespace: str) -> int:
    """Packets that came in by the interface of a namespace."""
    table = subprocess.run(
        ["ip", "netns", "exec", namespace, "cat", "/proc/net/dev"], check=True, capture_output=True, text=True
    ).stdout
    (line,) = (line for line in table.splitlines() if line.strip().startswith(f"{INTERFACE}:"))
    return int(line.split(":")[1].split()[1])


def test_addresses_may_be_of_the_sixth_version(tmp_path: Path) -> None:
    with places(2, six=True) as (first, second):
        config = write_config(tmp_path, _point(delay_ms=1.0), [first, second], mtu=1400)
        with link(config) as running:
            assert "mtu 1400" in ip("-netns", first.namespace, "link", "show", INTERFACE)
            measured = measure(first, second, "--probes", "20", "--seconds", "0.5")
            assert balanced(running.end())
    assert measured["lost"] == 0
    assert measured["rtt_ms_min"] >= 2.0
    assert measured["mbit_per_s"] > 1.0


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_nothing_is_left_of_a_program_that_is_ended(tmp_path: Path, number: signal.Signals) -> None:
    with places(2) as (first, second):
        config = write_config(tmp_path, _point(), [first, second])
        with link(config) as running:
            assert INTERFACE in first.links()
            running.process.send_signal(number)
            ended = running.process.wait(timeout=LIMIT_S)
            assert ended == (0 if number == signal.SIGTERM else -number)
            assert first.links() == second.links() == ["lo"]
        with link(config) as running:
            assert balanced(running.end()), "the next one finds nothing in its way"


def test_what_stands_in_the_way_is_named(tmp_path: Path) -> None:
    def refusal(config: Path) -> tuple[int, str]:
        argv = [program(), "link", "--config", str(config)]
        done = subprocess.run(
            argv, check=False, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT_S
        )
        return done.returncode, done.stderr

    with places(2) as (first, second):
        config = write_config(tmp_path, _point(), [first, second])
        with link(config):
            code, message = refusal(config)
            assert code == 1
            assert f"port n1: {INTERFACE} in /run/netns/{first.namespace}" in message
            assert "already exist" in message
    code, message = refusal(config)
    assert code == 1
    assert f"network namespace /run/netns/{first.namespace}" in message
    config = write_config(tmp_path, _point(loss_percent=101.0), [first, second])
    code, message = refusal(config)
    assert code == 2
    assert "loss_percent" in message


@pytest.mark.parametrize(
    ("wired", "least", "most"),
    [
        # 1500 bytes take 394 us on their way to the access point and as long from there, an acknowledgement of 52 bytes
        # for two of them some 170: 2 x 1448 bytes in 2 x 2 x 394 + 2 x 170 us are 12 Mb/s.
        pytest.param((), 6.0, 18.0, id="station to station"),
        # Half of that time: 24 Mb/s.
        pytest.param((2,), 12.0, 31.0, id="station to wire"),
    ],
)
def test_one_flow_over_802_11_takes_the_airtime_of_its_hops(
    tmp_path: Path, wired: tuple[int, ...], least: float, most: float
) -> None:
    medium = {"kind": "802.11", "phy": "802.11g-54", "queue_frames": 100}
    with places(3, wired=wired) as (first, second, third):
        config = write_config(tmp_path, medium, [first, second, third])
        with link(config) as running:
            measured = measure(first, second, "--probes", "20", "--seconds", "1")
            counters = running.end()
    assert least < measured["mbit_per_s"] < most
    assert measured["rtt_ms_min"] > 0.1, "two or four frames of 84 bytes"
    assert balanced(counters)
    assert counters["receivers"] > counters["frames"] > 0
    assert counters["delivered"] > 0
