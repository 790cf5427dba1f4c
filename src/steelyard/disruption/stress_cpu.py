"""Disruption `stress-cpu`: another program keeps processor cores of the node busy, within its limits."""

from __future__ import annotations

from pydantic import Field

from steelyard.disruption.base import Disruption, Stage, by_agent
from steelyard.model.trial_settings import TrialSettings
from steelyard.model.value import Value
from steelyard.site.base import Site
from steelyard.system.base import System

MOST_A_CORE = 8
"""Threads for each core of a node, so that the program that ends them gets its turn."""


class Settings(Value):
    """Amount of work."""

    threads: int = Field(default=1, ge=1, le=1024)
    """Threads on each target, each of which takes a core as far as the node has one. Of a node with
    `node.cpus`, at most 8 for each core."""


class StressCpu:
    """Threads of an agent in the control groups of the node."""

    name, takes_down, uses_node = "stress-cpu", False, True

    def __init__(self, settings: Settings) -> None:
        self._threads = settings.threads

    def refusal(self, settings: TrialSettings, system: System, site: Site) -> str:
        """Of more than keep the node busy."""
        del system, site
        cpus = settings.node.cpus
        if cpus is None or self._threads <= (most := int(MOST_A_CORE * max(1.0, cpus))):
            return ""
        return f"{self._threads} threads that share {cpus:g} cores would end late: at most {most}"

    async def hold(self, stage: Stage) -> None:
        """Have agents compute."""
        words = ["stress-cpu", "--threads", str(self._threads)]
        await by_agent(stage, lambda node: words, charged=True)


def create(settings: Settings) -> Disruption:
    """The disruption."""
    return StressCpu(settings)
