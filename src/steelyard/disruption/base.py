"""Protocol of a disruption: something that is done to nodes of a running cluster for a limited time, and undone.

`hold` does both. A node is never left disrupted: whatever is not undone by the end of a process is held by
`steelyard-agent disrupt` on the node, which lets go at the end of its time, of its input and of its process, watched by
another process (docs/decisions/0033-disruptions.md). `by_agent` below runs it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

from steelyard.model.activity import BEGAN, HEALED
from steelyard.model.errors import SteelyardError
from steelyard.model.node_limits import NodeLimits
from steelyard.model.trial_settings import TrialSettings
from steelyard.node import agent
from steelyard.node.base import Node
from steelyard.node.command import end, spawn
from steelyard.node.tasks import to_the_end, together
from steelyard.site.base import NO_LIMITS, ChargesPrograms, Site
from steelyard.system.base import Existing, System

BEGIN_TIMEOUT_S = 30.0
END_TIMEOUT_S = 10.0
"""Beyond its time; the agent's own watchdog waits 2 s."""

MarkIt = Callable[[Node, str, float | None], None]
"""Takes a node, the name of a mark that it has reached (`model.activity.OF_DISRUPTION`), and its time on the node's
clock, seconds since the epoch; None: now."""


class Stage(NamedTuple):
    """Nodes of a disruption, their system, and its length."""

    system: System
    nodes: Sequence[Node]
    """Its targets."""
    members: Sequence[Node]
    """All nodes of the cluster."""
    for_s: float
    mark: MarkIt
    site: Site | None = None
    """Where the nodes are from; None: this machine."""
    limits: NodeLimits = NO_LIMITS
    """Their limits while they are measured."""


class Disruption(Protocol):
    """Something that is done to nodes of a running cluster, and undone."""

    name: str
    takes_down: bool
    """Whether targets are expected not to answer: they may be dead, and instruments that read their servers silent."""

    async def hold(self, stage: Stage) -> None:
        """Disrupt the targets for `for_s`, then heal them; returns when all are healed. Marks `began` and `healed` of
        each. Heals them too if it is cancelled or fails. Raises SteelyardError if the laboratory could not do it."""
        ...


@runtime_checkable
class Refuses(Protocol):
    """Ability: cannot be done everywhere."""

    def refusal(self, settings: TrialSettings, system: System, site: Site) -> str:
        """Reason why these nodes or this system cannot be disrupted so; empty if they can. Pure."""
        ...


@runtime_checkable
class Harmless(Protocol):
    """Ability: leaves nodes as they are, so that it may be done to a cluster that exists."""

    harmless: bool


@runtime_checkable
class Cautions(Protocol):
    """Ability: may cost a system more than time."""

    def caution(self, system: System) -> str:
        """A clause on what it costs the system; empty if only time. Pure."""
        ...


@runtime_checkable
class UsesNode(Protocol):
    """Ability: another program uses processor or memory of the node, which must be charged to it."""

    uses_node: bool


def refused(disruption: Disruption, settings: TrialSettings, system: System, site: Site) -> str:
    """Reason why a disruption of these nodes or of this system is not possible; empty if it is. Pure."""
    if isinstance(system, Existing) and not isinstance(disruption, Harmless):
        return "a cluster that exists is only measured"
    if isinstance(disruption, UsesNode) and not isinstance(site, ChargesPrograms):
        return (
            f"site {site.name} does not charge it to the node, so it would be taken for another program of the machine"
        )
    return disruption.refusal(settings, system, site) if isinstance(disruption, Refuses) else ""


async def by_agent(stage: Stage, words: Callable[[Node], Sequence[str]], *, charged: bool) -> None:
    """Hold a disruption by an agent on each target; `words`: its kind and options there; `charged`: within the limits
    of the node. Raises SteelyardError."""
    await together(_by_agent(stage, node, words(node), charged=charged) for node in stage.nodes)


async def _by_agent(stage: Stage, node: Node, words: Sequence[str], *, charged: bool) -> None:
    argv = [agent.on(node), "disrupt", *words, "--for-s", f"{stage.for_s:g}"]
    pipe = asyncio.subprocess.PIPE
    with tempfile.NamedTemporaryFile(prefix="steelyard-disrupt-") as last_words:
        stderr = Path(last_words.name)
        process = await spawn(node, argv, stdin=pipe, stdout=pipe, stderr=stderr, watch=not charged)

        async def ask_to_heal() -> None:
            # It heals when its input ends; a signal would reach only the client of a node elsewhere.
            if process.stdin is not None:
                process.stdin.close()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), END_TIMEOUT_S)
            await end(process)

        try:
            for name, event, limit_s in (
                (BEGAN, "began", BEGIN_TIMEOUT_S), (HEALED, "ended", stage.for_s + END_TIMEOUT_S),
            ):  # fmt: skip
                line = await _line(process, limit_s)
                if line.get("disruption") != event:
                    why = stderr.read_text(errors="replace").strip() or "it ended unasked"
                    raise SteelyardError(f"{node.name}: `{words[0]}` was not held: {why}")
                stage.mark(node, name, line["t_s"])
        finally:
            await to_the_end(ask_to_heal())


async def _line(process: asyncio.subprocess.Process, limit_s: float) -> dict[str, Any]:
    """The next line of an agent; empty at the end, and if there is none in time."""
    assert process.stdout is not None
    try:
        line = await asyncio.wait_for(process.stdout.readline(), limit_s)
    except TimeoutError:
        return {}
    record: dict[str, Any] = json.loads(line) if line.strip() else {}
    return record
