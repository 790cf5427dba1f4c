"""Looks at machines of an inventory that change nothing on them: before a lease, and for `steelyard doctor --site`."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from dataclasses import dataclass

from steelyard.model.errors import SiteError, SteelyardError
from steelyard.site.ssh import agent, scripts
from steelyard.site.ssh import connection as ssh_connection
from steelyard.site.ssh.connection import Connection
from steelyard.site.ssh.inventory import Inventory, Machine
from steelyard.site.ssh.scripts import Identity

MOST_AT_ONCE = 16
"""Machines that are visited at the same time."""
CLOCK_LOOKS = 5
"""Round trips, of which the shortest gives the clock."""
CLOCK = "date +%s.%N"


@dataclass(frozen=True)
class ClockReading:
    """A machine's clock compared with this machine's."""

    ahead_s: float
    error_s: float
    """Half of the round trip."""


@dataclass(frozen=True)
class Visit:
    """Results of a visit to one machine."""

    machine: Machine
    identity: Identity | None = None
    """None if it cannot be reached."""
    error: SteelyardError | None = None
    """Reason why it cannot be reached."""
    address: str = ""
    address_error: SteelyardError | None = None
    agent_error: SteelyardError | None = None
    """Reason why there is no agent for it."""
    clock: ClockReading | None = None


async def identify(connection: Connection, folder: str, survey: str = "") -> Identity:
    """A machine's report on itself; `survey` is more of the script. Raises Unreachable or SiteError."""
    done = await connection.shell(scripts.IDENTIFY + survey, folder)
    try:
        return scripts.parse(done.stdout.decode(errors="replace"))
    except ValueError as error:
        why = done.stderr.decode(errors="replace").strip()
        hint = f"use a machine with /proc and a POSIX login shell{f': {why}' if why else ''}"
        raise SiteError(f"{connection.name} cannot be used: {error}", hint) from error


async def visit_all(inventory: Inventory) -> list[Visit]:
    """A visit of every machine, in the inventory's order. Raises SiteError if control sockets cannot be made."""
    controls = ssh_connection.control_folder()
    word = secrets.token_hex(4)
    turns = asyncio.Semaphore(MOST_AT_ONCE)

    async def visit(index: int, machine: Machine) -> Visit:
        async with turns:
            connection = ssh_connection.connection(machine, controls / f"{word}-{index}", inventory.ssh_config)
            try:
                return await _visit(machine, connection, inventory.ssh_config)
            finally:
                await connection.close()

    return list(await asyncio.gather(*(visit(index, machine) for index, machine in enumerate(inventory.machines))))


async def _visit(machine: Machine, connection: Connection, ssh_config: str) -> Visit:
    try:
        identity = await identify(connection, machine.folder, scripts.SURVEY)
    except SiteError as error:
        return Visit(machine, error=error)
    address, address_error, agent_error = "", None, None
    try:
        address = await ssh_connection.address(machine, ssh_config)
    except SiteError as error:
        address_error = error
    try:
        agent.program(machine.name, identity.architecture)
    except SiteError as error:
        agent_error = error
    clock = await _clock(connection)
    return Visit(machine, identity, None, address, address_error, agent_error, clock)


async def _clock(connection: Connection) -> ClockReading | None:
    """The machine's clock by the shortest of some round trips; None if unknown."""
    readings = []
    for _ in range(CLOCK_LOOKS):
        asked_s = time.time()
        done = await connection.shell(CLOCK)
        answered_s = time.time()
        with contextlib.suppress(ValueError):
            ahead_s = float(done.stdout) - (asked_s + answered_s) / 2
            readings.append(ClockReading(ahead_s, (answered_s - asked_s) / 2))
    return min(readings, key=lambda reading: reading.error_s, default=None)
