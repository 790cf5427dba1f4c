"""CQL queries to a node, sent with the agent's client within the node's own network."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from steelyard.model.errors import SystemFault
from steelyard.node import agent
from steelyard.node.base import Node
from steelyard.node.command import run

NO_CONNECTION = 3
TIMEOUT_S = 30.0
"""Longest wait for the connection, and for each answer."""

Row = dict[str, Any]


class NotAnswering(SystemFault):
    """The node does not accept CQL connections (yet)."""


async def ask(
    node: Node, port: int, statements: Sequence[str], *, timeout_s: float = TIMEOUT_S, options: Sequence[str] = ()
) -> tuple[tuple[Row, ...], ...]:
    """Rows of each statement, executed in order on this node; `options`: further options of the agent, such as `--tls`.
    Raises NotAnswering if it cannot connect, SystemFault if the server refuses a statement or does not answer in
    time."""
    argv = [
        str(agent.find()),
        "cql",
        "--contact",
        f"{node.address}:{port}",
        "--timeout-s",
        f"{timeout_s:g}",
        *options,
        *statements,
    ]
    done = await run(node, argv, timeout_s=timeout_s * (1 + len(statements)), watch=True, check=False)
    answers = [json.loads(line) for line in done.stdout.splitlines() if line.strip()]
    if done.exit_code != 0:
        reason = done.stderr.decode(errors="replace").strip() or f"the agent ended with {done.exit_code}"
        if answers and "error" in answers[-1]:
            reason = f"{statements[len(answers) - 1]}: {answers[-1]['error']['message']}"
        fault = NotAnswering if done.exit_code == NO_CONNECTION else SystemFault
        raise fault(f"{node.name}: {reason}", node=node.name, system="cassandra")
    if len(answers) != len(statements):
        raise SystemFault(
            f"{node.name}: {len(answers)} answers to {len(statements)} statements", node=node.name, system="cassandra"
        )
    return tuple(tuple(answer["rows"]) for answer in answers)
