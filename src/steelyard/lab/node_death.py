"""Death of nodes under load: a phase that drives load ends within seconds of the first node that dies.

Without this every operation is sent to the dead cluster and times out, one after the other, until the phase's limit.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from steelyard.model.errors import SystemFault
from steelyard.node.base import Node
from steelyard.node.tasks import together
from steelyard.system.base import NoticesDeath, System

POLL_S = 1.0


async def first_death(system: System, databases: Sequence[Node]) -> SystemFault | None:
    """The fault of the first dead node, which names the other dead ones too; None if all live, or if the system does
    not notice deaths."""
    if not isinstance(system, NoticesDeath):
        return None
    faults = [fault for fault in await together(system.death(node) for node in databases) if fault is not None]
    if not faults:
        return None
    first, *others = faults
    if not others:
        return first
    names = ", ".join(fault.node for fault in others)
    return SystemFault(f"{first.message}; dead too: {names}", first.hint, node=first.node, system=first.system)


async def while_alive(
    driving: Coroutine[Any, Any, None],
    system: System,
    living: Callable[[], Sequence[Node]],
    checks: Sequence[Callable[[], None]] = (),
    expectations: Callable[[], int] = lambda: 0,
) -> None:
    """Await what drives load, but end it as soon as a node that should be alive has died, or one of `checks` raises.
    A look during which `expectations` change is made again: who should be alive when it began may be dead on purpose
    when the node is asked. Raises SystemFault for a dead node, with its name and the last lines of its logs."""
    ended = asyncio.Event()

    async def drive() -> None:
        try:
            await driving
        finally:
            ended.set()

    async def watch() -> None:
        while not ended.is_set():
            for check in checks:
                check()
            expected = expectations()
            fault = await first_death(system, living())
            if fault is not None and expected == expectations():
                raise fault
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(ended.wait(), POLL_S)

    await together([watch(), drive()])
