"""Disruption `clock`: the clocks of the targets are wrong."""

from __future__ import annotations

from pydantic import Field

from steelyard.disruption.base import Disruption, Stage, by_agent
from steelyard.model.trial_settings import TrialSettings
from steelyard.model.value import Value
from steelyard.site.base import OwnClocks, Site
from steelyard.system.base import System


class Settings(Value):
    """Error of the clocks."""

    offset_s: float = Field(default=60.0, ge=-86_400, le=86_400)
    """By how much the clock of each target is set forward, s; less than 0: back. At the end it is set right."""


class Clock:
    """Agents set the clocks of their nodes."""

    name, takes_down = "clock", False

    def __init__(self, settings: Settings) -> None:
        self._offset_s = settings.offset_s

    def refusal(self, settings: TrialSettings, system: System, site: Site) -> str:
        """Where clocks do not end with the lease, and where none is wrong."""
        del settings, system
        if not isinstance(site, OwnClocks):
            return f"nodes of site {site.name} have the clock of their machine; each node of site vm has its own"
        return "" if self._offset_s else "no clock is wrong: disruption.offset_s above or below 0"

    async def hold(self, stage: Stage) -> None:
        """Have agents set the clocks, and set them right."""
        words = [self.name, f"--offset-s={self._offset_s!r}"]
        await by_agent(stage, lambda node: words, charged=False)


def create(settings: Settings) -> Disruption:
    """The disruption."""
    return Clock(settings)
