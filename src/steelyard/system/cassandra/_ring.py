"""Token assignment: evenly interleaved tokens, so that every node can start at once and owns exactly its share."""

from __future__ import annotations

RING = 2**64
LOWEST = -(2**63)


def tokens(index: int, nodes: int, per_node: int) -> tuple[int, ...]:
    """Tokens of node `index` of `nodes`. Token j of the ring's c = nodes * per_node lies at -2^63 + 1 + j * 2^64 / c;
    node i gets j = i, i + nodes, i + 2 * nodes ..."""
    if not 0 <= index < nodes:
        raise ValueError(f"node {index} of {nodes}")
    count = nodes * per_node
    return tuple(LOWEST + 1 + (turn * nodes + index) * RING // count for turn in range(per_node))
