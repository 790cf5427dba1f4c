"""Undoing a start of a cluster: evidence of a fault, wipe, release."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from steelyard.lab.bracket import PhaseLog
from steelyard.lab.members import Members
from steelyard.lab.node_logs import tails
from steelyard.model.errors import NodeError, SiteError, SteelyardError, SystemFault
from steelyard.model.trial import Phase
from steelyard.node.base import Node
from steelyard.node.tasks import together
from steelyard.system.base import System

EVIDENCE_TIMEOUT_S = 30.0


async def wipe(system: System, databases: Sequence[Node]) -> None:
    """The data are of a snapshot or spent: nodes need no orderly stop."""
    await together(system.kill(node) for node in databases)
    await together(system.wipe(node) for node in databases)


@dataclass
class Undo:
    """Steps that undo a start."""

    limit_s: float
    """Time limit for the wipe, and for the release."""
    system: System
    members: Members
    phases: PhaseLog
    give_back: Callable[[bool], Awaitable[None]]
    """Takes the lease back; True: it may be handed on to the next start."""
    gauge: Callable[[], Awaitable[None]] | None = None
    """Measures the nodes' limits once more, after a start without an error."""


async def undo_after(first: BaseException, undo: Undo) -> None:
    """Keep what the logs say of a system's fault, as far as they can be read in time, then undo."""
    if isinstance(first, SystemFault):
        try:
            async with asyncio.timeout(EVIDENCE_TIMEOUT_S):
                first.evidence = await tails(undo.system, undo.members.started)
        except (TimeoutError, OSError, NodeError) as error:
            first.add_note(f"the logs of its nodes could not be read: {str(error) or 'not in time'}")
    await undo_start(undo, keep=False)


async def undo_start(undo: Undo, *, keep: bool) -> None:
    """Wipe and release. The site's release ends what is left, so a failing wipe is not a separate error; what is
    wrong with this machine (a full disk) is raised after the release."""
    trouble: Exception | None = None
    try:
        async with undo.phases.bracket(Phase.WIPE, undo.limit_s, SiteError):
            await wipe(undo.system, undo.members.started)
        if keep and undo.gauge is not None:
            await undo.gauge()
    except Exception as error:
        trouble = error
    try:
        async with undo.phases.bracket(Phase.RELEASE, undo.limit_s, SiteError):
            await undo.give_back(keep and trouble is None)
    except SteelyardError as error:
        if trouble is not None:
            error.add_note(f"the wipe before it failed too: {trouble}")
        raise
    if trouble is not None and not isinstance(trouble, SteelyardError):
        raise trouble
