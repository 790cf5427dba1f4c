"""Rate, round trip and loss of the paths between nodes, with nothing installed on them (`steelyard-agent linktest`)."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Sequence
from typing import Final

from steelyard.model.errors import CommandFailed, NodeError
from steelyard.model.link import LinkChoice
from steelyard.node import agent
from steelyard.node.base import Node
from steelyard.node.command import end, run, spawn

PORT: Final = 7113
LEAST_S: Final = 0.5
MOST_S: Final = 5.0
ROUND_TRIPS: Final = 50.0
"""A rate is measured for at least this many round trips: a new connection takes some ten to reach it."""
PROBES: Final = 100
PROBE_EVERY_MS: Final = 10
"""So rarely that the slowest radio channel is idle before the next probe."""
PROBE_TIMEOUT_MS: Final = 1000
"""Time for the last probes to come back, in addition to the requested round trip."""
PROCESSES_S: Final = 0.15
"""Assumed time to start both ends of a test."""
LISTEN_TIMEOUT_S: Final = 10.0
MEASURE_GRACE_S: Final = 30.0
SMALL_CLUSTER: Final = 3
"""Up to this many database nodes, every pair of them is measured; of more, each node and the next."""


def pairs(loaders: Sequence[Node], databases: Sequence[Node]) -> list[tuple[Node, Node]]:
    """The paths that are measured: every load node to every database node, then database nodes among each other. Of
    more than SMALL_CLUSTER, a ring of them: each node and the next, and the last and the first."""
    members = list(databases)
    if len(members) <= SMALL_CLUSTER:
        among = [(node, other) for index, node in enumerate(members) for other in members[index + 1 :]]
    else:
        among = list(zip(members, [*members[1:], members[0]], strict=True))
    return [*((loader, node) for node in members for loader in loaders), *among]


def number_of_pairs(load_nodes: int, databases: int) -> int:
    """Number of paths from `pairs`."""
    among = databases * (databases - 1) // 2 if databases <= SMALL_CLUSTER else databases
    return load_nodes * databases + among


def rate_s(link: LinkChoice) -> float:
    """Seconds for which a rate is measured."""
    return min(MOST_S, max(LEAST_S, ROUND_TRIPS * (link.round_trip_ms or 0.0) / 1000))


def expected_s(link: LinkChoice, load_nodes: int, databases: int) -> float:
    """Expected seconds to measure all paths of a cluster once, one after another."""
    each_s = rate_s(link) + (PROBES * PROBE_EVERY_MS + (link.round_trip_ms or 0.0)) / 1000 + PROCESSES_S
    return number_of_pairs(load_nodes, databases) * each_s


async def measure_path(from_node: Node, to_node: Node, link: LinkChoice) -> dict[str, float]:
    """`mbit_per_s` of one TCP connection, `rtt_ms_min`, `rtt_ms_mean`, `rtt_ms_p99` of UDP probes on the idle path,
    `sent`, `lost`, and `loss_percent`: of frames one way, if both ways lose alike.

    Runs through the prefixes that are not charged to the nodes. Raises NodeError, with the reason, if the path cannot
    be measured."""
    where = ["--address", to_node.address, "--port", str(PORT)]
    seconds = rate_s(link)
    sink = [agent.on(to_node), "linktest", "serve", *where]
    timeout_ms = PROBE_TIMEOUT_MS + math.ceil(link.round_trip_ms or 0.0)
    argv = [
        agent.on(from_node), "linktest", "measure", *where, "--seconds", f"{seconds:g}", "--probes", str(PROBES),
        "--interval-ms", str(PROBE_EVERY_MS), "--timeout-ms", str(timeout_ms),
    ]  # fmt: skip
    try:
        serving = await spawn(to_node, sink, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, watch=True)
    except CommandFailed as error:
        raise _unmeasured(from_node, to_node, error.message) from error
    try:
        assert serving.stdout is not None
        async with asyncio.timeout(LISTEN_TIMEOUT_S):
            line = await serving.stdout.readline()
        if b"listening" not in line:
            raise _unmeasured(from_node, to_node, f"{to_node.name} does not listen: {line.decode(errors='replace')}")
        limit_s = seconds + (PROBES * PROBE_EVERY_MS + timeout_ms) / 1000 + MEASURE_GRACE_S
        completed = await run(from_node, argv, timeout_s=limit_s, watch=True)
    except CommandFailed as error:
        why = error.stderr_tail.strip().splitlines() or [error.message]
        raise _unmeasured(from_node, to_node, why[-1]) from error
    except TimeoutError as error:
        raise _unmeasured(from_node, to_node, f"{to_node.name} did not listen in {LISTEN_TIMEOUT_S:g} s") from error
    finally:
        await end(serving)
    return _of_answer(json.loads(completed.stdout.splitlines()[-1]))


def _of_answer(answer: dict[str, float | None]) -> dict[str, float]:
    known = {name: float(value) for name, value in answer.items() if isinstance(value, int | float)}
    if known.get("sent"):
        arrived = 1 - min(1.0, known.get("lost", 0.0) / known["sent"])
        known["loss_percent"] = 100 * (1 - math.sqrt(arrived))
    return known


def _unmeasured(from_node: Node, to_node: Node, why: str) -> NodeError:
    path = f"from {from_node.name} to {to_node.name} ({to_node.address})"
    return NodeError(f"the link {path} cannot be measured: {why}", node=from_node.name)
