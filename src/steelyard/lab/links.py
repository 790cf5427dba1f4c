"""Paths between the nodes of a cluster as they are measured: before the first trial of a start, and after the last."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from steelyard.link.linktest import measure_path, pairs
from steelyard.link.ping import measure_link
from steelyard.model.errors import NodeError
from steelyard.model.link import LinkChoice
from steelyard.node.base import Node

AMONG_DATABASES = {"ends": "databases"}


async def round_trips(loaders: Sequence[Node], databases: Sequence[Node]) -> list[Mapping[str, Any]]:
    """Round trips from load nodes to database nodes: what every start has measured."""
    return [await _round_trip(loader, node) for node in databases for loader in loaders]


async def in_full(loaders: Sequence[Node], databases: Sequence[Node], link: LinkChoice) -> list[Mapping[str, Any]]:
    """Rate, round trip and loss of every path of `link.linktest.pairs`, one after another, so that none is in the way
    of another. Of paths between nodes on which commands can be run."""
    loaders, databases = ([node for node in nodes if node.commands] for nodes in (loaders, databases))
    return [await _path(from_node, to_node, link) for from_node, to_node in pairs(loaders, databases)]


async def _path(from_node: Node, to_node: Node, link: LinkChoice) -> Mapping[str, Any]:
    """A path as measured; one that cannot be measured says why."""
    ends = {"from": from_node.name, "to": to_node.name, **(AMONG_DATABASES if from_node.role == "database" else {})}
    try:
        return {**ends, **await measure_path(from_node, to_node, link)}
    except NodeError as error:
        return {**ends, "problem": error.message}


async def _round_trip(loader: Node, node: Node) -> Mapping[str, Any]:
    """A path as measured; a node on which it cannot be measured says why."""
    ends = {"from": loader.name, "to": node.name}
    try:
        return {**ends, **await measure_link(loader, node)}
    except NodeError as error:
        return {**ends, "problem": error.message}
