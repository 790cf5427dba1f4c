"""Disruption `disk-slow`: the node's own disk reads and writes at lower rates."""

from __future__ import annotations

from pydantic import Field

from steelyard.disruption.base import Disruption, Stage, by_agent
from steelyard.model.node_limits import NodeLimits
from steelyard.model.trial_settings import TrialSettings
from steelyard.model.value import Value
from steelyard.node.base import Node
from steelyard.site.base import Site, SlowsDisks
from steelyard.system.base import System


class Settings(Value):
    """Rates that are left."""

    read_mb_per_s: float = Field(default=0.0, ge=0, le=1e6)
    """Bytes that each target may read from its disk, MB/s (10^6 bytes); 0: as ever."""
    write_mb_per_s: float = Field(default=0.0, ge=0, le=1e6)
    """Bytes that each target may write to its disk, MB/s (10^6 bytes); 0: as ever."""


class DiskSlow:
    """Throttles of the kernel, which agents set and take back."""

    name, takes_down = "disk-slow", False

    def __init__(self, settings: Settings) -> None:
        rates = {f"disk_{name}": value for name, value in settings if value}
        self._slow = NodeLimits.model_validate(rates)

    def refusal(self, settings: TrialSettings, system: System, site: Site) -> str:
        """Where nodes have no disk that can be throttled, and where it is as slow already."""
        del system
        if not settings.node.own_disk:
            return "nodes have no disk of their own (node.disk_gb)"
        if not isinstance(site, SlowsDisks):
            return f"site {site.name} cannot throttle the disks of nodes that run; site local can"
        if not self._slow.slow_disk:
            return "no rate is lower: disruption.read_mb_per_s, or disruption.write_mb_per_s, above 0"
        for name in sorted(self._slow.model_fields_set):
            limit, slow = getattr(settings.node, name), getattr(self._slow, name)
            if limit is not None and slow >= limit:
                return f"{slow:g} MB/s are not less than the study's limit, node.{name} = {limit:g}"
        return site.unslowable(self._slow)

    async def hold(self, stage: Stage) -> None:
        """Have agents throttle the disks."""
        site: object = stage.site
        assert isinstance(site, SlowsDisks)

        def words(node: Node) -> list[str]:
            begun, ended = site.slowed(node, self._slow, stage.limits)
            pairs = [("--set", *line) for line in begun] + [("--back", *line) for line in ended]
            return [self.name, *(str(word) for pair in pairs for word in pair)]

        await by_agent(stage, words, charged=False)


def create(settings: Settings) -> Disruption:
    """The disruption."""
    return DiskSlow(settings)
