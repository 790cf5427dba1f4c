"""Redis probe: a server's own metrics as its command INFO says them, which `redis-cli` repeats over one connection."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Final

from steelyard.model.errors import ProbeError
from steelyard.model.sample import Metric, Sample
from steelyard.probe.base import Placement, Watched, with_way

NAME: Final = "redis"
WAY: Final = "resp"
CLIENT: Final = "redis_cli"
SCRIPT: Final = "return redis.call('INFO')"
"""Asked directly, INFO is printed in many lines, whatever its format."""
TIME: Final = "server_time_usec"
US_PER_S: Final = 1e6


def _metric(name: str, unit: str, description: str) -> Metric:
    return Metric(name=f"node_redis_{name}", unit=unit, description=description)


FIELDS: Final = {
    "instantaneous_ops_per_sec": (_metric("operations_per_s", "operations/s", "commands, over about 1.6 s"), 1),
    "instantaneous_input_kbps": (_metric("received_bytes_per_s", "bytes/s", "from clients and nodes, as above"), 1024),
    "instantaneous_output_kbps": (_metric("sent_bytes_per_s", "bytes/s", "to clients and nodes, as above"), 1024),
    "connected_clients": (_metric("clients", "clients", "connections of clients"), 1),
    "used_memory": (_metric("memory_bytes", "bytes", "memory that the allocator gave out, data and all else"), 1),
    "evicted_keys": (_metric("evicted_keys", "keys", "keys evicted since the start, for want of memory"), 1),
    "keyspace_hits": (_metric("hits", "keys", "keys that were looked up and found, since the start"), 1),
    "keyspace_misses": (_metric("misses", "keys", "keys that were looked up and not found, since the start"), 1),
}  # fmt: skip
"""Field of INFO to its metric, and the factor between both."""


class RedisProbe:
    """Probe that runs `redis-cli` on each database node."""

    name = NAME
    way = WAY
    metrics = tuple(metric for metric, _ in FIELDS.values())

    def placements(self, watched: Sequence[Watched], interval_s: float) -> Sequence[Placement]:
        """One connection to each server. Raises ProbeError for another system."""
        return [
            Placement(on=each.node, argv=_argv(each, interval_s), speaks_of=(each.node.name,))
            for each in with_way(watched, CLIENT, NAME)
        ]

    def parse(self, node: str, line: bytes) -> Iterable[Sample]:
        """Samples of one answer. Raises ProbeError on any other line."""
        try:
            fields = dict(text.partition(":")[::2] for text in json.loads(line).splitlines())
            t_s = int(fields[TIME]) / US_PER_S
            return [
                Sample(t_s, node, metric.name, float(fields[field]) * factor)
                for field, (metric, factor) in FIELDS.items()
            ]
        except (ValueError, KeyError, AttributeError) as error:
            raise ProbeError(f"{node}: not a line of the probe {NAME}: {line[:200]!r}") from error


def _argv(each: Watched, interval_s: float) -> tuple[str, ...]:
    host, _, port = each.ways[WAY].rpartition(":")
    contact = ("-h", host.strip("[]"), "-p", port)
    return (each.ways[CLIENT], *contact, "--json", "-r", "-1", "-i", f"{interval_s:g}", "EVAL", SCRIPT, "0")


def create() -> RedisProbe:
    """The probe; no side effects."""
    return RedisProbe()
