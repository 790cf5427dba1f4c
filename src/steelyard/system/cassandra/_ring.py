"""Token assignment: evenly interleaved tokens, so that every node can start at once and owns exactly its share."""

from __future__ import annotations

from collections.abc import Sequence

RING = 2**64
LOWEST = -(2**63)


def tokens(index: int, nodes: int, per_node: int) -> tuple[int, ...]:
    """Tokens of node `index` of `nodes`. Token j of the ring's c = nodes * per_node lies at -2^63 + 1 + j * 2^64 / c;
    node i gets j = i, i + nodes, i + 2 * nodes ..."""
    if not 0 <= index < nodes:
        raise ValueError(f"node {index} of {nodes}")
    count = nodes * per_node
    return tuple(LOWEST + 1 + (turn * nodes + index) * RING // count for turn in range(per_node))


def ownership(owned: Sequence[Sequence[int]]) -> tuple[float, ...]:
    """Fraction of the ring that each node owns as first replica: a token owns the range from its predecessor to
    itself."""
    ring = sorted((token, node) for node, mine in enumerate(owned) for token in mine)
    shares = [0] * len(owned)
    for place, (token, node) in enumerate(ring):
        before = ring[place - 1][0]
        shares[node] += (token - before) % RING or RING
    return tuple(share / RING for share in shares)
