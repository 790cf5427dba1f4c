"""Disruption `stress-cpu`: another program keeps processor cores of the node busy, within its limits."""

from __future__ import annotations

from pydantic import Field

from steelyard.disruption.base import Disruption, Stage, by_agent, refused_stress
from steelyard.model.trial_settings import TrialSettings
from steelyard.model.value import Value
from steelyard.site.base import Site
from steelyard.system.base import System


class Settings(Value):
    """Amount of work."""

    threads: int = Field(default=1, ge=1, le=1024)
    """Threads on each target, each of which takes a core as far as the node has one."""


class StressCpu:
    """Threads of an agent in the control groups of the node."""

    name, takes_down = "stress-cpu", False

    def __init__(self, settings: Settings) -> None:
        self._threads = settings.threads

    def refusal(self, settings: TrialSettings, system: System, site: Site) -> str:
        """Where they would be taken for another program."""
        del settings
        return refused_stress(system, site)

    async def hold(self, stage: Stage) -> None:
        """Have agents compute."""
        words = ["stress-cpu", "--threads", str(self._threads)]
        await by_agent(stage, lambda node: words, charged=True)


def create(settings: Settings) -> Disruption:
    """The disruption."""
    return StressCpu(settings)
