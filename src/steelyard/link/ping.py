"""Round-trip time between two nodes, with nothing installed on either.

A TCP connection to a port that nobody listens on is refused by the other node's kernel: that answer takes one round
trip, no server, and no right to send ICMP packets.
"""

from __future__ import annotations

import json
import sys
from typing import Final

from steelyard.model.errors import CommandFailed, NodeError
from steelyard.node.base import Node
from steelyard.node.command import run

PORT: Final = 1
"""tcpmux: reserved, and no server uses it."""
ANSWER_TIMEOUT_S: Final = 2.0
START_TIMEOUT_S: Final = 10.0
MISSING_PROGRAM: Final = 127

# The first connection includes finding the neighbour's hardware address (ARP) and is left out.
_SCRIPT = """
import json, socket, sys, time
address, port, count, timeout_s = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
times_ms = []
for _ in range(count + 1):
    with socket.socket() as one:
        one.settimeout(timeout_s)
        begun = time.perf_counter()
        try:
            one.connect((address, port))
        except ConnectionRefusedError:
            pass
        times_ms.append((time.perf_counter() - begun) * 1e3)
print(json.dumps(times_ms[1:]))
"""


async def measure_link(from_node: Node, to_node: Node, *, count: int = 3) -> dict[str, float]:
    """`rtt_ms_min` and `rtt_ms_mean` over `count` connections, after a first one that is not counted.

    Runs through the prefix that is not charged to the node. Includes about 0.02 ms spent in the kernel and in Python.
    Raises NodeError, with the reason, if it cannot be measured: no Python on the node, no answer, no route."""
    # The interpreter that runs us exists on every node of this machine; other machines have one in PATH, or none.
    python = sys.executable if from_node.local else "python3"
    argv = [python, "-c", _SCRIPT, to_node.address, str(PORT), str(count), str(ANSWER_TIMEOUT_S)]
    timeout_s = START_TIMEOUT_S + (count + 1) * ANSWER_TIMEOUT_S
    try:
        completed = await run(from_node, argv, timeout_s=timeout_s, watch=True)
    except CommandFailed as error:
        if error.exit_code == MISSING_PROGRAM:
            raise NodeError(f"{from_node.name} has no {python} to measure links with", node=from_node.name) from error
        why = error.stderr_tail.strip().splitlines() or [error.message]
        raise NodeError(
            f"no round trip from {from_node.name} to {to_node.name} ({to_node.address}): {why[-1]}", node=from_node.name
        ) from error
    times_ms: list[float] = json.loads(completed.stdout)
    return {"rtt_ms_min": min(times_ms), "rtt_ms_mean": sum(times_ms) / len(times_ms)}
