"""Disruption `stress-memory`: another program uses memory of the node, within its limits."""

from __future__ import annotations

from pydantic import Field

from steelyard.disruption.base import Disruption, Stage, by_agent
from steelyard.model.trial_settings import TrialSettings
from steelyard.model.value import Value
from steelyard.site.base import Site
from steelyard.system.base import System


class Settings(Value):
    """Amount of memory."""

    mb: int = Field(default=256, ge=1, le=1 << 20)
    """MiB on each target. More than `node.memory_mb` leaves makes the kernel kill a process of the node: the server, or
    this program, and then the trial is repeated."""


class StressMemory:
    """Memory of an agent in the control groups of the node."""

    name, takes_down, uses_node = "stress-memory", False, True

    def __init__(self, settings: Settings) -> None:
        self._mb = settings.mb

    def refusal(self, settings: TrialSettings, system: System, site: Site) -> str:
        """Where the node has less."""
        del system, site
        limit_mb = settings.node.memory_mb
        less = limit_mb is not None and self._mb >= limit_mb
        return f"a node has {limit_mb} MiB (node.memory_mb), not {self._mb}" if less else ""

    async def hold(self, stage: Stage) -> None:
        """Have agents use it."""
        words = ["stress-memory", "--mb", str(self._mb)]
        await by_agent(stage, lambda node: words, charged=True)


def create(settings: Settings) -> Disruption:
    """The disruption."""
    return StressMemory(settings)
