"""Machines that become nodes of a lease: looked at, taken, handed on and taken back by ssh, wherever they come from."""

from __future__ import annotations

import os
import pwd
import socket
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from steelyard.leases import records as lease_records
from steelyard.model.errors import SiteError
from steelyard.node.base import Node
from steelyard.node.tasks import to_the_end, together
from steelyard.site.ssh import agent as ssh_agent
from steelyard.site.ssh import connection as ssh_connection
from steelyard.site.ssh import scripts
from steelyard.site.ssh.agent import AgentProgram
from steelyard.site.ssh.connection import Connection
from steelyard.site.ssh.inventory import Place
from steelyard.site.ssh.scripts import busy_users, held_by
from steelyard.site.ssh.survey import identify

RELEASE_TIMEOUT_S = 120.0
"""Time limit for ending the processes of a lease on one machine and removing its files."""
Look = tuple[Node, AgentProgram]
"""The node that a machine becomes, and the agent for it."""


@asynccontextmanager
async def looked_at(identity: str, places: Sequence[Place], ssh_config: str) -> AsyncIterator[list[Look]]:
    """Look at machines for a lease, which changes nothing on them. If that fails, or the block does, their connections
    are closed. Raises SiteError, Unreachable for a machine that is away."""
    controls = ssh_connection.control_folder()
    connections = [
        ssh_connection.connection(place.machine, controls / f"{identity}-{place.name}", ssh_config) for place in places
    ]
    try:
        yield await together(
            _look(identity, place, connection, ssh_config)
            for place, connection in zip(places, connections, strict=True)
        )
    except BaseException:
        await to_the_end(close(connections))
        raise


async def take(record: lease_records.Record, state: Path, looks: Iterable[Look]) -> None:
    """Claim machines for a lease and bring the agent. Raises SiteError."""
    await together(_take(record, state, node, program) for node, program in looks)


async def hand_on(record: lease_records.Record, state: Path, nodes: Sequence[Node]) -> bool:
    """Make machines as they were when they were lent; False if one is no longer the lease's. Raises SiteError."""
    return all(await together(_hand_on(record, state, node) for node in nodes))


async def take_back(identity: str, node: Node, controls: Path) -> None:
    """End a lease's processes on a machine, remove its files, free the machine. Idempotent. Raises SiteError."""
    connection = connection_of(node, controls)
    try:
        await _release_on(connection, node, identity)
    finally:
        await connection.close()


async def close(connections: Iterable[Connection]) -> None:
    """End connections. Idempotent."""
    await together(connection.close() for connection in connections)


def connection_of(node: Node, controls: Path | None = None) -> Connection:
    """Connection to a leased node; `controls` is where control sockets are now, if that may have changed."""
    return ssh_connection.of_node(f"{node.name} ({node.prefix[-1]})", node.prefix, controls)


async def _take(record: lease_records.Record, state: Path, node: Node, program: AgentProgram) -> None:
    connection = connection_of(node)
    former: list[str] = []

    async def claim() -> None:
        former.extend(await _claim(connection, node, record.id, _terms(record, state)))

    # What is in progress on the machine cannot be called back: it must be there, or not, when the lease is undone.
    await to_the_end(claim())
    await ssh_agent.bring(connection, Path(str(node.cache)), program)
    for identity in former:
        await _release_on(connection, node, identity)


async def _hand_on(record: lease_records.Record, state: Path, node: Node) -> bool:
    connection = connection_of(node)
    arguments = (str(node.cache), record.id, node.name, *_terms(record, state), node.kernel, node.agent)
    done = await connection.shell(scripts.HAND_ON, *arguments, timeout_s=RELEASE_TIMEOUT_S)
    if done.exit_code not in (0, scripts.CHANGED):
        why = done.stderr.decode(errors="replace").strip() or f"code {done.exit_code}"
        raise SiteError(f"{connection.name}: lease {record.id} cannot be handed on: {why}")
    return done.exit_code == 0


def _terms(record: lease_records.Record, state: Path) -> tuple[str, str]:
    """Seconds until a lease ends, and its holder, as written on its machines."""
    seconds = round((record.until - lease_records.utc_now()).total_seconds())
    who = f"of {pwd.getpwuid(os.getuid()).pw_name} on {socket.gethostname()}"
    return str(seconds), f"study {record.study} {who}, state folder {state}"


async def _look(identity: str, place: Place, connection: Connection, ssh_config: str) -> tuple[Node, AgentProgram]:
    """The node that a machine becomes, and the agent for it, after a look that changes nothing. Raises SiteError."""
    machine = await identify(connection, place.machine.folder)
    address = await ssh_connection.address(place.machine, ssh_config)
    if machine.addresses and address not in machine.addresses:
        raise SiteError(
            f"{place.machine.name} does not have the address {address}, but {', '.join(sorted(machine.addresses))}",
            f"give `address` of {place.machine.name} in the inventory",
        )
    if others := busy_users(machine):
        raise SiteError(f"{place.machine.name} is busy: {others}", "wait for it, or ask that user")
    program = ssh_agent.program(place.machine.name, machine.architecture)
    folder = Path(machine.folder)
    same = machine.kernel == lease_records.boot_id()
    node = Node(
        name=place.name,
        role=place.role,
        address=address,
        prefix=connection.argv,
        folder=folder / "nodes" / identity / place.name,
        words="shell",
        inherits=False,
        files="through",
        programs="own",
        processes="through",
        hardware="" if same else machine.kernel,
        kernel="" if same else machine.kernel,
        agent=str(ssh_agent.path_on(folder, program)),
        cache=folder,
        environment={lease_records.MARKER: identity},
    )
    return node, program


async def _claim(connection: Connection, node: Node, identity: str, terms: tuple[str, str]) -> list[str]:
    """Take a machine for a lease; returns the expired leases before it. Raises SiteError."""
    folder = str(node.cache)
    arguments = (folder, identity, node.name, *terms)
    name = scripts.CLAIM_NAME.format(lease=identity)
    done = await connection.shell(scripts.CLAIM, *arguments, name=name)
    text = done.stdout.decode(errors="replace")
    if done.exit_code == scripts.BUSY:
        raise SiteError(
            f"{connection.name} is busy: {held_by(scripts.holder_of(text))}",
            "wait for it; if it was killed, run `steelyard clean` where it ran",
        )
    if done.exit_code == scripts.SAME_MACHINE:
        raise SiteError(
            f"{connection.name}: another machine of the inventory has the same folder {folder}",
            "give each a `folder` on its own disk: they are one machine or share a home",
        )
    if done.exit_code != 0:
        why = done.stderr.decode(errors="replace").strip()
        raise SiteError(f"{connection.name}: cannot use {folder}: {why}", "give another `folder` in the inventory")
    return [line.partition(" ")[2] for line in text.splitlines() if line.startswith("expired ")]


async def _release_on(connection: Connection, node: Node, identity: str) -> None:
    folder, agent = str(node.cache), node.agent
    done = await connection.shell(scripts.RELEASE, folder, identity, agent, timeout_s=RELEASE_TIMEOUT_S)
    if done.exit_code == scripts.NO_AGENT:
        machine = await identify(connection, folder)
        program = ssh_agent.program(connection.name, machine.architecture)
        agent = await ssh_agent.bring(connection, Path(folder), program)
        done = await connection.shell(scripts.RELEASE, folder, identity, agent, timeout_s=RELEASE_TIMEOUT_S)
    if done.exit_code != 0:
        why = done.stderr.decode(errors="replace").strip()
        raise SiteError(f"{connection.name}: lease {identity} is still there: {why or f'code {done.exit_code}'}")
