"""Steelyard measured by itself: the generator's ceiling, pacing and cost, the probe's cost. Writes a table to stdout.

Everything runs on loopback, for a bounded time; figures are of this machine at this moment and are compared side by
side only.
"""

from __future__ import annotations

import argparse
import json
import resource
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from steelyard.judging.trial_responses import merged
from steelyard.model import percentiles
from steelyard.node import agent
from steelyard.wire.record import Done, Interval, Record, parse

ROOT = Path(__file__).resolve().parents[1]
ADDRESS = "127.113.9.1"
PORT = 19042
SETTLE_S = 5.0


@contextmanager
def server(*options: str) -> Iterator[None]:
    """A simulated node on loopback."""
    argv = [str(agent.find()), "sim", "--listen", f"{ADDRESS}:{PORT}", *options]
    process = subprocess.Popen(argv, stdout=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + SETTLE_S
        while time.monotonic() < deadline:
            with socket.socket() as probe:
                if probe.connect_ex((ADDRESS, PORT)) == 0:
                    break
            time.sleep(0.02)
        fields = ", ".join(f"field{i} text" for i in range(10))
        replication = "{'class': 'SimpleStrategy', 'replication_factor': 1}"
        schema = (
            f"CREATE KEYSPACE IF NOT EXISTS ycsb WITH replication = {replication}",
            f"CREATE TABLE IF NOT EXISTS ycsb.usertable (y_id text PRIMARY KEY, {fields})",
        )
        argv = [str(agent.find()), "cql", "--contact", f"{ADDRESS}:{PORT}", *schema]
        subprocess.run(argv, stdout=subprocess.DEVNULL, check=True)
        yield
    finally:
        process.terminate()
        process.wait(SETTLE_S)


def drive(schedule: dict[str, Any], stop: dict[str, Any], proportions: dict[str, float]) -> list[Record]:
    """Carry out an order and return its records."""
    order = json.loads((ROOT / "schema" / "order.example.json").read_text())
    everything = dict.fromkeys(order["work"]["proportions"], 0.0)
    order["work"]["proportions"] = {**everything, **proportions}
    order |= {"contacts": [f"{ADDRESS}:{PORT}"], "schedule": schedule, "stop": stop}
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(order, file)
        file.flush()
        argv = [str(agent.find()), "load", "--order", file.name]
        done = subprocess.run(argv, stdout=subprocess.PIPE, check=True)
    return [parse(line) for line in done.stdout.splitlines()]


def row(name: str, records: list[Record]) -> dict[str, Any]:
    """Figures of one drive."""
    (done,) = [record for record in records if isinstance(record, Done)]
    intervals = [record for record in records if isinstance(record, Interval)]
    figures: dict[str, Any] = {"what": name, "operations": done.operations, "errors": done.errors}
    figures["op/s"] = round(done.rate_per_s)
    figures["client cpu us/op"] = round(done.cpu_ns / 1e3 / max(1, done.operations), 2)
    for measure in ("service", "response", "pacing"):
        buckets = merged(intervals, measure)
        for q, label in ((0.5, "p50"), (0.99, "p99")):
            value = percentiles.quantile_ns(buckets, q)
            figures[f"{measure} {label} us"] = None if value is None else round(value / 1e3, 1)
    return figures


def probe_cost(seconds: int) -> dict[str, Any]:
    """CPU that the probe takes, over `seconds`."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    argv = [str(agent.find()), "probe", "--lines", str(seconds)]
    subprocess.run(argv, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"what": f"probe, {seconds} s at 1 s", "cpu % of a core": round(100 * used / seconds, 3)}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tiny", action="store_true", help="sizes for a test of this program, not for figures")
    tiny = parser.parse_args().tiny
    operations, seconds = (2_000, 1) if tiny else (300_000, 8)
    rows = []
    with server("--null"):
        for threads in (1, 64):
            records = drive(
                {"kind": "closed", "threads": threads}, {"operations": operations // 64 * threads}, {"read": 1}
            )
            rows.append(row(f"null server, reads, closed loop, {threads} in flight", records))
        records = drive({"kind": "closed", "threads": 64}, {"operations": operations}, {"update": 1})
        rows.append(row("null server, updates of 100 B, closed loop, 64 in flight", records))
        pace = {"kind": "constant", "rate_per_s": 2000.0, "in_flight": 64}
        rows.append(
            row("null server, 2,000 reads/s, open loop", drive(pace, {"duration_s": float(seconds)}, {"read": 1}))
        )
    with server("--service-us", "500"):
        records = drive({"kind": "closed", "threads": 1}, {"operations": operations // 100}, {"read": 1})
        rows.append(row("simulated node, 500 us service, 1 in flight", records))
    rows.append(probe_cost(2 if tiny else 30))
    json.dump(rows, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
