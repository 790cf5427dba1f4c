"""Disruption `disk-full`: a file without a name leaves little space on the node's own disk."""

from __future__ import annotations

from pydantic import Field

from steelyard.disruption.base import Disruption, Stage, by_agent
from steelyard.model.trial_settings import TrialSettings
from steelyard.model.value import Value
from steelyard.site.base import Site
from steelyard.system.base import System


class Settings(Value):
    """Space that is left."""

    free_mb: int = Field(default=0, ge=0, le=1 << 30)
    """MiB of each target's disk that stay free."""


class DiskFull:
    """Space of a file that an agent holds open."""

    name, takes_down = "disk-full", False

    def __init__(self, settings: Settings) -> None:
        self._free_mb = settings.free_mb

    def refusal(self, settings: TrialSettings, system: System, site: Site) -> str:
        """Where nodes share a disk with each other, or with this machine."""
        del system, site
        return "" if settings.node.own_disk else "nodes have no disk of their own (node.disk_gb)"

    async def hold(self, stage: Stage) -> None:
        """Have agents take the space."""
        free = str(self._free_mb)
        await by_agent(stage, lambda node: ["disk-full", "--folder", str(node.folder), "--free-mb", free], charged=True)


def create(settings: Settings) -> Disruption:
    """The disruption."""
    return DiskFull(settings)
