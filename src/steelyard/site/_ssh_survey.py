"""A look at every machine of an inventory that changes nothing on it, for `steelyard doctor --site`."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from dataclasses import dataclass

from steelyard.model.errors import SiteError, SteelyardError
from steelyard.site import _ssh_agent, _ssh_connection, _ssh_scripts, ssh
from steelyard.site._inventory import Inventory, Machine
from steelyard.site._ssh_connection import Connection
from steelyard.site._ssh_scripts import Identity

MOST_AT_ONCE = 16
"""Machines that are visited at the same time."""
CLOCK_LOOKS = 5
"""Round trips, of which the shortest tells the clock."""
CLOCK = "date +%s.%N"


@dataclass(frozen=True)
class ClockReading:
    """A machine's clock beside this machine's."""

    ahead_s: float
    error_s: float
    """Half of the round trip."""


@dataclass(frozen=True)
class Visit:
    """What was seen of one machine."""

    machine: Machine
    identity: Identity | None = None
    """None if it cannot be reached."""
    error: SteelyardError | None = None
    """Why it cannot be reached."""
    address: str = ""
    address_error: SteelyardError | None = None
    agent_error: SteelyardError | None = None
    """Why there is no agent for it."""
    clock: ClockReading | None = None


async def visit_all(inventory: Inventory) -> list[Visit]:
    """A visit of every machine, in the inventory's order. Raises SiteError if control sockets cannot be made."""
    controls = _ssh_connection.control_folder()
    word = secrets.token_hex(4)
    turns = asyncio.Semaphore(MOST_AT_ONCE)

    async def visit(index: int, machine: Machine) -> Visit:
        async with turns:
            connection = _ssh_connection.connection(machine, controls / f"{word}-{index}", inventory.ssh_config)
            try:
                return await _visit(machine, connection, inventory.ssh_config)
            finally:
                await connection.close()

    return list(await asyncio.gather(*(visit(index, machine) for index, machine in enumerate(inventory.machines))))


async def _visit(machine: Machine, connection: Connection, ssh_config: str) -> Visit:
    try:
        identity = await ssh.identify(connection, machine.folder, _ssh_scripts.SURVEY)
    except SiteError as error:
        return Visit(machine, error=error)
    address, address_error, agent_error = "", None, None
    try:
        address = await _ssh_connection.address(machine, ssh_config)
    except SiteError as error:
        address_error = error
    try:
        _ssh_agent.program(machine.name, identity.architecture)
    except SiteError as error:
        agent_error = error
    clock = await _clock(connection)
    return Visit(machine, identity, None, address, address_error, agent_error, clock)


async def _clock(connection: Connection) -> ClockReading | None:
    """The machine's clock by the shortest of some round trips; None if it cannot be told."""
    readings = []
    for _ in range(CLOCK_LOOKS):
        asked_s = time.time()
        done = await connection.shell(CLOCK)
        answered_s = time.time()
        with contextlib.suppress(ValueError):
            ahead_s = float(done.stdout) - (asked_s + answered_s) / 2
            readings.append(ClockReading(ahead_s, (answered_s - asked_s) / 2))
    return min(readings, key=lambda reading: reading.error_s, default=None)
