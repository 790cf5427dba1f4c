"""Limits of nodes asked beside measured, on site `local` as root: by the gauge, and for writes through memory by dd.

Writes a row of JSON for each limit to stdout. Leases are given back; nothing else is changed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import tempfile
import time
from datetime import timedelta
from pathlib import Path

from steelyard.lab.gauging import gauge_nodes
from steelyard.leases import records as lease_records
from steelyard.model.node_limits import NodeLimits
from steelyard.node.base import Node
from steelyard.node.command import run
from steelyard.plugins.find import Plugins, shipped_values
from steelyard.site import local
from steelyard.site.base import Request
from steelyard.study.profiles import profile_of

DD_TIMEOUT_S = 120.0
DD_S = 3.0
BYTES_PER_MB = 1e6
OTHERS = {
    "0.1 of a core": NodeLimits(cpus=0.1, memory_mb=64),
    "0.5 of a core": NodeLimits(cpus=0.5, memory_mb=256),
    "1.5 cores": NodeLimits(cpus=1.5, memory_mb=2048),
    "1 core of its own": NodeLimits(cpus=1, cpu_limit="cpuset"),
    "slow disk": NodeLimits(
        disk_read_mb_per_s=2, disk_write_mb_per_s=1, disk_read_ops_per_s=100, disk_write_ops_per_s=50
    ),
    "fast disk": NodeLimits(
        disk_read_mb_per_s=200, disk_write_mb_per_s=100, disk_read_ops_per_s=5000, disk_write_ops_per_s=2500
    ),
}


async def written_mb_per_s(node: Node, limits: NodeLimits) -> float:
    """MB/s of a write through memory with an fsync at the end, by dd: what the throttle makes of background writes."""
    megabytes = max(4, round((limits.disk_write_mb_per_s or 1) * DD_S))
    argv = ["dd", "if=/dev/zero", f"of={node.folder / 'dd'}", "bs=1000000", f"count={megabytes}", "conv=fsync"]
    begun_s = time.monotonic()
    await run(node, argv, timeout_s=DD_TIMEOUT_S)
    return megabytes * 1_000_000 / BYTES_PER_MB / (time.monotonic() - begun_s)


async def measure(name: str, limits: NodeLimits, turns: int, state: Path) -> list[dict[str, object]]:
    """Rows of one set of limits: limit, asked, measured (median, least, most) and its ratio to what was asked."""
    site = local.create(local.Settings(), state)
    if reason := site.refuse(Request("benchmark", 1, 1, limits), None):
        return [{"limits": name, "refused": reason}]
    request = Request("benchmark", 1, 1, limits)
    lease = await site.lease(request, lease_records.utc_now() + timedelta(minutes=10))
    seen: dict[str, list[float]] = {}
    asked: dict[str, float] = {}
    took_s: list[float] = []
    try:
        for _ in range(turns):
            begun_s = time.monotonic()
            gauged = await gauge_nodes(lease.databases, limits, "before")
            took_s.append(time.monotonic() - begun_s)
            asked |= gauged.asked
            for limit, value in gauged.measured.get("n1", {}).items():
                seen.setdefault(limit, []).append(value)
            if limits.disk_write_mb_per_s:
                asked["written through memory, MB/s"] = limits.disk_write_mb_per_s
                seen.setdefault("written through memory, MB/s", []).append(
                    await written_mb_per_s(lease.databases[0], limits)
                )
    finally:
        await site.release(lease)
    rows: list[dict[str, object]] = []
    for limit, wanted in asked.items():
        values = seen[limit]
        middle = statistics.median(values)
        rows.append(
            {
                "limits": name, "limit": limit, "asked": wanted, "measured": round(middle, 3),
                "least": round(min(values), 3), "most": round(max(values), 3), "ratio": round(middle / wanted, 3),
                "gauge_s": round(statistics.median(took_s), 2),
            }
        )  # fmt: skip
    return rows


async def main(turns: int, only: str) -> None:
    """Every shipped profile and further limits, a row of JSON each."""
    named = {name: NodeLimits.model_validate(profile_of(Plugins(), name).limits) for name in shipped_values("profile")}
    with tempfile.TemporaryDirectory(prefix="steelyard-limits-") as folder:
        for name, limits in {**named, **OTHERS}.items():
            if limits != NodeLimits() and only in name:
                for row in await measure(name, limits, turns, Path(folder)):
                    print(json.dumps(row), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--only", default="", help="limits whose name has this in it")
    options = parser.parse_args()
    asyncio.run(main(options.turns, options.only))
