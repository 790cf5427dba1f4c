"""Whether the nodes of a request fit into the memory of this machine."""

from __future__ import annotations

from steelyard.node import machine_facts
from steelyard.site.base import Refusal, Request

LOAD_NODE_MB = 64
"""Minimum memory of a load node."""


def refusal(request: Request, limit_mb: int | None, memory_mb_per_node: int | None) -> str | None:
    """Reason why database nodes that need this much memory, and may use `limit_mb`, do not fit; None if they do, or if
    their need is unknown. A limit of more than the machine has would limit nothing."""
    there_mb = int(machine_facts.facts()["memory_mb"])
    if limit_mb is not None and limit_mb > there_mb:
        return Refusal(f"memory_mb = {limit_mb}, but this machine has {there_mb} MB", "node.memory_mb")
    if memory_mb_per_node is None:
        return None
    if limit_mb is not None and limit_mb < memory_mb_per_node:
        words = f"a node needs {memory_mb_per_node} MB, but memory_mb = {limit_mb} is its limit"
        return Refusal(words, "node.memory_mb", f"node.memory_mb = {memory_mb_per_node} or more")
    return too_many(request.database_nodes, memory_mb_per_node, request.load_nodes)


def too_many(databases: int, each_mb: int, loaders: int) -> str | None:
    """Reason why that many database nodes of this size, and load nodes, do not fit; None if they do."""
    needed = databases * each_mb + loaders * LOAD_NODE_MB
    available = int(machine_facts.facts()["memory_available_mb"])
    if needed > available:
        nodes = f"{databases} nodes of {each_mb} MB and {loaders} for load"
        return f"{nodes} need {needed} MB, but {available} MB are available"
    return None
