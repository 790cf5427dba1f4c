"""The link program beside the kernel's veth pairs and bridge: latency at rest, frames per second, processor time.

Writes JSON to stdout.

Two namespaces that this program makes itself (root); every row is measured in turns with the others, several times, so
compare ratios of one go.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from steelyard.node import agent

PORT = 5201
LIMIT_S = 120.0
ADDRESSES = ("10.113.0.1", "10.113.0.2")
PREFIX = 16
UNLIMITED = {"kind": "point-to-point", "rate_mbit": None}
ROWS: dict[str, tuple[dict[str, Any] | None, int, tuple[str, ...]]] = {
    "veth and bridge": (None, 1500, ()),
    "link, nothing limited": (UNLIMITED, 1500, ()),
    "link, nothing limited, ordinary priority": (UNLIMITED, 1500, ("--ordinary",)),
    "link, nothing limited, MTU 250": (UNLIMITED, 250, ()),
    "link, 100 Mb/s": ({"kind": "point-to-point", "rate_mbit": 100.0}, 1500, ()),
    "link, 1 Gb/s": ({"kind": "point-to-point", "rate_mbit": 1000.0}, 1500, ()),
    "link, 20 ms": ({"kind": "point-to-point", "delay_ms": 20.0}, 1500, ()),
    "link, 802.11g, 54 Mb/s": ({"kind": "802.11", "phy": "802.11g-54"}, 1500, ()),
}


def ip(*arguments: str) -> None:
    """Run `ip`."""
    subprocess.run(["ip", *arguments], check=True, timeout=LIMIT_S)


@contextmanager
def namespaces(*names: str) -> Iterator[list[str]]:
    """Network namespaces, removed at the end."""
    with ExitStack() as stack:
        full = [f"sybench-{os.getpid()}-{name}" for name in names]
        for name in full:
            ip("netns", "add", name)
            stack.callback(ip, "netns", "delete", name)
        yield full


def bridge(switch: str, nodes: list[str], mtu: int) -> None:
    """Join namespaces by veth pairs and a bridge in a namespace of its own, as site local does."""
    ip("-netns", switch, "link", "add", "bridge", "type", "bridge")
    ip("-netns", switch, "link", "set", "bridge", "up")
    for number, (node, address) in enumerate(zip(nodes, ADDRESSES, strict=True)):
        near = f"n{number}"
        ip("-netns", switch, "link", "add", near, "type", "veth", "peer", "name", "eth0", "netns", node)
        ip("-netns", switch, "link", "set", near, "mtu", str(mtu), "master", "bridge", "up")
        ip("-netns", node, "address", "add", f"{address}/{PREFIX}", "dev", "eth0")
        ip("-netns", node, "link", "set", "eth0", "mtu", str(mtu), "up")


def inside(node: str, *argv: str) -> list[str]:
    """A command of a namespace."""
    return [str(agent.find()), "enter", "--netns", f"/run/netns/{node}", "--", *argv]


def measure(nodes: list[str], *options: str) -> dict[str, Any]:
    """What `linktest` says of the path."""
    program = str(agent.find())
    serve = inside(nodes[1], program, "linktest", "serve", "--address", ADDRESSES[1], "--port", str(PORT))
    server = subprocess.Popen(serve, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert server.stdout is not None
        server.stdout.readline()
        argv = inside(
            nodes[0], program, "linktest", "measure", "--address", ADDRESSES[1], "--port", str(PORT), *options
        )
        done = subprocess.run(argv, stdout=subprocess.PIPE, check=True, timeout=LIMIT_S)
        return dict(json.loads(done.stdout))
    finally:
        server.kill()
        server.communicate()


@contextmanager
def link(nodes: list[str], medium: dict[str, Any], mtu: int, options: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """The link program; what it yields holds its counters after the end."""
    ports = [
        {
            "name": f"n{number}",
            "namespace": f"/run/netns/{node}",
            "address": f"{address}/{PREFIX}",
            "mac": f"02:00:00:00:00:{number:02x}",
        }
        for number, (node, address) in enumerate(zip(nodes, ADDRESSES, strict=True), start=1)
    ]
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump({"medium": medium, "mtu": mtu, "ports": ports}, file)
        file.flush()
        argv = [str(agent.find()), "link", "--config", file.name, *options]
        process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        counters: dict[str, Any] = {}
        try:
            assert process.stdout is not None
            counters |= json.loads(process.stdout.readline())
            yield counters
            output, _ = process.communicate(timeout=LIMIT_S)
            counters |= json.loads(output.splitlines()[-1])
        finally:
            process.kill()
            process.communicate()


def path(row: str, options: tuple[str, ...]) -> dict[str, Any]:
    """One measurement over a path made for it."""
    medium, mtu, link_options = ROWS[row]
    with namespaces("1", "2", "sw") as (first, second, switch):
        nodes = [first, second]
        if medium is None:
            bridge(switch, nodes, mtu)
            return measure(nodes, *options)
        with link(nodes, medium, mtu, link_options) as counters:
            measured = measure(nodes, *options)
        return measured | {"link": counters}


def turn(row: str, seconds: float) -> dict[str, Any]:
    """Latency and then goodput of one row."""
    probes = path(row, ("--probes", "500", "--seconds", "0"))
    stream = path(row, ("--probes", "0", "--seconds", str(seconds)))
    figures = {
        "rtt us min": 1e3 * probes["rtt_ms_min"],
        "rtt us mean": 1e3 * probes["rtt_ms_mean"],
        "rtt us p99": 1e3 * probes["rtt_ms_p99"],
        "Mb/s": stream["mbit_per_s"],
    }
    if "link" in stream:
        counters = stream["link"]
        figures |= {
            "frames per s": counters["frames"] / seconds,
            "link cores": counters["cpu_s"] / seconds,
            "link cpu us per frame": 1e6 * counters["cpu_s"] / max(1, counters["frames"]),
            "slip us mean": counters["slip_us_mean"],
            "slip us mean at rest": probes["link"]["slip_us_mean"],
            "dropped by kernel": counters["kernel_dropped"],
            "fifo": counters["scheduling"] == "fifo",
        }
    return figures


def main() -> None:
    """Rows in turns, medians with least and most."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0, help="length of a TCP stream")
    parser.add_argument("--only", default="", help="rows with this text in their name")
    asked = parser.parse_args()
    rows = [row for row in ROWS if asked.only in row]
    turns: dict[str, list[dict[str, Any]]] = {row: [] for row in rows}
    for number in range(asked.turns):
        for row in rows:
            turns[row].append(turn(row, asked.seconds))
            print(f"turn {number + 1}: {row}", file=sys.stderr)
    summary = {
        row: {
            name: {
                "median": round(statistics.median(figures[name] for figures in taken), 3),
                "least": round(min(figures[name] for figures in taken), 3),
                "most": round(max(figures[name] for figures in taken), 3),
            }
            for name in taken[0]
        }
        for row, taken in turns.items()
    }
    json.dump({"load average": Path("/proc/loadavg").read_text().split()[:3], "rows": summary}, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
