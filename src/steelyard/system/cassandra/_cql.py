"""CQL queries to a node, sent with the agent's client within the node's own network."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Sequence
from typing import Any

from steelyard.model.errors import SystemFault
from steelyard.node import agent
from steelyard.node.base import Node, with_port
from steelyard.node.command import run
from steelyard.node.secrets import cql_credentials

NO_CONNECTION = 3
AGENT = "steelyard-agent: "
"""Prefix of the agent's standard error."""
TIMEOUT_S = 30.0
"""Longest wait for the connection, and for each answer."""

Row = dict[str, Any]


class NotAnswering(SystemFault):
    """The node does not accept CQL connections (yet)."""


MOST_SHOWN = 120
"""Characters of a statement in an error."""


async def ask(
    node: Node, port: int, statements: Sequence[str], *, timeout_s: float = TIMEOUT_S, options: Sequence[str] = ()
) -> tuple[tuple[Row, ...], ...]:
    """Rows of each statement, executed in order on this node; `options`: further options of the agent, such as `--tls`.
    Raises NotAnswering if it cannot connect, SystemFault if the server refuses a statement or does not answer in
    time."""
    contact = with_port(node.address, port)
    return await ask_at(contact, statements, client=node, of=node, timeout_s=timeout_s, options=options)


async def ask_at(
    contact: str,
    statements: Sequence[str],
    *,
    client: Node | None,
    of: Node,
    timeout_s: float = TIMEOUT_S,
    options: Sequence[str] = (),
) -> tuple[tuple[Row, ...], ...]:
    """As `ask`, of the node `of` at `address:port`, from the node `client` (None: this machine)."""
    node = of
    program = str(agent.find()) if client is None else agent.on(client)
    argv = [program, "cql", "--contact", contact, "--timeout-s", f"{timeout_s:g}", *options, *statements]
    limit_s = timeout_s * (1 + len(statements))
    done = await run(client, argv, timeout_s=limit_s, watch=True, check=False, variables=cql_credentials())
    # The line of an answer that ended early is not JSON.
    lines = () if done.exit_code == NO_CONNECTION else done.stdout.splitlines()
    answers = [json.loads(line) for line in lines if line.strip()]
    if done.exit_code != 0:
        text = done.stderr.decode(errors="replace").strip().removeprefix(AGENT)
        reason, _, hint = (text or f"the agent exited with code {done.exit_code}").partition("\n")
        if answers and "error" in answers[-1]:
            statement = textwrap.shorten(statements[len(answers) - 1], MOST_SHOWN, placeholder=" ...")
            reason = f"{answers[-1]['error']['message']}: {statement}"
        fault = NotAnswering if done.exit_code == NO_CONNECTION else SystemFault
        label = "" if reason.startswith(node.name) else f"{node.name}: "
        raise fault(label + reason, hint, node=node.name, system="cassandra")
    if len(answers) != len(statements):
        raise SystemFault(
            f"{node.name}: {len(answers)} answers to {len(statements)} statements", node=node.name, system="cassandra"
        )
    return tuple(tuple(answer["rows"]) for answer in answers)
