"""Maintenance of nodes while the load runs, by the system's own means. It ends once it is done, and leaves nothing to
undo."""

from __future__ import annotations

import asyncio

from steelyard.disruption.base import Stage
from steelyard.format import listed
from steelyard.model.activity import BEGAN, HEALED
from steelyard.model.errors import SystemFault
from steelyard.model.trial_settings import TrialSettings
from steelyard.model.value import Value
from steelyard.node.base import Node
from steelyard.node.tasks import together
from steelyard.site.base import Site
from steelyard.system.base import Maintains, System


class Settings(Value):
    """Maintenance has no settings; `for_s` is the longest that it may take."""


class Maintenance:
    """A task of `Maintains`, on all targets at once."""

    takes_down = False

    def __init__(self, task: str) -> None:
        self.name = task

    def refusal(self, settings: TrialSettings, system: System, site: Site) -> str:
        """For systems without it."""
        del settings, site
        tasks = sorted(system.maintenance) if isinstance(system, Maintains) else ()
        if self.name in tasks:
            return ""
        return f"system {system.name} has no {self.name}" + (f"; it has {listed(tasks)}" if tasks else "")

    async def hold(self, stage: Stage) -> None:
        """Ask for it. Raises SystemFault if it fails, or takes longer than `for_s`."""
        await together(self._of(stage, node) for node in stage.nodes)

    async def _of(self, stage: Stage, node: Node) -> None:
        system = stage.system
        assert isinstance(system, Maintains)
        stage.mark(node, BEGAN, None)
        try:
            async with asyncio.timeout(stage.for_s):
                await system.maintain(node, self.name)
        except TimeoutError:
            what = f"{node.name}: its {self.name} is not done after {stage.for_s:g} s (disruption.for_s)"
            raise SystemFault(what, node=node.name, system=stage.system.name) from None
        stage.mark(node, HEALED, None)
