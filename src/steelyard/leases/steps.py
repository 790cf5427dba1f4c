"""Steps of lending and of taking back, for sites that create things on this machine.

A lease is lent step by step. Its record is written first; if a step fails, all that was done is taken back. Taking
back does not stop at the first error, and the record goes last, so that what is left can be found.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from steelyard.leases.lease import Lease
from steelyard.leases.removal import remove_record
from steelyard.model.errors import SiteError, SteelyardError
from steelyard.node.tasks import to_the_end, together


@dataclass(frozen=True)
class Step:
    """One named step of lending."""

    name: str
    act: Callable[[], Awaitable[None]]


Perform = Callable[[Step], Awaitable[None]]
"""Performer of a step for a site; tests give a function that fails or kills at a given step."""
Attempt = Callable[..., Awaitable[None]]
"""Performs actions at once, and keeps their errors for the end."""


async def perform(step: Step) -> None:
    """Perform a step."""
    await step.act()


@asynccontextmanager
async def undone_on_error(release: Callable[[], Coroutine[Any, Any, None]]) -> AsyncIterator[None]:
    """If the block ends by an error or is cancelled, `release` is run to its end. The first error wins; one of the
    release is added as a note."""
    try:
        yield
    except BaseException as error:
        try:
            await to_the_end(release())
        except SiteError as second:
            error.add_note(f"while taking the lease back: {second.message}")
        raise


@asynccontextmanager
async def taking_back(lease: Lease, hint: str) -> AsyncIterator[Attempt]:
    """Within the block, actions that take a lease back, of which each is performed even if an earlier one failed. At
    its end the record is removed, or kept if there were errors: then one SiteError is raised for all, with this
    hint."""
    errors: list[SteelyardError] = []

    async def attempt(*actions: Coroutine[Any, Any, None]) -> None:
        results = await together(_error_of(action) for action in actions)
        errors.extend(error for error in results if error is not None)

    yield attempt
    if not errors:
        await attempt(remove_record(lease))
    if errors:
        raise SiteError(
            f"lease {lease.id} was not fully taken back: " + "; ".join(error.message for error in errors), hint
        ) from errors[0]


async def _error_of(action: Coroutine[Any, Any, None]) -> SteelyardError | None:
    """The error of an action, if it fails."""
    try:
        await action
    except SteelyardError as error:
        return error
    return None
