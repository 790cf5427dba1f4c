"""Round-trip time between two nodes, with nothing installed on the other (`steelyard-agent rtt`)."""

from __future__ import annotations

import json
from typing import Final

from steelyard.model.errors import CommandFailed, NodeError
from steelyard.node import agent
from steelyard.node.base import Node
from steelyard.node.command import run

ANSWER_TIMEOUT_S: Final = 2.0
START_TIMEOUT_S: Final = 10.0


async def measure_link(from_node: Node, to_node: Node, *, count: int = 3) -> dict[str, float]:
    """`rtt_ms_min` and `rtt_ms_mean` over `count` connections to a port without a listener.

    Runs through the prefix that is not charged to the node. Includes about 0.02 ms spent in the kernel. Raises
    NodeError, with the reason, if it cannot be measured: no answer, no route."""
    limit = ["--timeout-ms", str(int(ANSWER_TIMEOUT_S * 1000))]
    argv = [agent.on(from_node), "rtt", "--address", to_node.address, "--count", str(count), *limit]
    timeout_s = START_TIMEOUT_S + (count + 1) * ANSWER_TIMEOUT_S
    try:
        completed = await run(from_node, argv, timeout_s=timeout_s, watch=True)
    except CommandFailed as error:
        why = error.stderr_tail.strip().splitlines() or [error.message]
        raise NodeError(
            f"no round trip from {from_node.name} to {to_node.name} ({to_node.address}): {why[-1]}", node=from_node.name
        ) from error
    times_ms: list[float] = json.loads(completed.stdout)["times_ms"]
    return {"rtt_ms_min": min(times_ms), "rtt_ms_mean": sum(times_ms) / len(times_ms)}
